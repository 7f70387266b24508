"""`muster operator` and `muster token`: manage accounts for the console and tokens for the API."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from cli.context import Run, command, lines_of, local_command
from domain.access import Right, Role

if TYPE_CHECKING:
    from muster_client import Client
    from muster_client.shapes import InvitedShown


COLUMNS = ["name", "role", "submitter_id", "active", "one_time_until"]
TOKEN_COLUMNS = ["token_id", "name", "person", "scopes", "expires_at", "last_used_at", "revoked_at"]
MOST = 1000
ROLES = click.Choice([role.value for role in Role])


@click.group()
def operator() -> None:
    """Manage operator, submitter and viewer accounts."""


@operator.command("add")
@click.argument("name")
@click.option("--role", type=ROLES, default=Role.OPERATOR.value, show_default=True, help="The account's role.")
@click.option(
    "--submitter",
    default=None,
    help="Submitter whose batches the person manages, from `muster submitter add`; required for the role submitter.",
)
@command
async def add(run: Run, name: str, role: str, submitter: str | None) -> None:
    """Add an operator, submitter or viewer account, and print its one-time password, which is shown only once."""
    async with run.client() as client:
        await _show(run, client, await client.add_person(name, role=role, submitter=submitter))


@operator.command("password")
@click.argument("name")
@command
async def password(run: Run, name: str) -> None:
    """Print a new one-time password for a person who has forgotten theirs; ends all their sessions."""
    async with run.client() as client:
        await _show(run, client, await client.invite_again(name))


@operator.command("list")
@command
async def list_people(run: Run) -> None:
    """List operator, submitter and viewer accounts."""
    rows = await run.ask(lambda client: client.people(limit=MOST))
    run.show_table(rows, COLUMNS, "No accounts yet: muster operator add NAME")


@operator.command("set")
@click.argument("name")
@click.option("--role", type=ROLES, default=None, help="The account's role.")
@click.option("--submitter", default=None, help="Submitter whose batches the person manages.")
@click.option("--active/--shut-out", default=None, help="Enable or disable the account.")
@command
async def set_person(run: Run, name: str, role: str | None, submitter: str | None, active: bool | None) -> None:
    """Change an account's role or disable it; if this removes rights, all its sessions end."""
    shown = await run.ask(lambda client: client.set_person(name, role=role, submitter=submitter, active=active))
    run.show(shown, lines_of(shown))


@operator.command("sign-out")
@click.argument("name")
@command
async def sign_out(run: Run, name: str) -> None:
    """End all sessions of a person."""
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
        f"sign in at {url} by {until}, and choose a new password",
    )


def _project_token(run: Run) -> str:
    from administration.accounts import AccountKeys
    from transfer.keys import load_keys

    return AccountKeys(load_keys(run.project().keys_dir).account_secret).api_token()


@click.group()
def token() -> None:
    """Manage tokens of the JSON API."""


@token.command("show")
@local_command("it reads the project's keys; create a personal token with `muster token add`")
async def show_project_token(run: Run) -> None:
    """Print the project's own token, which has all rights; send it as `Authorization: Bearer TOKEN`."""
    value = _project_token(run)
    run.show({"token": value}, value)


@token.command("add")
@click.argument("name")
@click.option("--person", required=True, help="Owner of the token; see `muster operator list`.")
@click.option(
    "--scope",
    "scopes",
    type=click.Choice([right.value for right in Right]),
    multiple=True,
    help="Scope; may be repeated. Default: all scopes of the person.",
)
@click.option("--days", type=click.IntRange(1, 3660), default=None, help="Days until it expires; default: never.")
@command
async def add_token(run: Run, name: str, person: str, scopes: tuple[str, ...], days: int | None) -> None:
    """Create a personal token and print it; it is shown only once."""
    new = await run.ask(lambda client: client.add_token(name, scopes=scopes or None, days=days, person=person))
    made = {"token": new["value"], **new["token"], "waits_because": new["waits_because"]}
    run.show(made, new["value"])
    if new["waits_because"] is not None and not run.as_json:
        click.echo(f"not valid yet: {made['waits_because']}", err=True)


@token.command("list")
@command
async def list_tokens(run: Run) -> None:
    """List personal tokens, without their values."""
    rows = await run.ask(lambda client: client.tokens(limit=MOST))
    run.show_table(rows, TOKEN_COLUMNS, "No tokens yet: muster token add NAME --person PERSON")


@token.command("revoke")
@click.argument("token_id", type=click.IntRange(1, 2**31 - 1))
@command
async def revoke(run: Run, token_id: int) -> None:
    """Revoke a token."""
    shown = await run.ask(lambda client: client.revoke_token(token_id))
    run.show(shown, f"token {token_id} is revoked")
