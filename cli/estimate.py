"""`muster estimate`: forecast when batches will be complete."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cli.context import Run, command, local_command
from domain.forecasts import Change, ForecastRecord, ForecastState, Method
from domain.formatting import in_words
from domain.units import BatchId, Instant

if TYPE_CHECKING:
    from batch_estimator.service import RefitPass, RefitReport


COLUMNS = ["batch_id", "outcome", "done", "about", "at the latest", "C(B)", "from", "notes"]


@click.group()
def estimate() -> None:
    """Forecast when batches will be complete."""


@estimate.command("run")
@click.option("--batch", "batch_id", type=click.IntRange(min=1), default=None, help="Forecast only this batch.")
@local_command("`muster up` updates forecasts automatically; run this on the project's own machine")
async def run_estimates(run: Run, batch_id: int | None) -> None:
    """Forecast every active batch now, and publish the changes; `muster up` does the same automatically.

    Safe to repeat, to interrupt, and to run while `muster up` runs: each batch is forecast by one process at a time.
    """
    from batch_estimator.service import in_silence
    from runtime.compose import estimator
    from runtime.logs import configure_logs

    configure_logs("error")
    report = in_silence if run.as_json else _told
    async with run.store() as store:
        settings = (await store.applications.load_catalogue()).settings
        forecasts = estimator(store, lambda: settings, run.clock)
        if batch_id is None:
            made = await forecasts.run_all(report)
        else:
            made = await forecasts.run_one(BatchId(batch_id), report)
    _show(run, made)


@estimate.command("show")
@click.argument("batch_id", type=click.IntRange(min=1, max=2**62), required=False)
@click.option(
    "--limit", type=click.IntRange(1, 1000), default=500, show_default=True, help="Maximum number of forecasts."
)
@command
async def show_estimates(run: Run, batch_id: int | None, limit: int) -> None:
    """Show a batch's progress, its forecasts with their reasons, and their errors once known.

    Without a batch: the age and accuracy of the forecasts of each app.
    """
    from administration.forecasts.words import forecasts_in_words, health_in_words

    if batch_id is not None:
        shown = await run.ask(
            lambda client: client.forecasts(batch_id, limit=limit),
        )
        run.show(shown, forecasts_in_words(shown))
        return
    apps = await run.ask(lambda client: client.forecast_health())
    run.show(apps, "\n".join(health_in_words(apps)))


def _show(run: Run, made: RefitPass) -> None:
    from administration.show import forecast_as_json
    from batch_estimator.service import RefitOutcome

    if run.as_json:
        run.show(
            {
                "changed": made.count(RefitOutcome.CHANGED),
                "held": made.count(RefitOutcome.HELD),
                "fallbacks": made.fallbacks,
                "elsewhere": made.count(RefitOutcome.ELSEWHERE),
                "over": made.count(RefitOutcome.OVER),
                "failed": made.count(RefitOutcome.FAILED),
                "ended": made.ended,
                "batches": [
                    {"batch_id": one.batch_id, "outcome": one.outcome.value}
                    | ({} if one.record is None else {"forecast": forecast_as_json(one.record)})
                    for one in made.done
                ],
            },
            "",
        )
        return
    if not made.done:
        click.echo("No active batches.")
        return
    now = run.clock.now()
    run.show_table([_row(one, now) for one in made.done], COLUMNS, "")
    many = {outcome: made.count(outcome) for outcome in RefitOutcome}
    kept = f"{many[RefitOutcome.CHANGED]} changed, {many[RefitOutcome.HELD]} held, {made.fallbacks} fell back"
    others = (
        f"{many[RefitOutcome.ELSEWHERE]} elsewhere, {many[RefitOutcome.OVER]} over, {many[RefitOutcome.FAILED]} failed"
    )
    click.echo(f"{kept}; {others}; {made.ended} ended since the last run")


def _row(done: RefitReport, now: Instant) -> dict[str, object]:
    from administration.forecasts.words import not_shown

    record = done.record
    if record is None:
        return {"batch_id": done.batch_id, "outcome": done.outcome.value}
    over, known = record.jobs_validated + record.jobs_failed, record.method is not Method.APRIORI
    return {
        "batch_id": done.batch_id,
        "outcome": record.change.value if record.change is not Change.HELD else done.outcome.value,
        "done": f"{over} of {record.jobs_total}",
        "about": _from_now(record.q50_at, now) if known else not_shown(ForecastState.FIRST_RESULTS),
        "at the latest": _from_now(record.q90_at, now) if known else "",
        "C(B)": _from_now(record.completion_at, now),
        "from": record.method.value,
        "notes": _notes(record),
    }


def _from_now(at: Instant, now: Instant) -> str:
    return f"in {in_words(at - now)}" if at >= now else f"{in_words(now - at)} ago"


def _notes(record: ForecastRecord) -> str:
    notes = [] if record.flag is None else [record.flag]
    notes += [hold.because for hold in record.holds[:1]]
    return "; ".join(notes)


def _told(done: RefitReport, so_far: int, of: int) -> None:
    """Print a line to standard error for each batch that was forecast."""
    because = "" if done.record is None else f": {done.record.because}"
    click.echo(f"{so_far} of {of}, batch {done.batch_id} {done.outcome.value}{because}", err=True)
