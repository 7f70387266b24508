"""`muster grant` and `muster limit`: what accounts are granted, and how much anybody may have."""

from __future__ import annotations

from collections.abc import Container

import click

from administration.ordering.priorities import grant_as_json, limit_as_json
from administration.ordering.rules import Rules
from cli.context import Run, as_text, command
from domain.errors import InvalidInputError
from domain.limits import Quantity, Scope
from domain.units import DAY_S
from muster_client import Client
from store.postgres import PostgresStore

GRANT_COLUMNS = ["account", "granted_su", "used_su", "reserved_su", "left_su", "period_start_at", "period_s"]
UNITS = click.option("--units", type=float, required=True, help="Service units per period: PE-hours times the rate.")
PERIOD = click.option("--period-days", type=float, default=90.0, show_default=True, help="Nothing is carried over.")
QUANTITIES = [one.name.lower() for one in Quantity if one is not Quantity.IDLE_JOBS]
KIND = (
    click.argument("scope", type=click.Choice([one.value for one in Scope])),
    click.argument("quantity", type=click.Choice(QUANTITIES)),
    click.argument("name", required=False, default=None),
)


@click.group()
def grant() -> None:
    """Service units of accounts: who has spent them goes on in the last queue, which costs nothing."""


@grant.command("add")
@click.argument("account")
@UNITS
@PERIOD
@command
async def add_grant(run: Run, account: str, units: float, period_days: float) -> None:
    """Grant an account service units per period, from now on."""
    await _put(run, account, units, period_days, new=True)


@grant.command("set")
@click.argument("account")
@UNITS
@PERIOD
@command
async def set_grant(run: Run, account: str, units: float, period_days: float) -> None:
    """Change an account's grant; what it has used in this period stays used."""
    await _put(run, account, units, period_days, new=False)


async def _put(run: Run, account: str, units: float, period_days: float, *, new: bool) -> None:
    def check(known: Container[str]) -> None:
        if (account in known) is new:
            expected = (
                "an account without a grant (muster grant set)" if new else "an account with a grant (muster grant add)"
            )
            raise InvalidInputError("account", expected, account)

    async def here(store: PostgresStore) -> object:
        rules = Rules(store, run.clock)
        check(await rules.grants())
        await rules.grant(account, granted_su=units, period_s=period_days * DAY_S)
        return grant_as_json(account, (await rules.grants())[account], run.clock.now())

    async def there(client: Client) -> object:
        check([one["account"] for one in await client.grants(limit=None)])
        return await client.set_grant(account, granted_su=units, period_s=period_days * DAY_S)

    made = await run.ask(here, there)
    run.show(made, f"account {account}: {units:g} SU every {period_days:g} days, {as_text(made['left_su'])} left")


@grant.command("list")
@command
async def list_grants(run: Run) -> None:
    """List grants with what is used, reserved for work under way, and left."""

    async def here(store: PostgresStore) -> object:
        found = await Rules(store, run.clock).grants()
        return [grant_as_json(name, one, run.clock.now()) for name, one in sorted(found.items())]

    rows = await run.ask(here, lambda client: client.grants(limit=None))
    run.show_table(rows, GRANT_COLUMNS, "No grants: every account may use what is free.")


@grant.command("drop")
@click.argument("account")
@command
async def drop_grant(run: Run, account: str) -> None:
    """Take an account's grant away: its work costs nothing any more."""
    await run.ask(lambda store: Rules(store, run.clock).take_grant(account), lambda client: client.take_grant(account))
    run.show({"account": account, "granted_su": None}, f"account {account}: no grant")


@click.group()
def limit() -> None:
    """How much a submitter, account, app or queue may have: over a soft limit last, over a hard one not at all."""


@limit.command("set")
@KIND[0]
@KIND[1]
@KIND[2]
@click.option("--soft", type=float, default=None, help="Over it a batch goes after all that are not.")
@click.option("--hard", type=float, default=None, help="Over it a batch is held.")
@command
async def set_limit(
    run: Run, scope: str, quantity: str, name: str | None, soft: float | None, hard: float | None
) -> None:
    """Limit one by NAME, or everybody who has no limit of its own."""

    async def here(store: PostgresStore) -> object:
        return limit_as_json(await Rules(store, run.clock).limit(scope, quantity, name=name, soft=soft, hard=hard))

    made = await run.ask(here, lambda client: client.set_limit(scope, quantity, name=name, soft=soft, hard=hard))
    bounds = f"soft {as_text(soft)}, hard {as_text(hard)}"
    run.show(made, f"{scope} {name or '(everybody)'}: {made['counts']}: {bounds}")


@limit.command("list")
@command
async def list_limits(run: Run) -> None:
    """List limits."""

    async def here(store: PostgresStore) -> object:
        return [limit_as_json(one) for one in await Rules(store, run.clock).limits()]

    rows = await run.ask(here, lambda client: client.limits(limit=None))
    run.show_table(rows, ["scope", "name", "quantity", "soft", "hard", "counts"], "No limits.")


@limit.command("drop")
@KIND[0]
@KIND[1]
@KIND[2]
@command
async def drop_limit(run: Run, scope: str, quantity: str, name: str | None) -> None:
    """Take a limit away."""
    await run.ask(
        lambda store: Rules(store, run.clock).lift(scope, quantity, name=name),
        lambda client: client.lift_limit(scope, quantity, name=name),
    )
    dropped = {"scope": scope, "quantity": quantity, "name": name, "dropped": True}
    run.show(dropped, f"{scope} {name or '(everybody)'}: no limit of {quantity}")
