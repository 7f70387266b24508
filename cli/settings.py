"""`muster setting`: show settings, change them at run time, and show their audit trail."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from cli.context import Run, as_text, command, lines_of, user
from domain.bounds import name_of_setting
from domain.errors import InvalidInputError
from domain.settings import Settings

if TYPE_CHECKING:
    from muster_client.shapes import ChangeMade


@click.group()
def setting() -> None:
    """Show and change settings."""


@setting.command("list")
@click.argument("section", required=False, default="")
@command
async def list_settings(run: Run, section: str) -> None:
    """List settings with their values and descriptions."""
    known = await run.ask(lambda client: client.setting_details())
    rows = [one for one in known if one["key"].startswith(section)]
    if not rows:
        raise InvalidInputError("section", name_of_setting(section, [one["key"] for one in known]), section)
    run.show_table(rows, ["key", "value", "meaning"], "")


@setting.command("show")
@click.argument("key")
@command
async def show_setting(run: Run, key: str) -> None:
    """Show a setting with its default and description."""
    shown = await run.ask(lambda client: client.setting(key))
    run.show(shown, lines_of(shown))


@setting.command("set")
@click.argument("key")
@click.argument("value")
@click.option("--why", default="", help="Reason, for the audit trail; required for thresholds.")
@command
async def set_setting(run: Run, key: str, value: str, why: str) -> None:
    """Change a setting; running services apply it within seconds."""
    checked = Settings().changed(key, parsed(value)).as_mapping()[key]

    new = await run.ask(lambda client: client.set_setting(key, checked, why=why, by=user()))
    run.show({"key": key, "value": new}, f"{key} = {as_text(new)}")


@setting.command("reset")
@click.argument("key")
@click.option("--why", default="", help="Reason, for the audit trail; required for thresholds.")
@command
async def reset_setting(run: Run, key: str, why: str) -> None:
    """Reset a setting to its default."""
    default = await run.ask(lambda client: client.reset_setting(key, why=why, by=user()))
    run.show({"key": key, "value": default}, f"{key} = {as_text(default)} (the default)")


@setting.command("history")
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True)
@command
async def history(run: Run, limit: int) -> None:
    """List changes of settings with author, time and reason, newest first."""
    rows = await run.ask(lambda client: client.setting_changes(limit=limit))
    run.show_table(rows, ["changed_at", "key", "from", "to", "by", "why"], "No setting has been changed.")


def parsed(value: str) -> object:
    """Parse a command-line value as a number or a boolean if possible, otherwise as text.

    >>> parsed("0.85"), parsed("true"), parsed("muster")
    (0.85, True, 'muster')
    """
    try:
        return json.loads(value)
    except json.JSONDecodeError:
        return value


def pairs_of(values: Iterable[str], what: str) -> list[tuple[str, object]]:
    """Parse KEY=VALUE arguments. Raises InvalidInputError, which names the field `what`.

    >>> pairs_of(["p_tight=0.85"], "threshold")
    [('p_tight', 0.85)]
    """
    pairs = []
    for value in values:
        key, equals, new = value.partition("=")
        if not equals:
            raise InvalidInputError(what, "KEY=VALUE", value)
        pairs.append((key, parsed(new)))
    return pairs


def changed_in_words(changes: Iterable[ChangeMade]) -> str:
    """Format one line per change."""
    return "\n".join(f"{one['key']}: {as_text(one['from'])} -> {as_text(one['to'])}" for one in changes)
