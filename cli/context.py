"""Provides what all commands share: access to a project or server, tables, progress bars and completion."""

from __future__ import annotations

import asyncio
import functools
import getpass
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec
from click.core import ParameterSource
from click.shell_completion import get_completion_class
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bar
from rich.table import Table

from domain.clock import Clock, SystemClock
from domain.errors import InvalidInputError, MusterError

if TYPE_CHECKING:
    from administration.project import Project
    from muster_client import Client
    from store.postgres import PostgresStore
    from transfer.project_files import ProjectFiles


DEFAULT_DATA_DIR = "muster-data"
ANY_WIDTH = 10_000  # for pipes: one line per row
LAST_YEAR_AT = 253_000_000_000.0  # year 9987; later times are shown in seconds

T = TypeVar("T")
Body = Callable[..., Awaitable[None]]
Command = Callable[..., None]


class NotThroughServerError(MusterError):
    """The command works only on the project's own machine."""


@dataclass(frozen=True, slots=True)
class Server:
    """The server that commands use instead of a database."""

    url: str
    token: str


@dataclass(frozen=True, slots=True)
class Run:
    """One invocation of a command."""

    data_dir: Path
    database_url: str | None
    as_json: bool
    clock: Clock
    server: Server | None = None

    def project(self) -> Project:
        """Return the project in --data-dir. Raises NotInitialisedError."""
        from administration.project import open_project

        return open_project(self.data_dir, self.database_url)

    @asynccontextmanager
    async def store(self) -> AsyncIterator[PostgresStore]:
        """Open the project's database, and close it at the end."""
        from runtime.project import open_database

        async with open_database(self.project(), self.clock) as store:
            yield store

    async def files(self, store: PostgresStore) -> ProjectFiles:
        """Return the project's files, by its present settings."""
        from transfer.project_files import ProjectFiles

        settings = (await store.settings.in_force()).storage
        return ProjectFiles(self.project().files_dir, lambda: settings)

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        """Open a client for the server's API, or for the API of the project on this machine."""
        from muster_client import Client

        if self.server is not None:
            async with Client(self.server.url, self.server.token) as client:
                yield client
        else:
            from runtime.project_api import local_client

            async with local_client(self.project(), self.clock, user=user()) as client:
                yield client

    async def ask(self, call: Callable[[Client], Awaitable[T]]) -> T:
        """Return the reply of one API call."""
        async with self.client() as client:
            return await call(client)

    def show(self, value: object, text: str) -> None:
        """Print `value` as one JSON object with --json, otherwise print `text`."""
        click.echo(to_json(value) if self.as_json else text)

    def show_table(self, rows: Sequence[Mapping[str, object]], columns: list[str], empty: str) -> None:
        """Print rows as a JSON array with --json, otherwise as a table, or `empty` if there are no rows."""
        if self.as_json:
            click.echo(to_json(rows))
            return
        if not rows:
            click.echo(empty)
            return
        table = Table(*columns, box=None, pad_edge=False)
        for row in rows:
            table.add_row(*(field_as_text(column, row.get(column)) for column in columns))
        Console(width=None if sys.stdout.isatty() else ANY_WIDTH).print(table)


def user() -> str:
    """Return the user's name, or the user id if the machine has no name for it."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"user {os.getuid()}"


def to_json(value: object) -> str:
    """Return compact JSON with sorted keys."""
    return msgspec.json.encode(value).decode()


def as_text(value: object) -> str:
    """Format a value for a table cell.

    >>> as_text(None), as_text(0.5), as_text(["read", "submit"]), as_text({"lab": 2.0})
    ('-', '0.5', 'read, submit', 'lab 2')
    """
    match value:
        case None:
            return "-"
        case float():
            return f"{value:g}"
        case list() | tuple():
            return ", ".join(map(as_text, value)) or "-"
        case dict():
            return ", ".join(f"{key} {as_text(one)}" for key, one in value.items()) or "-"
        case _:
            return str(value)


def field_as_text(key: str, value: object) -> str:
    """Format a field's value, as a date if the field's name ends in `_at`.

    >>> field_as_text("ended_at", 1795325409.4), field_as_text("ended_at", None), field_as_text("shares", 2.0)
    ('2026-11-22 05:30:09 UTC', '-', '2')
    """
    if key.endswith("_at") and isinstance(value, (int, float)) and 0.0 <= value < LAST_YEAR_AT:
        return datetime.fromtimestamp(value, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return as_text(value)


def lines_of(value: Mapping[str, object]) -> str:
    """Format a mapping, one line per key.

    >>> print(lines_of({"batch_id": 1, "hold": None}))
    batch_id  1
    hold      -
    """
    width = max(map(len, value), default=0)
    return "\n".join(f"{key:{width}}  {field_as_text(key, one)}" for key, one in value.items())


def command(body: Body) -> Command:
    """Declare a command that works on a project or through a server. Adds the options for both and runs the coroutine.

    The body calls the API through `Run.ask` or `Run.client`.
    """

    @click.option(
        "--server", envvar="MUSTER_SERVER", metavar="URL", help="Use this server's API instead of the database."
    )
    @click.option("--token", envvar="MUSTER_TOKEN", help="Token for the server's API.")
    @_with_project
    @functools.wraps(body)
    def wrapper(**arguments: Any) -> None:  # Any: checked by click
        asked = _server_asked(arguments.pop("server"), arguments.pop("token"))
        _run(body, arguments, asked)

    return wrapper


def local_command(instead: str) -> Callable[[Body], Command]:
    """Declare a command that works only on the project's own machine. With --server it fails and suggests `instead`."""

    def decorate(body: Body) -> Command:
        @only_here(instead)
        @_with_project
        @functools.wraps(body)
        def wrapper(**arguments: Any) -> None:  # Any: checked by click
            _run(body, arguments, None)

        return wrapper

    return decorate


