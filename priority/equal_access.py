"""The equal-access policy: submitters take turns. Pure.

NCI's queue shuffling: a job's score is the amount of its submitter's (or account's) work ahead of it, in processor
equivalents; the smallest score goes first, regardless of shares and past usage. Queues are strict tiers.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from domain.batches import Batch
from domain.ordering import BatchFacts
from domain.units import BatchId, Instant
from priority.scheme import PolicyContext, Scheme, Term, scheme

EQUAL_ACCESS = "equal_access"  # name of the policy


def owner_of(batch: Batch, equal_among: str) -> int:
    """Return the owner whose turn a batch uses: its account or its submitter (setting `ordering.equal_among`)."""
    return batch.account_id if equal_among == "accounts" else batch.submitter_id


def equal_access(*, by_account: bool = False, bypass_gain_pe: float = 1.0) -> Scheme:
    """Return the scheme: less work in progress goes first, and each time a batch is bypassed improves its place.

    >>> equal_access().own[0].name, equal_access().shared[0].name
    ('bypassed', 'held')
    """

    def held(facts: BatchFacts, moment: PolicyContext) -> float:
        if by_account:
            return moment.held_by_account.get(facts.account_id, 0.0)
        return moment.standing_of(facts).held_pe

    return scheme(
        "equal_access",
        (
            Term("bypassed", "bypassed", "times", bypass_gain_pe, lambda facts, _: facts.bypassed),
            Term("held", "held", "PE", -1.0, held, shared=True),
        ),
        with_tiers=True,
    )


@dataclass(frozen=True, slots=True)
class Claim:
    """A batch that requests slots for `jobs` jobs of `pe` each, on behalf of its owner."""

    batch_id: BatchId
    owner: int  # a submitter or an account
    tier: int
    pe: float
    jobs: int
    submitted_at: Instant
    bypassed: int = 0


def shuffled(
    claims: Iterable[Claim], *, held_pe: Mapping[int, float], slots: int, bypass_gain_pe: float = 1.0
) -> list[BatchId]:
    """Return the batch of each of the next `slots` jobs. Jobs are charged provisionally; equal owners alternate.

    Score of a job = PE of its owner in progress + PE placed before it in this pass - gain * times passed over. Within a
    tier, the smallest score goes first, then the earlier submission, then the smaller id. An owner's batches within a
    tier follow this order too, one after the other.

    >>> both = [Claim(BatchId(1), 1, 0, 1.0, 9, Instant(0.0)), Claim(BatchId(2), 2, 0, 1.0, 9, Instant(5.0))]
    >>> shuffled(both, held_pe={1: 2.0}, slots=5)
    [2, 2, 1, 2, 1]
    """
    queues: dict[tuple[int, int], list[Claim]] = {}
    for claim in sorted(claims, key=lambda one: (-one.bypassed, one.submitted_at, one.batch_id), reverse=True):
        if claim.jobs > 0:
            queues.setdefault((claim.tier, claim.owner), []).append(claim)  # popped from the end
    placed = {owner: held_pe.get(owner, 0.0) for _, owner in queues}

    def entry(tier: int, owner: int, used: int) -> tuple[int, float, Instant, BatchId, int, int]:
        claim = queues[tier, owner][-1]
        score = placed[owner] - bypass_gain_pe * claim.bypassed
        return tier, score, claim.submitted_at, claim.batch_id, owner, used

    heap = [entry(tier, owner, 0) for tier, owner in queues]
    heapq.heapify(heap)
    order = list[BatchId]()
    while heap and len(order) < slots:
        tier, _, _, batch_id, owner, used = heapq.heappop(heap)
        queue = queues[tier, owner]
        order.append(batch_id)
        placed[owner] += queue[-1].pe
        used += 1
        if used == queue[-1].jobs:
            queue.pop()
            used = 0
        if queue:
            heapq.heappush(heap, entry(tier, owner, used))
    return order
