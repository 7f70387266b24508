"""Job arrays to decide on that are nobody's: what is taken from them is not given to anyone."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import feeder.ports
import feeder.service
from domain.apps import ProcessorType
from domain.batches import Batch
from domain.catalogue import Catalogue
from domain.clock import Clock
from domain.jobs import Candidate, JobClass, Ready
from domain.refusals import RefusalCode
from domain.units import AppId, BatchId, HostId, InstanceId, JobClassId, VolunteerId
from feeder.array import JobArray
from feeder.groups import Group
from feeder.ports import WaitingWork
from feeder.reading import ALL_SHARDS
from feeder.service import Feeder


class EveryShard:
    """Reading all shards takes none from the workers: their locks are for not trying the same jobs."""

    def owned(self) -> frozenset[int]:
        return ALL_SHARDS


@dataclass(frozen=True, slots=True)
class Fixed:
    """A catalogue that stays as it is."""

    held: Catalogue

    def catalogue(self) -> Catalogue:
        return self.held


async def private_feeder(waiting: WaitingWork, catalogue: Catalogue, clock: Clock) -> Feeder:
    """A feeder with an array of its own, filled from the database as that of a lone worker would be."""
    fed = _empty_feeder(waiting, catalogue, clock)
    await fed.refill_once()
    return fed


async def planned_slots(waiting: WaitingWork, catalogue: Catalogue, clock: Clock) -> Mapping[BatchId, int]:
    """How many slots each batch would have in that array. No slot is read or placed: it costs a third as much."""
    slots: dict[BatchId, int] = {}
    for (batch_id, _), count in (await _empty_feeder(waiting, catalogue, clock).plan_once()).items():
        slots[batch_id] = slots.get(batch_id, 0) + count
    return slots


def _empty_feeder(waiting: WaitingWork, catalogue: Catalogue, clock: Clock) -> Feeder:
    return feeder.service.build_feeder(feeder.ports.FeederPorts(waiting, EveryShard()), Fixed(catalogue), clock)


def array_of(
    candidates: Iterable[Candidate],
    batch: Batch,
    classes: Mapping[JobClassId, JobClass],
    catalogue: Catalogue,
    clock: Clock,
) -> JobArray:
    """A feeder's array with these instances of one batch alone."""
    array = JobArray(clock, lambda: catalogue.settings.feeder)
    for candidate in candidates:
        array.place(candidate, batch, classes[candidate.ready.job_class_id])
    return array


class _Rest:
    """A group less what one request took from it."""

    __slots__ = ("_group", "_taken")

    def __init__(self, group: Group, taken: Collection[InstanceId]) -> None:
        self._group = group
        self._taken = taken

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
    """A view of an array for one request, which records what is taken instead of taking it.

    Satisfies scheduler.ports.JobSource.
    """

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

    def sent(self, instance_ids: Iterable[InstanceId]) -> None:
        """Nothing is ever sent."""

    def lost(self, instance_ids: Iterable[InstanceId]) -> None:
        """Nothing is ever lost."""

    async def recheck(self, lost: Collection[Ready]) -> None:
        """What is not sent need not be checked."""

    def note_refusal(self, group: object, host_id: HostId, code: RefusalCode) -> None:
        """Refusals of a dry run rotate nothing out."""

    def note_request(self, wanted: Sequence[ProcessorType]) -> None:
        """A dry run is no request."""

    async def search(self, wanted: Sequence[tuple[AppId, ProcessorType]], limit: int) -> bool:
        """There is no more than this."""
        return False
