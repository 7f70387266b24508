"""Lets the owners of equal batches take turns between ordering passes.

An ordering pass gives each batch a number, and requests take the smallest first. Owners with equal numbers would be
served one after the other until the next pass. Therefore each refill computes how far each owner is ahead of the
others, from what has been sent since. The owner furthest behind goes first. An owner that returns starts level with the
owner furthest behind (start-time fair queueing with equal weights).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from domain.batches import Batch
from domain.ordering_settings import OrderingSettings
from domain.units import BatchId, Instant
from priority.equal_access import EQUAL_ACCESS, owner_of

MOST_AHEAD_JOBS: Final = 8  # limits what an owner gets after a time in which no host could run its jobs
EQUAL_FRACTION: Final = 0.01  # logical ends are equal if they differ by less than this part of the time until then
EQUAL_S: Final = 1.0  # or by less than this
ROUNDED: Final = 1e-9  # points are equal if they differ by less than this part, as sums of rounded terms do


class GroupPlace(NamedTuple):
    """A batch's place among the groups: tier and number, smaller first. Batches with equal places take turns.

    `start` is the position of its owner's next job, in PE. Each job advances it by `pe`, which is 0 without equal
    batches.
    """

    tier: int
    number: float
    start: float
    owner: int
    pe: float


Places = Mapping[BatchId, GroupPlace]


class TurnTaking:
    """Computes places from batches' counters in successive refills by one worker. All owners start equal."""

    def __init__(self) -> None:
        self._sent: dict[BatchId, int] = {}
        self._ahead: dict[int, float] = {}  # processor equivalents sent for owners that take turns
        self._keys: dict[int, float] = {}  # under equal access: the owners' work in progress at the last ordering pass

    def places(self, batches: Sequence[Batch], settings: OrderingSettings, now: Instant) -> dict[BatchId, GroupPlace]:
        """Return the places of the ready batches, given in order."""
        among, equal_access = settings.equal_among, settings.policy == EQUAL_ACCESS
        ahead = {owner_of(batch, among): 0.0 for batch in batches}
        for batch in batches:
            owner, sent = owner_of(batch, among), batch.counts.sent
            ahead[owner] += max(0, sent - self._sent.get(batch.batch_id, sent)) * batch.job_pe
        by_key = sorted(batches, key=lambda batch: -batch.order_key) if equal_access else ()
        keys = {owner_of(batch, among): batch.order_key for batch in by_key}  # the smallest key of each owner
        for owner, since in ahead.items():
            same = keys.get(owner) == self._keys.get(owner)  # otherwise the ordering pass has counted them
            ahead[owner] = since + self._ahead.get(owner, 0.0) if same else 0.0
        self._sent = {batch.batch_id: batch.counts.sent for batch in batches}
        self._keys, self._ahead = keys, {}
        found, ends_from = {}, now if settings.policy == "logical_time" else None
        are_points = settings.policy not in ("logical_time", "fifo")
        tiers = (list(tier) for _, tier in groupby(batches, key=lambda batch: batch.order_tier))
        for equal in tiers if equal_access else _equals(batches, ends_from, are_points=are_points):
            pe = {owner_of(batch, among): batch.job_pe for batch in equal}
            if len(pe) > 1:
                least = min(ahead[owner] for owner in pe)
                behind = min(keys.get(owner, 0.0) + ahead[owner] for owner in pe)
                for owner, job_pe in pe.items():
                    most = behind + MOST_AHEAD_JOBS * job_pe - keys.get(owner, 0.0)
                    self._ahead[owner] = max(0.0, min(ahead[owner], most) - least)
            for batch in equal:
                owner = owner_of(batch, among)
                start, step = self._ahead.get(owner, 0.0), batch.job_pe if len(pe) > 1 else 0.0
                number = equal[0].order_key if len(pe) > 1 else batch.order_key
                if equal_access:
                    number, start = 0.0, batch.order_key + start
                found[batch.batch_id] = GroupPlace(batch.order_tier, number, start, owner, step)
        return found


def place_of(batch: Batch) -> GroupPlace:
    """Return the place of a batch that does not take turns.

    >>> batch = Batch(1, 7, 1, 1, "b", "afap", "active", Instant(0.0), 0, 3.5, Instant(0.0))
    >>> place_of(batch)
    GroupPlace(tier=0, number=3.5, start=0.0, owner=7, pe=0.0)
    """
    return GroupPlace(batch.order_tier, batch.order_key, 0.0, batch.submitter_id, 0.0)


def _equals(batches: Sequence[Batch], ends_from: Instant | None, *, are_points: bool = False) -> Iterator[list[Batch]]:
    """Yield runs of batches with equal numbers: logical ends after `ends_from` and points have a tolerance.

    >>> from dataclasses import replace
    >>> batch = Batch(1, 7, 1, 1, "b", "afap", "active", Instant(0.0), 0, 500.0, Instant(0.0))
    >>> ends = [replace(batch, order_key=end) for end in (500.0, 504.0, 506.0)]
    >>> [len(equal) for equal in _equals(ends, Instant(0.0))], [len(equal) for equal in _equals(ends, None)]
    ([2, 1], [1, 1, 1])
    >>> sums = [replace(batch, order_key=points) for points in (-0.3, 0.0, 0.1 + 0.2 - 0.3)]
    >>> [len(equal) for equal in _equals(sums, None, are_points=True)]
    [1, 2]
    """
    run: list[Batch] = []
    for batch in batches:
        if run:
            first = run[0]
            slack = ROUNDED * max(1.0, abs(first.order_key)) if are_points else 0.0
            if ends_from is not None:
                slack = max(EQUAL_S, EQUAL_FRACTION * (first.order_key - ends_from))
            if batch.order_tier != first.order_tier or batch.order_key - first.order_key > slack:
                yield run
                run = []
        run.append(batch)
    if run:
        yield run
