"""`muster host` and `muster nobody`: volunteers' computers, and work that none of them can run."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from domain.units import HostId
from operations.api.hosts import MOST_HELD
from operations.cli.context import Run, as_text, command, lines_of
from operations.nobody import refused_lately
from operations.show_hosts import hav_as_json, held_as_json, host_as_json
from store.postgres import PostgresStore

ID = click.IntRange(1, 2**31 - 1)
COLUMNS = ["host_id", "volunteer_id", "domain_name", "os_name", "ncpus", "last_rpc_at"]
HELD = ["instance_id", "job_id", "batch_id", "app", "due_at", "est_runtime_s", "tight"]


@click.group()
def host() -> None:
    """Volunteers' computers."""


@host.command("list")
@click.option("--limit", type=click.IntRange(1, 100_000), default=1000, show_default=True, help="Most hosts.")
@command
async def list_hosts(run: Run, limit: int) -> None:
    """List hosts by id."""

    async def here(store: PostgresStore) -> object:
        return [host_as_json(one) for one in await store.views.hosts(limit=limit)]

    rows = await run.ask(here, lambda client: client.hosts(limit=limit))
    run.show_table(rows, COLUMNS, "No host has called yet.")


@host.command("show")
@click.argument("host_id", type=ID)
@command
async def show_host(run: Run, host_id: int) -> None:
    """Show a host, and what is known of it with each app version."""

    async def here(store: PostgresStore) -> object:
        found, havs = await store.views.host(HostId(host_id))
        return {**host_as_json(found), "app_versions": [hav_as_json(one, run.clock.now()) for one in havs]}

    shown = await run.ask(here, lambda client: client.host(host_id))
    parts = [lines_of({key: value for key, value in shown.items() if key != "app_versions"})]
    parts += ["  " + lines_of(one).replace("\n", "\n  ") for one in shown["app_versions"]]
    run.show(shown, "\n\n".join(parts))


@host.command("instances")
@click.argument("host_id", type=ID)
@command
async def list_instances(run: Run, host_id: int) -> None:
    """List what a host has in progress, by id."""

    async def here(store: PostgresStore) -> object:
        await store.views.host(HostId(host_id))
        found = await store.listings.held_by(HostId(host_id), limit=MOST_HELD)
        return [held_as_json(one) for one in sorted(found, key=lambda one: one.instance_id)]

    rows = await run.ask(here, lambda client: client.host_instances(host_id, limit=None))
    run.show_table(rows, HELD, f"Host {host_id} has nothing in progress.")


@click.command()
@command
async def nobody(run: Run) -> None:
    """Show work that every host refuses, and why: what workers met lately."""
    rows = await run.ask(lambda store: refused_lately(store.process_reports, run.clock), lambda client: client.nobody())
    lines = []
    for one in rows:
        since = datetime.fromtimestamp(one["since_at"], UTC).strftime("%Y-%m-%d %H:%M UTC")
        lines.append(
            f"batch {one['batch_id']}: {one['waiting']} slots, refused by {one['hosts']} hosts since {since} "
            f"({as_text(one['codes'])})"
        )
        lines += [f"  {one['advice']}"] if one["advice"] else []
    run.show(rows, "\n".join(lines) or "Nothing that waits was refused by everybody.")
