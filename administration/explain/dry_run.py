"""Makes scheduling decisions as dry runs: with private job arrays, and a request constructed from a host's record.

The host is assumed to have no other work: it requests one job for each processor that no job of this project occupies,
and at least one job per processor type. All other properties are as it last reported. A sample of hosts shows how many
would get some work, and why the others would not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count as counting

import feeder.ports
import feeder.service
from administration.explain.verdict import CallingHosts, HostAnswer, calling_hosts
from domain.apps import CPU, ProcessorType, plan_of
from domain.batches import Batch
from domain.catalogue import MOST_REQUESTS, Catalogue
from domain.clock import Clock
from domain.deadline_rules import traits_of
from domain.dispatch import RequestView
from domain.hosts import Host
from domain.insight import Caller
from domain.jobs import Candidate, FreshRange, InstanceInProgress, JobClass, Ready, draw
from domain.refusals import Refusal, RefusalCode
from domain.units import AppId, BatchId, HostId, InstanceId, Instant, JobClassId, Seconds, VolunteerId
from feeder.array import JobArray
from feeder.groups import Group, GroupKey
from feeder.ports import WaitingWork
from feeder.reading import ALL_SHARDS
from feeder.service import Feeder
from scheduler.admission import Admission, Contact, HostCase, banned, context_of, key_of, refuse_all, wants_of
from scheduler.busy import busy_at_start, usage_of
from scheduler.choice import Chosen
from scheduler.context import SchedulingContext
from scheduler.held import HeldReview
from scheduler.trace import BestOfApp, DecisionTrace, bests_of, traced
from store.postgres import PostgresStore
from wire.messages import CoprocRequest, SchedulerRequest


class EveryShard:
    """Reads all shards without locking them: the locks only prevent workers from trying the same jobs."""

    def owned(self) -> frozenset[int]:
        return ALL_SHARDS


@dataclass(frozen=True, slots=True)
class Fixed:
    """A catalogue that does not change."""

    held: Catalogue

    def catalogue(self) -> Catalogue:
        return self.held


async def private_feeder(waiting: WaitingWork, catalogue: Catalogue, clock: Clock) -> Feeder:
    """Return a feeder with its own array, filled from the database as for a project with a single worker."""
    fed = _empty_feeder(waiting, catalogue, clock)
    await fed.refill_once()
    return fed


class OfOneBatch:
    """Waiting work of which only one batch's first instances are read. The array's slots for this batch are the same as
    with all work, because a refill plans them before it reads first instances.
    """

    def __init__(self, waiting: WaitingWork, batch_id: BatchId) -> None:
        self._batch_id = batch_id
        self._waiting = waiting
        self.ready_batches = waiting.ready_batches
        self.job_classes = waiting.job_classes
        self.urgent = waiting.urgent
        self.still_unsent = waiting.still_unsent

    async def fresh(self, ranges: Sequence[FreshRange]) -> Sequence[Candidate]:
        own = [one for one in ranges if one.batch_id == self._batch_id]
        return await self._waiting.fresh(own) if own else ()

    async def tail(self, batch_ids: Sequence[BatchId], per_batch: int) -> Sequence[Candidate]:
        own = [one for one in batch_ids if one == self._batch_id]
        return await self._waiting.tail(own, per_batch) if own else ()


async def planned_slots(waiting: WaitingWork, catalogue: Catalogue, clock: Clock) -> Mapping[BatchId, int]:
    """Return how many slots each batch would have in that array. Only plans a refill, for a third of its cost."""
    slots: dict[BatchId, int] = {}
    for (batch_id, _), count in (await _empty_feeder(waiting, catalogue, clock).plan_once()).items():
        slots[batch_id] = slots.get(batch_id, 0) + count
    return slots


def _empty_feeder(waiting: WaitingWork, catalogue: Catalogue, clock: Clock) -> Feeder:
    return feeder.service.build_feeder(waiting, EveryShard(), Fixed(catalogue), clock)


def array_of(
    candidates: Iterable[Candidate],
    batch: Batch,
    classes: Mapping[JobClassId, JobClass],
    catalogue: Catalogue,
    clock: Clock,
) -> JobArray:
    """Return a feeder's array that contains only these instances of one batch."""
    array = JobArray(clock, lambda: catalogue.settings.feeder)
    for candidate in candidates:
        array.place(candidate, batch, classes[candidate.ready.job_class_id])
    return array


class _Rest:
    """A slot group without the slots that the dry run has taken."""

    __slots__ = ("_group", "_taken")

    def __init__(self, group: Group, taken: Collection[InstanceId]) -> None:
        self._group = group
        self._taken = taken

    @property
    def key(self) -> GroupKey:
        return self._group.key

    @property
    def batch(self) -> Batch:
        return self._group.batch

    @property
    def job_class(self) -> JobClass:
        return self._group.job_class

    @property
    def urgent(self) -> bool:
        return self._group.urgent

    @property
    def sticky_files(self) -> frozenset[str]:
        return self._group.sticky_files

    def slots(self) -> Sequence[Ready]:
        slots = self._group.slots()
        return [slot for slot in slots if slot.instance_id not in self._taken] if self._taken else slots