def only_here(instead: str) -> Callable[[Command], Command]:
    """Add --server to a command that does not use a server. With it the command fails and suggests `instead`."""

    def decorate(function: Command) -> Command:
        @click.option("--server", hidden=True)
        @click.option("--token", envvar="MUSTER_TOKEN", hidden=True)
        @functools.wraps(function)
        def wrapper(**arguments: Any) -> None:  # Any: checked by click
            server, _ = arguments.pop("server"), arguments.pop("token")
            if server is not None:
                words = click.get_current_context().command_path
                raise NotThroughServerError(f"{words} does not work through a server: {instead}")
            function(**arguments)

        return wrapper

    return decorate


def _with_project(function: Command) -> Command:
    """Add --data-dir, --database-url and --json."""
    folder = click.option(
        "--data-dir",
        type=click.Path(path_type=Path, file_okay=False),
        default=DEFAULT_DATA_DIR,
        envvar="MUSTER_DATA_DIR",
        show_default=True,
        help="The project's directory.",
    )
    database = click.option(
        "--database-url",
        envvar="MUSTER_DATABASE_URL",
        help="PostgreSQL database to use instead of the embedded database.",
    )
    return folder(database(click.option("--json", "as_json", is_flag=True, help="Print JSON.")(function)))


def _run(body: Body, arguments: dict[str, Any], server: Server | None) -> None:
    run = Run(arguments.pop("data_dir"), arguments.pop("database_url"), arguments.pop("as_json"), SystemClock(), server)

    async def whole() -> None:
        await body(run, **arguments)

    asyncio.run(whole())


def _server_asked(url: str | None, token: str | None) -> Server | None:
    """Return the server, or None if the command line names a project. Raises InvalidInputError."""
    if url is None:
        return None
    context = click.get_current_context()
    local = [
        one for one in ("data_dir", "database_url") if context.get_parameter_source(one) is ParameterSource.COMMANDLINE
    ]
    if local and context.get_parameter_source("server") is not ParameterSource.COMMANDLINE:
        return None
    if local:
        raise InvalidInputError("--server", "only one of --server and --" + local[0].replace("_", "-"), "both")
    if not url.startswith(("http://", "https://")):
        raise InvalidInputError("--server", "an http or https URL", url)
    if token is None:
        raise InvalidInputError("--token", "a token for the API (`muster token add`)", "none")
    return Server(url, token)


@contextmanager
def spinner(what: str) -> Iterator[None]:
    """Show a spinner for work of unknown length if standard error is a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(what):
        yield


@contextmanager
def share_bar(what: str) -> Iterator[Callable[[float], None]]:
    """Show a bar for the completed share, 0 to 1, if standard error is a terminal."""
    console = Console(stderr=True)
    columns = TextColumn(what), BarColumn(), TaskProgressColumn(), TimeElapsedColumn()
    with Bar(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=1.0)
        yield lambda done: bar.update(task, completed=done)


@contextmanager
def bar_of(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show a bar for the completed count, if standard error is a terminal."""
    console = Console(stderr=True)
    bar = Bar(
        TextColumn(what),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,  # otherwise Rich would print an empty line
    )
    task = bar.add_task(what, visible=False)

    def progress(done: int, total: int) -> None:
        bar.update(task, completed=done, total=max(done, total), visible=True)

    with bar:
        yield progress


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Format rows as lines, with numbers right-aligned and words left-aligned. Short rows are padded.

    >>> print(aligned([["user", "usage"], ["ann", "7"], ["bob", "12.5"]]))
    user  usage
    ann       7
    bob    12.5
    """
    width = max((len(row) for row in rows), default=0)
    filled = [[*row, *[""] * (width - len(row))] for row in rows]
    columns = [list(column) for column in zip(*filled, strict=True)]
    right = [all(_is_figure(cell) for cell in column[1:]) for column in columns]
    widths = [max(map(len, column)) for column in columns]
    cells = (
        [
            cell.rjust(size) if to_right else cell.ljust(size)
            for cell, size, to_right in zip(row, widths, right, strict=True)
        ]
        for row in filled
    )
    return "\n".join("  ".join(row).rstrip() for row in cells)


def _is_figure(cell: str) -> bool:
    return not cell or cell[-1].isdigit() or cell in ("-", "inf") or cell.endswith("%")


SHELLS = ("bash", "zsh", "fish")


@click.command()
@only_here("it needs no project and runs on this machine")
@click.argument("shell", type=click.Choice(SHELLS))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def completion(context: click.Context, shell: str, as_json: bool) -> None:
    """Print a shell completion script; use it with eval "$(muster completion bash)"."""
    kind = get_completion_class(shell)
    assert kind is not None  # click's own
    script = kind(context.find_root().command, {}, "muster", "_MUSTER_COMPLETE").source()
    click.echo(to_json({"shell": shell, "script": script}) if as_json else script)


TOO_OFTEN = 429
WAITS = 60  # attempts per request


async def patiently(clock: Clock, ask: Callable[[], Awaitable[T]]) -> T:
    """Return the reply; if rate-limited, retry after the time the server asks for. Raises ApiError."""
    from muster_client import ApiError

    for _ in range(WAITS):
        try:
            return await ask()
        except ApiError as error:
            if error.status != TOO_OFTEN:
                raise
            wait_s = error.retry_s
        await clock.sleep(1.0 if wait_s is None else wait_s)
    return await ask()
