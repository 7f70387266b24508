"""Which batches do limits hold, and how much may be sent of the others until the next ordering? Pure.

Batches are gone through in their order, and what one may take is counted before the next is looked at. The bound
is given to the feeder as what a batch's counter of sent instances may come to: a limit holds between two orderings.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from domain.limits import SIZE_LIMITS, Limit, Quantity, RequestedAmounts, Scope
from domain.ordering import ServiceLevel
from domain.units import BatchId
from jobs.ordering.sizing import JobSize
from priority.limits import holds, limits_of

Totals = dict[tuple[Scope, str, Quantity], float]


@dataclass(frozen=True, slots=True)
class Claim:
    """A batch that may want to be sent: whose it is, what one of its jobs takes, and how many are unsent.

    `others` are further sentences on what holds it; `in_progress` counts its instances under way.
    """

    batch_id: BatchId
    names: Mapping[Scope, str]
    size: JobSize
    level: ServiceLevel
    unsent: int
    in_progress: int
    others: tuple[str, ...] = ()

    def asked(self) -> RequestedAmounts:
        """What one more of its jobs would take."""
        return RequestedAmounts(self.names, amounts_of(self.size), standby=self.level is ServiceLevel.STANDBY)


@dataclass(frozen=True, slots=True)
class Room:
    """Why a batch is held (None: it is not), and how many of its jobs may be sent (None: any number)."""

    hold: str | None
    jobs: int | None


UNBOUNDED = Room(None, None)


def amounts_of(size: JobSize) -> dict[Quantity, float]:
    """What one job counts for."""
    return {
        Quantity.JOBS: 1.0,
        Quantity.PE: size.pe,
        Quantity.PE_SECONDS: size.pe * size.runtime_s,
        Quantity.JOB_PE: size.pe,
        Quantity.JOB_RUNTIME_S: size.runtime_s,
    }


def in_progress(claims: Iterable[Claim]) -> Totals:
    """What is under way, by scope, name and quantity; size limits look at one job alone."""
    totals: Totals = {}
    for claim in claims:
        if claim.in_progress > 0:
            _add(totals, claim, claim.in_progress)
    return totals


def soft_sentences(claim: Claim, limits: Sequence[Limit], totals: Totals) -> tuple[str, ...]:
    """The soft limits the batch is over with what is under way now."""
    return tuple(hold.sentence() for hold in holds(claim.asked(), limits, totals).soft)


def rooms(claims: Iterable[Claim], limits: Sequence[Limit], totals: Totals) -> dict[BatchId, Room]:
    """The room of each batch; `claims` are in the order of their places, `totals` what is under way."""
    totals = dict(totals)
    found = dict[BatchId, Room]()
    for claim in claims:
        if not limits:
            found[claim.batch_id] = Room("; ".join(claim.others), None) if claim.others else UNBOUNDED
            continue
        asked = claim.asked()
        held = holds(asked, limits, totals)
        reason = "; ".join((*claim.others, *([] if (said := held.reason()) is None else [said]))) or None
        most = _most(asked, limits, totals) if reason is None else 0
        found[claim.batch_id] = Room(reason, most if limits and most is not None else None)
        if reason is None:
            _add(totals, claim, claim.unsent if most is None else min(claim.unsent, most))
    return found


def _most(asked: RequestedAmounts, limits: Sequence[Limit], totals: Totals) -> int | None:
    """How many more jobs fit under every hard limit; None: any number."""
    fits = [
        (limit.hard - totals.get((limit.scope, name, limit.quantity), 0.0)) / amount
        for limit, name in limits_of(asked, limits)
        if limit.hard is not None
        and limit.quantity not in SIZE_LIMITS
        and (amount := asked.amounts.get(limit.quantity, 0.0)) > 0.0
    ]
    return max(0, math.floor(min(fits) + 1e-9)) if fits else None


def _add(totals: Totals, claim: Claim, jobs: int) -> None:
    for quantity, amount in amounts_of(claim.size).items():
        if quantity not in SIZE_LIMITS:
            for scope, name in claim.names.items():
                key = (scope, name, quantity)
                totals[key] = totals.get(key, 0.0) + jobs * amount


def idle_holds(claims: Iterable[Claim], *, slots: int, fraction: float, least: int) -> frozenset[BatchId]:
    """Batches none of whose jobs are among those their submitter may have in the job array: they earn no queue time.

    Each submitter's batches in their order fill max(least, fraction of the slots); one job inside is enough.
    """
    most = max(least, int(slots * fraction))
    inside: dict[str, int] = {}
    outside = set[BatchId]()
    for claim in claims:
        name = claim.names[Scope.SUBMITTER]
        if inside.get(name, 0) >= most:
            outside.add(claim.batch_id)
        else:
            inside[name] = inside.get(name, 0) + claim.unsent
    return frozenset(outside)
