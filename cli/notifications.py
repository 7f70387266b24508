"""`muster notify`: manage subscriptions to notifications, and show deliveries."""

from __future__ import annotations

import click

from cli.context import Run, command, lines_of
from domain.notifications import KINDS, MOST_INTERVAL_S

COLUMNS = ["subscription_id", "person", "channel", "address", "kinds", "project_wide", "confirmed_at", "paused"]
DELIVERY_COLUMNS = ["delivery_id", "subscription_id", "address", "made_at", "state", "events", "attempts", "outcome"]
MOST = 1000
NUMBER = click.IntRange(1, 2**31 - 1)

kinds_option = click.option(
    "--kind",
    "kinds",
    type=click.Choice([one.value for one in KINDS]),
    multiple=True,
    help="Kind of event; may be repeated. Default: all kinds.",
)


@click.group()
def notify() -> None:
    """Manage notifications by e-mail and webhook."""


@notify.command("add")
@click.argument("address")
@click.option("--person", default=None, help="Owner; see `muster operator list`. Required on the project's machine.")
@click.option("--project", "project_wide", is_flag=True, help="All batches, not only the person's; for operators.")
@click.option(
    "--interval-s",
    type=click.FloatRange(0, MOST_INTERVAL_S),
    default=300.0,
    show_default=True,
    help="Minimum time between two messages; events in between are sent together.",
)
@kinds_option
@command
async def add(
    run: Run, address: str, person: str | None, project_wide: bool, interval_s: float, kinds: tuple[str, ...]
) -> None:
    """Subscribe an e-mail address or a webhook's URL. Prints the secret of a webhook, which is shown only once."""
    channel = "webhook" if "://" in address else "email"
    made = await run.ask(
        lambda client: client.add_subscription(
            channel, address, kinds=kinds or None, project_wide=project_wide, interval_s=interval_s, person=person
        )
    )
    number = made["subscription"]["subscription_id"]
    mailed = f"subscription {number}: a message to {address} asks to confirm it"
    run.show(made, mailed if made["secret"] is None else f"subscription {number}\nsecret {made['secret']}")


@notify.command("list")
@command
async def list_subscriptions(run: Run) -> None:
    """List subscriptions."""
    rows = await run.ask(lambda client: client.subscriptions(limit=MOST))
    run.show_table(rows, COLUMNS, "No subscriptions yet: muster notify add ADDRESS --person PERSON")


@notify.command("set")
@click.argument("subscription_id", type=NUMBER)
@click.option("--interval-s", type=click.FloatRange(0, MOST_INTERVAL_S), default=None, help="See `muster notify add`.")
@click.option("--pause/--resume", "paused", default=None, help="Drop events, or send them again.")
@kinds_option
@command
async def set_subscription(
    run: Run, subscription_id: int, interval_s: float | None, paused: bool | None, kinds: tuple[str, ...]
) -> None:
    """Change the events or the interval of a subscription, or pause it."""
    shown = await run.ask(
        lambda client: client.set_subscription(
            subscription_id, kinds=kinds or None, interval_s=interval_s, paused=paused
        )
    )
    run.show(shown, lines_of(shown))


@notify.command("test")
@click.argument("subscription_id", type=NUMBER)
@command
async def test(run: Run, subscription_id: int) -> None:
    """Send a test message within seconds; `muster notify deliveries` shows the outcome."""
    shown = await run.ask(lambda client: client.test_subscription(subscription_id))
    run.show(shown, f"a test message to {shown['address']} follows")


@notify.command("rotate")
@click.argument("subscription_id", type=NUMBER)
@command
async def rotate(run: Run, subscription_id: int) -> None:
    """Print a new secret of a webhook. For a day, messages are also signed with the previous one."""
    made = await run.ask(lambda client: client.rotate_secret(subscription_id))
    run.show(made, f"secret {made['secret']}")


@notify.command("delete")
@click.argument("subscription_id", type=NUMBER)
@command
async def delete(run: Run, subscription_id: int) -> None:
    """Delete a subscription."""
    shown = await run.ask(lambda client: client.delete_subscription(subscription_id))
    run.show(shown, f"subscription {subscription_id} to {shown['address']} is deleted")


@notify.command("deliveries")
@click.option("--subscription", "subscription_id", type=NUMBER, default=None, help="Only those of a subscription.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="Number of deliveries.")
@command
async def deliveries(run: Run, subscription_id: int | None, limit: int) -> None:
    """List the latest deliveries, with the outcome of their last attempt."""
    rows = await run.ask(lambda client: client.deliveries(subscription_id=subscription_id, limit=limit))
    run.show_table(rows, DELIVERY_COLUMNS, "No deliveries yet.")
