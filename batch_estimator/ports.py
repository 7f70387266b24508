"""The estimator's ports, implemented by other packages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from domain.forecasting import AppTables, BatchTables, SendPlace
from domain.forecasts import (
    AppAccuracy,
    EndedBatch,
    ForecastAge,
    ForecastRecord,
    ForecastStanding,
    Score,
)
from domain.settings import EstimatorSettings
from domain.units import AppId, BatchId, Instant

Table = NDArray[np.void]  # records with the fields of domain.forecasting: JOB_FIELDS etc.


class ForecastTables(Protocol):
    """Reads the stored rows about a batch, its hosts and its app."""

    async def of_batch(self, batch_id: BatchId, *, now: Instant) -> BatchTables[Table] | None:
        """Return the batch's rows, None unless it is active. The number of queries does not depend on its size."""
        ...

    async def of_app(self, app_id: AppId, place: SendPlace, *, now: Instant) -> AppTables[Table] | None:
        """Return the rows that a new batch of the app at this place would have; None if the app is unknown."""
        ...


class Forecasts(Protocol):
    """Stores forecasts, the published values, and scores."""

    async def ages(self, *, now: Instant, settings: EstimatorSettings) -> Sequence[ForecastAge]:
        """Return the active batches that are due at `now` if jobs ended since their last forecast, oldest forecast
        first.
        """
        ...

    def claim(self, batch_id: BatchId) -> AbstractAsyncContextManager[bool]:
        """Claim the batch: yield True, or False if another process holds the claim. A claim ends with its process."""
        ...

    async def standing(self, batch_id: BatchId) -> ForecastStanding | None:
        """Return the batch with its forecasting state, None unless it is active."""
        ...

    async def publish(self, record: ForecastRecord, *, told: bool = True, since: ForecastAge | None = None) -> bool:
        """Store the forecast and publish its C(B), q50 and q90 with the batch, in one transaction.

        If `told` is False, q50 and q90 are not published, and previously published ones are withdrawn. Older forecasts
        are thinned out (domain/forecasts.py). Returns False without writing unless the batch is active and, if `since`
        is given, has no newer forecast: a claim may be lost while its holder computes.
        """
        ...

    async def ended(self, limit: int) -> Sequence[EndedBatch]:
        """Return ended batches with forecasts that are not scored yet, in order of id."""
        ...

    async def scores(self, app_id: AppId, limit: int) -> Sequence[Score]:
        """Return an app's scores, starting with the batch that ended last."""
        ...

    async def finish(self, ended: EndedBatch, scores: Sequence[Score], accuracy: AppAccuracy | None) -> bool:
        """Store an ended batch's scores, thin out its forecasts, and update its app's accuracy, in one transaction.

        Returns False without writing if this was already done.
        """
        ...

    async def accuracies(self) -> Mapping[AppId, AppAccuracy]:
        """Return the accuracy of each app with at least one scored batch."""
        ...


Result = TypeVar("Result")


class RunFit(Protocol):
    """Runs the computation, in this thread or in another thread."""

    def __call__(self, fit: Callable[[], Result], /) -> Awaitable[Result]: ...
