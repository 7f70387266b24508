"""Groups slots that are equal for all decisions, and keeps groups and slots sorted.

A group's slots are stored in chunks, so that requests can read them without copying.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import overload

from domain.batches import Batch
from domain.jobs import JobClass, Ready
from domain.units import SHARDS, BatchId, JobClassId
from feeder.turn_taking import GroupPlace, Places, place_of

SlotRank = tuple[int, bool, int, int]
PIECE = 128  # slots per chunk; a chunk of twice this size is split


class Lent(Sequence[Ready]):
    """A snapshot of slots. Access is fast near the start, which is where requests read."""

    __slots__ = ("_count", "_pieces")

    def __init__(self, pieces: tuple[list[Ready], ...], count: int) -> None:
        self._pieces = pieces
        self._count = count

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Ready: ...

    @overload
    def __getitem__(self, index: slice) -> list[Ready]: ...

    def __getitem__(self, index: int | slice) -> Ready | list[Ready]:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(self._count))]
        place = index if index >= 0 else index + self._count
        if place >= 0:
            for piece in self._pieces:
                if place < len(piece):
                    return piece[place]
                place -= len(piece)
        raise IndexError(f"expected a place below {self._count}, got {index}")

    def __iter__(self) -> Iterator[Ready]:
        return chain.from_iterable(self._pieces)

    def __reversed__(self) -> Iterator[Ready]:
        for piece in reversed(self._pieces):
            yield from reversed(piece)


class SortedSlots:
    """Slots sorted by rank. Snapshots from `lent` never change: a chunk in a snapshot is copied before a change.

    A change costs O(log slots + PIECE + slots / PIECE), the last two terms in C; taking the first slot costs less.
    """

    __slots__ = ("_copied", "_count", "_lasts", "_lent", "_pieces", "_ranks")

    def __init__(self, ranked: Iterable[tuple[SlotRank, Ready]] = ()) -> None:
        in_order = sorted(ranked)
        self._pieces: list[list[Ready]] = []
        self._ranks: list[list[SlotRank]] = []
        self._lasts: list[SlotRank] = []  # the highest rank in each chunk
        self._copied: list[bool] = []  # whether the chunk is newer than the last snapshot
        self._count = len(in_order)
        self._lent: Sequence[Ready] | None = None
        for start in range(0, len(in_order), PIECE):
            some = in_order[start : start + PIECE]
            self._insert_piece(len(self._pieces), [rank for rank, _ in some], [slot for _, slot in some])

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Ready]:
        return chain.from_iterable(self._pieces)

    @property
    def first_rank(self) -> SlotRank:
        return self._ranks[0][0]

    def lent(self) -> Sequence[Ready]:
        """Return a snapshot of the slots."""
        if self._lent is None:
            self._lent = self._pieces[0] if len(self._pieces) == 1 else Lent(tuple(self._pieces), self._count)
            self._copied = [False] * len(self._pieces)
        return self._lent

    def add(self, rank: SlotRank, slot: Ready) -> None:
        """Add a slot. Its rank must be unique."""
        self._count += 1
        if not self._pieces:
            self._lent = None
            self._insert_piece(0, [rank], [slot])
            return
        at = min(bisect_left(self._lasts, rank), len(self._lasts) - 1)
        piece, ranks = self._changing(at), self._ranks[at]
        place = bisect_right(ranks, rank)
        ranks.insert(place, rank)
        piece.insert(place, slot)
        self._lasts[at] = ranks[-1]
        if len(ranks) == 2 * PIECE:
            self._halve(at)

    def remove(self, rank: SlotRank) -> Ready:
        """Remove and return the slot with that rank, which must exist."""
        at = 0 if rank <= self._lasts[0] else bisect_left(self._lasts, rank)
        piece, ranks = self._changing(at), self._ranks[at]
        place = 0 if ranks[0] == rank else bisect_left(ranks, rank)
        assert ranks[place] == rank
        self._count -= 1
        del ranks[place]
        slot = piece.pop(place)
        if ranks:
            self._lasts[at] = ranks[-1]
        else:
            del self._pieces[at], self._ranks[at], self._lasts[at], self._copied[at]
        return slot

    def _changing(self, at: int) -> list[Ready]:
        """Return the chunk for modification, copied first if a snapshot uses it."""
        self._lent = None
        if not self._copied[at]:
            self._pieces[at] = self._pieces[at].copy()
            self._copied[at] = True
        return self._pieces[at]

    def _halve(self, at: int) -> None:
        ranks, piece = self._ranks[at], self._pieces[at]
        self._ranks[at], self._pieces[at], self._lasts[at] = ranks[:PIECE], piece[:PIECE], ranks[PIECE - 1]
        self._insert_piece(at + 1, ranks[PIECE:], piece[PIECE:])

    def _insert_piece(self, at: int, ranks: list[SlotRank], piece: list[Ready]) -> None:
        self._ranks.insert(at, ranks)
        self._pieces.insert(at, piece)
        self._lasts.insert(at, ranks[-1])
        self._copied.insert(at, True)


GroupKey = tuple[BatchId, JobClassId, bool]  # batch, class, urgent
GroupRank = tuple[int, float, float, SlotRank]
Turns = tuple[int, ...]  # per shard, its position among slots of equal rank

ONE_TURN: Turns = (0,) * SHARDS  # all shards equal


def group_key(ready: Ready) -> GroupKey:
    """Return the key of the group an instance belongs to."""
    return ready.batch_id, ready.job_class_id, ready.urgent


def turns_of(owned: Collection[int]) -> Turns:
    """Return each shard's turn in this worker: 0 if owned, otherwise ascending from the first owned shard.

    All workers have all gated jobs and tails; with different turns, workers rarely pick the same slot.

    >>> turns_of(range(2, 62))[:4], turns_of(range(2, 62))[62:]
    ((62, 63, 0, 0), (60, 61))
    """
    first = min(owned, default=0)
    return tuple(0 if shard in owned or not owned else (shard - first) % SHARDS for shard in range(SHARDS))


def slot_rank(ready: Ready, turns: Turns = ONE_TURN) -> SlotRank:
    """Return a slot's rank in its group, smaller first: most retries, sibling returned, turn, id.

    Slots of shards with a later turn are sorted by descending id, because the worker that owns them starts with the
    lowest.

    >>> from domain.units import InstanceId, JobId
    >>> slot_rank(Ready(InstanceId(9), JobId(4), BatchId(1), JobClassId(1), retries=2, sibling_returned=True))
    (-2, False, 0, 9)
    """
    turn = turns[ready.job_id % SHARDS]
    return -ready.retries, not ready.sibling_returned, turn, -ready.instance_id if turn else ready.instance_id


def reading_rank(ready: Ready, turns: Turns) -> SlotRank:
    """Return the rank in which instances become slots: like `slot_rank`, but with ascending ids throughout.

    A cursor moves through a shard's instances in ascending order.
    """
    return -ready.retries, not ready.sibling_returned, turns[ready.job_id % SHARDS], ready.instance_id


class Group:
    """The slots of one class of one batch. Retries are in a separate group.

    The result of `slots()` never changes, so a request can take slots while it iterates over them.
    """

    __slots__ = (
        "_slots",
        "_turns",
        "batch",
        "foreign",
        "job_class",
        "key",
        "place",
        "position",
        "sticky_files",
        "urgent",
    )

    def __init__(
        self,
        batch: Batch,
        job_class: JobClass,
        *,
        urgent: bool,
        turns: Turns = ONE_TURN,
        place: GroupPlace | None = None,
    ) -> None:
        self.batch = batch
        self.place = place or place_of(batch)
        self.position = self.place.start  # of its next job among equal batches; smaller first
        self.job_class = job_class
        self.urgent = urgent
        self.key: GroupKey = (batch.batch_id, job_class.job_class_id, urgent)
        self.sticky_files = frozenset(file.name for file in job_class.inputs if file.sticky)
        self._slots = SortedSlots()
        self._turns = turns
        self.foreign = 0  # number of slots of shards with a later turn

    def __len__(self) -> int:
        return len(self._slots)

    def __iter__(self) -> Iterator[Ready]:
        """Iterate over the slots in order. The group must not change during the iteration."""
        return iter(self._slots)

    @property
    def rank(self) -> GroupRank:
        """Return the group's unique rank, smaller first: tier, number, position, and its first slot's rank."""
        return self.place.tier, self.place.number, self.position, self._slots.first_rank

    @property
    def first_rank(self) -> SlotRank:
        """Return the rank of its first slot."""
        return self._slots.first_rank

    def slots(self) -> Sequence[Ready]:
        """Return a snapshot of the group's slots in order."""
        return self._slots.lent()

    def take_turns(self, turns: Turns) -> None:
        """Re-sort the slots by these turns."""
        self._turns = turns
        self._slots = SortedSlots((slot_rank(slot, turns), slot) for slot in self._slots)
        self.foreign = sum(map(self.is_foreign, self._slots))

    def add(self, ready: Ready) -> None:
        self._slots.add(slot_rank(ready, self._turns), ready)
        self.foreign += self.is_foreign(ready)

    def remove(self, ready: Ready) -> None:
        """Remove a slot that is in the group."""
        self._slots.remove(slot_rank(ready, self._turns))
        self.foreign -= self.is_foreign(ready)

    def is_foreign(self, ready: Ready) -> bool:
        """Return whether the slot belongs to another worker's shard, so that this worker offers it later."""
        return self._turns[ready.job_id % SHARDS] > 0


