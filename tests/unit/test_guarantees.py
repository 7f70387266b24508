"""Every guarantee names existing tests."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8")
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def test_every_promise_names_a_test() -> None:
    promises = re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:8]

    assert [promise[:2] for promise in promises] == [f"{n}." for n in range(1, 8)]
    assert [promise.splitlines()[0] for promise in promises if not NAMED.search(promise)] == []


def test_every_named_test_exists() -> None:
    named = NAMED.findall(PAGE)

    missing = [
        f"{path}::{name}"
        for path, name in named
        if not re.search(rf"^(async )?def {name}\(", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert len(named) >= 7
    assert missing == []
