"""Unschedulable back-off: groups that all recent hosts refused leave the array for a while and are reported."""

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

# No back-off for these refusals, because the host that the work waits for must be able to find it.
WAITS_FOR_ANOTHER = codes_where(lambda traits: traits.fits)


@dataclass(frozen=True, slots=True)
class Unrunnable:
    """Work that no host has taken since `since_at`: the number of waiting slots, and the latest refusal of each host.

    It counts as unschedulable once `more_hosts` more hosts have refused it (0: it is or was in back-off), or once all
    requesting hosts have refused it for another `more_s`. `slots` counts the group's slots by shard, or those it had
    when its back-off began; the backlog behind them is the batch's `unsent`.
    """

    batch_id: BatchId
    job_class_id: JobClassId
    urgent: bool
    slots: Mapping[int, int]
    refused_by: Mapping[HostId, RefusalCode]
    since_at: Instant
    rotated_out: bool
    more_hosts: int = 0
    more_s: Seconds = Seconds(0.0)

    @property
    def is_certain(self) -> bool:
        return not self.more_hosts or self.more_s <= 0.0

    @property
    def waiting(self) -> int:
        return sum(self.slots.values())

    @property
    def hosts(self) -> int:
        return len(self.refused_by)

    @property
    def codes(self) -> Mapping[RefusalCode, int]:
        """Return the number of hosts by latest refusal."""
        return MappingProxyType(dict(sorted(Counter(self.refused_by.values()).items())))


@dataclass(slots=True)
class _Refused:
    """The refusals of a group since a host last took one of its slots. `row` has the refusals since its last back-off.

    `waits` has refusals that cause no back-off. Each host is in one of the two, by its latest refusal.
    """

    since_at: Instant
    row: dict[HostId, RefusalCode] = field(default_factory=dict)
    waits: dict[HostId, RefusalCode] = field(default_factory=dict)
    before: Mapping[HostId, RefusalCode] = field(default_factory=dict)  # the refusals that caused the back-off

    def latest(self) -> Mapping[HostId, RefusalCode]:
        return {**self.before, **self.waits, **self.row}


@dataclass(slots=True)
class _CoolOff:
    """A group in back-off. `smallest` is the smallest instance per shard that was dropped or passed over."""

    until_s: Seconds
    slots: Mapping[int, int]  # by shard
    smallest: dict[int, InstanceId] = field(default_factory=dict)


class UnschedulableBackOff:
    """Counts refusals per group, and removes groups that all recent hosts refused.

    Memory: at most `refusals_to_rotate` hosts, three times per refused group.
    """

    def __init__(self, settings: Callable[[], FeederSettings]) -> None:
        self._settings = settings
        self._refused: dict[GroupKey, _Refused] = {}
        self._full: set[GroupKey] = set()  # groups with enough refusals for a back-off
        self._cooling: dict[GroupKey, _CoolOff] = {}
        self._taken_at: dict[GroupKey, Instant] = {}

    def note_refusals(self, codes: Iterable[tuple[GroupKey, RefusalCode]], host_id: HostId, *, now: Instant) -> None:
        """Count the groups that a host could not take. Each host counts once.

        Refusals of slots that a search added during the back-off are not counted. Refusals of work that waits for
        another host are reported but never hide the work from that host.
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
        """Record that a host took a slot: reset the group's refusals and end its back-off with the next refill."""
        self._taken_at[key] = now
        if self._refused.pop(key, None) is not None:
            self._full.discard(key)
        cool_off = self._cooling.get(key)
        if cool_off is not None:
            cool_off.until_s = Seconds(float("-inf"))

    def recall(self, batch_ids: Collection[BatchId]) -> None:
        """End the back-offs of these batches with the next refill."""
        for key, cool_off in self._cooling.items():
            if key[0] in batch_ids:
                cool_off.until_s = Seconds(float("-inf"))

    def full_rows(self) -> list[GroupKey]:
        """Return the groups to remove now, in order of key."""
        return sorted(key for key in self._full if key not in self._cooling)

    def rotate_out(self, key: GroupKey, slots: Collection[Ready], *, now_s: Seconds) -> None:
        """Start the group's back-off at `now_s` (monotonic). Its `slots` have left the array."""
        refused = self._refused[key]
        refused.before, refused.row = refused.row, {}
        self._full.discard(key)
        cool_off = _CoolOff(Seconds(now_s + self._settings().cool_off_s), by_shard(slots))
        self._cooling[key] = cool_off
        for slot in slots:
            _lower(cool_off.smallest, slot)

    def is_out(self, ready: Ready) -> bool:
        """Return whether the instance's group is in back-off."""
        return bool(self._cooling) and group_key(ready) in self._cooling

    def pass_over(self, ready: Ready) -> None:
        """Record an instance that was read during its group's back-off and must be read again later."""
        _lower(self._cooling[group_key(ready)].smallest, ready)

    def out_of_batch(self, batch_id: BatchId) -> int:
        """Return the number of slots that the batch's groups had when their back-offs began."""
        return sum(sum(one.slots.values()) for key, one in self._cooling.items() if key[0] == batch_id)

    def batches_out(self) -> frozenset[BatchId]:
        """Return the batches with at least one group in back-off."""
        return frozenset(key[0] for key in self._cooling)

    def returning(self, *, now_s: Seconds) -> list[tuple[BatchId, Mapping[int, InstanceId]]]:
        """End the back-offs that are over at `now_s` (monotonic). Return the smallest instance per group and shard."""
        over = sorted(key for key, cool_off in self._cooling.items() if cool_off.until_s <= now_s)
        return [(key[0], self._cooling.pop(key).smallest) for key in over]

    def keep_batches(self, batch_ids: Collection[BatchId]) -> None:
        """Forget everything about batches not in `batch_ids`, which have no more work."""
        for key in [key for key in {*self._refused, *self._cooling, *self._taken_at} if key[0] not in batch_ids]:
            self._full.discard(key)
            for known in (self._refused, self._cooling, self._taken_at):
                known.pop(key, None)

    def taken(self) -> Mapping[GroupKey, Instant]:
        """Return, for each group, when a host last took one of its slots."""
        return self._taken_at

    def report(self, slots_of: Callable[[GroupKey], Mapping[int, int]], *, now: Instant) -> tuple[Unrunnable, ...]:
        """Return the work that hosts refuse, oldest first. `slots_of` returns a group's slots in the array by shard.

        A group is unschedulable if it had a back-off since a host last took one of its slots, or if hosts have refused
        it for the length of a back-off, because a small project never has `refusals_to_rotate` hosts. Other groups are
        only candidates.
        """
        settings = self._settings()
        rows = []
        for key, refused in self._refused.items():
            cool_off = self._cooling.get(key)
            slots = slots_of(key) or (cool_off.slots if cool_off is not None else {})
            if slots:
                more = 0 if refused.before else max(0, settings.refusals_to_rotate - len(refused.row))
                more_s = Seconds(max(0.0, later(refused.since_at, settings.cool_off_s) - now))
                out = cool_off is not None
                rows.append(Unrunnable(*key, slots, refused.latest(), refused.since_at, out, more, more_s))
        return tuple(sorted(rows, key=lambda row: (row.since_at, row.batch_id, row.job_class_id, row.urgent)))


def by_shard(slots: Iterable[Ready]) -> Mapping[int, int]:
    """Count the slots per shard."""
    return Counter(shard_of(slot.job_id) for slot in slots)


def _lower(smallest: dict[int, InstanceId], ready: Ready) -> None:
    shard = shard_of(ready.job_id)
    smallest[shard] = min(smallest.get(shard, ready.instance_id), ready.instance_id)
