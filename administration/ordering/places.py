"""Tells in which sequence most requests take the batches: those sent first (decision 49), then the others, in order."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from domain.batches import Batch, QoS, is_late, place_of
from domain.catalogue import Catalogue
from domain.deadline_rules import traits_of
from domain.formatting import in_words
from domain.insight import MOST_NAMED, WorkAhead
from domain.ordering import PlaceInOrder, ServiceLevel
from domain.ranking import NO_GATE
from domain.restrictions import pause_of
from domain.settings import Settings
from domain.units import AppId, BatchId, Instant
from feeder.supply import gate_of
from priority.policies import LEVEL_TIERS
from store.postgres import PostgresStore

MOST_AHEAD = 1000  # batches searched for those that are sent first
FirstPlace: TypeAlias = tuple[bool, tuple[int, float, BatchId]]


@dataclass(frozen=True, slots=True)
class FirstSent:
    """A batch that most requests take before all others, with the reason. `ahead` is the work of those before it.

    `gated`: its first instances only go to hosts above a gate. `late`: its deadline has passed.
    """

    batch: Batch
    because: str
    ahead: WorkAhead
    gated: bool = False
    late: bool = False

    @property
    def place(self) -> FirstPlace:
        """Return the key by which batches that are sent first are in sequence."""
        return self.late, place_of(self.batch)


Urgent = Mapping[BatchId, FirstSent]
Turn: TypeAlias = tuple[str | None, WorkAhead]


def urgent_of(batches: Iterable[Batch], catalogue: Catalogue, now: Instant) -> set[BatchId]:
    """Return those of some free batches that most requests take before the others."""
    return {
        one.batch_id
        for one in batches
        if catalogue.sent_first_from(one.app_id, one.qos, one.deadline_at, unpaid=one.unpaid) < now
    }


def because_of(urgent: Batch, catalogue: Catalogue, now: Instant) -> str:
    """Return why most requests take a batch before the others."""
    if urgent.qos is QoS.AFAP or urgent.deadline_at is None:
        return "it is an AFAP batch"
    if is_late(urgent.deadline_at, now):
        return "its deadline has passed (after those in time)"
    from_at = catalogue.sent_first_from(urgent.app_id, urgent.qos, urgent.deadline_at, unpaid=urgent.unpaid)
    if from_at == -math.inf:
        return "it has a deadline, and no host of its app is ranked yet"
    return f"less than {in_words(urgent.deadline_at - from_at)} remain until its deadline"


async def sent_first(
    store: PostgresStore, catalogue: Catalogue, now: Instant, unrunnable: Collection[BatchId]
) -> Urgent:
    """Return the batches that most requests take before the others now, in order.

    Blocked, paused and unpaid batches, those of an app without a version for new work, those without fresh unsent
    instances, and `unrunnable` ones, which no host can run, are not among them.
    """
    apps = catalogue.sent_apps()
    ready = [one for one in await store.waiting.afap_or_due(MOST_AHEAD, apps) if one.batch_id not in unrunnable]
    urgent, found, ahead = urgent_of(ready, catalogue, now), dict[BatchId, FirstSent](), WorkAhead()
    medians = {app_id: catalogue.median_safe_runtime_s(app_id) for app_id in {one.app_id for one in ready}}
    chosen = [one for one in ready if one.batch_id in urgent]
    for batch in sorted(chosen, key=lambda one: _first_place(one, now)):
        gate = gate_of(batch, now=now, median_r_q_s=medians[batch.app_id], settings=catalogue.settings.deadline)
        gated = batch.qos is not QoS.AFAP and gate is not NO_GATE  # AFAP jobs also go to hosts below it
        one = found[batch.batch_id] = FirstSent(
            batch, because_of(batch, catalogue, now), ahead, gated, is_late(batch.deadline_at, now)
        )
        ahead = _with(ahead, [one])
    return found


def _with(ahead: WorkAhead, more: Sequence[FirstSent]) -> WorkAhead:
    return replace(
        ahead,
        batches=ahead.batches + len(more),
        unsent=ahead.unsent + sum(one.batch.counts.unsent for one in more),
        gated=ahead.gated + sum(one.batch.counts.unsent for one in more if one.gated),
    )


async def turn_of(
    store: PostgresStore,
    batch: Batch,
    first: Urgent,
    catalogue: Catalogue,
    now: Instant,
    unrunnable: Collection[BatchId],
) -> Turn:
    """Return that and why most requests take a batch before the order, in words; None if they do not. Return the work
    that comes before it.

    Before a batch come those that are sent first, and those before it in the order; before a batch that is sent first
    come only those of its kind. Blocked and paused batches, those of an app without a version for new work, and
    `unrunnable` ones, which no host can run, do not count as work ahead, and none counts as gated if all of the batch's
    own jobs are. It may not be submitted yet.
    """
    because, ahead = await _turn(store, batch, first, catalogue, now, unrunnable)
    gated, share = ahead.gated if _needs_less(batch, catalogue, now) else 0, gated_share(catalogue.settings)
    return because, replace(ahead, gated=gated, gated_share=share if gated else 1.0)


def gated_share(settings: Settings) -> float:
    """Return the largest share of a host's jobs that may be behind a gate."""
    return settings.scheduler.urgent_share_fraction if traits_of(settings.deadline).shares_gated else 1.0


