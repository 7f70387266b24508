"""What every command shares: which project, and how it prints."""

from __future__ import annotations

import asyncio
import functools
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.table import Table

from domain.clock import Clock, SystemClock
from operations.database import open_database
from operations.project import Project, open_project
from store.postgres import PostgresStore

DEFAULT_DATA_DIR = "muster-data"
ANY_WIDTH = 10_000  # of a pipe: a row is a line


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a command."""

    data_dir: Path
    database_url: str | None
    as_json: bool
    clock: Clock

    def project(self) -> Project:
        """The project the command works on. Raises NotInitialisedError."""
        return open_project(self.data_dir, self.database_url)

    @asynccontextmanager
    async def store(self) -> AsyncIterator[PostgresStore]:
        """The project's database, closed afterwards."""
        async with open_database(self.project(), self.clock) as store:
            yield store

    def show(self, value: object, text: str) -> None:
        """Print `value` as one JSON object with --json, else `text`."""
        click.echo(to_json(value) if self.as_json else text)

    def show_table(self, rows: list[dict[str, object]], columns: list[str], empty: str) -> None:
        """Print rows as a JSON array with --json, else as a table; `empty` says what to do when there are none."""
        if self.as_json:
            click.echo(to_json(rows))
            return
        if not rows:
            click.echo(empty)
            return
        table = Table(*columns, box=None, pad_edge=False)
        for row in rows:
            table.add_row(*(as_text(row.get(column)) for column in columns))
        Console(width=None if sys.stdout.isatty() else ANY_WIDTH).print(table)


def to_json(value: object) -> str:
    """Compact JSON, keys in order."""
    return msgspec.json.encode(value).decode()


def as_text(value: object) -> str:
    """A value in a table cell."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:g}"
    return str(value)


def command(function: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """A command body: adds --data-dir, --database-url and --json, and runs the coroutine."""

    @click.option(
        "--data-dir",
        type=click.Path(path_type=Path, file_okay=False),
        default=DEFAULT_DATA_DIR,
        envvar="MUSTER_DATA_DIR",
        show_default=True,
        help="The project's folder.",
    )
    @click.option(
        "--database-url", envvar="MUSTER_DATABASE_URL", help="A PostgreSQL to use instead of the embedded one."
    )
    @click.option("--json", "as_json", is_flag=True, help="Print JSON.")
    @functools.wraps(function)
    def wrapper(**arguments: Any) -> None:  # Any: click's own options, checked by click
        data_dir, database_url = arguments.pop("data_dir"), arguments.pop("database_url")
        run = Run(data_dir, database_url, arguments.pop("as_json"), SystemClock())

        async def body() -> None:
            await function(run, **arguments)

        asyncio.run(body())

    return wrapper
