"""`muster token`: what the API is used with."""

from __future__ import annotations

import click

from operations.accounts import AccountKeys
from operations.cli.context import Run, command
from transfer.keys import load_keys


@click.group()
def token() -> None:
    """The token of the JSON API."""


@token.command("show")
@command
async def show(run: Run) -> None:
    """Print the operator's token: send it as `Authorization: Bearer TOKEN`."""
    value = AccountKeys(load_keys(run.project().keys_dir).account_secret).api_token()
    run.show({"token": value}, value)
