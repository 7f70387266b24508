"""Runs cases: reads files, calls the product by kind, compares."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from domain.errors import MusterError
from tests.cases.comparing import differences
from tests.cases.kinds import KINDS

Case = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Verdict:
    """`word` is pass, fail or unsupported; `why` holds the expected and the actual figures."""

    word: str
    case_id: str
    why: str = ""

    def line(self) -> str:
        return f"{self.word} {self.case_id}" + (f": {self.why}" if self.why else "")


def main(arguments: Sequence[str]) -> int:
    """Print a line per case; return 0 if there are cases and all of them pass."""
    parser = argparse.ArgumentParser(prog="python -m tests.cases", description=__doc__)
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="a case file, or a folder of them")
    verdicts = [judged(case, name) for name, case in cases(parser.parse_args(arguments).paths)]
    for verdict in verdicts:
        print(verdict.line())
    return 0 if verdicts and all(verdict.word == "pass" for verdict in verdicts) else 1


def cases(paths: Iterable[Path]) -> Iterator[tuple[str, object]]:
    """Yield every case of the files and folders, with a name for those without id."""
    for path in paths:
        for file in sorted(path.glob("*.json")) if path.is_dir() else [path]:
            try:
                content = json.loads(file.read_text(encoding="utf-8"))
            except (OSError, ValueError, RecursionError) as error:
                yield file.stem, error
                continue
            yield from ((file.stem, one) for one in (content if isinstance(content, list) else [content]))


def judged(case: object, name: str) -> Verdict:
    """Compare the product's answers with the expected ones."""
    if not isinstance(case, Mapping):
        return Verdict("fail", name, f"expected a case as a JSON object, got {case!r}")
    case_id = str(case.get("id", name))
    kind = case.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        return Verdict("unsupported", case_id, f"kind {kind!r}")
    expected = case.get("expected")
    if not isinstance(expected, Mapping) or not expected:
        return Verdict("fail", case_id, f"expected figures to compare with, got {expected!r}")
    try:
        computed = KINDS[kind](case.get("inputs", {}), expected)
        found = differences(expected, computed, float(case.get("tolerance") or 0.0))
    except (MusterError, LookupError, TypeError, ValueError, ArithmeticError, AttributeError, RecursionError) as error:
        return Verdict("fail", case_id, f"expected {json.dumps(expected)}, computed {type(error).__name__}: {error}")
    return Verdict("fail", case_id, "; ".join(found)) if found else Verdict("pass", case_id)
