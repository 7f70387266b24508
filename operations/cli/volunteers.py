"""`muster volunteer`: people whose computers do the work."""

from __future__ import annotations

from dataclasses import replace
from typing import TextIO

import click

from domain.errors import InvalidInputError, NotFoundError
from operations.accounts import AccountKeys, add_volunteer
from operations.cli.context import Run, command
from operations.cli.remote import or_remote
from transfer.keys import load_keys
from wire.attach import password_hash


@click.group()
def volunteer() -> None:
    """Volunteers' accounts."""


def password_in(file: TextIO, *, given: str | None) -> str:
    """The password a file begins with. Raises InvalidInputError when there is none, or one was given besides.

    >>> import io
    >>> password_in(io.StringIO("correct horse\\n"), given=None)
    'correct horse'
    """
    if given is not None:
        raise InvalidInputError("--password-file", "either this or --password", "both")
    found = file.readline().rstrip("\r\n")
    if not found:
        raise InvalidInputError("--password-file", "a password in the first line", "an empty line")
    return found


@volunteer.command("add")
@click.argument("email")
@click.option("--name", default="", help="As others see the volunteer.")
@click.option("--password", default=None, help="Lets the volunteer attach with e-mail and password; others see it.")
@click.option("--password-file", type=click.File(), help="A file whose first line is the password; - = standard input.")
@command
async def add(run: Run, email: str, name: str, password: str | None, password_file: TextIO | None) -> None:
    """Add a volunteer and print the account key, which is shown only now."""
    if password_file is not None:
        password = password_in(password_file, given=password)
    keys = AccountKeys(load_keys(run.project().keys_dir).account_secret)
    hashed = password_hash(password, email) if password is not None else None
    async with run.store() as store:
        account = await add_volunteer(
            store.volunteers, keys, email, name=name, password_hash=hashed, now=run.clock.now()
        )
    run.show(
        {"volunteer_id": account.volunteer_id, "authenticator": account.authenticator},
        f"volunteer {account.volunteer_id}\naccount key {account.authenticator}",
    )


@volunteer.command("list")
@or_remote(lambda client: client.volunteers())
@command
async def list_volunteers(run: Run) -> None:
    """List volunteers."""
    async with run.store() as store:
        records = await store.volunteers.volunteers()
    rows: list[dict[str, object]] = [
        {
            "volunteer_id": record.volunteer.volunteer_id,
            "email": record.email,
            "name": record.volunteer.name,
            "beta": record.volunteer.beta,
        }
        for record in records
    ]
    run.show_table(rows, ["volunteer_id", "email", "name", "beta"], "No volunteers yet: muster volunteer add EMAIL")


@volunteer.command("set")
@click.argument("email")
@click.option("--beta/--no-beta", default=None, help="Takes beta applications.")
@click.option("--gpu/--no-gpu", default=None, help="Lets GPUs be used.")
@click.option("--max-jobs", type=click.IntRange(min=0), default=None, help="Most jobs in progress per host; 0 = any.")
@command
async def set_volunteer(run: Run, email: str, beta: bool | None, gpu: bool | None, max_jobs: int | None) -> None:
    """Change a volunteer's preferences."""
    async with run.store() as store:
        record = await store.volunteers.volunteer_by_email(email.lower())
        if record is None:
            raise NotFoundError("volunteer", email)
        changed = record.volunteer
        if beta is not None:
            changed = replace(changed, beta=beta)
        if gpu is not None:
            changed = replace(changed, no_gpu=not gpu)
        if max_jobs is not None:
            changed = replace(changed, max_jobs=max_jobs)
        await store.volunteers.set_volunteer(changed)
    run.show({"volunteer_id": changed.volunteer_id}, f"volunteer {changed.volunteer_id} changed")
