"""The back-off of groups that every recent host refused: out of the array for a while, with the reasons reported."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from domain.jobs import Ready
from domain.refusals import RefusalCode, codes_where
from domain.settings import FeederSettings
from domain.units import BatchId, HostId, InstanceId, Instant, JobClassId, Seconds, later, shard_of
from feeder.groups import GroupKey, group_key

# In a back-off, the host the work waits for would never find it.
WAITS_FOR_ANOTHER = codes_where(lambda traits: traits.fits)


@dataclass(frozen=True, slots=True)
class Unrunnable:
    """Work that no host could take since `since_at`: how much waits, and which hosts said what last.

    `slots` counts by shard the slots the group has, or had when it rotated out; the backlog behind it is the batch's
    `unsent`.
    """

    batch_id: BatchId
    job_class_id: JobClassId
    urgent: bool
    slots: Mapping[int, int]
    refused_by: Mapping[HostId, RefusalCode]
    since_at: Instant
    rotated_out: bool

    @property
    def waiting(self) -> int:
        return sum(self.slots.values())

    @property
    def hosts(self) -> int:
        return len(self.refused_by)

    @property
    def codes(self) -> Mapping[RefusalCode, int]:
        """Each host once, by its latest reason."""
        return MappingProxyType(dict(sorted(Counter(self.refused_by.values()).items())))


@dataclass(slots=True)
class _Refused:
    """A group since a host last took one of its slots. `row` are the refusals since it last rotated out.

    `waits` are those that rotate nothing out. A host is in one of the two, by its latest reason.
    """

    since_at: Instant
    row: dict[HostId, RefusalCode] = field(default_factory=dict)
    waits: dict[HostId, RefusalCode] = field(default_factory=dict)
    before: Mapping[HostId, RefusalCode] = field(default_factory=dict)  # the row that rotated it out

    def latest(self) -> Mapping[HostId, RefusalCode]:
        return {**self.before, **self.waits, **self.row}


@dataclass(slots=True)
class _CoolOff:
    """A group that is out. `smallest` is, per shard, the smallest instance that was dropped or passed over."""

    until_s: Seconds
    slots: Mapping[int, int]  # by shard
    smallest: dict[int, InstanceId] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Returning:
    """A group whose cool-off is over: reading goes on before the smallest instance of each shard."""

    batch_id: BatchId
    smallest: Mapping[int, InstanceId]


class UnschedulableBackOff:
    """Counts refusals per group and keeps those out that everybody refuses.

    Memory: at most `refusals_to_rotate` hosts three times per group that is refused.
    """

    def __init__(self, settings: Callable[[], FeederSettings]) -> None:
        self._settings = settings
        self._refused: dict[GroupKey, _Refused] = {}
        self._full: set[GroupKey] = set()  # rows long enough to rotate
        self._cooling: dict[GroupKey, _CoolOff] = {}
        self._taken_at: dict[GroupKey, Instant] = {}

    def note_refusals(self, codes: Iterable[tuple[GroupKey, RefusalCode]], host_id: HostId, *, now: Instant) -> None:
        """Count groups that a host could not take. The same host counts once in a row.

        Refusals of slots a search brought back during the cool-off start no new row. Those that say that the work
        waits for another host are reported, and never keep it from that host.
        """
        enough, full, cooling = self._settings().refusals_to_rotate, self._full, self._cooling
        for key, code in codes:
            if key in cooling:
                continue
            refused = self._refused.get(key)
            if refused is None:
                refused = self._refused[key] = _Refused(since_at=now)
            row, other = refused.row, refused.waits
            if code in WAITS_FOR_ANOTHER:
                row, other = other, row
            if len(row) < enough or host_id in row:
                row[host_id] = code
                other.pop(host_id, None)
            if len(refused.row) >= enough:
                full.add(key)
            else:
                full.discard(key)

    def note_taken(self, key: GroupKey, *, now: Instant) -> None:
        """A host took a slot of the group: the row is broken, and a cool-off ends with the next refill."""
        self._taken_at[key] = now
        if self._refused.pop(key, None) is not None:
            self._full.discard(key)
        cool_off = self._cooling.get(key)
        if cool_off is not None:
            cool_off.until_s = Seconds(float("-inf"))

    def recall(self, batch_ids: Collection[BatchId]) -> None:
        """The cool-offs of these batches end with the next refill."""
        for key, cool_off in self._cooling.items():
            if key[0] in batch_ids:
                cool_off.until_s = Seconds(float("-inf"))

    def full_rows(self) -> list[GroupKey]:
        """Groups to rotate out now, smallest key first."""
        return sorted(key for key in self._full if key not in self._cooling)

    def rotate_out(self, key: GroupKey, slots: Collection[Ready], *, now_s: Seconds) -> None:
        """The group's `slots` have left the array; its cool-off starts at `now_s` (monotonic)."""
        refused = self._refused[key]
        refused.before, refused.row = refused.row, {}
        self._full.discard(key)
        cool_off = _CoolOff(Seconds(now_s + self._settings().cool_off_s), by_shard(slots))
        self._cooling[key] = cool_off
        for slot in slots:
            _lower(cool_off.smallest, slot)

    def is_out(self, ready: Ready) -> bool:
        """Whether the instance's group is in its cool-off."""
        return bool(self._cooling) and group_key(ready) in self._cooling

    def pass_over(self, ready: Ready) -> None:
        """An instance was read while its group is out: it will have to be read again."""
        _lower(self._cooling[group_key(ready)].smallest, ready)

    def out_of_batch(self, batch_id: BatchId) -> int:
        """Slots the groups of a batch had that are out now; 0 when none is."""
        return sum(sum(one.slots.values()) for key, one in self._cooling.items() if key[0] == batch_id)

    def batches_out(self) -> frozenset[BatchId]:
        """Batches with at least one group in its cool-off."""
        return frozenset(key[0] for key in self._cooling)

    def returning(self, *, now_s: Seconds) -> list[Returning]:
        """Ends the cool-offs that are over at `now_s` (monotonic)."""
        over = sorted(key for key, cool_off in self._cooling.items() if cool_off.until_s <= now_s)
        return [Returning(key[0], self._cooling.pop(key).smallest) for key in over]

    def keep_batches(self, batch_ids: Collection[BatchId]) -> None:
        """Forget everything about other batches: they have no work any more."""
        for key in [key for key in {*self._refused, *self._cooling, *self._taken_at} if key[0] not in batch_ids]:
            self._full.discard(key)
            for known in (self._refused, self._cooling, self._taken_at):
                known.pop(key, None)

    def taken(self) -> Mapping[GroupKey, Instant]:
        """When a host last took a slot of each group."""
        return self._taken_at

    def report(self, slots_of: Callable[[GroupKey], Mapping[int, int]], *, now: Instant) -> tuple[Unrunnable, ...]:
        """What nobody can run, longest first; `slots_of` counts the slots the array has of a group, by shard.

        A group is listed when it rotated out since a host last took one of its slots, or when hosts have
        refused it for a whole cool-off: a small project never sees `refusals_to_rotate` hosts.
        """
        patience_s = self._settings().cool_off_s
        rows = []
        for key, refused in self._refused.items():
            cool_off = self._cooling.get(key)
            if not refused.before and later(refused.since_at, patience_s) > now:
                continue
            slots = slots_of(key) or (cool_off.slots if cool_off is not None else {})
            if slots:
                rows.append(Unrunnable(*key, slots, refused.latest(), refused.since_at, cool_off is not None))
        return tuple(sorted(rows, key=lambda row: (row.since_at, row.batch_id, row.job_class_id, row.urgent)))


def by_shard(slots: Iterable[Ready]) -> Mapping[int, int]:
    """How many slots there are of each shard."""
    return Counter(shard_of(slot.job_id) for slot in slots)


def _lower(smallest: dict[int, InstanceId], ready: Ready) -> None:
    shard = shard_of(ready.job_id)
    smallest[shard] = min(smallest.get(shard, ready.instance_id), ready.instance_id)
