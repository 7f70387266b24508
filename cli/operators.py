"""`muster operator`: those who sign in to the console and own tokens."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import click

from administration.access.people import Invited, PeopleDesk
from administration.show_people import invited_as_json, person_as_json
from cli.context import Run, command, lines_of, user
from domain.access import Act, Role
from domain.settings import Settings
from muster_client import Client
from store.postgres import PostgresStore

COLUMNS = ["name", "role", "submitter_id", "active", "one_time_until"]
MOST = 1000
ROLES = click.Choice([role.value for role in Role])


async def _desk(run: Run, store: PostgresStore) -> PeopleDesk:
    settings = Settings.from_stored(await store.settings.settings())[0]
    return PeopleDesk(store.access, store.people, lambda: settings.access, run.clock)


async def _note(run: Run, store: PostgresStore, what: str, name: str) -> None:
    await store.access.note_act(Act(run.clock.now(), user(), what, f"name {name}", {"by": "muster"}))


@click.group()
def operator() -> None:
    """Those who sign in: operators, submitters and viewers."""


@operator.command("add")
@click.argument("name")
@click.option("--role", type=ROLES, default=Role.OPERATOR.value, show_default=True, help="What the person may do.")
@click.option("--submitter", default=None, help="Whose batches are the person's own; needed for a submitter.")
@command
async def add(run: Run, name: str, role: str, submitter: str | None) -> None:
    """Add somebody who signs in, and print a one-time password, which is shown only now."""

    async def here(store: PostgresStore) -> object:
        made = await (await _desk(run, store)).add(name, role=Role(role), submitter=submitter)
        await _note(run, store, "add_person", name)
        return await _told_here(store, made)

    async def there(client: Client) -> object:
        return await _told_there(client, await client.add_person(name, role=role, submitter=submitter))

    _show(run, await run.ask(here, there))


@operator.command("password")
@click.argument("name")
@command
async def password(run: Run, name: str) -> None:
    """Print a new one-time password for somebody who has forgotten the own one; it ends all sessions."""

    async def here(store: PostgresStore) -> object:
        made = await (await _desk(run, store)).invite_again(name)
        await _note(run, store, "invite_again", name)
        return await _told_here(store, made)

    async def there(client: Client) -> object:
        return await _told_there(client, await client.invite_again(name))

    _show(run, await run.ask(here, there))


@operator.command("list")
@command
async def list_people(run: Run) -> None:
    """List those who sign in."""

    async def here(store: PostgresStore) -> object:
        return [person_as_json(one) for one in await store.access.people(limit=MOST)]

    rows = await run.ask(here, lambda client: client.people(limit=MOST))
    run.show_table(rows, COLUMNS, "Nobody yet: muster operator add NAME")


@operator.command("set")
@click.argument("name")
@click.option("--role", type=ROLES, default=None, help="What the person may do.")
@click.option("--submitter", default=None, help="Whose batches are the person's own.")
@click.option("--active/--shut-out", default=None, help="Whether the person may sign in at all.")
@command
async def set_person(run: Run, name: str, role: str | None, submitter: str | None, active: bool | None) -> None:
    """Change what somebody may do; who may do less, or nothing, is signed out everywhere."""

    async def here(store: PostgresStore) -> object:
        wanted = None if role is None else Role(role)
        changed = await (await _desk(run, store)).set(name, role=wanted, submitter=submitter, active=active)
        await _note(run, store, "set_person", name)
        return person_as_json(changed)

    shown = await run.ask(here, lambda client: client.set_person(name, role=role, submitter=submitter, active=active))
    run.show(shown, lines_of(shown))


@operator.command("sign-out")
@click.argument("name")
@command
async def sign_out(run: Run, name: str) -> None:
    """End all sessions of somebody."""

    async def here(store: PostgresStore) -> object:
        count = await (await _desk(run, store)).end_sessions(name)
        await _note(run, store, "end_sessions", name)
        return count

    ended = await run.ask(here, lambda client: client.end_sessions(name))
    run.show({"ended": ended}, f"{ended} sessions ended")


async def _told_here(store: PostgresStore, invited: Invited) -> dict[str, object]:
    url = Settings.from_stored(await store.settings.settings())[0].project.url
    return _invitation(invited_as_json(invited), url)


async def _told_there(client: Client, invited: Mapping[str, Any]) -> dict[str, object]:
    return _invitation(invited, (await client.setting("project.url"))["value"])


def _invitation(invited: Mapping[str, Any], url: str) -> dict[str, object]:
    person = invited["person"]
    return {
        "name": person["name"],
        "role": person["role"],
        "password": invited["password"],
        "until": invited["until"],
        "url": f"{url}console/",
    }


def _show(run: Run, shown: Mapping[str, Any]) -> None:
    until = datetime.fromtimestamp(shown["until"], UTC).strftime("%Y-%m-%d %H:%M UTC")
    run.show(
        shown,
        f"{shown['role']} {shown['name']}\n"
        f"one-time password {shown['password']}\n"
        f"sign in at {shown['url']} until {until}, and choose a password of your own",
    )
