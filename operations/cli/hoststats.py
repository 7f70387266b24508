"""`muster hoststats`: rank the hosts now, and look at what the last ranking found."""

from __future__ import annotations

import click

from domain.errors import MusterError
from domain.populations import HostStatisticsRun, RankedPart
from domain.settings import RankingSettings, Settings
from domain.units import DAY_S, HostId, Seconds
from hoststats.service import Progress, in_silence
from operations.cli.context import Run, command
from operations.compose import host_statistics
from operations.logs import configure_logs
from operations.show import run_as_json

COLUMNS = ["app", "processor", "rows", "ranked", "newcomers", "n", "state", "score", "R_q h", "T_retry h"]


class RunUnderWayError(MusterError):
    """Another run of the host statistics is under way; nothing was done."""


@click.group()
def hoststats() -> None:
    """Percentiles of hosts: who is fast and reliable."""


@hoststats.command("run")
@click.option(
    "--cut-points-only", is_flag=True, help="Refresh what requests are judged by, without a percentile per host."
)
@command
async def run_ranking(run: Run, cut_points_only: bool) -> None:
    """Rank every host and switch to the result. Once a day, from cron; safe to repeat, to run twice and to kill."""
    configure_logs("warning")
    async with run.store() as store:
        ranking = (await store.applications.load_catalogue()).settings.ranking
        services = host_statistics(store, lambda: ranking, run.clock)
        done = await services.statistics.run(full=not cut_points_only, report=in_silence if run.as_json else _told)
    if done is None:
        raise RunUnderWayError
    _show(run, done)


@hoststats.command("show")
@click.option("--host", "host_id", type=click.IntRange(min=1), default=None, help="Where one host stands instead.")
@command
async def show_ranking(run: Run, host_id: int | None) -> None:
    """Show what the last run found, or where a host stands."""
    async with run.store() as store:
        if host_id is not None:
            rows = await store.generations.percentiles_of(HostId(host_id))
            shown: list[dict[str, object]] = [
                {"app_version_id": row.app_version_id, "p": row.p, "x": row.x, "y": row.y} for row in rows
            ]
            run.show_table(shown, ["app_version_id", "p", "x", "y"], f"No percentile of host {host_id}: a newcomer.")
            return
        last = next(iter(await store.generations.runs(1)), None)
        settings, _ = Settings.from_stored(await store.settings.settings())
    if last is None:
        run.show({}, "Hosts were never ranked: muster hoststats run")
        return
    age_s = Seconds(run.clock.now() - last.started_at)
    if is_overdue(age_s, settings.ranking):
        click.secho(f"the last run was {age_s / 3600:.0f} h ago: is `muster up` or the cron job running?", err=True)
    _show(run, last)


def is_overdue(age_s: Seconds, settings: RankingSettings) -> bool:
    """Whether the last run is so old that the next one must have failed: two intervals, of a day where cron runs them.

    >>> by_cron = RankingSettings(run_interval_s=Seconds(0.0))
    >>> [is_overdue(Seconds(hours * 3600.0), by_cron) for hours in (48, 49)]
    [False, True]
    """
    return age_s > 2 * (settings.run_interval_s or DAY_S)


def _show(run: Run, done: HostStatisticsRun) -> None:
    if run.as_json:
        run.show(run_as_json(done), "")
        return
    kind = "" if done.full else " (cut points only)"
    click.echo(
        f"generation {done.generation}{kind}: {done.apps} apps, {done.rows} rows, {done.ranked} ranked, "
        f"in {done.seconds:.1f} s"
    )
    if done.parts:
        run.show_table([_row(part) for part in done.parts], COLUMNS, "")


def _row(part: RankedPart) -> dict[str, object]:
    return {
        "app": part.app_name,
        "processor": part.processor_type,
        "rows": part.rows,
        "ranked": part.ranked,
        "newcomers": part.newcomers,
        "n": part.population,
        "state": "bootstrap" if part.small_population else "ranked",
        "score": None if part.median_score is None else round(part.median_score, 3),
        "R_q h": _hours(part.median_safe_runtime_s),
        "T_retry h": _hours(part.retry_turnaround_s),
    }


def _hours(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds / 3600, 2)


def _told(progress: Progress) -> None:
    """A line on standard error for what was just done."""
    kind = f" {progress.processor_type}" if progress.processor_type is not None else ""
    place = f"app {progress.apps_done + 1} of {progress.apps}, {progress.app_name}{kind}"
    click.echo(f"{place}: {progress.rows} rows {progress.step}", err=True)
