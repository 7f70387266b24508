"""A request worker's job array: the instances that requests may get, in order."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from domain.apps import ProcessorType
from domain.batches import Batch
from domain.clock import Clock
from domain.jobs import Candidate, JobClass, Ready
from domain.refusals import RefusalCode
from domain.settings import FeederSettings
from domain.units import AppId, BatchId, HostId, InstanceId, Seconds, VolunteerId
from feeder.groups import ONE_TURN, Group, GroupKey, Order, group_key, turns_of
from feeder.in_flight import InFlight, SiblingIndex, Taken
from feeder.request_rate import LowWatermark, RequestMix
from feeder.turn_taking import Places
from feeder.unschedulable import Unrunnable, UnschedulableBackOff, by_shard

FallThrough = Callable[[Sequence[tuple[AppId, ProcessorType]], int], Awaitable[bool]]  # `feeder.search.Search.search`
Recheck = Callable[[Collection[Ready]], Awaitable[None]]  # `feeder.revalidation.Revalidation.recheck`


def room_for_search(settings: FeederSettings) -> int:
    """Return how many slots the array may temporarily have above `feeder.slots`: a tenth of it, at least 20.

    >>> room_for_search(FeederSettings(slots=1000)), room_for_search(FeederSettings(slots=50))
    (100, 20)
    """
    return max(20, settings.slots // 10)


class JobArray:
    """Slots in ordered groups, instances in flight, and the hosts that have a sibling of any of these instances.

    All methods except `search` and `recheck` are synchronous and cost O(log slots). Used by one event loop only.
    """

    def __init__(self, clock: Clock, settings: Callable[[], FeederSettings]) -> None:
        self.mix = RequestMix()
        self.rotation = UnschedulableBackOff(settings)
        self.in_flight = InFlight()
        self.level = LowWatermark()  # counts slots taken since the last refill
        self.fall_through: FallThrough | None = None
        self.stale: Recheck | None = None
        self._readers = 0
        self._clock = clock
        self._settings = settings
        self._siblings = SiblingIndex()
        self._held: dict[InstanceId, Ready] = {}
        self._groups: dict[GroupKey, Group] = {}
        self.turns = ONE_TURN
        self._order = Order()

    # ------------------------------------------------------------ used by requests

    def groups(self) -> Sequence[Group]:
        """Return all groups with at least one slot, in order of rank.

        The returned sequence does not change during iteration; a new one is built after a change.
        """
        return self._order.lent()

    def may_have(self, slot: Ready, host_id: HostId, volunteer_id: VolunteerId) -> RefusalCode | None:
        """Return SAME_HOST or SAME_VOLUNTEER if the host or its volunteer is known to have an instance of the job."""
        return self._siblings.refusal(slot.job_id, host_id, volunteer_id)

    def take(self, slot: Ready, host_id: HostId, volunteer_id: VolunteerId) -> None:
        """Remove the slot for a host. From then on, the host counts as having the instance."""
        held = self._held.pop(slot.instance_id, None)
        if held is not None:
            self._groups[group_key(held)].position += self._groups[group_key(held)].place.pe
            self.level.note_taken(held, self._take_out(held), left=len(self._held))
            slot = held
        elif slot.instance_id not in self.in_flight:
            self._siblings.hold(slot.job_id)  # the slot left the array while a request examined it
        self._siblings.note(slot.job_id, (host_id,), (volunteer_id,))
        self.in_flight.add(Taken(slot, host_id, volunteer_id, self._clock.monotonic()))
        self.rotation.note_taken(group_key(slot), now=self._clock.now())

    def give_back(self, slot: Ready) -> None:
        """Put back a slot whose dispatch was not committed. Has no effect if the slot was not taken."""
        settings = self._settings()
        group = self._groups.get(group_key(slot))
        full = len(self._held) >= settings.slots + room_for_search(settings)
        room = group is not None and not full
        taken = self.in_flight.give_back(slot.instance_id, self._clock.monotonic(), room=room)
        if taken is not None and group is not None and room:
            group.position -= group.place.pe
            self._put_in(taken.ready, group)

    def sent(self, instance_ids: Iterable[InstanceId]) -> None:
        """Record that these dispatches are committed, so that the instances are no longer in flight."""
        for instance_id in instance_ids:
            self._confirm(instance_id)

    def lost(self, instance_ids: Iterable[InstanceId]) -> None:
        """Drop instances that another host has or that are no longer needed. The requesting host did not get them."""
        for instance_id in instance_ids:
            taken = self._confirm(instance_id)
            if taken is not None:
                self._siblings.forget(taken.ready.job_id, taken.host_id, taken.volunteer_id)

    async def recheck(self, lost: Collection[Ready]) -> None:
        """Revalidate in the database the first slots of the groups of `lost`, and drop slots that are gone."""
        if self.stale is not None:
            await self.stale(lost)

    def note_refusals(self, refused: Iterable[tuple[GroupKey, RefusalCode]], host_id: HostId) -> None:
        """Record that a host could not take these groups. Groups that all hosts refuse leave the array for a while."""
        self.rotation.note_refusals(refused, host_id, now=self._clock.now())

    def note_request(self, wanted: Sequence[ProcessorType]) -> None:
        """Count the processor types of a request. The partitions follow the mix of requested types."""
        self.mix.note(wanted, now_s=self._clock.monotonic())

    async def search(self, wanted: Sequence[tuple[AppId, ProcessorType]], limit: int) -> bool:
        """Search the database for work of these kinds that is not in the array; return True if any was added."""
        return self.fall_through is not None and await self.fall_through(wanted, limit)

    # ------------------------------------------------------------ used by refills and searches

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Remember instances sent while rows are read and placed, because a row may be older than a dispatch."""
        self._readers += 1
        try:
            yield
        finally:
            self._readers -= 1
            if not self._readers:
                self.sent(self.in_flight.confirmed())

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, instance_id: InstanceId) -> bool:
        return instance_id in self._held

    def each_group(self) -> Sequence[Group]:
        """Return the groups as `groups` does, for callers that do not change the array while they use the result."""
        return self._order.groups()

    def batches(self) -> set[BatchId]:
        """Return the batches with at least one slot."""
        return {batch_id for batch_id, _, _ in self._order}

    def place(self, candidate: Candidate, batch: Batch, job_class: JobClass) -> bool:
        """Add an instance as a slot. Return False if it is already in the array or in flight.

        An instance in the array whose retries or returned siblings have changed moves to its new group.
        """
        ready = candidate.ready
        held = self._held.get(ready.instance_id)
        new = held is None and ready.instance_id not in self.in_flight
        if held is not None and held != ready and _is_no_older(ready, held):
            self._siblings.hold(ready.job_id)  # keeps the job's siblings during the move
            self.drop(ready.instance_id)
            self._add(ready, batch, job_class)
            self._siblings.release(ready.job_id)
        elif new:
            self._add(ready, batch, job_class)
        if candidate.sibling_hosts or candidate.sibling_volunteers:
            self._siblings.note(ready.job_id, candidate.sibling_hosts, candidate.sibling_volunteers)
        return new

    def drop(self, instance_id: InstanceId) -> Ready | None:
        """Remove a slot that was not sent. Return None if it is not in the array."""
        ready = self._held.pop(instance_id, None)
        if ready is not None:
            self._take_out(ready)
            self._siblings.release(ready.job_id)
        return ready

    def drop_group(self, key: GroupKey) -> list[Ready]:
        """Remove all slots of a group and return them."""
        group = self._groups.get(key)
        slots = list(group.slots()) if group is not None else []
        for slot in slots:
            self.drop(slot.instance_id)
        return slots

    def own(self, owned: Collection[int]) -> None:
        """Sort slots of these shards first among slots of equal rank, so that workers start with different slots."""
        turns = turns_of(owned)
        if turns == self.turns:
            return
        self.turns = turns
        for group in self._groups.values():
            group.take_turns(turns)
            self._order.update(group)

    def refresh(self, batches: Mapping[BatchId, Batch], places: Places) -> None:
        """Update the batches' places and forecasts, and remove empty groups."""
        self._order.places = places
        for key, group in list(self._groups.items()):
            batch = batches.get(key[0])
            if batch is not None:
                group.batch = batch
            if not group and not self.in_flight.of_batch(key[0]):
                del self._groups[key]
        self.deal()

    def deal(self) -> None:
        """Set the order of equal batches so that their owners take turns (feeder/turn_taking.py)."""
        self._order.deal(filter(len, self._groups.values()), self.level.taken)

    def forget(self, gone: Collection[InstanceId], now_s: Seconds) -> None:
        """Forget instances in flight whose outcome is known, and old records of dispatches that were given back."""
        for instance_id in gone:
            self._forget(instance_id)
        for job_id, host_id, volunteer_id in self.in_flight.stale_notes(now_s):
            self._siblings.forget(job_id, host_id, volunteer_id)

    def head_of(self, key: GroupKey, most: int) -> Sequence[Ready]:
        """Return the first `most` slots of a group."""
        group = self._groups.get(key)
        return group.slots()[:most] if group is not None else ()

    def slots_of_groups(self) -> dict[GroupKey, int]:
        """Return the number of slots per group."""
        return {key: len(self._groups[key]) for key in self._order}

    def slots_of_parts(self) -> dict[tuple[BatchId, bool], int]:
        """Return the number of slots per batch, separately for urgent (True) and other (False) instances."""
        parts: dict[tuple[BatchId, bool], int] = {}
        for (batch_id, _, urgent), count in self.slots_of_groups().items():
            parts[batch_id, urgent] = parts.get((batch_id, urgent), 0) + count
        return parts

    def remembers(self, ready: Ready) -> bool:
        """Return whether the instance need not be read again: it is a slot, in flight, or in a group in back-off."""
        return self.is_known(ready.instance_id) or self.rotation.is_out(ready)

    def is_known(self, instance_id: InstanceId) -> bool:
        """Return whether the instance is a slot or in flight."""
        return instance_id in self._held or instance_id in self.in_flight

    def unknown(self, candidates: Iterable[Candidate]) -> list[Candidate]:
        """Return the candidates that are neither slots nor in flight."""
        held, in_flight = self._held, self.in_flight
        return [one for one in candidates if (i := one.ready.instance_id) not in held and i not in in_flight]

    def unrunnable(self) -> tuple[Unrunnable, ...]:
        """Return the unschedulable groups with their reasons."""
        return self.rotation.report(self._slots_by_shard, now=self._clock.now())

    def _slots_by_shard(self, key: GroupKey) -> Mapping[int, int]:
        return by_shard(self._groups.get(key, ()))

    # ------------------------------------------------------------ internal

    def _confirm(self, instance_id: InstanceId) -> Taken | None:
        """Record that the outcome of an instance in flight is known. Return None if it was already known."""
        return self.in_flight.confirm(instance_id) if self._readers else self._forget(instance_id)

    def _forget(self, instance_id: InstanceId) -> Taken | None:
        taken = self.in_flight.remove(instance_id)
        if taken is not None:
            self._siblings.release(taken.ready.job_id)
        return taken

    def _add(self, ready: Ready, batch: Batch, job_class: JobClass) -> None:
        key = group_key(ready)
        group = self._groups.get(key)
        if group is None:
            place = self._order.places.get(key[0])
            group = Group(batch, job_class, urgent=ready.urgent, turns=self.turns, place=place)
            self._groups[key] = group
        self._siblings.hold(ready.job_id)
        self._put_in(ready, group)

    def _put_in(self, ready: Ready, group: Group) -> None:
        self._held[ready.instance_id] = ready
        group.add(ready)
        self._order.update(group)

    def _take_out(self, ready: Ready) -> Group:
        group = self._groups[group_key(ready)]
        group.remove(ready)
        self._order.update(group)
        return group


def _is_no_older(ready: Ready, held: Ready) -> bool:
    """Return whether `ready` was not read earlier: instances only get more urgent, and jobs only need more copies."""
    is_urgent = (ready.retries, ready.sibling_returned) >= (held.retries, held.sibling_returned)
    return is_urgent and ready.copies >= held.copies
