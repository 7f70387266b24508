"""What SQL does a name stand for? One file per query, in sql/."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def load(name: str) -> str:
    """The text of sql/<name>.sql. Raises FileNotFoundError for a name that has no file."""
    return files("store").joinpath("sql", f"{name}.sql").read_text(encoding="utf-8")


def names() -> list[str]:
    """The name of every query, sorted."""
    return sorted(entry.name.removesuffix(".sql") for entry in files("store").joinpath("sql").iterdir())
