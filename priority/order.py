"""Orders all batches by one policy. Pure.

Values common to a submitter's batches (fair-share, work in progress) are computed once per submitter, account and
level.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import NamedTuple

from domain.ordered_work import LeafId
from domain.ordering import BatchFacts, Breakdown, key_of, total_of
from domain.units import BatchId, Instant
from priority.policies import Policy
from priority.scheme import PolicyContext, evaluator

LEAST_STEP = 1e-300  # minimum difference between keys that must be different


class Place(NamedTuple):
    """A batch's place: (tier, key, batch_id), smaller first. `total` is its priority."""

    batch_id: BatchId
    tier: int
    key: float
    total: float


class BatchOrder:
    """All batches ordered by one policy. Ties: higher fair-share rank, earlier effective submission, then id."""

    def __init__(self, policy: Policy, batches: Sequence[BatchFacts], moment: PolicyContext) -> None:
        self._policy = policy
        self._moment = moment
        self._batches = {facts.batch_id: facts for facts in batches}
        self.places = self._ordered(batches)  # in the order in which they are sent

    def breakdown(self, batch_id: BatchId) -> Breakdown:
        """Return the explanation of a batch's place, with the weights and figures that were used for this order."""
        return self._policy.breakdown(self._batches[batch_id], self._moment)

    def _ordered(self, batches: Sequence[BatchFacts]) -> list[Place]:
        moment = self._moment
        totals = self._totals(batches)
        tiers = [self._policy.tier(facts, moment) for facts in batches]
        ranks = [0.0 - (moment.standing_of(facts).fairshare_rank or 0.0) for facts in batches]
        effective = [_effective_at(facts, moment.now) for facts in batches]
        ids = [facts.batch_id for facts in batches]
        keys = [key_of(total) for total in totals]
        rows = list(range(len(batches)))
        for column in (ids, effective, ranks, keys, tiers):  # stable sorts, the most significant key last
            rows.sort(key=column.__getitem__)
        return _stepped(list(map(Place, *([column[row] for row in rows] for column in (ids, tiers, keys, totals)))))

    def _totals(self, batches: Sequence[BatchFacts]) -> list[float]:
        """Return each batch's priority: the sum of its own terms, plus the terms shared by its group."""
        schemes = {id(scheme): scheme for scheme in self._policy.schemes.values()}
        own = {key: evaluator(scheme.own, scheme) for key, scheme in schemes.items()}
        shared = {key: evaluator(scheme.shared, scheme) for key, scheme in schemes.items()}
        keys = [id(self._policy.scheme_of(facts)) for facts in batches]
        totals = [total_of(own[key](facts, self._moment)) for key, facts in zip(keys, batches, strict=True)]
        groups: dict[tuple[LeafId, int], int] = {}
        points = list[Iterable[float]]()  # per group
        group_of = list[int]()
        for key, facts in zip(keys, batches, strict=True):
            group = groups.setdefault((facts.leaf, key), len(points))
            if group == len(points):
                points.append(shared[key](facts, self._moment))
            group_of.append(group)
        for parts in zip_longest(*points, fillvalue=0.0):  # summed in the order of the breakdown
            totals = [total + parts[group] for total, group in zip(totals, group_of, strict=True)]
        return totals


def _stepped(places: list[Place]) -> list[Place]:
    """Return the places with keys adjusted so that sorting by (tier, key, id) gives the same order: a tie that the id
    would break differently gets a step.
    """
    last_tier, last_key, last_id = 0, -math.inf, BatchId(0)
    for number, (batch_id, tier, key, total) in enumerate(places):
        if key <= last_key and tier == last_tier:
            if batch_id < last_id:
                last_key = max(math.nextafter(last_key, math.inf), last_key + LEAST_STEP)
            if key != last_key:
                places[number] = Place(batch_id, tier, last_key, total)
        else:
            last_key = key
        last_tier, last_id = tier, batch_id
    return places


def _effective_at(facts: BatchFacts, now: Instant) -> float:
    """Return the submission time of a batch that waited without a break: now minus its effective queue time."""
    clock = facts.clock
    return (now if clock.since is None else clock.since) - clock.accrued_s
