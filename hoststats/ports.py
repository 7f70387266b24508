"""The database operations used by host statistics."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from domain.apps import AppVersion
from domain.catalogue import Catalogue
from domain.ranking import AppFacts, CutPoints, HostStatisticsRun, Since
from domain.units import AppId, Instant

Table = NDArray[np.void]  # records of domain.ranking: HAV_FIELDS or PERCENTILE_FIELDS


class Catalogues(Protocol):
    async def load_catalogue(self) -> Catalogue:
        """Return the catalogue with the current versions and settings."""
        ...


class HavTables(Protocol):
    def of_apps(
        self, current: Mapping[AppId, Sequence[AppVersion]], since: Since
    ) -> AsyncIterator[tuple[AppId, Table]]:
        """Yield, for each app, a new table (HAV_FIELDS) with the rows of all hosts for its versions, in any order.

        Apps are in order of id. Apps with few rows are read together.
        """
        ...

    async def refresh_turnarounds(self, app_id: AppId) -> None:
        """Update the usual turnarounds of the app's active batches and, by job size, those of the app's results.

        A batch's median is stored once it has 20 valid results and half of the instances read have been returned.
        """
        ...

    async def facts(self, app_id: AppId) -> AppFacts:
        """Return an app's facts, computed from at most 50 of its recent batches."""
        ...


class NewGeneration(Protocol):
    """A generation being written; it is invisible until `publish`."""

    @property
    def number(self) -> int: ...

    async def write(self, percentiles: Table) -> None:
        """Write records (PERCENTILE_FIELDS); each (host, app version) must occur only once."""
        ...

    async def publish(self, cuts: Sequence[CutPoints], run: HostStatisticsRun) -> None:
        """Write the cut points, record the run, and switch to this generation in a single statement.

        Raises UnavailableError, without switching, if the lock of the run was lost in the meantime.
        """
        ...


class Generations(Protocol):
    def new(self, *, now: Instant, full: bool) -> AbstractAsyncContextManager[NewGeneration | None]:
        """Start a generation after removing what failed runs left behind. Return None if another run is in progress.

        Without `publish`, the current generation remains and the next run removes the written data.
        """
        ...

    async def remove_old(self) -> int:
        """Remove old generations except the previous one and the last full one. Return the number removed.

        A generation that is being read is not removed until the next call.
        """
        ...

    async def runs(self, limit: int) -> Sequence[HostStatisticsRun]:
        """Return published runs, newest first."""
        ...


@dataclass(frozen=True, slots=True)
class HostStatisticsPorts:
    catalogues: Catalogues
    tables: HavTables
    generations: Generations
