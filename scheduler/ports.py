"""The request handler's ports to other packages."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol

from domain.apps import ProcessorType
from domain.batches import Batch
from domain.dispatch import RequestKey, RequestView, RequestWrites, SentJob, Trickle, TrickleFate, WriteOutcome
from domain.hosts import Host
from domain.jobs import JobClass, Ready
from domain.quotas import QuotaGrant, QuotaRequest
from domain.refusals import RefusalCode
from domain.units import AppId, BatchId, HostId, InstanceId, Instant, JobClassId, Seconds, VolunteerId

GroupKey = tuple[BatchId, JobClassId, bool]  # batch, class, urgent


class Ledger(Protocol):
    """The database operations of one request. Every call is durable when it returns."""

    async def read(self, key: RequestKey) -> RequestView:
        """Read the volunteer, the host and the reported instances."""
        ...

    async def create_host(self, volunteer_id: VolunteerId, host: Host) -> HostId:
        """Create a host record; `host.host_id` is ignored. Raises TooManyHostsError if a limit is reached."""
        ...

    async def write(self, writes: RequestWrites) -> WriteOutcome:
        """Commit all changes of a request in one transaction.

        Reports and assignments that lost a race are omitted, and the rest is committed. Raises UnavailableError if
        nothing was written, or if the connection was lost during the commit, which may then have succeeded. Jobs and
        reports that the client does not know of are later found as in progress and as reported.
        """
        ...

    async def keep_trickles(self, found: Sequence[Trickle], *, per_instance: int, forget_before: Instant) -> int:
        """Store trickle messages, at most `per_instance` for each instance. Return how many exceeded that limit.

        Messages already stored are unchanged. Messages received before `forget_before` are deleted in small batches.
        """
        ...

    async def reserve_quota(self, request: QuotaRequest) -> QuotaGrant:
        """Charge as many jobs as allowed to the host's shared quotas; they count as sent today."""
        ...

    async def release_quota(self, request: QuotaRequest, unused: int) -> None:
        """Give the unused part of the charge back to the shared quotas."""
        ...

    async def sent_jobs(self, instance_ids: Sequence[InstanceId]) -> Mapping[InstanceId, SentJob]:
        """Read what a reply needs to resend these instances."""
        ...

    async def job_classes(self, ids: Sequence[JobClassId]) -> Mapping[JobClassId, JobClass]:
        """Read job classes by id, for instances whose class is not in the array."""
        ...


class SlotGroup(Protocol):
    """Interchangeable slots: those of one job class of one batch. Retries form a separate group."""

    @property
    def key(self) -> GroupKey: ...

    @property
    def batch(self) -> Batch: ...

    @property
    def job_class(self) -> JobClass: ...

    @property
    def urgent(self) -> bool: ...

    @property
    def sticky_files(self) -> frozenset[str]:
        """Return the names of the sticky input files that all its jobs use."""
        ...

    def slots(self) -> Sequence[Ready]:
        """Return the slots in order: most retries, sibling returned, own shards, id."""
        ...


class SlotSource(Protocol):
    """The feeder's job array, as needed for choosing jobs for one request."""

    def groups(self) -> Sequence[SlotGroup]:
        """Return groups with slots, ordered by (tier, key, most retries, sibling returned, own shards, id)."""
        ...

    def may_have(self, slot: Ready, host_id: HostId, volunteer_id: VolunteerId) -> RefusalCode | None:
        """Return SAME_HOST or SAME_VOLUNTEER if the host or volunteer is known to have had an instance of the job."""
        ...

    def take(self, slot: Ready, host_id: HostId, volunteer_id: VolunteerId) -> None:
        """Remove the slot for a host that gets it."""
        ...

    def give_back(self, slot: Ready) -> None:
        """Put back a slot whose dispatch was not committed."""
        ...

    def note_refusals(self, refused: Iterable[tuple[GroupKey, RefusalCode]], host_id: HostId) -> None:
        """Count the groups that a host could not take. Groups that all hosts refuse leave the array for a while."""
        ...

    async def search(self, wanted: Sequence[tuple[AppId, ProcessorType]], limit: int) -> bool:
        """Search the database for work of these kinds that is not in the array.

        Return True if slots were added: the caller must search the groups again before replying "no work".
        """
        ...


class JobSource(SlotSource, Protocol):
    """The feeder's job array, which also receives the outcome of chosen jobs."""

    def sent(self, instance_ids: Iterable[InstanceId]) -> None:
        """Record that these instances are committed, so that they are no longer in flight."""
        ...

    def lost(self, instance_ids: Iterable[InstanceId]) -> None:
        """Drop instances that other hosts got first or that are no longer needed."""
        ...

    async def recheck(self, lost: Collection[Ready]) -> None:
        """Revalidate the first slots of the groups of `lost` in the database, and drop those that are gone."""
        ...

    def note_request(self, wanted: Sequence[ProcessorType]) -> None:
        """Count the processor types of a request; partitions follow the mix."""
        ...


class Uploads(Protocol):
    """URLs and tokens for uploads and downloads."""

    def token(self, file_name: str, max_bytes: int) -> str:
        """Return the token that the client must send with the upload of this file."""
        ...

    def upload_url(self) -> str: ...

    def download_url(self, file_name: str) -> str: ...


class CodeSigning(Protocol):
    """The public key with which clients verify app files."""

    def public_key_text(self) -> str: ...

    def rotation_signature(self, client_key_text: str) -> str | None:
        """Return the new key signed with the client's key; None if the client's key was never the project's."""
        ...


class Pauses(Protocol):
    """Whether this node may send work now."""

    def refuse_work_because(self, now: Instant) -> str | None:
        """Return why this node may not send work (its clock or its locks are in doubt), or None."""
        ...


class RequestLimit(Protocol):
    """Rate limit per host."""

    def wait_s(self, authenticator: str, host_id: int) -> Seconds:
        """Return how long the host must wait before it may send a request; 0 means now."""
        ...


class RequestObserver(Protocol):
    """Counts the results of requests for the metrics. Called once per request; must not fail."""

    def request_answered(
        self, *, sent: int, resent: int, reports: int, refusals: Mapping[RefusalCode, int], took_s: Seconds
    ) -> None:
        """Count an answered request: jobs sent and resent, reports accepted, refusals by code."""
        ...

    def trickles_taken(self, fates: Mapping[TrickleFate, int]) -> None:
        """Count the trickle messages of a request by outcome."""
        ...

    def request_failed(self, status: int) -> None:
        """Count a request that got an HTTP error instead of a reply."""
        ...
