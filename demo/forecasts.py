"""What the estimator said of a batch while it ran, against what became of it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from rich.table import Table

from domain.batches import Batch
from domain.forecasts import ForecastRecord, Method

SHARES = (0.0, 0.5, 0.9)  # of the jobs: the first forecast with so many over is told


@dataclass(frozen=True, slots=True)
class AgainstFact:
    """A forecast of the background process, in seconds from the submission; `ended_s` None: the batch did not end."""

    batch: str
    made_s: float
    jobs_over: int
    jobs_total: int
    about_s: float
    at_latest_s: float
    ended_s: float | None

    def as_json(self) -> dict[str, object]:
        return {key: round(value, 1) if isinstance(value, float) else value for key, value in asdict(self).items()}


def against_fact(batch: Batch, records: Sequence[ForecastRecord]) -> list[AgainstFact]:
    """The first forecast, and those with half and nine tenths of the jobs over; `records` in order of time.

    Those made when the batch had ended, or without a result to rest on, are left out.
    """
    told: list[ForecastRecord] = []
    known = [one for one in records if one.method is not Method.APRIORI]
    before = [one for one in known if batch.ended_at is None or one.made_at < batch.ended_at]
    for share in SHARES:
        reached = [one for one in before if one.jobs_validated + one.jobs_failed >= share * one.jobs_total]
        if reached and reached[0] not in told:
            told.append(reached[0])
    ended_s = None if batch.ended_at is None else batch.ended_at - batch.created_at
    return [
        AgainstFact(
            batch.name,
            one.made_at - batch.created_at,
            one.jobs_validated + one.jobs_failed,
            one.jobs_total,
            one.q50_at - batch.created_at,
            one.q90_at - batch.created_at,
            ended_s,
        )
        for one in told
    ]


def forecast_table(found: Sequence[AgainstFact]) -> Table:
    """For the screen."""
    table = Table("batch", "forecast after", "jobs over", "about", "at latest", "in fact")
    for one in found:
        table.add_row(
            one.batch,
            f"{one.made_s:.1f} s",
            f"{one.jobs_over}/{one.jobs_total}",
            f"{one.about_s:.0f} s",
            f"{one.at_latest_s:.0f} s",
            "not ended" if one.ended_s is None else f"{one.ended_s:.0f} s",
        )
    return table
