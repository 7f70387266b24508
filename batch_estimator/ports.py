"""What the estimator needs of the others, as protocols."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from batch_estimator.snapshot import Snapshot
from domain.forecasting import BatchTables
from domain.units import BatchId, Instant

Table = NDArray[np.void]  # records of domain.forecasting: JOB_FIELDS and so on


class ForecastTables(Protocol):
    """What is stored of a batch, its hosts and its app."""

    async def of_batch(self, batch_id: BatchId, *, now: Instant) -> BatchTables[Table] | None:
        """None unless such a batch is active. A bounded number of queries, however large it is."""
        ...


class Snapshots(Protocol):
    """Where a batch stands."""

    async def snapshot(self, batch_id: BatchId, *, now: Instant) -> Snapshot | None:
        """None unless such a batch is active."""
        ...
