"""`muster volunteer`: people whose computers do the work."""

from __future__ import annotations

from dataclasses import asdict
from typing import TextIO

import click

from administration.accounts import AccountKeys, add_volunteer
from administration.show_people import volunteer_as_json
from administration.volunteers import Wishes, change_volunteer
from cli.context import Run, command
from domain.errors import InvalidInputError
from store.postgres import PostgresStore
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

    async def here(store: PostgresStore) -> object:
        keys = AccountKeys(load_keys(run.project().keys_dir).account_secret)
        hashed = password_hash(password, email) if password is not None else None
        account = await add_volunteer(
            store.volunteers, keys, email, name=name, password_hash=hashed, now=run.clock.now()
        )
        return {"volunteer_id": account.volunteer_id, "authenticator": account.authenticator}

    added = await run.ask(here, lambda client: client.add_volunteer(email, name=name, password=password))
    run.show(added, f"volunteer {added['volunteer_id']}\naccount key {added['authenticator']}")


@volunteer.command("list")
@command
async def list_volunteers(run: Run) -> None:
    """List volunteers."""

    async def here(store: PostgresStore) -> object:
        apps = await store.applications.apps()
        return [volunteer_as_json(record, apps) for record in await store.volunteers.volunteers()]

    rows = await run.ask(here, lambda client: client.volunteers(limit=None))
    run.show_table(rows, ["volunteer_id", "email", "name", "beta"], "No volunteers yet: muster volunteer add EMAIL")


@volunteer.command("set")
@click.argument("email")
@click.option("--beta/--no-beta", default=None, help="Takes beta applications.")
@click.option("--gpu/--no-gpu", default=None, help="Lets GPUs be used.")
@click.option("--cpu/--no-cpu", default=None, help="Takes jobs that need no GPU.")
@click.option("--max-jobs", type=click.IntRange(min=0), default=None, help="Most jobs in progress per host; 0 = any.")
@click.option("--max-cpus", type=click.IntRange(min=0), default=None, help="Most CPUs of one job; 0 = any.")
@click.option("--app", "apps", multiple=True, help="Takes this application; may be given several times.")
@click.option("--all-apps", is_flag=True, help="Takes every application, those to come too.")
@command
async def set_volunteer(
    run: Run,
    email: str,
    beta: bool | None,
    gpu: bool | None,
    cpu: bool | None,
    max_jobs: int | None,
    max_cpus: int | None,
    apps: tuple[str, ...],
    all_apps: bool,
) -> None:
    """Change a volunteer's preferences."""
    if apps and all_apps:
        raise InvalidInputError("--all-apps", "either this or --app", "both")
    chosen = list(apps) if apps or all_apps else None
    wishes = Wishes(beta, cpu, gpu, max_jobs, max_cpus, chosen)

    async def here(store: PostgresStore) -> object:
        return await change_volunteer(store.volunteers, store.applications, email, wishes, now=run.clock.now())

    shown = await run.ask(here, lambda client: client.set_volunteer(email, **asdict(wishes)))
    run.show(shown, f"volunteer {shown['volunteer_id']} changed")
