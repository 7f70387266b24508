"""`muster operator` and `muster token`: those who sign in to the console, and what the API is used with."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from administration.accounts import AccountKeys
from cli.context import Run, command, lines_of, local_command
from domain.access import Right, Role
from muster_client import Client
from muster_client.shapes import InvitedShown
from transfer.keys import load_keys

COLUMNS = ["name", "role", "submitter_id", "active", "one_time_until"]
TOKEN_COLUMNS = ["token_id", "name", "person", "scopes", "expires_at", "last_used_at", "revoked_at"]
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


def _project_token(run: Run) -> str:
    return AccountKeys(load_keys(run.project().keys_dir).account_secret).api_token()


@click.group()
def token() -> None:
    """Tokens of the JSON API."""


@token.command("show")
@local_command("it reads the project's keys; make a token of a person with `muster token add`")
async def show_project_token(run: Run) -> None:
    """Print the project's own token, which may do everything: send it as `Authorization: Bearer TOKEN`."""
    value = _project_token(run)
    run.show({"token": value}, value)


@token.command("add")
@click.argument("name")
@click.option("--person", required=True, help="Whose token it is: see `muster operator list`.")
@click.option(
    "--scope",
    "scopes",
    type=click.Choice([right.value for right in Right]),
    multiple=True,
    help="What it may do; may be repeated. Without it: all that the person may.",
)
@click.option("--days", type=click.IntRange(1, 3660), default=None, help="How long it is good. Without it: for good.")
@command
async def add_token(run: Run, name: str, person: str, scopes: tuple[str, ...], days: int | None) -> None:
    """Make a token of a person and print it; it is shown only now."""
    new = await run.ask(lambda client: client.add_token(name, scopes=scopes or None, days=days, person=person))
    made = {"token": new["value"], **new["token"], "waits_because": new["waits_because"]}
    run.show(made, new["value"])
    if new["waits_because"] is not None and not run.as_json:
        click.echo(f"not good yet: {made['waits_because']}", err=True)


@token.command("list")
@command
async def list_tokens(run: Run) -> None:
    """List tokens of people, without the tokens themselves."""
    rows = await run.ask(lambda client: client.tokens(limit=MOST))
    run.show_table(rows, TOKEN_COLUMNS, "No tokens yet: muster token add NAME --person PERSON")


@token.command("revoke")
@click.argument("token_id", type=click.IntRange(1, 2**31 - 1))
@command
async def revoke(run: Run, token_id: int) -> None:
    """Revoke a token: from now on it lets nobody in."""
    shown = await run.ask(lambda client: client.revoke_token(token_id))
    run.show(shown, f"token {token_id} is revoked")
