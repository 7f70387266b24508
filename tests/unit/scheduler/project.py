"""A whole in-memory project with a request service, for tests of requests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from domain.apps import ProcessorType
from domain.batches import Batch
from domain.catalogue import Catalogue
from domain.dispatch import (
    Report,
    ReportedFile,
    ReportedResult,
    RequestKey,
    RequestView,
    RequestWrites,
    SentJob,
    Trickle,
    TrickleFate,
    WriteOutcome,
)
from domain.errors import UnavailableError
from domain.hosts import Host
from domain.jobs import InstanceInProgress, InstanceState, JobClass, instance_id_of
from domain.quotas import QuotaGrant, QuotaRequest
from domain.refusals import RefusalCode
from domain.units import AppId, HostId, InstanceId, Instant, JobClassId, Seconds, VolunteerId
from domain.views import InstanceRow
from feeder.array import JobArray
from scheduler.ports import Ledger
from scheduler.service import RequestService, SchedulerPorts
from tests.builders import LINUX, NOW
from tests.memory import MemoryStore
from tests.worlds import a_registered_version, a_registered_volunteer, a_submitted_batch, waiting_of
from wire.messages import STATE_UPLOADED, HeldResult, HostInfo, SchedulerReply, SchedulerRequest

KEY = "0123456789abcdef0123456789abcdef"  # the account key in the captures
PUBLIC_KEY = "1024\nc0c2\n.\n"
OLD_KEY = "1024\n0001\n.\n"
MD5 = "45a804651bec17a5f7fe070302aa2ce7"


def a_time_out(held: InstanceInProgress) -> Report:
    return Report(
        held.instance_id,
        InstanceState.IN_PROGRESS,
        InstanceState.TIMED_OUT,
        job_id=held.job_id,
        host_id=held.host_id,
        reported_at=NOW,
    )


@dataclass(slots=True)
class HandClock:
    """A clock that is set by hand."""

    at: Instant = NOW

    def now(self) -> Instant:
        return self.at

    def monotonic(self) -> Seconds:
        return Seconds(self.at - NOW)

    async def sleep(self, duration_s: float) -> None:
        self.at = Instant(self.at + duration_s)


class Addresses:
    def token(self, file_name: str, max_bytes: int) -> str:
        return f"token of {file_name} {max_bytes}"

    def upload_url(self) -> str:
        return "http://muster.example/upload"

    def download_url(self, file_name: str) -> str:
        return f"http://muster.example/download/{file_name}"


class Signing:
    def public_key_text(self) -> str:
        return PUBLIC_KEY

    def rotation_signature(self, client_key_text: str) -> str | None:
        return "0a0b\n.\n" if client_key_text.split() == OLD_KEY.split() else None


@dataclass(slots=True)
class Pause:
    because: str | None = None

    def refuse_work_because(self, now: Instant) -> str | None:
        return self.because


@dataclass(slots=True)
class Shelf:
    """Provides the current catalogue."""

    held: Catalogue

    def catalogue(self) -> Catalogue:
        return self.held


@dataclass(slots=True)
class Counts:
    """Records the calls for metrics."""

    answered: list[dict[str, Any]] = field(default_factory=list)
    failed: list[int] = field(default_factory=list)
    trickles: Counter[TrickleFate] = field(default_factory=Counter)

    def request_answered(
        self, *, sent: int, resent: int, reports: int, refusals: Mapping[RefusalCode, int], took_s: Seconds
    ) -> None:
        self.answered.append({"sent": sent, "resent": resent, "reports": reports, "refusals": dict(refusals)})

    def trickles_taken(self, fates: Mapping[TrickleFate, int]) -> None:
        self.trickles.update(fates)

    def request_failed(self, status: int) -> None:
        self.failed.append(status)


@dataclass(slots=True)
class TroubledLedger:
    """Wraps a ledger: it can fail, and run other changes just before a write."""

    inner: Ledger
    writes: list[RequestWrites] = field(default_factory=list)
    reads: list[RequestKey] = field(default_factory=list)
    down_from_write: int | None = None  # index of the first write that fails
    others_write: list[RequestWrites] = field(default_factory=list)  # each runs just before one write
    network: str = ""  # network address of the requests
    ended: set[InstanceId] = field(default_factory=set)  # after the host was read
    others_reserve: list[QuotaRequest] = field(default_factory=list)  # each runs just before one charge
    reserved: list[QuotaRequest] = field(default_factory=list)
    released: list[tuple[QuotaRequest, int]] = field(default_factory=list)

    async def read(self, key: RequestKey) -> RequestView:
        self.reads.append(key)
        return await self.inner.read(replace(key, network=self.network))

    async def create_host(self, volunteer_id: VolunteerId, host: Host) -> HostId:
        return await self.inner.create_host(volunteer_id, host)

    async def write(self, writes: RequestWrites) -> WriteOutcome:
        self.writes.append(writes)
        if self.down_from_write is not None and len(self.writes) > self.down_from_write:
            raise UnavailableError
        if self.others_write:
            await self.inner.write(self.others_write.pop(0))
        return await self.inner.write(writes)

    async def keep_trickles(self, found: Sequence[Trickle], *, per_instance: int, forget_before: Instant) -> int:
        return await self.inner.keep_trickles(found, per_instance=per_instance, forget_before=forget_before)

    async def reserve_quota(self, request: QuotaRequest) -> QuotaGrant:
        self.reserved.append(request)
        if self.others_reserve:
            await self.inner.reserve_quota(self.others_reserve.pop(0))
        return await self.inner.reserve_quota(request)

    async def release_quota(self, request: QuotaRequest, unused: int) -> None:
        self.released.append((request, unused))
        await self.inner.release_quota(request, unused)

    async def sent_jobs(self, instance_ids: Sequence[InstanceId]) -> Mapping[InstanceId, SentJob]:
        return await self.inner.sent_jobs([one for one in instance_ids if one not in self.ended])

    async def job_classes(self, ids: Sequence[JobClassId]) -> Mapping[JobClassId, JobClass]:
        return await self.inner.job_classes(ids)


@dataclass(slots=True)
class Search:
    """Fills an empty array from the store."""

    project: Project
    asked: list[tuple[tuple[AppId, ProcessorType], ...]] = field(default_factory=list)
    finds: bool = False

    async def search(self, wanted: Sequence[tuple[AppId, ProcessorType]], limit: int) -> bool:
        self.asked.append(tuple(wanted))
        return self.finds and await self.project.fill() > 0


@dataclass(slots=True)
class Project:
    """A real project except for the network, the files and the database."""

    store: MemoryStore
    ledger: TroubledLedger
    array: JobArray
    shelf: Shelf
    clock: HandClock = field(default_factory=HandClock)
    pause: Pause = field(default_factory=Pause)
    counts: Counts = field(default_factory=Counts)

    @property
    def ports(self) -> SchedulerPorts:
        return SchedulerPorts(self.ledger, self.array, self.shelf, Addresses(), Signing(), self.pause, self.counts)

    @property
    def service(self) -> RequestService:
        return RequestService(self.ports, self.clock)

    async def answer(self, request: SchedulerRequest) -> SchedulerReply:
        return await self.service.answer(request)

    async def submit(self, jobs: int = 10, *, fill: bool = True, **changes: Any) -> Batch:
        """Submit a batch and place its instances in the array, unless disabled."""
        batch = await a_submitted_batch(self.store, jobs, **changes)
        if fill:
            await self.fill()
        return batch

    async def fill(self) -> int:
        """Place every unsent instance in the array; return the number of new slots."""
        placed = 0
        for batch in await self.store.waiting.ready_batches(1000):
            for candidate in await waiting_of(self.store, batch.batch_id):
                class_id = candidate.ready.job_class_id
                classes = await self.store.waiting.job_classes([class_id])
                placed += self.array.place(candidate, batch, classes[class_id])
        return placed

    async def set(self, **settings: object) -> None:
        """Change settings, "section__name"=value."""
        catalogue = self.shelf.held
        for key, value in settings.items():
            catalogue = replace(catalogue, settings=catalogue.settings.changed(key.replace("__", "."), value))
        self.shelf.held = catalogue

    async def upload(self, instance_name: str, *, md5: str = MD5, nbytes: int = 30) -> None:
        """Upload the first output of an instance."""
        instance_id = instance_id_of(instance_name)
        assert instance_id is not None
        name = f"{instance_name}_r0"
        assert await self.store.uploads.record_upload(
            instance_id, name=name, nbytes=nbytes, md5=md5, completed_at=self.clock.now()
        )

    async def instance(self, name: str) -> InstanceRow:
        """Return the stored instance of that name."""
        job = await self.store.views.job(_job_id(name))
        [row] = [row for row in job.instances if row.instance_id == instance_id_of(name)]
        return row


def _job_id(name: str) -> Any:
    return int(name.split("_")[-2])


async def a_project(*, account_key: str = KEY, **settings: object) -> Project:
    """One app with one CPU version for Linux, and one volunteer."""
    store = MemoryStore()
    await a_registered_version(store)
    await a_registered_volunteer(store, account_key)
    clock = HandClock()
    shelf = Shelf(await store.applications.load_catalogue())
    array = JobArray(clock, lambda: shelf.held.settings.feeder)
    project = Project(store, TroubledLedger(store.ledger), array, shelf, clock)
    array.fall_through = Search(project).search
    await project.set(**settings)
    return project


def a_request(**changes: Any) -> SchedulerRequest:
    """A Linux computer with two CPUs that requests an hour of work for each."""
    request = SchedulerRequest(
        KEY,
        client_version=(7, 20, 5),
        cpu_req_s=Seconds(7200.0),
        cpu_req_instances=2.0,
        platforms=(LINUX,),
        code_sign_key=PUBLIC_KEY,
        disk_project_share_bytes=1e11,
        host=HostInfo(host_cpid="1" * 32, ncpus=2, flop_per_s=1e9, ram_bytes=8e9, os_name="Linux Debian"),
    )
    return replace(request, **changes)


async def a_known_host(project: Project, **changes: Any) -> HostId:
    """The host of a client that called once and got nothing."""
    reply = await project.answer(a_request(cpu_req_s=Seconds(0.0), **changes))
    assert reply.host_id is not None
    project.ledger.writes.clear()
    project.ledger.reads.clear()
    project.counts.answered.clear()
    return HostId(reply.host_id)


def a_success(name: str, **changes: Any) -> ReportedResult:
    """A finished result with one output of 30 bytes."""
    result = ReportedResult(
        name, STATE_UPLOADED, 0, Seconds(100.0), Seconds(90.0), files=(ReportedFile(f"{name}_r0", 30.0, MD5),)
    )
    return replace(result, **changes)


def listed(*names: str) -> tuple[HeldResult, ...]:
    """The jobs that a client lists."""
    return tuple(HeldResult(name) for name in names)


def names_of(reply: SchedulerReply) -> list[str]:
    """Return the names of the results in a reply."""
    return [result.name for result in reply.results]


def texts_of(reply: SchedulerReply) -> str:
    """Return all messages of a reply."""
    return " | ".join(message.text for message in reply.messages)
