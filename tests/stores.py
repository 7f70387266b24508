"""The store interface of tests: every port, and a recount of the counters."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol, cast

from administration.gate_relaxation import GateNotes
from batch_estimator.ports import Forecasts, ForecastTables
from domain.attention import BatchesInNeed, FailingHost
from domain.batches import Batch
from domain.dispatch import Trickle
from domain.forecasts import ForecastHealth, ForecastPoint, ForecastRecord
from domain.host_lists import HostChoice, HostInstances, HostList, HostPlace, ListedHost
from domain.jobs import InstanceState
from domain.ranking import StoredPercentile
from domain.submission import SubmissionKey, SubmittedBefore
from domain.units import AppVersionId, BatchId, HostId, InstanceId, Instant, VolunteerId
from domain.views import (
    ActiveCounts,
    ActiveTotal,
    BatchChoice,
    BatchPlace,
    BatchSort,
    FailedInstance,
    InstancePlace,
    ListedBatch,
    ListedInProgress,
    ListedInstance,
    NotSent,
    UnsentExtras,
)
from domain.volunteers import ResultPlace
from feeder.ports import WaitingWork
from hoststats.ports import Generations, HavTables
from jobs.ports import (
    AccelerationNotes,
    BatchJobs,
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
from runtime.rate_limits.hosts import ArrivalCounts
from scheduler.ports import Ledger
from store.postgres import PostgresStore
from tests.people_ports import (
    AccessStore,
    Applications,
    History,
    Insight,
    OrderingRules,
    People,
    ProcessReports,
    RestrictionStore,
    Samples,
    SettingStore,
    Simulations,
    Views,
    Volunteers,
    VolunteerViews,
)
from transfer.ports import UnneededFiles, UploadRecords


class Trickles(Protocol):
    """Trickle messages of apps."""

    async def of_instance(self, instance_id: InstanceId, *, after: int, limit: int) -> Sequence[Trickle]:
        """In order of arrival, after the message with the id `after`."""
        ...


class HostLists(Protocol):
    """Host lists, and the instances of a host. Each reads one page, or a limited number of rows to filter."""

    async def hosts(
        self, choice: HostChoice, *, after: HostPlace | None, limit: int, looked_at: int = ...
    ) -> HostList: ...

    async def listed(self, host_ids: Sequence[HostId]) -> Mapping[HostId, ListedHost]:
        """Return those of these hosts that exist."""
        ...

    async def names(self, host_ids: Sequence[HostId]) -> Mapping[HostId, str]: ...

    async def named(self, name: str, *, limit: int) -> Sequence[HostId]: ...

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
        """Instances sent to a volunteer's host, without the history, last sent first."""
        ...


class Listings(Protocol):
    """Paged lists. Each reads at most its page, or the counters of active batches."""

    async def batches(
        self,
        choice: BatchChoice,
        sort: BatchSort,
        *,
        after: BatchPlace | None,
        limit: int,
        until: BatchPlace | None = None,
        not_sent: NotSent = ...,
        first: Collection[BatchId] = ...,
    ) -> Sequence[ListedBatch]:
        """Return all batches by id, or active batches in another order."""
        ...

    async def place_at(self, sort: BatchSort, *, after: BatchPlace | None, number: int) -> BatchPlace | None: ...

    async def counts(self, choice: BatchChoice, now: Instant, attention: Collection[BatchId]) -> ActiveCounts: ...

    async def names(self, batch_ids: Sequence[BatchId]) -> Mapping[BatchId, str]:
        """Return the names of these batches; unknown ones are left out."""
        ...

    async def totals(self) -> Sequence[ActiveTotal]:
        """Return the summed counters of active batches, by app and quality of service."""
        ...

    async def instances(
        self, batch_id: BatchId, states: Collection[InstanceState], *, after: InstancePlace | None, limit: int
    ) -> Sequence[ListedInstance]:
        """Return the batch's instances in these states, including the history, by retries (descending) and id."""
        ...

    async def latest(
        self, batch_id: BatchId, states: Collection[InstanceState], *, before: InstanceId | None, limit: int
    ) -> Sequence[ListedInstance]:
        """Return the batch's instances in these states, none of them unsent, including the history, newest first."""
        ...

    async def extras(self, batch_id: BatchId) -> UnsentExtras:
        """Count a batch's unsent copies and retries."""
        ...

    async def held_by(self, host_id: HostId, *, limit: int) -> Sequence[ListedInProgress]:
        """Return the host's instances in progress, by due date."""
        ...


