"""What the host statistics need from the database, in their own words."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from domain.apps import AppVersion
from domain.catalogue import Catalogue
from domain.ranking import AppFacts, CutPoints, HostStatisticsRun, Since, StoredPercentile
from domain.units import AppId, HostId, Instant

Table = NDArray[np.void]  # records of domain.ranking: HAV_FIELDS or PERCENTILE_FIELDS


class Catalogues(Protocol):
    async def load_catalogue(self) -> Catalogue:
        """With the current versions and the settings of the moment."""
        ...


class HavTables(Protocol):
    def of_apps(
        self, current: Mapping[AppId, Sequence[AppVersion]], since: Since
    ) -> AsyncIterator[tuple[AppId, Table]]:
        """For each app a new table (HAV_FIELDS) of every host's row with one of its versions, in any order.

        Apps come in order of their ids. As many are in memory at a time as have few rows together.
        """
        ...

    async def refresh_turnarounds(self, app_id: AppId) -> None:
        """Note what the app's active batches, and its results for their size, usually take.

        A batch's median is written from 20 valid results on, when half of what was looked at is back.
        """
        ...

    async def facts(self, app_id: AppId) -> AppFacts:
        """From at most 50 recent batches of the app."""
        ...


class NewGeneration(Protocol):
    """A generation that is being written. Nobody sees it before `publish`."""

    @property
    def number(self) -> int: ...

    async def write(self, percentiles: Table) -> None:
        """Add records (PERCENTILE_FIELDS); a (host, app version) comes once."""
        ...

    async def publish(self, cuts: Sequence[CutPoints], run: HostStatisticsRun) -> None:
        """Write the cut points, note the run, and switch to this generation in one statement.

        Raises UnavailableError when the right to run was lost meanwhile: nothing is switched then.
        """
        ...


class Generations(Protocol):
    def new(self, *, now: Instant, full: bool) -> AbstractAsyncContextManager[NewGeneration | None]:
        """A new generation, once what broken runs left is removed; None while a run is under way anywhere.

        Left without `publish`, the present generation stays; the next run removes what was written.
        """
        ...

    async def remove_old(self) -> int:
        """Remove what is older than the previous generation; the last full one stays. Returns how many went.

        One that somebody reads is left for the next time.
        """
        ...

    async def runs(self, limit: int) -> Sequence[HostStatisticsRun]:
        """Published runs, newest first."""
        ...

    async def percentiles_of(self, host_id: HostId) -> Sequence[StoredPercentile]:
        """A host's percentiles by the last full run, by app version."""
        ...


@dataclass(frozen=True, slots=True)
class HostStatisticsPorts:
    catalogues: Catalogues
    tables: HavTables
    generations: Generations
