"""Loads SQL queries by name from sql/, which has one file per store module with a block for each query.

A block begins with a line like `-- name: lock_jobs` and a comment with the query's purpose, arguments and result.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from domain.errors import NotFoundError

NAME = re.compile(r"^-- name: ([a-z][a-z0-9_]*)\n", re.MULTILINE)


@cache
def queries() -> Mapping[str, str]:
    """Return the text of all queries by name. Raises ValueError for a duplicate name or text before the first name."""
    found: dict[str, str] = {}
    for file in sorted(files("store").joinpath("sql").iterdir(), key=lambda one: one.name):
        for name, text in blocks(file.read_text(encoding="utf-8"), file.name):
            if name in found:
                raise ValueError(f"{file.name}: query {name} stands twice")
            found[name] = text
    return found


def blocks(text: str, file: str) -> list[tuple[str, str]]:
    """Return the queries in a file as (name, text), in order.

    >>> blocks("-- name: one\\nSELECT 1;\\n\\n-- name: two\\nSELECT 2;\\n", "some.sql")
    [('one', 'SELECT 1;\\n'), ('two', 'SELECT 2;\\n')]
    """
    before, *parts = NAME.split(text)
    if before.strip():
        raise ValueError(f"{file}: text before the first `-- name:`")
    return [(name, f"{query.strip()}\n") for name, query in zip(parts[::2], parts[1::2], strict=True)]


def load(name: str) -> str:
    """Return the text of a query. Raises NotFoundError for an unknown name."""
    try:
        return queries()[name]
    except KeyError:
        raise NotFoundError("query", name) from None
