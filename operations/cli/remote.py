"""The same commands through a server's API, for who has a token and not the project's folder."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import click
import msgspec

from domain.errors import InvalidInputError
from operations.cli.context import as_text, to_json
from operations.client import Client

Through = Callable[..., Awaitable[object]]  # of a client, and the command's own arguments by name
Command = Callable[..., None]
LOCAL = frozenset({"data_dir", "database_url", "as_json"})  # options that mean nothing to a server


def or_remote(through: Through, words: Callable[[Any], str] | None = None) -> Callable[[Command], Command]:
    """Adds --server and --token to a command; with them `through` is asked instead of the database.

    `words` says what comes back, as the command does without a server; else it is told key by key.
    """

    def decorate(local: Command) -> Command:
        @click.option(
            "--server", envvar="MUSTER_SERVER", metavar="URL", help="Ask this server instead of the database."
        )
        @click.option("--token", envvar="MUSTER_TOKEN", help="A token for its API.")
        @functools.wraps(local)
        def wrapper(server: str | None, token: str | None, **arguments: Any) -> None:  # Any: checked by click
            if server is None:
                local(**arguments)
                return
            if token is None:
                raise InvalidInputError("--token", "a token for the API (`muster token add`)", "none")
            asked = {name: value for name, value in arguments.items() if name not in LOCAL}
            value = asyncio.run(_ask(server, token, through, asked))
            click.echo(to_json(value) if arguments["as_json"] else (words or in_words)(value))

        return wrapper

    return decorate


async def _ask(server: str, token: str, through: Through, arguments: Mapping[str, object]) -> object:
    async with Client(server, token) as client:
        return msgspec.to_builtins(await through(client, **arguments))


def in_words(value: object) -> str:
    """What the API said: a line per key, and a block of lines per item of a list.

    >>> print(in_words([{"batch_id": 1, "name": "pi", "held": None}]))
    batch_id  1
    name      pi
    held      -
    """
    match value:
        case Mapping():
            width = max(map(len, value), default=0)
            return "\n".join(f"{key:{width}}  {_cell(one)}" for key, one in value.items())
        case str():
            return value
        case Sequence():
            return "\n\n".join(map(in_words, value)) if value else "none"
        case _:
            return as_text(value)


def _cell(value: object) -> str:
    """What stands behind a key; things in things as JSON."""
    return to_json(value) if isinstance(value, Mapping | list) else as_text(value)
