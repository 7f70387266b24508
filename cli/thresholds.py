"""`muster thresholds`: show, preview and change the thresholds for urgent jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
from rich.console import Console

from cli.context import Run, Server, command, share_bar, to_json, user
from cli.settings import changed_in_words, pairs_of
from cli.simulate import run_cases
from domain.errors import InvalidInputError, MusterError
from domain.units import Seconds
from domain.views import MOST_DAYS, MOST_HOSTS, SOME_DAYS, SOME_HOSTS, SOME_SEEDS, SimulationState

if TYPE_CHECKING:
    from administration.changes import Changes
    from administration.thresholds.replay import Replayed


ASK_EVERY_S = Seconds(1.0)

CHANGES = click.argument("values", nargs=-1, required=True, metavar="KEY=VALUE...")


class SimulationEndedError(MusterError):
    """A simulation on a server ended without a result."""


@click.group()
def thresholds() -> None:
    """Show, preview and change the thresholds for urgent jobs, tight due dates and copies of last jobs."""


@thresholds.command("show")
@command
async def show(run: Run) -> None:
    """Show every threshold with its purpose, the effect of a change, and its last change."""
    from administration.thresholds.shown import thresholds_as_text

    rows = await run.ask(lambda client: client.thresholds())
    run.show(rows, thresholds_as_text(rows))


@thresholds.command("preview")
@CHANGES
@click.option(
    "--simulate", "simulates", is_flag=True, help="Simulate the project with the current and the new thresholds."
)
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    default=SOME_SEEDS,
    show_default=True,
    help="Number of simulations, each for the current and for the new thresholds.",
)
@click.option(
    "--hosts",
    type=click.IntRange(1, MOST_HOSTS),
    default=SOME_HOSTS,
    show_default=True,
    help="Maximum number of simulated hosts.",
)
@click.option(
    "--days",
    type=click.FloatRange(0.0, MOST_DAYS, min_open=True),
    default=SOME_DAYS,
    show_default=True,
    help="Number of simulated days.",
)
@click.option(
    "--processes",
    type=click.IntRange(min=1),
    default=None,
    help="Parallel runs; default: one per CPU; on a server one.",
)
@command
async def preview(
    run: Run, values: tuple[str, ...], simulates: bool, seeds: int, hosts: int, days: float, processes: int | None
) -> None:
    """Preview a change's effect on hosts (read at most a minute ago) and on waiting jobs; changes nothing. --simulate
    accepts every threshold. It simulates recently active hosts, with their measured behaviour, and the waiting batches,
    once with the current and once with the new thresholds. docs/operating.md lists the assumptions. A server simulates
    in the background, one simulation at a time; interrupting the command cancels it.
    """
    from administration.thresholds.keys import FORESEEN
    from administration.thresholds.shown import preview_as_text

    if simulates:
        changes = changes_given(values)
        if run.server is None:
            found = await _simulated_here(run, changes, seeds=seeds, hosts=hosts, days=days, processes=processes)
        elif processes is not None:
            raise InvalidInputError("--processes", "no value with --server, which uses one process", processes)
        else:
            found = await _simulated_there(run, run.server, changes, seeds=seeds, hosts=hosts, days=days)
        _show(run, found)
        return
    changes = changes_given(values, FORESEEN)
    previewed = await run.ask(lambda client: client.preview_thresholds(changes))
    run.show(previewed, preview_as_text(previewed))


async def _simulated_here(
    run: Run, changes: Changes, *, seeds: int, hosts: int, days: float, processes: int | None
) -> Replayed:
    from administration.thresholds.replay import replay

    async with run.store() as store:
        prepared = await replay(store, run.clock, changes, seeds=range(1, seeds + 1), most_hosts=hosts, days=days)
    ran = await asyncio.to_thread(run_cases, prepared.cases, processes=processes)
    return prepared.replayed(ran)


async def _simulated_there(
    run: Run, server: Server, changes: Changes, *, seeds: int, hosts: int, days: float
) -> Replayed:
    """Simulate in the server's background. An interrupt cancels the simulation on the server."""
    from administration.thresholds.replay import Replayed
    from muster_client import Client

    async with Client(server.url, server.token) as client:
        found = await client.simulate_thresholds(changes, seeds=seeds, hosts=hosts, days=days)
        with share_bar("simulated") as progress:
            try:
                while found["state"] == SimulationState.RUNNING:
                    progress(found["done_fraction"])
                    await run.clock.sleep(ASK_EVERY_S)
                    found = await client.simulation(found["simulation_id"])
            except asyncio.CancelledError:
                await client.cancel_simulation(found["simulation_id"])
                raise
    if found["result"] is None:
        raise SimulationEndedError(found["failure"] or f"the simulation is {found['state']}: start it again")
    return Replayed.read(found["result"])


def _show(run: Run, found: Replayed) -> None:
    from administration.thresholds.shown import replayed_in_words
    from simulator.report import table_of
    from simulator.text_charts import charts_of

    if run.as_json:
        click.echo(to_json(found.as_json()))
        return
    click.echo(replayed_in_words(found))
    Console().print(table_of(found.comparison), charts_of(found.comparison))


@thresholds.command("set")
@CHANGES
@click.option("--why", required=True, help="Reason, for the audit trail (muster setting history).")
@click.option("--by", "who", default=None, help="Author of the change; default: the user of this machine.")
@command
async def set_thresholds(run: Run, values: tuple[str, ...], why: str, who: str | None) -> None:
    """Change thresholds; running services apply them within seconds."""
    changes = changes_given(values)
    by = who or user()
    done = await run.ask(lambda client: client.set_thresholds(changes, why=why, by=by))
    run.show(done, changed_in_words(done))


def changes_given(values: tuple[str, ...], keys: Sequence[str] | None = None) -> Changes:
    """Parse KEY=VALUE arguments into changes. Raises InvalidInputError.

    >>> changes_given(("p_tight=0.85",))
    {'deadline.p_tight': 0.85}
    """
    from administration.thresholds.keys import THRESHOLDS, changes_of

    return changes_of(pairs_of(values, "threshold"), THRESHOLDS if keys is None else keys)
