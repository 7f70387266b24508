"""The page of all tables, read from store/schema.sql. Pure."""

from __future__ import annotations

from cli.manual.words import MADE, cell, code, table

_HEAD = f"""\
# The schema

{MADE.format(source="`store/schema.sql`")}

Every table of the database, as a fresh one has it.
Instants (`*_at`) are seconds since the epoch, UTC, as double precision:
`to_timestamp(due_at)` reads one. Tables change with versions of Muster: a report of your own had better
read a copy, or the [API](../api.md).
"""
RULE = "-- " + "-" * 20


def schema_page(sql: str) -> str:
    """The whole page."""
    parts, about, body = [_HEAD, "## version\n"], list[str](), list[str]()
    inside = False
    for line in sql.splitlines():
        if inside and line.startswith(")"):
            parts.append(table(["column", "is", "meaning"], _columns(body)) + "\n")
            inside, body = False, []
        elif inside:
            body.append(line)
        elif line.startswith(RULE):
            parts.append(f"## {line.strip('- ')}\n")
        elif line.startswith("-- "):
            about.append(line.removeprefix("-- "))
            continue
        elif line.startswith("CREATE TABLE ") and line.endswith("("):
            parts.append(f"### {line.split()[2]}\n")
            parts += [cell(" ".join(about)) + "\n"] if about else []
            inside = True
        about = []
    return "\n".join(parts)


def _columns(body: list[str]) -> list[list[str]]:
    """Name, type with constraints, and comment of each column; constraints of the table have no name.

    >>> _columns(["    a  int NOT NULL,  -- of b", "    PRIMARY KEY (a)"])
    [['`a`', '`int NOT NULL`', 'of b'], ['', '`PRIMARY KEY (a)`', '']]
    """
    rows: list[list[str]] = []
    for line in body:
        text, _, comment = line.partition("--")
        said = text.strip().removesuffix(",")
        if said:
            name, _, rest = said.partition(" ")
            column = name.islower()
            rows.append([code(name if column else ""), code(rest.strip() if column else said), cell(comment)])
        elif rows and comment:  # a comment that goes on
            rows[-1][2] = f"{rows[-1][2]} {cell(comment)}".strip()
    return rows
