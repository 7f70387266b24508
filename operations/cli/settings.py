"""`muster setting`: every knob, changed at run time and audited."""

from __future__ import annotations

import getpass
import json

import click

from domain.errors import InvalidInputError
from domain.settings import Settings, meaning_of
from operations.cli.context import Run, as_text, command
from operations.ordering.knobs import check_ordering


@click.group()
def setting() -> None:
    """Settings of the project."""


@setting.command("list")
@click.argument("section", required=False, default="")
@command
async def list_settings(run: Run, section: str) -> None:
    """List settings with their values and meanings."""
    async with run.store() as store:
        changed = await store.settings.settings()
    settings, unfit = Settings.from_stored(changed)
    rows: list[dict[str, object]] = [
        {"key": key, "value": value, "changed": key in changed, "meaning": meaning_of(key)}
        for key, value in settings.as_mapping().items()
        if key.startswith(section)
    ]
    for error in unfit:
        click.secho(f"ignored: {error}; take it back with `muster setting reset {error.field}`", err=True, fg="yellow")
    run.show_table(rows, ["key", "value", "meaning"], f"no settings begin with {section!r}")


@setting.command("set")
@click.argument("key")
@click.argument("value")
@click.option("--why", default="", help="Kept in the audit trail.")
@command
async def set_setting(run: Run, key: str, value: str, why: str) -> None:
    """Change a setting; running services follow within seconds."""
    changed = Settings().changed(key, parsed(value))
    check_ordering(changed)
    new = changed.as_mapping()[key]
    async with run.store() as store:
        await store.settings.set_setting(key, new, now=run.clock.now(), who=getpass.getuser(), why=why)
    run.show({"key": key, "value": new}, f"{key} = {as_text(new)}")


@setting.command("reset")
@click.argument("key")
@click.option("--why", default="", help="Kept in the audit trail.")
@command
async def reset_setting(run: Run, key: str, why: str) -> None:
    """Take a setting's default back."""
    default = Settings().as_mapping().get(key)
    async with run.store() as store:
        if default is None and key not in await store.settings.settings():
            raise InvalidInputError(key, "the name of a setting (see `muster setting list`)", key)
        await store.settings.set_setting(key, None, now=run.clock.now(), who=getpass.getuser(), why=why)
    run.show({"key": key, "value": default}, f"{key} = {as_text(default)} (the default)")


@setting.command("history")
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True)
@command
async def history(run: Run, limit: int) -> None:
    """Who changed what, when and why; newest first."""
    async with run.store() as store:
        changes = await store.settings.setting_changes(limit)
    rows: list[dict[str, object]] = [
        {
            "changed_at": change.changed_at,
            "key": change.key,
            "from": change.from_value,
            "to": change.to_value,
            "by": change.changed_by,
            "why": change.why,
        }
        for change in changes
    ]
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
