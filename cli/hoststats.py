"""`muster hoststats`: rank the hosts and show the latest ranking."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from cli.context import Run, command, local_command
from domain.errors import MusterError
from domain.formatting import in_words
from domain.settings import RankingSettings, Settings
from domain.units import DAY_S, Seconds

if TYPE_CHECKING:
    from hoststats.service import Progress


COLUMNS = ["app", "processor", "rows", "ranked", "newcomers", "n", "state", "score", "R_q h", "T_retry h"]


class RunUnderWayError(MusterError):
    """Another ranking is running; nothing was done."""


@click.group()
def hoststats() -> None:
    """Rank hosts by speed and reliability."""


@hoststats.command("run")
@click.option(
    "--cut-points-only", is_flag=True, help="Refresh only the cut points of requests, not each host's percentile."
)
@local_command("`muster up` ranks hosts automatically; run this, or the cron job, on the project's own machine")
async def run_ranking(run: Run, cut_points_only: bool) -> None:
    """Rank all hosts and activate the result.

    Run it from cron once a day; it is safe to repeat, to interrupt and to run twice at the same time.
    """
    from administration.show import run_as_json
    from hoststats.service import in_silence
    from runtime.compose import host_statistics
    from runtime.logs import configure_logs

    configure_logs("warning")
    async with run.store() as store:
        ranking = (await store.applications.load_catalogue()).settings.ranking
        services = host_statistics(store, lambda: ranking, run.clock)
        done = await services.statistics.run(full=not cut_points_only, report=in_silence if run.as_json else _told)
    if done is None:
        raise RunUnderWayError
    _show(run, run_as_json(done))


@hoststats.command("show")
@click.option(
    "--host",
    "host_id",
    type=click.IntRange(min=1),
    default=None,
    help="Show this host's percentiles instead of the last ranking.",
)
@command
async def show_ranking(run: Run, host_id: int | None) -> None:
    """Show the last ranking, or a host's percentiles."""
    if host_id is not None:
        rows = await run.ask(lambda client: client.host_percentiles(host_id))
        run.show_table(rows, ["app_version_id", "p", "x", "y"], f"Host {host_id} is not ranked yet.")
        return

    async with run.client() as client:
        last, stored = await client.ranking(), await client.settings()
    if last is None:
        run.show({}, "No ranking yet: muster hoststats run")
        return
    settings, _ = Settings.from_stored(stored)
    age_s = Seconds(run.clock.now() - last["started_at"])
    if is_overdue(age_s, settings.ranking):
        click.secho(f"the last ranking was {in_words(age_s)} ago: is `muster up` or the cron job running?", err=True)
    _show(run, last)


def is_overdue(age_s: Seconds, settings: RankingSettings) -> bool:
    """Return whether a ranking failed: the last one is older than two intervals (two days if cron runs it).

    >>> by_cron = RankingSettings(run_interval_s=Seconds(0.0))
    >>> [is_overdue(Seconds(hours * 3600.0), by_cron) for hours in (48, 49)]
    [False, True]
    """
    return age_s > 2 * (settings.run_interval_s or DAY_S)


def _show(run: Run, done: Mapping[str, Any]) -> None:
    if run.as_json:
        run.show(done, "")
        return
    kind = "" if done["full"] else " (cut points only)"
    click.echo(
        f"generation {done['generation']}{kind}: {done['apps']} apps, {done['rows']} rows, {done['ranked']} ranked, "
        f"in {done['seconds']:.1f} s"
    )
    if done["parts"]:
        run.show_table([_row(part) for part in done["parts"]], COLUMNS, "")


def _row(part: Mapping[str, Any]) -> dict[str, object]:
    return {
        "app": part["app_name"],
        "processor": part["processor_type"],
        "rows": part["rows"],
        "ranked": part["ranked"],
        "newcomers": part["newcomers"],
        "n": part["population"],
        "state": "bootstrap" if part["small_population"] else "ranked",
        "score": None if part["median_score"] is None else round(part["median_score"], 3),
        "R_q h": _hours(part["median_safe_runtime_s"]),
        "T_retry h": _hours(part["retry_turnaround_s"]),
    }


def _hours(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds / 3600, 2)


def _told(progress: Progress) -> None:
    """Print a line to standard error for each completed step."""
    kind = f" {progress.processor_type}" if progress.processor_type is not None else ""
    place = f"app {progress.apps_done + 1} of {progress.apps}, {progress.app_name}{kind}"
    click.echo(f"{place}: {progress.rows} rows {progress.step}", err=True)
