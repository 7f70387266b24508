"""Computes which batches limits block, and how many jobs of other batches may be sent before the next pass. Pure.

Batches are handled in order, and the jobs granted to one batch count for all later ones. The feeder uses the headroom
as an upper bound for the batch's counter of sent instances, so limits also hold between passes. A cap on recent usage
blocks batches above it while others wait.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from domain.batches import Account
from domain.limits import SIZE_LIMITS, Limit, Quantity, RequestedAmounts, Scope
from domain.ordered_work import LeafId
from domain.ordering import ServiceLevel
from domain.ordering_settings import OrderingSettings
from domain.units import BatchId, Instant
from jobs.ordering.sizing import JobFootprint
from priority.limits import holds, limits_of
from priority.standings import (
    CredentialNames,
    Submitting,
    Target,
    TargetMode,
    newest_first,
    over_cap,
    target_for,
    targets,
    window_of,
    window_weights,
)

Totals = dict[tuple[Scope, str, Quantity], float]


@dataclass(frozen=True, slots=True)
class QuotaClaim:
    """A batch that may have jobs to send: its owner, the amounts of one job, and the number of unsent jobs.

    `others` are further reasons why it is blocked; `in_progress` counts its instances in progress.
    """

    batch_id: BatchId
    names: Mapping[Scope, str]
    size: JobFootprint
    level: ServiceLevel
    unsent: int
    in_progress: int
    others: tuple[str, ...] = ()

    def asked(self) -> RequestedAmounts:
        """Return the amounts that one more job would use."""
        return RequestedAmounts(self.names, amounts_of(self.size), standby=self.level is ServiceLevel.STANDBY)


@dataclass(frozen=True, slots=True)
class Headroom:
    """Why a batch is blocked (None: not blocked), and how many of its jobs may be sent (None: no limit)."""

    hold: str | None
    jobs: int | None


UNBOUNDED = Headroom(None, None)


def amounts_of(size: JobFootprint) -> dict[Quantity, float]:
    """Return the amount of each limited quantity that one job uses."""
    return {
        Quantity.JOBS: 1.0,
        Quantity.PE: size.pe,
        Quantity.PE_SECONDS: size.pe * size.runtime_s,
        Quantity.JOB_PE: size.pe,
        Quantity.JOB_RUNTIME_S: size.runtime_s,
    }


def in_progress(claims: Iterable[QuotaClaim]) -> Totals:
    """Return the amounts in progress by scope, name and quantity, excluding those that limit only single jobs."""
    totals: Totals = {}
    for claim in claims:
        if claim.in_progress > 0:
            _add(totals, claim, claim.in_progress)
    return totals


def soft_sentences(claim: QuotaClaim, limits: Sequence[Limit], totals: Totals) -> tuple[str, ...]:
    """Return descriptions of the soft limits that the batch exceeds with its current work in progress."""
    return tuple(hold.sentence() for hold in holds(claim.asked(), limits, totals).soft)


def headrooms(claims: Iterable[QuotaClaim], limits: Sequence[Limit], totals: Totals) -> dict[BatchId, Headroom]:
    """Return each batch's headroom. `claims` are in batch order; `totals` are the amounts in progress."""
    totals = dict(totals)
    found = dict[BatchId, Headroom]()
    for claim in claims:
        if not limits:
            found[claim.batch_id] = Headroom("; ".join(claim.others), None) if claim.others else UNBOUNDED
            continue
        asked = claim.asked()
        held = holds(asked, limits, totals)
        reason = "; ".join((*claim.others, *([] if (said := held.reason()) is None else [said]))) or None
        most = _most(asked, limits, totals) if reason is None else 0
        found[claim.batch_id] = Headroom(reason, most if limits and most is not None else None)
        if reason is None:
            _add(totals, claim, claim.unsent if most is None else min(claim.unsent, most))
    return found


def _most(asked: RequestedAmounts, limits: Sequence[Limit], totals: Totals) -> int | None:
    """Return how many more jobs fit under all hard limits; None if no limit applies."""
    fits = [
        (limit.hard - totals.get((limit.scope, name, limit.quantity), 0.0)) / amount
        for limit, name in limits_of(asked, limits)
        if limit.hard is not None
        and limit.quantity not in SIZE_LIMITS
        and (amount := asked.amounts.get(limit.quantity, 0.0)) > 0.0
    ]
    return max(0, math.floor(min(fits) + 1e-9)) if fits else None


def _add(totals: Totals, claim: QuotaClaim, jobs: int) -> None:
    for quantity, amount in amounts_of(claim.size).items():
        if quantity not in SIZE_LIMITS:
            for scope, name in claim.names.items():
                key = (scope, name, quantity)
                totals[key] = totals.get(key, 0.0) + jobs * amount


def idle_holds(claims: Iterable[QuotaClaim], *, slots: int, fraction: float, least: int) -> frozenset[BatchId]:
    """Return the batches whose jobs are all outside their submitter's part of the job array, and so earn no queue time.

    Each submitter's batches, in order, fill max(least, fraction of the slots). One job inside is enough.
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


Windows = Mapping[int, float]


class Caps:
    """The targets that cap usage, and the usage to compare with them. Without such targets, nothing is computed."""

    def __init__(
        self,
        accounts: Iterable[Account],
        submitting: Sequence[Submitting],
        levels: Mapping[ServiceLevel, Windows],
        settings: OrderingSettings,
        now: Instant,
    ) -> None:
        every = targets(settings.targets)
        self._targets = {key: one for key, one in every.items() if one.mode in {TargetMode.CAP, TargetMode.HARD_CAP}}
        if not self._targets:
            return
        credentials = CredentialNames(accounts)
        newest, depth = window_of(now, settings.window_s), settings.window_samples
        weights = window_weights(settings.window_decay_factor, depth)

        def weighed(windows: Windows) -> float:
            used = zip(newest_first(windows, newest, depth), weights, strict=True)
            return sum(flop * weight for flop, weight in used)

        self._names: dict[LeafId, Mapping[str, str]] = {}
        self._used: dict[tuple[str, str], float] = {}
        self._delivered = 0.0
        for one in submitting:
            used, leaf = weighed(one.windows), (one.leaf.submitter_id, one.leaf.account_id)
            self._delivered += used
            self._names[leaf] = credentials.of(one.name, one.leaf.account_id)
            for key in self._names[leaf].items():
                self._used[key] = self._used.get(key, 0.0) + used
        for level, windows in levels.items():
            self._used["level", level] = weighed(windows)

    def barred(self, leaf: LeafId, level: ServiceLevel, job_flop: float, *, others_wait: bool) -> tuple[str, ...]:
        """Return a sentence for each cap that one more job of the batch would exceed."""
        if not self._targets:
            return ()
        keys = {**self._names.get(leaf, {}), "level": str(level)}
        found = []
        for section, name in keys.items():
            target: Target | None = target_for(self._targets, section, name)
            used = self._used.get((section, name), 0.0)
            said = over_cap(target, used=used, delivered=self._delivered, request=job_flop, others_wait=others_wait)
            if said is not None:
                found.append(f"{section} {name}: {said}")
        return tuple(found)
