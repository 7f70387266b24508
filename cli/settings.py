"""`muster setting`: every knob, changed at run time and audited."""

from __future__ import annotations

import json

import click

from administration.names import checked_text
from administration.ordering.priorities import check_ordering
from administration.show import change_as_json, setting_as_json
from cli.context import Run, as_text, command, lines_of, user
from domain.bounds import name_of_setting
from domain.errors import InvalidInputError
from domain.settings import Settings
from store.postgres import PostgresStore


@click.group()
def setting() -> None:
    """Settings of the project."""


@setting.command("list")
@click.argument("section", required=False, default="")
@command
async def list_settings(run: Run, section: str) -> None:
    """List settings with their values and meanings."""

    async def here(store: PostgresStore) -> object:
        settings, unfit = Settings.from_stored(await store.settings.settings())
        for error in unfit:
            said = f"ignored: {error}; take it back with `muster setting reset {error.field}`"
            click.secho(said, err=True, fg="yellow")
        return [setting_as_json(key, value) for key, value in settings.as_mapping().items()]

    known = await run.ask(here, lambda client: client.setting_details())
    rows = [one for one in known if one["key"].startswith(section)]
    if not rows:
        raise InvalidInputError("section", name_of_setting(section, [one["key"] for one in known]), section)
    run.show_table(rows, ["key", "value", "meaning"], "")


@setting.command("show")
@click.argument("key")
@command
async def show_setting(run: Run, key: str) -> None:
    """Show a setting with its default and its meaning."""

    async def here(store: PostgresStore) -> object:
        values = Settings.from_stored(await store.settings.settings())[0].as_mapping()
        if key not in values:
            raise InvalidInputError("key", name_of_setting(key, Settings().as_mapping()), key)
        return setting_as_json(key, values[key])

    shown = await run.ask(here, lambda client: client.setting(key))
    run.show(shown, lines_of(shown))


@setting.command("set")
@click.argument("key")
@click.argument("value")
@click.option("--why", default="", help="Kept in the audit trail.")
@command
async def set_setting(run: Run, key: str, value: str, why: str) -> None:
    """Change a setting; running services follow within seconds."""
    changed = Settings().changed(key, parsed(value))
    check_ordering(changed)
    checked = changed.as_mapping()[key]

    async def here(store: PostgresStore) -> object:
        await store.settings.set_setting(key, checked, now=run.clock.now(), who=user(), why=checked_text(why, "why"))
        return checked

    new = await run.ask(here, lambda client: client.set_setting(key, checked, why=why, by=user()))
    run.show({"key": key, "value": new}, f"{key} = {as_text(new)}")


@setting.command("reset")
@click.argument("key")
@click.option("--why", default="", help="Kept in the audit trail.")
@command
async def reset_setting(run: Run, key: str, why: str) -> None:
    """Take a setting's default back."""

    async def here(store: PostgresStore) -> object:
        found = Settings().as_mapping().get(key)
        if found is None and key not in await store.settings.settings():
            raise InvalidInputError("key", name_of_setting(key, Settings().as_mapping()), key)
        await store.settings.set_setting(key, None, now=run.clock.now(), who=user(), why=checked_text(why, "why"))
        return found

    default = await run.ask(here, lambda client: client.reset_setting(key, why=why, by=user()))
    run.show({"key": key, "value": default}, f"{key} = {as_text(default)} (the default)")


@setting.command("history")
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True)
@command
async def history(run: Run, limit: int) -> None:
    """Who changed what, when and why; newest first."""

    async def here(store: PostgresStore) -> object:
        return [change_as_json(change) for change in await store.settings.setting_changes(limit)]

    rows = await run.ask(here, lambda client: client.setting_changes(limit=limit))
    run.show_table(rows, ["changed_at", "key", "from", "to", "by", "why"], "No setting was ever changed.")


def parsed(value: str) -> object:
    """A value from the command line: a number, true or false where it reads as one, else text.

    >>> parsed("0.85"), parsed("true"), parsed("muster")
    (0.85, True, 'muster')
    """
    try:
        return json.loads(value)
    except json.JSONDecodeError:
        return value
