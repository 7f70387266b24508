"""What the request handler needs from elsewhere, in its own words."""

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
from domain.units import AppId, HostId, InstanceId, Instant, JobClassId, Seconds, VolunteerId


class Ledger(Protocol):
    """The database as one request sees it. Every call is durable when it returns."""

    async def read(self, key: RequestKey) -> RequestView:
        """Who asks, and what is known of the host and of the instances it reports."""
        ...

    async def create_host(self, volunteer_id: VolunteerId, host: Host) -> HostId:
        """A new host record; `host.host_id` is ignored. Raises TooManyHostsError where none is to be made now."""
        ...

    async def write(self, writes: RequestWrites) -> WriteOutcome:
        """Commit everything a request changes, in one transaction.

        A report or assignment that lost a race is left out and the rest is committed.
        Raises UnavailableError when nothing was written, or when the connection was lost while the commit was
        under way: it may then have been made. Told to nobody, it is found again as held and as reported.
        """
        ...

    async def keep_trickles(self, found: Sequence[Trickle], *, per_instance: int, forget_before: Instant) -> int:
        """Store trickle messages, at most `per_instance` of each instance; how many there was no room for.

        A message that is stored already is left as it is. Messages received before `forget_before` are deleted, some
        at a time.
        """
        ...

    async def reserve_quota(self, request: QuotaRequest) -> QuotaGrant:
        """Charge jobs to the quotas that the host shares, as many as they allow; those count as sent today."""
        ...

    async def release_quota(self, request: QuotaRequest, unused: int) -> None:
        """Take back so much of the charge."""
        ...

    async def sent_jobs(self, instance_ids: Sequence[InstanceId]) -> Mapping[InstanceId, SentJob]:
        """What a reply needs to send these instances once more."""
        ...

    async def job_classes(self, ids: Sequence[JobClassId]) -> Mapping[JobClassId, JobClass]:
        """Job classes by id, for instances whose class is not in the array."""
        ...


class SlotGroup(Protocol):
    """Slots that are alike for every decision: one class of one batch, retries apart from the rest."""

    @property
    def batch(self) -> Batch: ...

    @property
    def job_class(self) -> JobClass: ...

    @property
    def urgent(self) -> bool: ...

    @property
    def sticky_files(self) -> frozenset[str]:
        """Names of the sticky input files its jobs share."""
        ...

    def slots(self) -> Sequence[Ready]:
        """The group's slots in order: retries descending, a sibling returned first, own shards first, then id."""
        ...


class SlotSource(Protocol):
    """The feeder's job array, as far as the choice of jobs for one request goes."""

    def groups(self) -> Sequence[SlotGroup]:
        """Groups with slots, in order: (tier, key, retries descending, a sibling returned, own shards first, id)."""
        ...

    def may_have(self, slot: Ready, host_id: HostId, volunteer_id: VolunteerId) -> RefusalCode | None:
        """SAME_HOST or SAME_VOLUNTEER when an instance of the job is known to be there already."""
        ...

    def take(self, slot: Ready, host_id: HostId, volunteer_id: VolunteerId) -> None:
        """Remove the slot for a host that is getting it."""
        ...

    def give_back(self, slot: Ready) -> None:
        """Put a slot back whose dispatch was not committed."""
        ...

    def note_refusals(self, refused: Iterable[tuple[SlotGroup, RefusalCode]], host_id: HostId) -> None:
        """Count the groups a host could not take; groups that all hosts refuse leave the array for a while."""
        ...

    async def search(self, wanted: Sequence[tuple[AppId, ProcessorType]], limit: int) -> bool:
        """Look in the database for work of these kinds the array does not hold.

        True when slots were added: walk the groups once more before answering "no work".
        """
        ...


class JobSource(SlotSource, Protocol):
    """The feeder's job array, with what becomes of the jobs that were chosen."""

    def sent(self, instance_ids: Iterable[InstanceId]) -> None:
        """These were committed: nothing is open about them any more."""
        ...

    def lost(self, instance_ids: Iterable[InstanceId]) -> None:
        """Others were given these first, or nobody needs them: they do not come back."""
        ...

    async def recheck(self, lost: Collection[Ready]) -> None:
        """Ask the database about the first slots of the groups these were in; those that are gone leave."""
        ...

    def note_request(self, wanted: Sequence[ProcessorType]) -> None:
        """Count what a request asked for; partitions follow this mix."""
        ...


class Uploads(Protocol):
    """The names and tokens under which a host may upload."""

    def token(self, file_name: str, max_bytes: int) -> str:
        """What the client must show with the upload of this file."""
        ...

    def upload_url(self) -> str: ...

    def download_url(self, file_name: str) -> str: ...


class CodeSigning(Protocol):
    """The public key clients check app files with."""

    def public_key_text(self) -> str: ...

    def rotation_signature(self, client_key_text: str) -> str | None:
        """The new key signed by the key the client holds; None when we never had that key."""
        ...


class Pauses(Protocol):
    """Whether this node may hand out work now."""

    def refuse_work_because(self, now: Instant) -> str | None:
        """A sentence when it may not (its clock or its locks are in doubt); None when it may."""
        ...


class RequestLimit(Protocol):
    """How much of the server one host may take."""

    def wait_s(self, authenticator: str, host_id: int) -> Seconds:
        """How long the host has to wait before its request is answered; 0: it is answered now."""
        ...


class RequestObserver(Protocol):
    """Counts what requests come to, for the metrics. Called once per request; it must not fail."""

    def request_answered(
        self, *, sent: int, resent: int, reports: int, refusals: Mapping[RefusalCode, int], took_s: Seconds
    ) -> None:
        """A client was answered: jobs sent and sent again, reports taken, refusals met by code."""
        ...

    def trickles_taken(self, fates: Mapping[TrickleFate, int]) -> None:
        """A request brought trickle messages."""
        ...

    def request_failed(self, status: int) -> None:
        """A request got no reply but an HTTP error."""
        ...
