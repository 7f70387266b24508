"""Copies a project's hosts, and the instances that they have in progress, to the store and to the hosts' clients."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from domain.apps import AppVersion, ProcessorType
from domain.batches import Batch
from domain.catalogue import Catalogue
from domain.dispatch import Assignment, RequestKey, RequestView
from domain.due_terms import DueRow, DueTerms
from domain.hosts import Host
from domain.jobs import JobClass, Ready, instance_name, job_name
from domain.ranking import Gate
from domain.units import AppVersionId, BatchId, HostId, InstanceId, Instant, JobClassId, JobId, Seconds, later
from lifecycle.turnaround import timeout_at
from simulator.client import SimulatedVolunteer
from simulator.ports import HeldInstance, HeldJob, Participant
from simulator.recording import RunRecord
from simulator.services import AnyStore
from store.memory import MemoryStore

LEAST_LEFT_S = 60.0  # to the due date of an instance that is overdue


@dataclass(frozen=True, slots=True)
class _Moment:
    """A new batch and the present state of the project."""

    batch: Batch
    catalogue: Catalogue
    now: Instant


class HostCopies:
    """Creates the hosts that a project knows at the start of a scenario, and sends them the instances they have."""

    def __init__(self, store: AnyStore, record: RunRecord, volunteers: Sequence[Participant]) -> None:
        self._store = store
        self._record = record
        self._volunteers = volunteers

    async def copy_hosts(self, copies: Mapping[AppVersionId, AppVersionId]) -> None:
        """Create the known hosts, with their statistics for versions of the scenario. `copies`: these versions' ids."""
        for volunteer in self._volunteers:
            if not isinstance(volunteer, SimulatedVolunteer) or volunteer.known is None:
                continue
            view = await self._store.ledger.read(_key(volunteer))
            assert view.volunteer is not None, "the project has all volunteers"
            havs = [
                replace(hav, app_version_id=copies[hav.app_version_id])
                for hav in volunteer.known.havs
                if hav.app_version_id in copies
            ]
            host = replace(volunteer.known.host, rpc_seqno=0)  # the client counts its requests from 0
            known = replace(volunteer.known, host=host, havs=tuple(havs))
            volunteer.continue_as(await self._memory.ledger.copy_host(view.volunteer.volunteer_id, known))

    async def copy_turnaround(self, batch_id: BatchId, median_s: Seconds) -> None:
        await self._memory.hav_tables.copy_turnaround(batch_id, median_s)

    @property
    def _memory(self) -> MemoryStore:
        assert isinstance(self._store, MemoryStore), "only a store in memory continues a project"
        return self._store

    async def hand_out(
        self, batch_id: BatchId, held: Sequence[HeldInstance], catalogue: Catalogue, now: Instant
    ) -> Sequence[int]:
        """Return the places of the volunteers that got instances.

        The first instances of all jobs are handed out before the second ones. An instance stays unsent if its host
        never contacted the server, has no version or processor for it, or already has an instance of each job left.
        """
        moment = _Moment(await self._store.views.batch(batch_id), catalogue, now)
        classes = {one.job_class_id: one for one in await self._store.views.classes_of_batch(batch_id)}
        most = len(held) * max(one.quorum for one in classes.values())
        unsent = _Unsent([one.ready for one in await self._store.waiting.tail([batch_id], most)])
        return [one.volunteer for one in held if await self._hand_out(one, unsent, classes, moment)]

    async def _hand_out(
        self, one: HeldInstance, unsent: _Unsent, classes: Mapping[JobClassId, JobClass], moment: _Moment
    ) -> bool:
        """Send the first of the unsent instances that the host may have."""
        volunteer = self._volunteers[one.volunteer]
        assert isinstance(volunteer, SimulatedVolunteer), "only these continue jobs"
        view = await self._store.ledger.read(_key(volunteer)) if volunteer.host_id else RequestView()
        version = None if view.host is None else _version(moment, view.host, one.gpu_type)
        if view.host is None or version is None:
            return False
        hav = view.havs.get(version.app_version_id)
        s_per_flop = hav.speed.mean if hav is not None and hav.speed.mean > 0.0 else 1.0 / view.host.flop_per_s
        for ready in unsent.offered_to(one.volunteer):
            flop = classes[ready.job_class_id].fpops_est_flop
            runtime_s = Seconds(flop * s_per_flop)
            given = _assignment(one, ready, view.host, version, moment, runtime_s=runtime_s)
            sent = await self._memory.ledger.copy_assignment(given)
            if sent is not None:
                break
        else:
            return False
        unsent.sent(ready)
        self._record.sent(replace(given, sent_at=moment.now))
        app, batch_id = moment.catalogue.apps[moment.batch.app_id].name, moment.batch.batch_id
        job = HeldJob(
            instance_name(app, batch_id, given.job_id, given.instance_id),
            job_name(app, batch_id, given.job_id),
            sent.command_line,
            flop,
            runtime_s,
            given.due_at,
            one.done_fraction,
            version.version_num,
            version.plan_class,
            one.later_fraction,
        )
        volunteer.hold(job, moment.now)
        return True


