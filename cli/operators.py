"""`muster operator`: those who sign in to the console and own tokens."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from cli.context import Run, command, lines_of
from domain.access import Role
from muster_client import Client
from muster_client.shapes import InvitedShown

COLUMNS = ["name", "role", "submitter_id", "active", "one_time_until"]
MOST = 1000
ROLES = click.Choice([role.value for role in Role])


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
    async with run.client() as client:
        await _show(run, client, await client.add_person(name, role=role, submitter=submitter))


@operator.command("password")
@click.argument("name")
@command
async def password(run: Run, name: str) -> None:
    """Print a new one-time password for somebody who has forgotten the own one; it ends all sessions."""
    async with run.client() as client:
        await _show(run, client, await client.invite_again(name))


@operator.command("list")
@command
async def list_people(run: Run) -> None:
    """List those who sign in."""
    rows = await run.ask(lambda client: client.people(limit=MOST))
    run.show_table(rows, COLUMNS, "Nobody yet: muster operator add NAME")


@operator.command("set")
@click.argument("name")
@click.option("--role", type=ROLES, default=None, help="What the person may do.")
@click.option("--submitter", default=None, help="Whose batches are the person's own.")
@click.option("--active/--shut-out", default=None, help="Whether the person may sign in at all.")
@command
async def set_person(run: Run, name: str, role: str | None, submitter: str | None, active: bool | None) -> None:
    """Change what somebody may do; who may do less, or nothing, is signed out everywhere."""
    shown = await run.ask(lambda client: client.set_person(name, role=role, submitter=submitter, active=active))
    run.show(shown, lines_of(shown))


@operator.command("sign-out")
@click.argument("name")
@command
async def sign_out(run: Run, name: str) -> None:
    """End all sessions of somebody."""
    ended = await run.ask(lambda client: client.end_sessions(name))
    run.show({"ended": ended}, f"{ended} sessions ended")


async def _show(run: Run, client: Client, invited: InvitedShown) -> None:
    url = f"{(await client.setting('project.url'))['value']}console/"
    person, password = invited["person"], invited["password"]
    until = datetime.fromtimestamp(invited["until"], UTC).strftime("%Y-%m-%d %H:%M UTC")
    run.show(
        {
            "name": person["name"],
            "role": person["role"],
            "password": password,
            "until": invited["until"],
            "url": url,
        },
        f"{person['role']} {person['name']}\n"
        f"one-time password {password}\n"
        f"sign in at {url} until {until}, and choose a password of your own",
    )