class Order:
    """The non-empty groups, sorted by rank. A change costs O(log groups), plus one list copy after each `lent`."""

    def __init__(self) -> None:
        self._rank_of: dict[GroupKey, GroupRank] = {}  # the ranks as listed in _ranks
        self._ranks: list[GroupRank] = []
        self._groups: list[Group] = []  # parallel to _ranks
        self._lent = False
        self.places: Places = {}  # of the batches in the last refill

    def __iter__(self) -> Iterator[GroupKey]:
        """Iterate over the keys of the groups, in no particular order."""
        return iter(self._rank_of)

    def groups(self) -> Sequence[Group]:
        """Return the groups in order, for callers that do not change groups while they use the result."""
        return self._groups

    def lent(self) -> Sequence[Group]:
        """Return an immutable snapshot of the groups in order; it is the same object until the order changes."""
        self._lent = True
        return self._groups

    def update(self, group: Group) -> None:
        """Move a group to the position of its first slot, or remove it if it is empty."""
        before = self._rank_of.get(group.key)
        after = group.rank if group else None
        if before == after:
            return
        place = bisect_left(self._ranks, before) if before is not None else None
        if place is not None and after is not None and self._fits(place, after):
            self._ranks[place] = self._rank_of[group.key] = after
            return
        if self._lent:
            self._groups, self._lent = self._groups.copy(), False
        if place is not None:
            del self._ranks[place], self._groups[place], self._rank_of[group.key]
        if after is not None:
            place = bisect_left(self._ranks, after)
            self._ranks.insert(place, after)
            self._groups.insert(place, group)
            self._rank_of[group.key] = after

    def deal(self, groups: Iterable[Group], taken: Mapping[BatchId, int]) -> None:
        """Set the groups' positions among equal batches: an owner's groups follow each other, each after the slots of
        the previous one; the first one comes after the slots taken since the places were computed.
        """
        starts: dict[int, float] = {}
        for batch_id, count in taken.items():
            if (known := self.places.get(batch_id)) is not None:
                starts[known.owner] = starts.get(known.owner, 0.0) + count * known.pe
        equals: list[Group] = []
        for group in groups:
            place = self.places.get(group.batch.batch_id) or place_of(group.batch)
            if place.pe:
                group.place = place
                equals.append(group)
            elif place != group.place or place.start != group.position:
                group.place, group.position = place, place.start
                self.update(group)
        ends: dict[tuple[int, float, int], float] = {}
        for group in sorted(equals, key=_in_own_order):
            place = group.place
            start, key = place.start + starts.get(place.owner, 0.0), (place.tier, place.number, place.owner)
            group.position = max(start, ends.get(key, start))
            ends[key] = group.position + len(group) * place.pe
            self.update(group)

    def _fits(self, place: int, rank: GroupRank) -> bool:
        """Return whether a group with this rank may stay at this position."""
        ranks = self._ranks
        return (place == 0 or ranks[place - 1] < rank) and (place + 1 == len(ranks) or rank < ranks[place + 1])


def _in_own_order(group: Group) -> tuple[int, float, SlotRank]:
    return group.batch.order_tier, group.batch.order_key, group.first_rank
