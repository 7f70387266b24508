"""In which order do all batches stand, and what changes when one submitter is charged? Pure but for its memory.

What a submitter's batches share (fair-share, work held) is computed once per submitter, account and service level;
what is a batch's own is kept until the next full ordering, so that a charge costs little more than a sum and a sort.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import compress, pairwise, zip_longest
from operator import ne, or_
from typing import NamedTuple

from domain.ordered_work import LeafId
from domain.ordering import BatchFacts, Breakdown, total_of
from domain.units import BatchId, Instant
from priority.policies import Policy, tier_of
from priority.scheme import PolicyContext, evaluator, explain

LEAST_STEP = 1e-300  # between keys that must differ
MANY_TIES = 0.1  # of all batches: from there on it is cheaper to sort anew than to look at each tie


class Place(NamedTuple):
    """A batch's place: (tier, key, batch_id), smaller first. The total is its priority."""

    batch_id: BatchId
    tier: int
    key: float
    total: float


class BatchOrder:
    """All batches in order under one policy. Ties: higher fair-share rank, earlier effective submission, id."""

    def __init__(self, policy: Policy, batches: Sequence[BatchFacts], moment: PolicyContext) -> None:
        self._policy = policy
        schemes = {id(scheme): scheme for scheme in policy.schemes.values()}
        self._own = {key: evaluator(scheme.own, scheme) for key, scheme in schemes.items()}
        self._shared = {key: evaluator(scheme.shared, scheme) for key, scheme in schemes.items()}
        self._batches = list(batches)
        self._ids = [facts.batch_id for facts in self._batches]
        self._by_id = {batch_id: row for row, batch_id in enumerate(self._ids)}
        self._moment = moment
        self._rows: dict[LeafId, list[int]] = {}
        self._groups: dict[tuple[LeafId, int], int] = {}  # what shares its shared terms
        self._firsts: list[BatchFacts] = []
        self._group_of = [self._placed_in_group(row, facts) for row, facts in enumerate(self._batches)]
        self._tiers = [0] * len(self._ids)
        self._sums, self._effective = [0.0] * len(self._ids), [0.0] * len(self._ids)
        for row in range(len(self._ids)):
            self._take_own(row)
        self._by_submission = self._submitted_first()
        self._standing = self._by_submission  # rows as they were ordered last
        self._totals, self._keys = list[float](), list[float]()
        self._sort()

    @property
    def places(self) -> list[Place]:
        """All batches, the first to go first."""
        return self._at(self._standing)

    def recharged(self, moment: PolicyContext, changed: Iterable[LeafId]) -> list[Place]:
        """Order again after charges to the leaves in `changed`; the places whose key is another, in order.

        `moment` is the same instant with new standings. What is a batch's own (wait, size, queue) is looked at again
        for the batches of the changed leaves alone.
        """
        self._moment = moment
        old_tiers, old_keys = self._tiers.copy(), self._keys
        for leaf in changed:
            for row in self._rows.get(leaf, ()):
                self._take_own(row)
        self._sort()
        moved = list(map(ne, self._keys, old_keys))
        if self._tiers != old_tiers:
            moved = list(map(or_, moved, map(ne, self._tiers, old_tiers)))
        return self._at(list(compress(self._standing, map(moved.__getitem__, self._standing))))

    def breakdown(self, batch_id: BatchId, *, all_terms: bool = False) -> Breakdown:
        """Why the batch stands where it stands, with the weights and figures of this order."""
        row = self._by_id[batch_id]
        facts = self._batches[row]
        scheme = self._policy.scheme_of(facts)
        return explain(scheme, facts, self._moment, tier=self._tiers[row], all_terms=all_terms)

    def _placed_in_group(self, row: int, facts: BatchFacts) -> int:
        leaf = facts.leaf
        self._rows.setdefault(leaf, []).append(row)
        group = self._groups.setdefault((leaf, id(self._policy.scheme_of(facts))), len(self._firsts))
        if group == len(self._firsts):
            self._firsts.append(facts)
        return group

    def _take_own(self, row: int) -> None:
        """Put down what is a batch's own: its tier, the sum of its own terms, and its effective submission."""
        facts = self._batches[row]
        scheme = self._policy.scheme_of(facts)
        self._tiers[row] = tier_of(scheme, facts, self._moment)
        self._sums[row] = total_of(self._own[id(scheme)](facts, self._moment))
        self._effective[row] = _effective_at(facts, self._moment.now)

    def _sort(self) -> None:
        """Totals, order and keys. Column by column: ten thousand batches are ordered after every charge."""
        totals = self._sums
        for parts in self._shared_parts():  # term by term: the sum has the order of the breakdown
            totals = [total + part for total, part in zip(totals, map(parts.__getitem__, self._group_of), strict=True)]
        self._totals = totals
        keys = [0.0 - total for total in totals]
        # Stable sorts by one number each, of rows nearly sorted already when one submitter was charged.
        standing = sorted(self._standing, key=keys.__getitem__)
        standing.sort(key=self._tiers.__getitem__)
        in_order = list(map(keys.__getitem__, standing))
        tied = [place for place, (one, other) in enumerate(pairwise(in_order)) if one == other]
        if len(tied) > MANY_TIES * len(standing):
            self._standing = self._anew(keys)
        else:
            self._standing = self._untied(standing, keys, tied) if tied else standing
        self._keys = self._stepped(keys) if tied else keys

    def _submitted_first(self) -> list[int]:
        """Rows by effective submission and id."""
        rows = sorted(range(len(self._ids)), key=self._ids.__getitem__)
        rows.sort(key=self._effective.__getitem__)
        return rows

    def _anew(self, keys: Sequence[float]) -> list[int]:
        """All rows by tier, key, rank, effective submission and id: stable sorts, the last one first."""
        ranks = self._ranks()
        rank_of = [ranks[group] for group in self._group_of]
        standing = sorted(self._by_submission, key=rank_of.__getitem__)
        standing.sort(key=keys.__getitem__)
        standing.sort(key=self._tiers.__getitem__)
        return standing

    def _ranks(self) -> list[float]:
        """What ties go by, by group: the smaller goes first."""
        return [0.0 - (self._moment.standing_of(facts).fairshare_rank or 0.0) for facts in self._firsts]

    def _untied(self, standing: list[int], keys: Sequence[float], tied: Sequence[int]) -> list[int]:
        """The same order with ties broken: by rank, effective submission and id, within tier and key."""
        ranks = self._ranks()

        def place_of(row: int) -> tuple[int, float, float, float, BatchId]:
            rank = ranks[self._group_of[row]]
            return self._tiers[row], keys[row], rank, self._effective[row], self._ids[row]

        places = sorted({place for one in tied for place in (one, one + 1)})
        for place, row in zip(places, sorted((standing[place] for place in places), key=place_of), strict=True):
            standing[place] = row
        return standing

    def _stepped(self, keys: Sequence[float]) -> list[float]:
        """Keys by row, so that (tier, key, id) sorts as they stand: a tie the id would decide otherwise gets a step."""
        stepped = list(keys)
        last_tier, last_key, last_id = 0, -math.inf, BatchId(0)
        columns = (column.__getitem__ for column in (self._tiers, keys, self._ids))
        for row, tier, key, batch_id in zip(self._standing, *(map(of, self._standing) for of in columns), strict=True):
            if key <= last_key and tier == last_tier:
                if batch_id < last_id:
                    last_key = max(math.nextafter(last_key, math.inf), last_key + LEAST_STEP)
                if key != last_key:
                    stepped[row] = last_key
            else:
                last_key = key
            last_tier, last_id = tier, batch_id
        return stepped

    def _shared_parts(self) -> Iterable[tuple[float, ...]]:
        """Of every shared term, the points of each group."""
        evaluators = [self._shared[id(self._policy.scheme_of(facts))] for facts in self._firsts]
        by_group = [shared(facts, self._moment) for shared, facts in zip(evaluators, self._firsts, strict=True)]
        return zip_longest(*by_group, fillvalue=0.0)

    def _at(self, rows: Sequence[int]) -> list[Place]:
        columns = (self._ids, self._tiers, self._keys, self._totals)
        return list(map(Place, *(map(column.__getitem__, rows) for column in columns)))


def _effective_at(facts: BatchFacts, now: Instant) -> float:
    """When it would have been submitted if it had been waiting ever since: now less its effective queue time."""
    clock = facts.clock
    return (now if clock.since is None else clock.since) - clock.accrued_s
