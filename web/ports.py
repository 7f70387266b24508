"""What the console needs from the database besides what commands and the API need."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from domain.jobs import InstanceState
from domain.units import BatchId, HostId, Instant
from domain.views import (
    ActiveTotal,
    BatchChoice,
    BatchPlace,
    BatchSort,
    InstancePlace,
    ListedBatch,
    ListedInProgress,
    ListedInstance,
    ProcessReport,
)


class Listings(Protocol):
    """Lists, page by page. None of these reads more than its page, or the counters of active batches."""

    async def batches(
        self, choice: BatchChoice, sort: BatchSort, *, after: BatchPlace | None, limit: int
    ) -> Sequence[ListedBatch]:
        """Newest first, or active ones in their order, or active ones by their deadline."""
        ...

    async def names(self, batch_ids: Sequence[BatchId]) -> Mapping[BatchId, str]:
        """What these batches are called; those there are not are left out."""
        ...

    async def totals(self) -> Sequence[ActiveTotal]:
        """The counters of active batches together, by app and quality of service."""
        ...

    async def instances(
        self, batch_id: BatchId, states: Collection[InstanceState], *, after: InstancePlace | None, limit: int
    ) -> Sequence[ListedInstance]:
        """The batch's instances in these states, those of the history too, by retries (descending) and id."""
        ...

    async def held_by(self, host_id: HostId, *, limit: int) -> Sequence[ListedInProgress]:
        """What the host has in progress, by due date."""
        ...


class ProcessReports(Protocol):
    """What each process of the cluster says of itself every few seconds."""

    async def note(self, name: str, kind: str, report: Mapping[str, object], *, now: Instant) -> None:
        """Instead of what it said before; those that were silent for a day are forgotten."""
        ...

    async def since(self, at: Instant) -> Sequence[ProcessReport]:
        """By kind and name."""
        ...

    async def failures_of_gone(self, since: Instant, *, before: Instant) -> Sequence[Mapping[str, object]]:
        """What workers that spoke last in that span say `failed`, by their names; nothing else of their reports."""
        ...

    async def duty_deadlines(self, since: Instant) -> Mapping[str, Instant]:
        """The last deadline of each background duty, of processes that reported since."""
        ...
