"""`muster token`: what the API is used with."""

from __future__ import annotations

import click

from domain.access import Right, Token
from domain.units import TokenId
from operations.access.tokens import PROJECT, TokenDesk
from operations.accounts import AccountKeys
from operations.cli.context import Run, command
from operations.cli.remote import or_remote
from store.postgres import PostgresStore
from transfer.keys import load_keys

COLUMNS = ["token_id", "name", "person", "scopes", "expires_at", "last_used_at", "revoked_at"]
MOST = 1000


def _project_token(run: Run) -> str:
    return AccountKeys(load_keys(run.project().keys_dir).account_secret).api_token()


def _desk(run: Run, store: PostgresStore) -> TokenDesk:
    return TokenDesk(store.access, run.clock, project_token=_project_token(run))


@click.group()
def token() -> None:
    """Tokens of the JSON API."""


@token.command("show")
@command
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
    rights = [Right(one) for one in scopes] if scopes else None
    async with run.store() as store:
        made = await _desk(run, store).add(person, name, rights=rights, days=days)
    run.show({"token": made.value, **_row(made.token, person)}, made.value)


@token.command("list")
@or_remote(lambda client: client.tokens())
@command
async def list_tokens(run: Run) -> None:
    """List tokens of people, without the tokens themselves."""
    async with run.store() as store:
        names = {one.person_id: one.name for one in await store.access.people(limit=MOST)}
        tokens = await store.access.tokens(limit=MOST)
    rows = [_row(one, names.get(one.person_id, "?")) for one in tokens]
    run.show_table(rows, COLUMNS, "No tokens yet: muster token add NAME --person PERSON")


@token.command("revoke")
@click.argument("token_id", type=click.IntRange(1, 2**31 - 1))
@command
async def revoke(run: Run, token_id: int) -> None:
    """Revoke a token: from now on it lets nobody in."""
    async with run.store() as store:
        revoked = await _desk(run, store).revoke(TokenId(token_id), by=PROJECT)
    run.show({"token_id": token_id, "revoked_at": revoked.revoked_at}, f"token {token_id} is revoked")


def _row(one: Token, person: str) -> dict[str, object]:
    return {
        "token_id": one.token_id,
        "name": one.name,
        "person": person,
        "scopes": " ".join(sorted(one.rights)),
        "created_at": one.created_at,
        "expires_at": one.expires_at,
        "last_used_at": one.last_used_at,
        "revoked_at": one.revoked_at,
    }