class _Unsent:
    """A batch's unsent instances by their number within their job, then by id. A host is offered each one only once,
    because it never gets an instance that was refused to it.
    """

    def __init__(self, unsent: Sequence[Ready]) -> None:
        of_job: Counter[JobId] = Counter()
        numbers: dict[InstanceId, int] = {}
        for ready in sorted(unsent, key=lambda one: one.instance_id):
            of_job[ready.job_id] += 1
            numbers[ready.instance_id] = of_job[ready.job_id]
        self._all = sorted(unsent, key=lambda one: (numbers[one.instance_id], one.instance_id))
        self._sent: set[InstanceId] = set()
        self._first = 0  # all before it are sent
        self._next: dict[int, int] = {}  # by host

    def offered_to(self, host: int) -> Iterator[Ready]:
        """Yield the instances not yet offered to this host."""
        for place in range(max(self._first, self._next.get(host, 0)), len(self._all)):
            self._next[host] = place + 1
            if self._all[place].instance_id not in self._sent:
                yield self._all[place]

    def sent(self, ready: Ready) -> None:
        self._sent.add(ready.instance_id)
        while self._first < len(self._all) and self._all[self._first].instance_id in self._sent:
            self._first += 1


def _key(volunteer: SimulatedVolunteer) -> RequestKey:
    return RequestKey(hashlib.sha256(volunteer.authenticator.encode()).digest(), HostId(volunteer.host_id))


def _version(moment: _Moment, host: Host, gpu_type: ProcessorType | None) -> AppVersion | None:
    if gpu_type is not None and all(gpu.type != gpu_type for gpu in host.coprocessors):
        return None  # a simulated host has GPUs of one type only
    current = moment.catalogue.current.get(moment.batch.app_id, ())
    return next(
        (one for one in current if one.platform in host.platforms and one.plan_class.gpu_type == gpu_type), None
    )


def _assignment(
    one: HeldInstance, ready: Ready, host: Host, version: AppVersion, moment: _Moment, *, runtime_s: Seconds
) -> Assignment:
    settings, no_s = moment.catalogue.settings, Seconds(0.0)
    sent_at, due_at = later(moment.now, -one.age_s), later(moment.now, max(LEAST_LEFT_S, one.due_s))
    terms = DueTerms(
        settings.deadline.rule, DueRow.FIXED, (0.0, due_at - sent_at), False, no_s, no_s, runtime_s, runtime_s, None,
        Gate.NONE, 0.0,
    )  # fmt: skip
    return Assignment(
        ready.instance_id,
        ready.job_id,
        ready.batch_id,
        ready.job_class_id,
        version.app_version_id,
        host.host_id,
        host.volunteer_id,
        sent_at,
        due_at,
        timeout_at(sent_at, due_at, settings.lifecycle),
        runtime_s,
        tight=False,
        due_terms=terms,
    )