def _needs_less(batch: Batch, catalogue: Catalogue, now: Instant) -> bool:
    """Return whether hosts below the gates of late batches get first instances of a batch.

    They get AFAP jobs in queue order, if they are fast enough (scheduler/deadline/prompt.py).
    """
    if batch.qos is QoS.AFAP:
        return True
    median_s, settings = catalogue.median_safe_runtime_s(batch.app_id), catalogue.settings.deadline
    return gate_of(batch, now=now, median_r_q_s=median_s, settings=settings) is NO_GATE


async def _turn(
    store: PostgresStore,
    batch: Batch,
    first: Urgent,
    catalogue: Catalogue,
    now: Instant,
    unrunnable: Collection[BatchId],
) -> Turn:
    free = batch.counts.unsent and batch.hold is None and pause_of(catalogue.restrictions, batch) is None
    if batch.batch_id in first or (free and urgent_of([batch], catalogue, now)):
        before = [one for one in first.values() if one.place < _first_place(batch, now)]
        ahead = WorkAhead(first=[one.batch for one in before[:MOST_NAMED]])
        return sent_first_because(because_of(batch, catalogue, now)), _with(ahead, before)
    at, apps = place_of(batch), catalogue.sent_apps()
    ahead = await store.waiting.work_before(at, MOST_AHEAD, apps, without=unrunnable)
    overtaking = _overtaking(batch, first)
    if ahead.batches + len(overtaking) == 0:
        return None, ahead
    named = [one.batch for one in first.values()] + [one for one in ahead.first if one.batch_id not in first]
    gated = sum(one.batch.counts.unsent for one in first.values() if one.gated and place_of(one.batch) < at)
    return None, _with(replace(ahead, gated=gated, first=named[:MOST_NAMED]), overtaking)


def expedite_in_words(first: int) -> str:
    """Return what expedite batches go before. `first`: the number of batches that are sent first.

    >>> expedite_in_words(0), expedite_in_words(2)
    ('expedite goes before all others', 'expedite goes before all others but the 2 batches that are sent first')
    """
    return f"expedite goes before all others{f' but {the_first(first)}' if first else ''}"


def the_first(first: int) -> str:
    """Return the batches that are sent first in words.

    >>> the_first(1), the_first(2)
    ('the batch that is sent first', 'the 2 batches that are sent first')
    """
    return f"the {first} batches that are sent first" if first > 1 else "the batch that is sent first"