class Untouched:
    """A SlotSource that records what a request would take from an array and leaves the array unchanged."""

    def __init__(self, array: JobArray) -> None:
        self._array = array
        self._taken: set[InstanceId] = set()
        self._groups = [_Rest(group, self._taken) for group in array.groups()]

    def groups(self) -> Sequence[_Rest]:
        return [group for group in self._groups if group.slots()]

    def may_have(self, slot: Ready, host_id: HostId, volunteer_id: VolunteerId) -> RefusalCode | None:
        return self._array.may_have(slot, host_id, volunteer_id)

    def take(self, slot: Ready, host_id: HostId, volunteer_id: VolunteerId) -> None:
        self._taken.add(slot.instance_id)

    def give_back(self, slot: Ready) -> None:
        self._taken.discard(slot.instance_id)

    def note_refusals(self, refused: Iterable[tuple[object, RefusalCode]], host_id: HostId) -> None:
        """Ignore refusals: a dry run must not start a back-off."""

    async def search(self, wanted: Sequence[tuple[AppId, ProcessorType]], limit: int) -> bool:
        """Return False: a dry run has no other source of jobs."""
        return False


AT_LEAST_ONE_JOB_S = Seconds(1e-9)  # the smallest request: 1 s would be two jobs of 0.5 s


def assumed_request(host: Host, held: tuple[InstanceInProgress, ...], catalogue: Catalogue) -> SchedulerRequest:
    """Return the assumed request of a host, with the fields that decisions depend on."""
    coprocs = tuple(
        CoprocRequest(
            gpu.type,
            gpu.count,
            gpu.peak_flop_per_s,
            gpu.ram_bytes,
            gpu.driver_version,
            req_s=AT_LEAST_ONE_JOB_S,
            req_instances=idle_instances(gpu.type, gpu.count, held, catalogue),
        )
        for gpu in host.coprocessors
    )
    return SchedulerRequest(
        authenticator="",
        host_id=host.host_id,
        rpc_seqno=host.rpc_seqno,
        cpu_req_s=AT_LEAST_ONE_JOB_S,
        cpu_req_instances=idle_instances(CPU, host.ncpus, held, catalogue),
        platforms=host.platforms,
        coprocs=coprocs,
        client_now=Instant(host.last_rpc_at + host.clock_skew_s),
    )


def idle_instances(
    kind: ProcessorType, count: int, held: tuple[InstanceInProgress, ...], catalogue: Catalogue
) -> float:
    """Return the number of processors of a type that no job in progress occupies."""
    plans = [plan_of(catalogue.versions, one.app_version_id, one.ncpus) for one in held]
    used = sum(usage_of(plan) for plan in plans if plan.processor_type == kind)
    return max(0.0, count - used)


def assumed_context(view: RequestView, catalogue: Catalogue, *, now: Instant) -> SchedulingContext:
    """Return the scheduling context of the assumed request. The view must contain a volunteer and a host.

    If most requests take some batches first (administration/ordering/places.py), this one does, too.
    """
    assert view.volunteer is not None and view.host is not None
    host = view.host
    catalogue = catalogue.on_host(host.ncpus)
    request = assumed_request(host, view.held, catalogue)
    admission = Admission(view.volunteer, host, HostCase.KNOWN, f"host {host.host_id}")
    wants, in_progress = wants_of(request, host), HeldReview(kept=view.held)
    context = context_of(Contact(request, key_of(request), now, catalogue), admission, view, wants, in_progress)
    share = catalogue.settings.scheduler.afap_first_fraction
    likely = (seed for seed in counting(context.seed) if (draw(InstanceId(seed)) < share) is (share >= MOST_REQUESTS))
    return replace(context, seed=next(likely))


def refusal_of_all(view: RequestView, catalogue: Catalogue) -> Refusal | None:
    """Return why the assumed request would get no job at all, regardless of waiting work; None if it may get one."""
    assert view.host is not None
    request = assumed_request(view.host, view.held, catalogue)
    refusal = refuse_all(request, catalogue.settings, paused=None, now=view.host.last_rpc_at)
    return refusal or banned(view.host, catalogue)


AT_A_TIME = 50  # the number of hosts that the store reads in one round trip


async def sample_of(
    store: PostgresStore,
    array: JobArray,
    catalogue: Catalogue,
    clock: Clock,
    *,
    idle: bool = False,
    is_submitted: bool = True,
) -> CallingHosts:
    """Make a dry run for each of the AT_A_TIME hosts with the latest requests, as if there were no other work. `idle`:
    as if they had no jobs, either. `is_submitted`: as for `calling_hosts`.

    Hosts are evaluated in a thread, so that client requests are not delayed.
    """
    callers = await store.insight.recent_callers(AT_A_TIME)
    views = await read_views(store, callers, idle=idle)
    answers = await asyncio.to_thread(all_answers, callers, views, array, catalogue, clock.now())
    return calling_hosts(answers, catalogue.settings.as_mapping(), is_submitted=is_submitted)


