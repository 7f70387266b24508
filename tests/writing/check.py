"""Finds words, phrases, test names and commit titles that break the rules of CONTRIBUTING.md's "Plain English"."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
MAX_NAME = 60
MAX_TITLE = 65

# Recorded data, dependencies and this dictionary itself are not our prose.
NOT_PROSE = re.compile(r"\.lock$|^tests/(captures|cases/data|fuzz/findings|writing)/|\.swf$")

TEST_NAME = re.compile(r"^ *(?:async )?def (test_\w+)", re.MULTILINE)
TITLE = re.compile(r"^[a-z][\w.+-]*(?:, [a-z][\w.+-]*)*: \S")
# Identifiers: codespell reads `not_nobody` as one word, so parts of names are looked up here.
PART = re.compile(
    r"(?<![A-Za-z])[A-Za-z][a-z]*(?=_)|(?<=_)[a-z]+(?![A-Za-z])|(?<=[a-z])[A-Z][a-z]+|[A-Z][a-z]+(?=[A-Z])"
)


class Finding(NamedTuple):
    """What is wrong in one line. `line` counts from 1."""

    file: str
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.what}"


@cache
def plain_words() -> dict[str, str]:
    """Discouraged words with what to write instead, from the dictionary that codespell uses as well."""
    rows = (line.partition("->") for line in (HERE / "plain_words.txt").read_text().splitlines())
    return {word: instead.rstrip(", ") for word, _, instead in rows}


@cache
def phrases() -> list[tuple[re.Pattern[str], str]]:
    """Discouraged phrases as patterns, with what to write instead."""
    lines = (HERE / "phrases.txt").read_text().splitlines()
    rows = (line.partition(" -> ") for line in lines if line and not line.startswith("#"))
    return [(re.compile(found.strip(), re.IGNORECASE), instead.strip()) for found, _, instead in rows]


def check_text(file: str, text: str) -> Iterator[Finding]:
    """Discouraged phrases, discouraged words inside names, and long test names of one file.

    >>> [str(found) for found in check_text("a.py", "x = 1  # the host has them not")]
    ['a.py:1: "has them not": write "does not have it / them"']
    >>> [str(found) for found in check_text("a.py", "class LestNot: ...")]
    ['a.py:1: "lest" in a name: write "so that … not"']
    """
    for number, line in enumerate(text.splitlines(), start=1):
        for pattern, instead in phrases():
            if found := pattern.search(line):
                yield Finding(file, number, f'"{found[0]}": write "{instead}"')
        for part in PART.findall(line):
            if instead := plain_words().get(part.lower(), ""):
                yield Finding(file, number, f'"{part.lower()}" in a name: write "{instead}"')
    if file.endswith(".py"):
        for found in TEST_NAME.finditer(text):
            if len(found[1]) > MAX_NAME:
                at = text.count("\n", 0, found.start(1)) + 1
                yield Finding(file, at, f"{found[1]} has {len(found[1])} characters, at most {MAX_NAME} are allowed")


def check_title(title: str) -> str | None:
    """What is wrong with a commit title, None when it is right. Git's own titles of merges and reverts are right.

    >>> check_title("deadline: cap AFAP due dates at the delay bound")
    >>> check_title("Fix things")
    'the title must read "component: effect", not "Fix things"'
    """
    if title.startswith(("Merge ", "Revert ")):
        return None
    if not TITLE.match(title):
        return f'the title must read "component: effect", not "{title}"'
    if len(title) > MAX_TITLE:
        return f"the title has {len(title)} characters, at most {MAX_TITLE} are allowed: {title}"
    return None


def prose_files(root: Path = ROOT) -> list[str]:
    """Paths below `root` that git tracks or would add, without recorded data."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    return [file for file in listed if not NOT_PROSE.search(file) and (root / file).is_file()]


def check_files(files: Iterable[str], root: Path = ROOT) -> Iterator[Finding]:
    """Findings of all files that are text."""
    for file in files:
        try:
            text = (root / file).read_text()
        except UnicodeDecodeError:
            continue
        yield from check_text(file, text)
