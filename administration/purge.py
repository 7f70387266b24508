"""Purges old months of the history: first the uploaded files, then the rows. Also lists what a purge would delete."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from domain.clock import Clock
from domain.history import FinishedMonth
from domain.units import InstanceId
from store.sweeping import PostgresHistory
from transfer.project_files import ProjectFiles

PAGE = 1_000  # instances per database query
COUNTED = ("jobs", "instances", "files", "file_bytes", "table_bytes")  # counted per month

Progress = Callable[[FinishedMonth], None]  # called after each month is purged


@dataclass(frozen=True, slots=True)
class Purged:
    """The months that a purge deletes or deleted."""

    months: tuple[FinishedMonth, ...]

    def rows(self) -> list[dict[str, object]]:
        """Return one row per month, with sizes in bytes."""
        return [{"month": one.month, **{key: getattr(one, key) for key in COUNTED}} for one in self.months]

    def as_json(self) -> dict[str, object]:
        """Return the months with their totals."""
        return {"months": self.rows(), **{key: sum(getattr(one, key) for one in self.months) for key in COUNTED}}


async def months_before(history: PostgresHistory, before: str) -> Sequence[FinishedMonth]:
    """Return the months before `before` ("2026-03") that still have history, earliest first."""
    return [one for one in await history.months() if one.month < before and one.table_bytes + one.jobs > 0]


async def purge_months(
    history: PostgresHistory, files: ProjectFiles, months: Sequence[FinishedMonth], *, clock: Clock, progress: Progress
) -> None:
    """Delete the files of the months, then the rows that name them, so that an interrupted purge can be repeated."""
    for month in months:
        await _remove_outputs(history, files, month.month)
        await history.purge_month(month.month, now=clock.now())
        progress(month)


async def _remove_outputs(history: PostgresHistory, files: ProjectFiles, month: str) -> None:
    after: InstanceId | None = InstanceId(0)
    while after is not None:
        page = await history.outputs(month, after=after, limit=PAGE)
        await files.delete_outputs(page.uploads)
        after = page.after