def sent_first_because(because: str) -> str:
    """Return that a batch is among those sent first, and why.

    >>> sent_first_because("its deadline is near")
    'among those sent first, because its deadline is near'
    """
    return f"among those sent first, because {because}"


def position(batch: Batch, at: PlaceInOrder, first: Urgent) -> PlaceInOrder:
    """Return a batch's position in the sequence in which most requests take the batches, from its place in the order.

    >>> one, two = (Batch(i, 7, 1, 1, "", "afap", "active", Instant(0.0), 0, float(i), Instant(0.0)) for i in (1, 2))
    >>> first = {2: FirstSent(two, "its deadline is near", WorkAhead())}
    >>> position(one, PlaceInOrder(1, 2), first), position(two, PlaceInOrder(2, 2), first)
    (PlaceInOrder(place=2, of=2), PlaceInOrder(place=1, of=2))
    >>> position(one, PlaceInOrder(1, 1), first)
    PlaceInOrder(place=2, of=2)
    """
    own = first.get(batch.batch_id)
    place = at.place + len(_overtaking(batch, first)) if own is None else own.ahead.batches + 1
    return PlaceInOrder(place, max(place, at.of))  # one that was just submitted goes first, and is not ordered yet


def place_among_first(batch: Batch, level: ServiceLevel, ordered_as: ServiceLevel, first: Urgent) -> int:
    """Return the place at a level of one of the batches that are sent first. `ordered_as`: its level at present."""
    moved = replace(batch, order_tier=batch.order_tier - LEVEL_TIERS[ordered_as] + LEVEL_TIERS[level])
    at = first[batch.batch_id].late, place_of(moved)
    return 1 + sum(one.place < at for batch_id, one in first.items() if batch_id != batch.batch_id)


def expedite_helps(batch: Batch, first: Urgent) -> bool:
    """Return whether one of the batches that are sent first would be sent before more of them at level expedite."""
    best, present = (place_among_first(batch, one, batch.level, first) for one in (ServiceLevel.EXPEDITE, batch.level))
    return best < present


async def at_levels(
    store: PostgresStore,
    batch: Batch,
    at: PlaceInOrder,
    ordered_as: ServiceLevel,
    first: Urgent,
    apps: Collection[AppId],
    unrunnable: Collection[BatchId],
) -> Mapping[ServiceLevel, PlaceInOrder]:
    """Return a batch's positions at each level, where levels are tiers; none behind `MOST_AHEAD` others.

    `at` is the batch's position now, at the level `ordered_as`.
    """
    rest, found = {one: it for one, it in first.items() if one != batch.batch_id}, dict[ServiceLevel, PlaceInOrder]()
    without = [*rest, batch.batch_id, *unrunnable]
    for level, tier in LEVEL_TIERS.items():
        if batch.batch_id in first:
            found[level] = PlaceInOrder(place_among_first(batch, level, ordered_as, first), at.of)
            continue
        moved = replace(batch, order_tier=batch.order_tier - LEVEL_TIERS[ordered_as] + tier)
        before = await store.waiting.work_before(place_of(moved), MOST_AHEAD, apps, without=without)
        if not before.is_part:
            found[level] = PlaceInOrder(len(rest) + before.batches + 1, at.of)
    return found


def sequence(order: Iterable[BatchId], first: Urgent) -> Sequence[BatchId]:
    """Return the batches of an order in the sequence in which most requests take them."""
    places = {one: place for place, one in enumerate(first)}
    return sorted(order, key=lambda one: places.get(one, len(places)))


def _first_place(batch: Batch, now: Instant) -> FirstPlace:
    """Return the key by which batches that are sent first are in sequence: late ones last (decision 84)."""
    return is_late(batch.deadline_at, now), place_of(batch)


def _overtaking(batch: Batch, first: Urgent) -> Sequence[FirstSent]:
    """Return the batches that are sent before this one although they are behind it in the order."""
    return [one for one in first.values() if place_of(one.batch) > place_of(batch)]
