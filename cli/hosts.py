"""`muster host` and `muster nobody`: volunteers' computers, and work that none of them can run."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from administration.hosts import (
    SILENT_S,
    choice_of,
    counted_since,
    first_hosts,
    hav_as_json,
    held_as_json,
    host_as_json,
    listed_as_json,
)
from administration.unschedulable import refused_lately
from api.hosts import MOST_HELD, MOST_SILENT_S
from cli.context import Run, as_text, command, lines_of
from domain.errors import InvalidInputError
from domain.host_lists import HostKind
from domain.units import HostId, Seconds
from muster_client.work import LookedFor
from store.postgres import PostgresStore

ID = click.IntRange(1, 2**31 - 1)
COLUMNS = ["host_id", "volunteer_id", "domain_name", "os_name", "ncpus", "last_rpc_at"]
DID = ["in_progress", "n_valid", "n_error", "n_timeout"]
TOLD = {  # what is looked for -> what a list of it tells besides
    HostKind.SLOW: ["app_version_id", "x", "relative_turnaround"],
    HostKind.FAILING: ["errors", "invalid", "timed_out", "last_at", "since"],
}
KINDS = click.Choice(["slow", "failing", "silent"])
SILENCE = click.FloatRange(0.0, MOST_SILENT_S)
HELD = ["instance_id", "job_id", "batch_id", "app", "due_at", "est_runtime_s", "tight"]


@click.group()
def host() -> None:
    """Volunteers' computers."""


@host.command("list")
@click.option("--limit", type=click.IntRange(1, 100_000), default=1000, show_default=True, help="Most hosts.")
@click.option("--show", type=KINDS, help="Those alone, the worst or newest first.")
@click.option("--silent-s", type=SILENCE, help="How long silent hosts have not called; a week unless told.")
@command
async def list_hosts(run: Run, limit: int, show: LookedFor | None, silent_s: float | None) -> None:
    """List hosts by id, or those to look at.

    Slow ones are in the slowest tenth of their app and processor by the last full ranking, once for each app version.
    Failing ones had errors, invalid results or time-outs in the last week: `since` says since when they are counted,
    later where all hosts had more than 10,000. Those of batches that ended longer than storage.keep_ended_s ago are
    not counted.
    """
    kind = None if show is None else HostKind(show)
    if silent_s is not None and kind is not HostKind.SILENT:
        raise InvalidInputError("silent_s", "nothing: it is asked of silent hosts", silent_s)

    async def here(store: PostgresStore) -> object:
        if kind is None:
            ids = [one.host_id for one in await store.views.hosts(limit=limit)]
            listed = await store.host_lists.listed(ids)
            return [listed_as_json(listed[host_id]) for host_id in ids]
        asked_s = SILENT_S if silent_s is None else Seconds(silent_s)
        choice = choice_of(kind, now=run.clock.now(), silent_s=asked_s)
        found = await first_hosts(store.host_lists, choice, limit)
        return [listed_as_json(one, counted_since(found, choice)) for one in found.hosts]

    rows = await run.ask(here, lambda client: client.hosts(limit=limit, show=show, silent_s=silent_s))
    empty = "No host has called yet." if kind is None else "There is no such host."
    told = TOLD.get(kind, []) if kind is not None else []
    flat = rows if run.as_json else [{**one, **(one["slow"] or {}), **(one["failures"] or {})} for one in rows]
    run.show_table(flat, [*COLUMNS, *DID, *told], empty)


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
