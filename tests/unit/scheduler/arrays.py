"""A job array backed by a list, and requests for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from domain.apps import CPU, App, AppVersion, ProcessorType
from domain.batches import Batch
from domain.catalogue import Catalogue, current_versions
from domain.jobs import JobClass, Ready
from domain.ranking import CutPoints
from domain.refusals import RefusalCode
from domain.settings import Settings
from domain.units import AppId, HostId, InstanceId, JobId, Seconds, VolunteerId
from scheduler.context import SchedulingContext, WorkRequest
from scheduler.ports import GroupKey
from tests.builders import NOW, a_batch, a_host, a_job_class, a_ready, a_volunteer, an_app, an_app_version


@dataclass
class ListGroup:
    batch: Batch
    job_class: JobClass
    urgent: bool
    ready: list[Ready]
    times_looked_into: int = 0

    @property
    def key(self) -> GroupKey:
        return self.batch.batch_id, self.job_class.job_class_id, self.urgent

    @property
    def sticky_files(self) -> frozenset[str]:
        return frozenset(one.name for one in self.job_class.inputs if one.sticky)

    def slots(self) -> Sequence[Ready]:
        self.times_looked_into += 1
        return tuple(self.ready)


@dataclass
class ListArray:
    """Implements scheduler.ports.SlotSource; `taken` and `noted` record what a request did."""

    held: list[ListGroup]
    hosts_of: dict[JobId, set[HostId]] = field(default_factory=dict)
    volunteers_of: dict[JobId, set[VolunteerId]] = field(default_factory=dict)
    taken: list[Ready] = field(default_factory=list)
    noted: list[tuple[ListGroup, RefusalCode]] = field(default_factory=list)

    def groups(self) -> Sequence[ListGroup]:
        return tuple(sorted((group for group in self.held if group.ready), key=_rank))

    def may_have(self, slot: Ready, host_id: HostId, volunteer_id: VolunteerId) -> RefusalCode | None:
        if host_id in self.hosts_of.get(slot.job_id, ()):
            return RefusalCode.SAME_HOST
        if volunteer_id in self.volunteers_of.get(slot.job_id, ()):
            return RefusalCode.SAME_VOLUNTEER
        return None

    def take(self, slot: Ready, host_id: HostId, volunteer_id: VolunteerId) -> None:
        group = next(group for group in self.held if slot in group.ready)
        group.ready.remove(slot)
        self.hosts_of.setdefault(slot.job_id, set()).add(host_id)
        self.volunteers_of.setdefault(slot.job_id, set()).add(volunteer_id)
        self.taken.append(slot)

    def give_back(self, slot: Ready) -> None:
        self.taken.remove(slot)
        group = next(g for g in self.held if g.job_class.job_class_id == slot.job_class_id and g.urgent == slot.urgent)
        group.ready.append(slot)
        group.ready.sort(key=_slot_rank)

    def note_refusals(self, refused: Iterable[tuple[GroupKey, RefusalCode]], host_id: HostId) -> None:
        by_key = {group.key: group for group in self.held}
        self.noted.extend((by_key[key], code) for key, code in refused)

    async def search(self, wanted: Sequence[tuple[AppId, ProcessorType]], limit: int) -> bool:
        raise AssertionError("choosing jobs does not search the database")


def _slot_rank(slot: Ready) -> tuple[int, bool, InstanceId]:
    return -slot.retries, not slot.sibling_returned, slot.instance_id


def _rank(group: ListGroup) -> tuple[int, float, tuple[int, bool, InstanceId]]:
    return group.batch.order_tier, group.batch.order_key, _slot_rank(group.ready[0])


def a_group(number: int = 1, size: int = 1, *, ready: Sequence[Ready] | None = None, **changes: Any) -> ListGroup:
    """Return a batch of one class; `number` is the batch id, the class id and the position; batch.* and class.* by
    name.

    By default, slots are instances number * 1000 + i of jobs with the same ids.
    """
    batch_names = set(Batch.__dataclass_fields__)
    batch = a_batch(batch_id=number, order_key=float(number)) if number else a_batch()
    batch = replace(batch, **{name: value for name, value in changes.items() if name in batch_names})
    job_class = replace(
        a_job_class(job_class_id=number, batch_id=number),
        **{name: value for name, value in changes.items() if name not in batch_names},
    )
    if ready is None:
        ready = [a_ready(instance_id=number * 1000 + i, job_id=number * 1000 + i) for i in range(size)]
    slots = [replace(one, batch_id=batch.batch_id, job_class_id=job_class.job_class_id) for one in ready]
    slots.sort(key=_slot_rank)
    return ListGroup(batch, job_class, any(slot.urgent for slot in slots), slots)


def a_catalogue(
    *versions: AppVersion, apps: Sequence[App] = (), cuts: Sequence[CutPoints] = (), **settings: object
) -> Catalogue:
    """One app with one version unless others are given; settings as "section__name". AFAP jobs are due when done."""
    settings = {"deadline__afap_due_factor": 1.0, **settings}
    listed = {one.app_version_id: one for one in versions or (an_app_version(),)}
    return Catalogue(
        apps={app.app_id: app for app in apps or (an_app(),)},
        versions=listed,
        current=current_versions(listed),
        cut_points={(one.app_id, one.processor_type): one for one in cuts},
        settings=Settings.from_mapping({key.replace("__", "."): value for key, value in settings.items()}),
    )


def a_want(kind: ProcessorType = CPU, **changes: Any) -> WorkRequest:
    return replace(WorkRequest(kind, 2, Seconds(1.0)), **changes)


def an_asking(**changes: Any) -> SchedulingContext:
    """A 2-CPU host with 1e9 flop/s each that requests one job; one CPU app without statistics."""
    host = changes.get("host", a_host())
    context = SchedulingContext(
        volunteer=a_volunteer(),
        host=host,
        now=NOW,
        catalogue=a_catalogue(),
        wants=(a_want(count=host.ncpus),),
        seed=1,
    )
    return replace(context, **changes)


def some_cuts(n: int = 100, *, kind: ProcessorType = CPU, **changes: Any) -> CutPoints:
    """A population with turnaround scores evenly spread over 0 to 1; half have no consecutive valid results."""
    turnaround = tuple((i + 0.5) / 100 for i in range(100))
    cuts = CutPoints(AppId(1), kind, NOW, n, turnaround, (n // 2, *[0] * 10), score_mean=0.5)
    return replace(cuts, **changes)