class AttentionReads(Protocol):
    async def batches(self, *, now: Instant, failed: int, failed_fraction: float, limit: int) -> BatchesInNeed:
        """Return the active batches that are late, at risk or failing, earliest deadline first."""
        ...

    async def hosts(
        self, *, since: Instant, results: int, failing_fraction: float, without: Sequence[AppVersionId], limit: int
    ) -> Sequence[FailingHost]:
        """Return hosts with so many results since an instant, of which a fraction failed, the worst first. Results of
        the versions `without` are not judged.
        """
        ...


class Repeating(BatchJobs, Protocol):
    async def retry_failed(self, batch_id: BatchId, *, now: Instant) -> int: ...

    async def failures(self, batch_id: BatchId, *, limit: int, stderr_chars: int) -> Sequence[FailedInstance]: ...

    async def failures_of_version(
        self, app_version_id: AppVersionId, *, since: Instant, limit: int, stderr_chars: int
    ) -> Sequence[FailedInstance]: ...


class AnySubmissions(Submissions, Protocol):
    async def submitted_before(self, key: SubmissionKey, *, now: Instant) -> SubmittedBefore | None:
        """Return the outcome of the owner's submission with this key and any content; None if it expired."""
        ...

    async def note_answer(self, key: SubmissionKey, answer: Mapping[str, object]) -> None:
        """Store the reply, which is sent again if the submission is repeated."""
        ...

    async def abort_batch(self, batch_id: BatchId, *, now: Instant) -> Batch:
        """End an active batch. Its open jobs and their unsent instances are cancelled."""
        ...


class AnyGenerations(Generations, Protocol):
    async def percentiles_of(self, host_id: HostId) -> Sequence[StoredPercentile]:
        """Return a host's percentiles from the last full run, by app version."""
        ...


class CheckedViews(Views, Protocol):
    """Every store can also recount its counters."""

    async def check_counters(self) -> Sequence[str]:
        """Return a sentence for each counter that differs from the rows."""
        ...


class AnyHistory(EndedWork, History, Protocol):
    """One object that moves jobs to the history and reads them."""


class AnyForecasts(Forecasts, Protocol):
    """The forecasts as the estimator and the pages use them."""

    async def curve(self, batch_id: BatchId, *, spans: int) -> Sequence[ForecastPoint]:
        """In order of time: the first forecast in each of `spans` equal spans, and the last one."""
        ...

    async def job_ends(self, batch_id: BatchId, *, most: int) -> Sequence[Instant]:
        """In order: the ends of about `most` jobs of an ended batch, evenly spaced by id."""
        ...

    async def health(self) -> Sequence[ForecastHealth]: ...

    async def last(self, batch_ids: Sequence[BatchId]) -> Mapping[BatchId, ForecastRecord]: ...

    async def series(self, batch_id: BatchId, *, limit: int) -> Sequence[ForecastRecord]: ...


class AnyNotes(AccelerationNotes, GateNotes, Protocol):
    """One object for the state of both periodic tasks."""


class AnyReserving(ReservedWork, RedundantWork, Protocol):
    """One object for reservations and the state of host classes."""


class AnyUploads(UploadRecords, UnneededFiles, Protocol):
    """One object that records uploads and lists unneeded ones."""


class Store(Protocol):
    """The common interface of MemoryStore and PostgresStore."""

    @property
    def arrivals(self) -> ArrivalCounts: ...
    @property
    def ledger(self) -> Ledger: ...
    @property
    def waiting(self) -> WaitingWork: ...
    @property
    def submissions(self) -> AnySubmissions: ...
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
    def generations(self) -> AnyGenerations: ...
    @property
    def views(self) -> CheckedViews: ...
    @property
    def insight(self) -> Insight: ...
    @property
    def attention(self) -> AttentionReads: ...
    @property
    def tails(self) -> TailWork: ...
    @property
    def repeating(self) -> Repeating: ...
    @property
    def notes(self) -> AnyNotes: ...
    @property
    def forecasting(self) -> ForecastTables: ...
    @property
    def forecasts(self) -> AnyForecasts: ...
    @property
    def restrictions(self) -> RestrictionStore: ...
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
    def volunteer_views(self) -> VolunteerViews: ...
    @property
    def trickles(self) -> Trickles: ...
    @property
    def process_reports(self) -> ProcessReports: ...
    @property
    def samples(self) -> Samples: ...
    @property
    def simulations(self) -> Simulations: ...
    async def close(self) -> None: ...


def as_postgres(store: Store) -> PostgresStore:
    """Return the store under the type that pages and commands are written for: both stores have the same methods."""
    return cast(PostgresStore, store)


async def batches_of(store: Store, *, limit: int) -> Sequence[Batch]:
    """Return batches, newest first."""
    found = await store.listings.batches(BatchChoice(), BatchSort.NEWEST, after=None, limit=limit)
    return [one.batch for one in found]
