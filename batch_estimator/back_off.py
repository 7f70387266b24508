"""The back-off from batches that failed, which tells a batch that fails from a database that fails."""

from __future__ import annotations

import math

from batch_estimator.ports import Forecasts
from domain.clock import Clock
from domain.errors import UnavailableError
from domain.units import BatchId, Seconds

TRY_AGAIN_S = Seconds(900.0)


class BackOff:
    """A batch that fails is not met again for 15 minutes: it comes first in every round, and would hold up the rest."""

    def __init__(self, forecasts: Forecasts, clock: Clock) -> None:
        self._forecasts = forecasts
        self._clock = clock
        self._until: dict[BatchId, float] = {}  # by the monotonic clock
        self._refused: BatchId | None = None  # whose time the database did not serve; None: it has served since

    def __len__(self) -> int:
        return len(self._until)

    def has(self, batch_id: BatchId) -> bool:
        return self._until.get(batch_id, -math.inf) > self._clock.monotonic()

    def passed(self, batch_id: BatchId) -> None:
        """The batch was served."""
        self._until.pop(batch_id, None)
        self._refused = None

    async def failed(self, batch_id: BatchId, error: Exception) -> None:
        """Back off from the batch.

        Raises `error` where it is the database's: it does not serve another batch either, right after this one, or
        does not even answer what costs nothing.
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
        """Return if the database does. Raises UnavailableError: all would fail."""
        await self._forecasts.accuracies()
