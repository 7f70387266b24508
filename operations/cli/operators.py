"""`muster operator`: those who sign in to the console and own tokens."""

from __future__ import annotations

import getpass
from datetime import UTC, datetime

import click

from domain.access import Act, PersonRecord, Role
from domain.settings import Settings
from operations.access.people import Invited, PeopleDesk
from operations.cli.context import Run, as_text, command
from store.postgres import PostgresStore

COLUMNS = ["name", "role", "submitter_id", "active", "one_time_until"]
MOST = 1000
ROLES = click.Choice([role.value for role in Role])


async def _desk(run: Run, store: PostgresStore) -> PeopleDesk:
    settings = Settings.from_stored(await store.settings.settings())[0]
    return PeopleDesk(store.access, store.people, lambda: settings.access, run.clock)


async def _note(run: Run, store: PostgresStore, what: str, name: str) -> None:
    await store.access.note_act(Act(run.clock.now(), getpass.getuser(), what, f"name {name}", {"by": "muster"}))


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
    async with run.store() as store:
        invited = await (await _desk(run, store)).add(name, role=Role(role), submitter=submitter)
        await _note(run, store, "add_person", name)
        url = Settings.from_stored(await store.settings.settings())[0].project.url
    _show(run, invited, url)


@operator.command("password")
@click.argument("name")
@command
async def password(run: Run, name: str) -> None:
    """Print a new one-time password for somebody who has forgotten the own one; it ends all sessions."""
    async with run.store() as store:
        invited = await (await _desk(run, store)).invite_again(name)
        await _note(run, store, "invite_again", name)
        url = Settings.from_stored(await store.settings.settings())[0].project.url
    _show(run, invited, url)


@operator.command("list")
@command
async def list_people(run: Run) -> None:
    """List those who sign in."""
    async with run.store() as store:
        people = await store.access.people(limit=MOST)
    run.show_table([_row(one) for one in people], COLUMNS, "Nobody yet: muster operator add NAME")


@operator.command("set")
@click.argument("name")
@click.option("--role", type=ROLES, default=None, help="What the person may do.")
@click.option("--submitter", default=None, help="Whose batches are the person's own.")
@click.option("--active/--shut-out", default=None, help="Whether the person may sign in at all.")
@command
async def set_person(run: Run, name: str, role: str | None, submitter: str | None, active: bool | None) -> None:
    """Change what somebody may do; who may do less, or nothing, is signed out everywhere."""
    wanted = None if role is None else Role(role)
    async with run.store() as store:
        desk = await _desk(run, store)
        changed = await desk.set(name, role=wanted, submitter=submitter, active=active)
        await _note(run, store, "set_person", name)
    row = _row(changed)
    run.show(row, "\n".join(f"{key:16} {as_text(value)}" for key, value in row.items()))


@operator.command("sign-out")
@click.argument("name")
@command
async def sign_out(run: Run, name: str) -> None:
    """End all sessions of somebody."""
    async with run.store() as store:
        ended = await (await _desk(run, store)).end_sessions(name)
        await _note(run, store, "end_sessions", name)
    run.show({"ended": ended}, f"{ended} sessions ended")


def _show(run: Run, invited: Invited, url: str) -> None:
    person = invited.person
    shown = {
        "name": person.name,
        "role": person.role.value,
        "password": invited.password,
        "until": invited.until,
        "url": f"{url}console/",
    }
    until = datetime.fromtimestamp(invited.until, UTC).strftime("%Y-%m-%d %H:%M UTC")
    run.show(
        shown,
        f"{person.role.value} {person.name}\n"
        f"one-time password {invited.password}\n"
        f"sign in at {url}console/ until {until}, and choose a password of your own",
    )


def _row(person: PersonRecord) -> dict[str, object]:
    return {
        "name": person.name,
        "role": person.role.value,
        "submitter_id": person.submitter_id,
        "active": person.active,
        "one_time_until": person.one_time_until,
    }
