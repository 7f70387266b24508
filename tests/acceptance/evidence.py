"""Digests of a project's data, for comparison: all tables and files."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import asyncpg

from administration.project import Project

ROWS = "SELECT count(*), md5(coalesce(string_agg(t::text, E'\\n' ORDER BY t::text), '')) FROM {} t"


@dataclass(frozen=True, slots=True)
class Evidence:
    """By table the number of rows and their MD5; by path the MD5 of each file."""

    tables: dict[str, tuple[int, str]]
    files: dict[str, str]


async def evidence(project: Project, *, without: tuple[str, ...] = ()) -> Evidence:
    """Return the present digests, except for the tables in `without`."""
    assert project.database_url is not None
    connection = await asyncpg.connect(project.database_url)
    try:
        names = await connection.fetch(
            "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace"
        )
        wanted = sorted(str(row["relname"]) for row in names if row["relname"] not in without)
        found = {name: (await connection.fetch(ROWS.format(name)))[0] for name in wanted}
    finally:
        await connection.close()
    assert len(found) > 10
    return Evidence({name: (row[0], row[1]) for name, row in found.items()}, files_below(project.data_dir))


def files_below(folder: Path) -> dict[str, str]:
    """Return the MD5 of each file in a folder and its subfolders."""
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): hashlib.md5(path.read_bytes()).hexdigest() for path in paths}
