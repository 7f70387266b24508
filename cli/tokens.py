"""`muster token`: what the API is used with."""

from __future__ import annotations

import click

from administration.accounts import AccountKeys
from cli.context import Run, command, local_command
from domain.access import Right
from transfer.keys import load_keys

COLUMNS = ["token_id", "name", "person", "scopes", "expires_at", "last_used_at", "revoked_at"]
MOST = 1000


def _project_token(run: Run) -> str:
    return AccountKeys(load_keys(run.project().keys_dir).account_secret).api_token()


@click.group()
def token() -> None:
    """Tokens of the JSON API."""


@token.command("show")
@local_command("it reads the project's keys; make a token of a person with `muster token add`")
async def show(run: Run) -> None:
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
async def add(run: Run, name: str, person: str, scopes: tuple[str, ...], days: int | None) -> None:
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
    run.show_table(rows, COLUMNS, "No tokens yet: muster token add NAME --person PERSON")


@token.command("revoke")
@click.argument("token_id", type=click.IntRange(1, 2**31 - 1))
@command
async def revoke(run: Run, token_id: int) -> None:
    """Revoke a token: from now on it lets nobody in."""
    shown = await run.ask(lambda client: client.revoke_token(token_id))
    run.show(shown, f"token {token_id} is revoked")
