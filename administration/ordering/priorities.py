"""Explains batches' places in the order; previews and changes the ordering settings. As JSON.

Ordering settings must be consistent with each other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import msgspec

from administration.catalogue import fresh_catalogue
from administration.changes import Changes, checked_changes, with_changes, write_changes
from administration.ordering.places import Urgent, sent_first, sequence
from administration.show import shown
from administration.stopped import Stopped, stopped_of
from domain.batches import Batch
from domain.catalogue import Catalogue
from domain.clock import Clock
from domain.errors import InvalidInputError, NotFoundError
from domain.limits import Limit
from domain.ordered_work import ACTIVE_HOST_S, Grant, OrderingView, Reference
from domain.ordering import Breakdown, PlaceInOrder
from domain.queue_hosts import queue_hosts
from domain.restrictions import pause_of
from domain.settings import Settings
from domain.units import BatchId, Instant
from jobs.ordering.ordering_pass import OrderingPass, order_all
from muster_client import shapes
from priority.charging import queues, usage_weights
from priority.policies import POLICIES, policy_of
from priority.standings import targets
from store.postgres import PostgresStore
from store.settings import PostgresSettings

SECTION = "ordering."
KEYS = tuple(key for key in Settings().as_mapping() if key.startswith(SECTION))


def ordering_changes(values: Iterable[tuple[str, object]]) -> Changes:
    """Return validated values by full key. Raises InvalidInputError, also for duplicates.

    >>> ordering_changes([("policy", "fifo"), ("ordering.max_wait_s", 60)])
    {'ordering.policy': 'fifo', 'ordering.max_wait_s': 60.0}
    """
    return checked_changes(values, _key_of, "ordering setting")


def _key_of(name: str) -> str:
    key = name if name.startswith(SECTION) else SECTION + name
    if key not in KEYS:
        raise InvalidInputError("ordering setting", "one of " + ", ".join(KEYS), name)
    return key


def with_ordering(settings: Settings, changes: Changes) -> Settings:
    """Return the changed settings after checking that they are consistent. Raises InvalidInputError.

    >>> with_ordering(Settings(), {"ordering.queues": "normal=0/1/1 normal=1/1/1"})
    Traceback (most recent call last):
    domain.errors.InvalidInputError: ordering.queues: expected each queue once, got 'normal=0/1/1 normal=1/1/1'
    """
    changed = with_changes(settings, changes)
    check_ordering(changed)
    return changed


def check_ordering(settings: Settings) -> None:
    """Check the ordering settings, including those of policies that are not active. Raises InvalidInputError."""
    ordering = settings.ordering
    usage_weights(ordering.usage_weights)
    targets(ordering.targets)
    if len(queues(ordering.queues)) != len(ordering.queues.split()):
        raise InvalidInputError("ordering.queues", "each queue once", ordering.queues)
    if not ordering.queues.strip():
        raise InvalidInputError("ordering.queues", "at least one queue", ordering.queues)
    if unknown := queue_hosts(ordering.queue_hosts).keys() - queues(ordering.queues).keys():
        raise InvalidInputError("ordering.queue_hosts", "queues of ordering.queues", ", ".join(sorted(unknown)))
    for name in POLICIES:
        policy_of(settings.changed("ordering.policy", name).ordering)


async def checked_setting(store: PostgresSettings, key: str, value: object) -> object:
    """Return a setting's new value, checked against its range; one of the ordering also with the stored others.

    Raises InvalidInputError.
    """
    settings = await store.in_force()
    changed = settings.changed(key, value)
    if key.startswith(SECTION):
        check_ordering(changed)
    return changed.as_mapping()[key]


def weights_in_force(settings: Settings) -> list[shapes.WeightShown]:
    """Return the active policy's terms per service level, with caps and weights (multiplied by component weights).

    >>> weights_in_force(Settings())[0]["term"]
    'logical end time'
    """
    policy = policy_of(settings.ordering)
    return [
        {
            "level": level.value,
            "term": term.name,
            "component": term.component,
            "unit": term.unit,
            "weight": term.weight * scheme.component(term.component).weight,
            "cap": term.cap,
        }
        for level, scheme in policy.schemes.items()
        for term in (*scheme.own, *scheme.shared)
        if term.weight * scheme.component(term.component).weight != 0.0
    ]


def breakdown_of(record: Mapping[str, object]) -> Breakdown:
    """Return a stored breakdown, with the blocking limits added to its limits.

    >>> record = {"batch": 7, "policy": "fifo", "computed_at": 1.0, "tier": 0, "total": -5.0, "hold": "quota"}
    >>> breakdown_of(record).limits
    ('quota',)
    """
    found = msgspec.convert({**record, "batch_id": record["batch"]}, Breakdown)
    hold = record.get("hold")
    return replace(found, limits=(*found.limits, str(hold))) if hold and hold not in found.limits else found


def _in_order(
    record: Mapping[str, Any], place: PlaceInOrder | None, *, submitter: str, waiting: int, now: Instant
) -> shapes.PriorityShown:
    where = {"place": None if place is None else place.place, "submitter": submitter, "waiting": waiting}
    return cast(shapes.PriorityShown, {**where, **record, "age_s": max(0.0, now - record["computed_at"])})


REASONS = 30  # number of breakdowns in a preview


@dataclass(frozen=True, slots=True)
class Shown:
    """Batches in order, with breakdowns. `unordered`: not ordered yet. `places`: of those that are sent now."""

    breakdowns: Sequence[Breakdown]
    records: Sequence[shapes.PriorityShown]
    unordered: Sequence[BatchId] = ()
    places: Mapping[BatchId, PlaceInOrder] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OrderPreview:
    """The effect of changes on the current order, with the breakdowns of the first batches."""

    shown: shapes.OrderPreviewed  # places in the new order
    reasons: Sequence[Breakdown] = ()  # of the first batches in the current order
    would_be_reasons: Sequence[Breakdown] = ()  # of the first batches in the new order


class Priorities:
    """Shows and changes the order of batches for the command line and the API."""

    def __init__(self, store: PostgresStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def show(self, batch_id: BatchId | None = None, *, limit: int = 50) -> Shown:
        """Return the first batches in order that have fresh instances, or one batch. Raises NotFoundError if no
        breakdown is stored.
        """
        rules, (catalogue, stopped) = self._store.ordering_rules, await self._now()
        ids = [batch_id] if batch_id is not None else list(await rules.in_order(limit))
        views = self._store.views
        records, places, owners, batches = await asyncio.gather(
            rules.breakdowns(ids),
            rules.places([] if stopped.down else ids, catalogue.sent_apps(), without=stopped.unrunnable),
            views.whose(ids),
            views.batches_with(ids),
        )
        waiting = {one.batch_id: max(0, one.counts.unsent) for one in batches}
        if batch_id is not None and batch_id not in records:
            await views.batch(batch_id)
            raise NotFoundError("recorded ordering of batch", batch_id)
        known, now = [one for one in ids if one in records], self._clock.now()
        return Shown(
            [breakdown_of(records[one]) for one in known],
            [
                _in_order(records[one], places.get(one), submitter=owners[one].submitter, waiting=waiting[one], now=now)
                for one in known
            ],
            [one for one in ids if one not in records],
            places,
        )

    async def preview(self, changes: Changes, *, limit: int = 50) -> OrderPreview:
        """Return the order under changed settings. Raises InvalidInputError if the settings are inconsistent."""
        now = self._clock.now()
        (catalogue, stopped), view = await asyncio.gather(self._now(), self._store.ordering.view())
        changed = replace(catalogue, settings=with_ordering(catalogue.settings, changes))
        reference = await self._reference(view, now)
        first = await sent_first(self._store, catalogue, now, stopped.unrunnable)
        old, new = await asyncio.to_thread(_both, view, reference, catalogue, changed, now)
        batches = [one.batch for one in view.batches]
        ready = self._free(batches, catalogue, stopped) & set(await self._store.ordering_rules.in_order(len(batches)))
        before, would_be = catalogue.settings.as_mapping(), _reasons(new, first, ready)
        shown: shapes.OrderPreviewed = {
            "changes": [{"key": key, "from": before[key], "to": value} for key, value in changes.items()],
            "policy": {"from": catalogue.settings.ordering.policy, "to": changed.settings.ordering.policy},
            "batches": len(old.order.places),
            "places": _moves(old, new, first, ready, limit),
            "reasons": cast(list[shapes.PlaceReasonShown], [one.as_record() for one in would_be]),
        }
        return OrderPreview(shown, _reasons(old, first, ready), would_be)

    async def foreseen(self, batch_ids: Collection[BatchId]) -> Mapping[BatchId, PlaceInOrder]:
        """Return the positions of batches that are sent after the next ordering pass, from the stored values."""
        now = self._clock.now()
        (catalogue, stopped), view = await asyncio.gather(self._now(), self._store.ordering.view())
        first = await sent_first(self._store, catalogue, now, stopped.unrunnable)
        reference, batches = await self._reference(view, now), [one.batch for one in view.batches]
        found = await asyncio.to_thread(order_all, view, reference=reference, catalogue=catalogue, sampled={}, now=now)
        fresh = set(await self._store.ordering_rules.in_order(len(batches)))
        sent = self._free([one for one in batches if one.hold is None], catalogue, stopped)
        places = [] if stopped.down else _sequence(found, first, fresh & sent)
        return {one: PlaceInOrder(number, len(places)) for number, one in enumerate(places, 1) if one in batch_ids}

    async def _now(self) -> tuple[Catalogue, Stopped]:
        """Return the catalogue, and what stops batches."""
        return await asyncio.gather(
            fresh_catalogue(self._store.applications, self._clock), stopped_of(self._store, self._clock)
        )

    @staticmethod
    def _free(batches: Iterable[Batch], catalogue: Catalogue, stopped: Stopped) -> set[BatchId]:
        """Return the batches that some host can run and that are not paused. Limits may block them."""
        apps = catalogue.sent_apps()
        return {
            one.batch_id
            for one in batches
            if one.app_id in apps
            and one.batch_id not in stopped.unrunnable
            and pause_of(stopped.restrictions, one) is None
        }

    async def _reference(self, view: OrderingView, now: Instant) -> Reference:
        return view.reference or await self._store.ordering.reference(
            active_since=Instant(now - ACTIVE_HOST_S), now=now
        )

    async def set(self, changes: Changes, *, who: str, why: str) -> list[shapes.ChangeMade]:
        """Store the changes (administration/changes.py). Raises InvalidInputError if they are inconsistent."""
        store = self._store.settings
        return await write_changes(store, changes, check=check_ordering, clock=self._clock, who=who, why=why)


def _both(
    view: OrderingView, reference: Reference, catalogue: Catalogue, changed: Catalogue, now: Instant
) -> tuple[OrderingPass, OrderingPass]:
    old, new = (
        order_all(view, reference=reference, catalogue=one, sampled={}, now=now) for one in (catalogue, changed)
    )
    return old, new


def _moves(
    old: OrderingPass, new: OrderingPass, first: Urgent, ready: Collection[BatchId], limit: int
) -> list[shapes.PlaceMoved]:
    """Return the position of each `ready` batch among these (1 = first) with the old and new order."""
    places = {batch_id: number for number, batch_id in enumerate(_sequence(old, first, ready), start=1)}
    return [
        {
            "batch": one,
            "place": places[one],
            "would_be": number,
            "held": old.found[one].hold,
            "would_be_held": new.found[one].hold,
        }
        for number, one in enumerate(_sequence(new, first, ready)[:limit], start=1)
    ]


def _reasons(found: OrderingPass, first: Urgent, ready: Collection[BatchId]) -> list[Breakdown]:
    return [found.order.breakdown(batch_id) for batch_id in _sequence(found, first, ready)[:REASONS]]


def _sequence(found: OrderingPass, first: Urgent, ready: Collection[BatchId]) -> Sequence[BatchId]:
    return sequence((one.batch_id for one in found.order.places if one.batch_id in ready), first)


def grant_as_json(account: str, grant: Grant, now: Instant) -> shapes.GrantShown:
    """Return a grant for the period of `now`, in service units.

    >>> grant_as_json("lab", Grant(1, 10.0, Instant(0.0), 100.0, used_su=4.0), Instant(50.0))["left_su"]
    6.0
    """
    return shown(shapes.GrantShown, grant.at(now), account=account)


def limit_as_json(limit: Limit) -> shapes.LimitShown:
    """Return a limit as JSON. `name` None: it applies to all names; `counts` describes the limited quantity."""
    counts = limit.quantity
    return shown(shapes.LimitShown, limit, quantity=counts.name.lower(), counts=counts.value)
