"""What the estimator needs of the others, as protocols."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from batch_estimator.snapshot import BatchSnapshot
from domain.forecasting import AppTables, BatchTables
from domain.forecasts import (
    AppAccuracy,
    EndedBatch,
    ForecastAge,
    ForecastHealth,
    ForecastRecord,
    ForecastStanding,
    Score,
)
from domain.settings import EstimatorSettings
from domain.units import AppId, BatchId, Instant

Table = NDArray[np.void]  # records of domain.forecasting: JOB_FIELDS and so on


Fill = Callable[[], BatchSnapshot]


class ForecastTables(Protocol):
    """What is stored of a batch, its hosts and its app."""

    async def of_batch(self, batch_id: BatchId, *, now: Instant) -> BatchTables[Table] | None:
        """None unless such a batch is active. A bounded number of queries, however large it is."""
        ...

    async def of_app(self, app_id: AppId, *, now: Instant) -> AppTables[Table] | None:
        """What a new batch of the app would meet; None unless there is such an app."""
        ...


class Snapshots(Protocol):
    """Where a batch stands."""

    async def snapshot(self, batch_id: BatchId, *, now: Instant) -> Fill | None:
        """What makes the snapshot of what was read, which takes long for a large batch; None unless it is active."""
        ...


class Forecasts(Protocol):
    """Forecasts that were made, what was published of them, and how good they were."""

    async def ages(self, *, now: Instant, settings: EstimatorSettings) -> Sequence[ForecastAge]:
        """The active batches that would be due at `now` if jobs of them were over since; the longest ago first."""
        ...

    def claim(self, batch_id: BatchId) -> AbstractAsyncContextManager[bool]:
        """Inside, nobody else has claimed the batch, if True; if False somebody has. Gone with the process."""
        ...

    async def standing(self, batch_id: BatchId) -> ForecastStanding | None:
        """None unless such a batch is active."""
        ...

    async def publish(self, record: ForecastRecord, *, told: bool = True, since: ForecastAge | None = None) -> bool:
        """Keep the forecast and publish its C(B), q50 and q90 with the batch, in one transaction.

        Unless `told` no q50 and q90 are published, and older ones are withdrawn. Older forecasts are thinned out
        (domain/forecasts.py). False, and nothing is written, unless the batch is active and, where `since` is told,
        was not forecast since: a claim may be lost while its holder works.
        """
        ...

    async def ended(self, limit: int) -> Sequence[EndedBatch]:
        """Batches that were forecast and have ended since, which are not scored yet, by id."""
        ...

    async def scores(self, app_id: AppId, limit: int) -> Sequence[Score]:
        """The scores of an app, of the batch that ended last first."""
        ...

    async def finish(self, ended: EndedBatch, scores: Sequence[Score], accuracy: AppAccuracy | None) -> bool:
        """Keep an ended batch's scores, thin its forecasts out, and note its app's accuracy, in one transaction.

        False, and nothing is written, when it was finished before.
        """
        ...

    async def accuracies(self) -> Mapping[AppId, AppAccuracy]:
        """How good the forecasts of each app are, of those of which a batch was scored."""
        ...

    async def health(self) -> Sequence[ForecastHealth]:
        """How forecasting goes, app by app, in one query."""
        ...

    async def last(self, batch_ids: Sequence[BatchId]) -> Mapping[BatchId, ForecastRecord]:
        """The last forecast of each of these batches that has any."""
        ...

    async def series(self, batch_id: BatchId, *, limit: int) -> Sequence[ForecastRecord]:
        """The last `limit` forecasts of a batch, in order of time."""
        ...


@dataclass(frozen=True, slots=True)
class EstimatorPorts:
    snapshots: Snapshots
    forecasts: Forecasts


Result = TypeVar("Result")


class RunFit(Protocol):
    """Where the arithmetic is done."""

    def __call__(self, fit: Callable[[], Result], /) -> Awaitable[Result]: ...
