"""Loads a benchmark's SQL by name from benchmarks/<benchmark>/statements.sql, in the format of store/sql."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files

from store.queries import blocks


def statements(benchmark: str) -> Mapping[str, str]:
    """Return the text of each of the benchmark's statements by name."""
    file = files("benchmarks").joinpath(benchmark, "statements.sql")
    return dict(blocks(file.read_text(encoding="utf-8"), file.name))
