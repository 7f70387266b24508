"""What tests may ask of any store: every port, and a recount of the counters."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from administration.access.ports import AccessStore
from administration.gate_relaxation import GateNotes
from administration.ordering.ports import OrderingRules
from administration.ports import (
    Applications,
    History,
    Insight,
    People,
    ProcessReports,
    SettingStore,
    Views,
    Volunteers,
)
from administration.simulations.runs import Simulations
from batch_estimator.ports import Forecasts, ForecastTables
from domain.dispatch import Trickle
from domain.forecasts import ForecastPoint
from domain.host_lists import HostChoice, HostInstances, HostList, HostPlace, ListedHost
from domain.jobs import InstanceState
from domain.units import BatchId, HostId, InstanceId, VolunteerId
from domain.views import (
    ActiveTotal,
    BatchChoice,
    BatchPlace,
    BatchSort,
    InstancePlace,
    ListedBatch,
    ListedInProgress,
    ListedInstance,
)
from domain.volunteers import ResultPlace
from feeder.ports import WaitingWork
from hoststats.ports import Generations, HavTables
from jobs.ports import (
    AccelerationNotes,
    EndedWork,
    OrderedWork,
    Outages,
    OverdueWork,
    RedundantWork,
    ReservedWork,
    Submissions,
    TailWork,
    UnsettledJobs,
)
from portal.desk import Belongings
from runtime.rate_limits.hosts import ArrivalCounts
from scheduler.ports import Ledger
from transfer.ports import UnneededFiles, UploadRecords


class Trickles(Protocol):
    """Messages that apps sent while their job ran."""

    async def of_instance(self, instance_id: InstanceId, *, after: int, limit: int) -> Sequence[Trickle]:
        """In the order they came, behind the one with the id `after`."""
        ...


class HostLists(Protocol):
    """Hosts that are looked for, and what one was sent. Each reads its page, or so many rows to find it among."""

    async def hosts(
        self, choice: HostChoice, *, after: HostPlace | None, limit: int, looked_at: int = ...
    ) -> HostList: ...

    async def listed(self, host_ids: Sequence[HostId]) -> Mapping[HostId, ListedHost]:
        """These hosts, those of them that there are."""
        ...

    async def instances(
        self,
        host_id: HostId,
        volunteer_id: VolunteerId,
        *,
        state: InstanceState | None,
        after: ResultPlace | None,
        limit: int,
        looked_at: int = ...,
    ) -> HostInstances:
        """What a host of the volunteer was sent, those of the history left out, the last one sent first."""
        ...


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


class CheckedViews(Views, Protocol):
    """Every store can also recount what it counts as things happen."""

    async def check_counters(self) -> Sequence[str]:
        """A sentence for each counter that differs from the rows; empty when all agree."""
        ...


class AnyHistory(EndedWork, History, Protocol):
    """One object is both: what moves jobs there and what looks at them."""


class AnyForecasts(Forecasts, Protocol):
    """What the estimator and the pages read and write."""

    async def curve(self, batch_id: BatchId, *, spans: int) -> Sequence[ForecastPoint]:
        """In order of time: the first forecast of each of so many equal spans of their time, and the last of all."""
        ...


class AnyNotes(AccelerationNotes, GateNotes, Protocol):
    """One object keeps what either duty found."""


class AnyReserving(ReservedWork, RedundantWork, Protocol):
    """One object has both: what is set aside, and how classes of hosts stand."""


class AnyUploads(UploadRecords, UnneededFiles, Protocol):
    """One object records what was brought, and says what nobody needs."""


class Store(Protocol):
    """What MemoryStore and PostgresStore have in common."""

    @property
    def arrivals(self) -> ArrivalCounts: ...
    @property
    def ledger(self) -> Ledger: ...
    @property
    def waiting(self) -> WaitingWork: ...
    @property
    def submissions(self) -> Submissions: ...
    @property
    def unsettled(self) -> UnsettledJobs: ...
    @property
    def overdue(self) -> OverdueWork: ...
    @property
    def outages(self) -> Outages: ...
    @property
    def uploads(self) -> AnyUploads: ...
    @property
    def people(self) -> People: ...
    @property
    def volunteers(self) -> Volunteers: ...
    @property
    def applications(self) -> Applications: ...
    @property
    def access(self) -> AccessStore: ...
    @property
    def settings(self) -> SettingStore: ...
    @property
    def history(self) -> AnyHistory: ...
    @property
    def hav_tables(self) -> HavTables: ...
    @property
    def generations(self) -> Generations: ...
    @property
    def views(self) -> CheckedViews: ...
    @property
    def insight(self) -> Insight: ...
    @property
    def tails(self) -> TailWork: ...
    @property
    def notes(self) -> AnyNotes: ...
    @property
    def forecasting(self) -> ForecastTables: ...
    @property
    def forecasts(self) -> AnyForecasts: ...
    @property
    def reserving(self) -> AnyReserving: ...
    @property
    def ordering(self) -> OrderedWork: ...
    @property
    def ordering_rules(self) -> OrderingRules: ...

    @property
    def listings(self) -> Listings: ...
    @property
    def host_lists(self) -> HostLists: ...
    @property
    def belongings(self) -> Belongings: ...
    @property
    def trickles(self) -> Trickles: ...
    @property
    def process_reports(self) -> ProcessReports: ...
    @property
    def simulations(self) -> Simulations: ...
    async def close(self) -> None: ...
