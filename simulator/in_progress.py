"""Gives hosts the instances that they have in progress when a batch begins, in the store and on their clients."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from domain.apps import AppVersion, ProcessorType
from domain.batches import Batch
from domain.catalogue import Catalogue
from domain.dispatch import Assignment, RequestKey, RequestView, RequestWrites
from domain.due_terms import DueRow, DueTerms
from domain.hosts import Host
from domain.jobs import JobClass, Ready, instance_name, job_name
from domain.ranking import Gate
from domain.units import BatchId, HostId, InstanceId, Instant, JobClassId, JobId, Seconds, later
from lifecycle.turnaround import timeout_at
from simulator.client import SimulatedVolunteer
from simulator.ports import HeldInstance, HeldJob, Participant
from simulator.recording import RunRecord
from simulator.services import AnyStore

LEAST_LEFT_S = 60.0  # to the due date of an instance that is overdue


@dataclass(frozen=True, slots=True)
class _Moment:
    """A new batch and the present state of the project."""

    batch: Batch
    catalogue: Catalogue
    now: Instant


class InProgress:
    """Sends instances of new batches to the hosts that have them at the start of a scenario."""

    def __init__(self, store: AnyStore, record: RunRecord, volunteers: Sequence[Participant]) -> None:
        self._store = store
        self._record = record
        self._volunteers = volunteers

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
        unsent = _in_turn([one.ready for one in await self._store.waiting.tail([batch_id], most)])
        return [one.volunteer for one in held if await self._hand_out(one, unsent, classes, moment)]

    async def _hand_out(
        self, one: HeldInstance, unsent: list[Ready], classes: Mapping[JobClassId, JobClass], moment: _Moment
    ) -> bool:
        """Send the first of the unsent instances that the host may have, and remove it from the list."""
        volunteer = self._volunteers[one.volunteer]
        assert isinstance(volunteer, SimulatedVolunteer), "only these continue jobs"
        key = RequestKey(hashlib.sha256(volunteer.authenticator.encode()).digest(), HostId(volunteer.host_id))
        view = await self._store.ledger.read(key) if volunteer.host_id else RequestView()
        version = None if view.host is None else _version(moment, view.host, one.gpu_type)
        if view.host is None or version is None:
            return False
        hav = view.havs.get(version.app_version_id)
        s_per_flop = hav.speed.mean if hav is not None and hav.speed.mean > 0.0 else 1.0 / view.host.flop_per_s
        for ready in unsent:
            flop = classes[ready.job_class_id].fpops_est_flop
            runtime_s = Seconds(flop * s_per_flop)
            given = _assignment(one, ready, view.host, version, moment, runtime_s=runtime_s)
            outcome = await self._store.ledger.write(RequestWrites(view.host, assignments=(given,), known=view.host))
            sent = outcome.sent.get(given.instance_id)
            if sent is not None:
                break
        else:
            return False
        unsent.remove(ready)
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
        )
        volunteer.hold(job, moment.now)
        return True


def _in_turn(unsent: Sequence[Ready]) -> list[Ready]:
    """Order instances by their number within their job, then by id."""
    of_job: Counter[JobId] = Counter()
    numbers: dict[InstanceId, int] = {}
    for ready in sorted(unsent, key=lambda one: one.instance_id):
        of_job[ready.job_id] += 1
        numbers[ready.instance_id] = of_job[ready.job_id]
    return sorted(unsent, key=lambda one: (numbers[one.instance_id], one.instance_id))


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
