"""The command: `python -m tests.writing --help`. Exit code 1 when something is found."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from tests.writing.check import NOT_PROSE, ROOT, check_files, check_title, prose_files
from tests.writing.sentences import check_sentences

DESCRIPTION = "Checks phrases, names of tests, sentences that tests expect, and the titles of the latest commits."


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.writing", description=DESCRIPTION)
    parser.add_argument("files", nargs="*", help="default: all that git tracks, and the latest titles")
    parser.add_argument("--message", type=Path, help="check the title in this commit message file, nothing else")
    given = parser.parse_args()
    found: list[str] = []
    if given.message:
        titles = given.message.read_text().splitlines()[:1]
    else:
        files = [file for file in given.files if not NOT_PROSE.search(file)] if given.files else prose_files()
        found += map(str, check_files(files))
        found += map(str, check_sentences(file for file in files if file.startswith("tests/") and file.endswith(".py")))
        # The newest commit may be CI's own merge; the commit-msg hook checks titles as they are written.
        latest = ["git", "log", "--no-merges", "--skip=1", "-10", "--format=%s"]
        log = subprocess.run(latest, cwd=ROOT, capture_output=True, text=True, check=False)
        titles = [] if given.files else log.stdout.splitlines()
    found += [wrong for title in titles if (wrong := check_title(title))]
    print(*found, sep="\n" if found else "")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