async def read_views(store: PostgresStore, callers: Sequence[Caller], *, idle: bool = False) -> Sequence[RequestView]:
    """Return the request views of these hosts, in order. `idle`: as if they had no jobs, and had got none today."""
    views = await asyncio.gather(*(store.ledger.read(caller.key) for caller in callers))
    return [_rested(one) for one in views] if idle else views


def without_pauses(catalogue: Catalogue) -> Catalogue:
    """Return the catalogue as if no work were paused: a pause does not change which hosts could run it."""
    restrictions = {key: one for key, one in catalogue.restrictions.items() if not one.kind.is_work}
    project = replace(catalogue.settings.project, down=False)
    return replace(catalogue, restrictions=restrictions, settings=replace(catalogue.settings, project=project))


def _rested(view: RequestView) -> RequestView:
    """Return the view of the same host as if it had no jobs, and had got none today: no limit hides what it can run."""
    havs = {key: replace(hav, sent_today=0) for key, hav in view.havs.items()}
    return replace(view, held=(), quotas=(), havs=havs)


def all_answers(
    callers: Sequence[Caller], views: Sequence[RequestView], array: JobArray, catalogue: Catalogue, now: Instant
) -> list[HostAnswer]:
    """Return what each host would get, in order. Hosts deleted since they were listed are omitted."""
    return [
        _answer(caller, view, array, catalogue, now)
        for caller, view in zip(callers, views, strict=True)
        if view.host is not None
    ]


def _answer(caller: Caller, view: RequestView, array: JobArray, catalogue: Catalogue, now: Instant) -> HostAnswer:
    rate, refused = caller.calls_per_hour(now), refusal_of_all(view, catalogue)
    if refused is not None:
        return HostAnswer(caller.host_id, rate, 0, 0.0, (refused,))
    context = assumed_context(view, catalogue, now=now)
    found = traced(context, Untouched(array))
    chosen = found.choice.chosen
    shared = traits_of(catalogue.settings.deadline).shares_gated and any(one.assignment.gated for one in chosen)
    why = () if chosen else telling(_refusals(found, context))
    return HostAnswer(caller.host_id, rate, len(chosen), free_s(context, chosen), why, shared)


def telling(refusals: Sequence[Refusal]) -> tuple[Refusal, ...]:
    """Return the refusals of a host without those of processor types for which the app has no version, unless these are
    all: a host with a GPU is not kept from the jobs of an app for CPUs by its GPU.

    >>> gpu, memory = (Refusal(code, "as the test says") for code in (RefusalCode.NO_APP_VERSION, RefusalCode.MEMORY))
    >>> [[one.code.value for one in telling(found)] for found in ([gpu, memory], [gpu])]
    [['memory'], ['no_app_version']]
    """
    others = tuple(one for one in refusals if one.code is not RefusalCode.NO_APP_VERSION)
    return others or tuple(refusals)


def refusals_of_app(app_id: AppId, found: DecisionTrace, bests: Iterable[BestOfApp]) -> list[Refusal]:
    """Return the refusals of all jobs of an app, without those of processor types on which the host cannot use it. If
    it cannot use it at all, only the reasons for this count: a limit of its GPU does not matter.
    """
    own = {kind: best for one, kind, best in bests if one == app_id}
    unusable = {kind: best for kind, best in own.items() if isinstance(best, Refusal)}
    if own and len(unusable) == len(own):
        return [*unusable.values()]
    large = [one for one in found.choice.refused_at_large if one.app_id in (None, app_id)]
    return [one.refusal for one in large if one.processor_type not in unusable]


def _refusals(found: DecisionTrace, context: SchedulingContext) -> list[Refusal]:
    apps = {group.batch.app_id for group in found.groups}
    bests = bests_of(context, apps)
    passed_over = [Refusal(code, why) for step in found.steps for code, _, why in step.passed_over]
    own = [refusal for _, _, refusal in found.choice.not_given] + passed_over
    of_apps = [refusal for app_id in sorted(apps) for refusal in refusals_of_app(app_id, found, bests)]
    return of_apps + own or [one.refusal for one in found.choice.refused]


def free_s(context: SchedulingContext, chosen: Sequence[Chosen]) -> Seconds:
    """Return the seconds until the host could start the first of these jobs, after all its work; 0 without jobs."""
    if not chosen:
        return Seconds(0.0)
    queue = busy_at_start(context).queue
    return min(queue[one.version.processor_type].start_s(max(1.0, one.job_class.ncpus)) for one in chosen)
