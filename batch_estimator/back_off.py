"""The back-off from batches that failed. Distinguishes a failing batch from a failing database."""

from __future__ import annotations

import math

from batch_estimator.ports import Forecasts
from domain.clock import Clock
from domain.errors import UnavailableError
from domain.units import BatchId, Seconds

TRY_AGAIN_S = Seconds(900.0)


class BackOff:
    """Skips a failed batch for 15 minutes: otherwise it would come first in every pass and delay the rest."""

    def __init__(self, forecasts: Forecasts, clock: Clock) -> None:
        self._forecasts = forecasts
        self._clock = clock
        self._until: dict[BatchId, float] = {}  # monotonic clock
        self._refused: BatchId | None = None  # the last batch the database failed for, if it has not served one since

    def __len__(self) -> int:
        return len(self._until)

    def has(self, batch_id: BatchId) -> bool:
        return self._until.get(batch_id, -math.inf) > self._clock.monotonic()

    def passed(self, batch_id: BatchId) -> None:
        """Record that the batch was forecast."""
        self._until.pop(batch_id, None)
        self._refused = None

    async def failed(self, batch_id: BatchId, error: Exception) -> None:
        """Back off from the batch.

        Raises `error` if the database fails for another batch right after this one, or does not answer a trivial query.
        """
        self._until[batch_id] = self._clock.monotonic() + TRY_AGAIN_S
        if not isinstance(error, UnavailableError):
            return
        before, self._refused = self._refused, batch_id
        if before not in (None, batch_id):
            self._refused = None
            raise error
        await self.answers()

    async def answers(self) -> None:
        """Check that the database answers. Raises UnavailableError: every batch would fail."""
        await self._forecasts.accuracies()
