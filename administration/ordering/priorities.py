"""Shows why batches stand where they stand, and previews and changes how they are ordered; as JSON.

The settings that choose and weigh the order must make sense together.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import msgspec

from administration.catalogue import fresh_catalogue
from administration.names import checked_text
from administration.ordering.ports import OrderingStore
from administration.show import shown
from domain.catalogue import Catalogue
from domain.clock import Clock
from domain.errors import InvalidInputError, NotFoundError
from domain.limits import Limit
from domain.ordered_work import ACTIVE_HOST_S, Grant, OrderingView, Reference
from domain.ordering import Breakdown, PlaceInOrder
from domain.settings import Settings
from domain.units import BatchId, Instant
from jobs.ordering.ordering_pass import OrderingPass, look
from muster_client import shapes
from priority.charging import queues, usage_weights
from priority.policies import POLICIES, policy_of
from priority.standings import targets

SECTION = "ordering."
KEYS = tuple(key for key in Settings().as_mapping() if key.startswith(SECTION))

Changes = Mapping[str, object]  # key -> new value, checked


def ordering_changes(values: Iterable[tuple[str, object]]) -> Changes:
    """New values by full key, each within its range and given once. Raises InvalidInputError.

    >>> ordering_changes([("policy", "fifo"), ("ordering.max_wait_s", 60)])
    {'ordering.policy': 'fifo', 'ordering.max_wait_s': 60.0}
    """
    changes: dict[str, object] = {}
    for name, value in values:
        key = name if name.startswith(SECTION) else SECTION + name
        if key not in KEYS:
            raise InvalidInputError("ordering setting", "one of " + ", ".join(KEYS), name)
        if key in changes:
            raise InvalidInputError(key, "one value", value)
        changes[key] = Settings().changed(key, value).as_mapping()[key]
    if not changes:
        raise InvalidInputError("ordering setting", "at least one KEY=VALUE", "none")
    return changes


def with_ordering(settings: Settings, changes: Changes) -> Settings:
    """The settings as they would be, read whole as the ordering reads them. Raises InvalidInputError.

    >>> with_ordering(Settings(), {"ordering.queues": "normal=0/1/1 normal=1/1/1"})
    Traceback (most recent call last):
    domain.errors.InvalidInputError: ordering.queues: expected each queue once, got 'normal=0/1/1 normal=1/1/1'
    """
    for key, value in changes.items():
        settings = settings.changed(key, value)
    check_ordering(settings)
    return settings


def check_ordering(settings: Settings) -> None:
    """Whether the ordering settings can be read whole, those of policies that are not chosen too.

    Raises InvalidInputError naming the setting.
    """
    ordering = settings.ordering
    usage_weights(ordering.usage_weights)
    targets(ordering.targets)
    if len(queues(ordering.queues)) != len(ordering.queues.split()):
        raise InvalidInputError("ordering.queues", "each queue once", ordering.queues)
    if not ordering.queues.strip():
        raise InvalidInputError("ordering.queues", "at least one queue", ordering.queues)
    for name in POLICIES:
        policy_of(settings.changed("ordering.policy", name).ordering)


def weights_in_force(settings: Settings) -> list[shapes.WeightShown]:
    """The terms of the chosen policy, per service level, with their weights (a component's included) and caps.

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
    """What a stored record says, with what holds the batch among its limits.

    >>> record = {"batch": 7, "policy": "fifo", "computed_at": 1.0, "tier": 0, "total": -5.0, "hold": "held"}
    >>> breakdown_of(record).limits
    ('held',)
    """
    found = msgspec.convert({**record, "batch_id": record["batch"]}, Breakdown)
    hold = record.get("hold")
    return replace(found, limits=(*found.limits, str(hold))) if hold and hold not in found.limits else found


def _in_order(record: Mapping[str, object], place: PlaceInOrder | None) -> shapes.PriorityShown:
    return cast(shapes.PriorityShown, {"place": None if place is None else place.place, **record})


REASONS = 30  # of a preview


@dataclass(frozen=True, slots=True)
class Shown:
    """Batches in their order with the reasons of the last ordering; `unordered` wait for their first.

    `places` has no entry for a batch that is over.
    """

    breakdowns: Sequence[Breakdown]
    records: Sequence[shapes.PriorityShown]
    unordered: Sequence[BatchId] = ()
    places: Mapping[BatchId, PlaceInOrder] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Move:
    """A batch's place among all that are active, 1 = first, as it is and as it would be."""

    batch_id: BatchId
    place: int
    would_be: int
    held: str | None
    would_be_held: str | None


@dataclass(frozen=True, slots=True)
class OrderPreview:
    """What some changes would do to the order of this moment."""

    changes: Sequence[tuple[str, object, object]]  # key, from, to
    policy: str
    would_be_policy: str
    moves: Sequence[Move]  # in the order as it would be
    batches: int
    reasons: Sequence[Breakdown] = ()  # of the first, in their order as it is
    would_be_reasons: Sequence[Breakdown] = ()  # of the first, in the order as it would be


class Priorities:
    """What the command line and the API do with the order of batches."""

    def __init__(self, store: OrderingStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def show(self, batch_id: BatchId | None = None, *, limit: int = 50) -> Shown:
        """The first batches in their order, or one. Raises NotFoundError for a batch there is not or that has ended
        unordered."""
        rules = self._store.ordering_rules
        ids = [batch_id] if batch_id is not None else list(await rules.in_order(limit))
        records, places = await asyncio.gather(rules.breakdowns(ids), rules.places(ids))
        if batch_id is not None and batch_id not in records:
            await self._store.views.batch(batch_id)
            raise NotFoundError("ordering yet of batch", batch_id)
        known = [one for one in ids if one in records]
        return Shown(
            [breakdown_of(records[one]) for one in known],
            [_in_order(records[one], places.get(one)) for one in known],
            [one for one in ids if one not in records],
            places,
        )

    async def preview(self, changes: Changes, *, limit: int = 50) -> OrderPreview:
        """Where batches would stand with these settings, by everything as it is now. Nothing is written.

        Raises InvalidInputError for settings that make no sense together.
        """
        now = self._clock.now()
        catalogue, view = await asyncio.gather(
            fresh_catalogue(self._store.applications, self._clock), self._store.ordering.view()
        )
        changed = replace(catalogue, settings=with_ordering(catalogue.settings, changes))
        reference = view.reference or await self._store.ordering.reference(
            active_since=Instant(now - ACTIVE_HOST_S), now=now
        )
        old, new = await asyncio.to_thread(_both, view, reference, catalogue, changed, now)
        before = catalogue.settings.as_mapping()
        return OrderPreview(
            [(key, before[key], value) for key, value in changes.items()],
            catalogue.settings.ordering.policy,
            changed.settings.ordering.policy,
            _moves(old, new, limit),
            len(old.order.places),
            _reasons(old),
            _reasons(new),
        )

    async def set(self, changes: Changes, *, who: str, why: str) -> list[shapes.ChangeMade]:
        """Write the changes, all or none, each with who and why in the audit trail; what was written, as JSON.

        Raises InvalidInputError without a reason, or for settings that make no sense together.
        """
        if not why.strip():
            raise InvalidInputError("why", "a reason: it is kept in the audit trail", why)
        checked_text(why, "why")
        checked_text(who, "by")
        settings, _ = Settings.from_stored(await self._store.settings.settings())
        with_ordering(settings, changes)
        before = settings.as_mapping()
        await self._store.settings.set_settings(changes, now=self._clock.now(), who=who, why=why)
        return [{"key": key, "from": before[key], "to": value, "by": who, "why": why} for key, value in changes.items()]

    async def settings(self) -> Settings:
        """The settings of the moment."""
        return Settings.from_stored(await self._store.settings.settings())[0]


def _both(
    view: OrderingView, reference: Reference, catalogue: Catalogue, changed: Catalogue, now: Instant
) -> tuple[OrderingPass, OrderingPass]:
    old, new = (look(view, reference=reference, catalogue=one, sampled={}, now=now) for one in (catalogue, changed))
    return old, new


def _moves(old: OrderingPass, new: OrderingPass, limit: int) -> list[Move]:
    places = {place.batch_id: number for number, place in enumerate(old.order.places, start=1)}

    def hold(found: OrderingPass, batch_id: BatchId) -> str | None:
        return found.found[batch_id].hold

    return [
        Move(one.batch_id, places[one.batch_id], number, hold(old, one.batch_id), hold(new, one.batch_id))
        for number, one in enumerate(new.order.places[:limit], start=1)
    ]


def _reasons(found: OrderingPass) -> list[Breakdown]:
    return [found.order.breakdown(place.batch_id) for place in found.order.places[:REASONS]]


def grant_as_json(account: str, grant: Grant, now: Instant) -> shapes.GrantShown:
    """A grant in the period of `now`, in service units.

    >>> grant_as_json("lab", Grant(1, 10.0, Instant(0.0), 100.0, used_su=4.0), Instant(50.0))["left_su"]
    6.0
    """
    return shown(shapes.GrantShown, grant.at(now), account=account)


def limit_as_json(limit: Limit) -> shapes.LimitShown:
    """A limit; `name` None is everybody's, `counts` says what the quantity is."""
    counts = limit.quantity
    return shown(shapes.LimitShown, limit, quantity=counts.name.lower(), counts=counts.value)


def preview_as_json(found: OrderPreview) -> shapes.OrderPreviewed:
    """What would be changed, and every batch's place as it is and as it would be, 1 = first."""
    return {
        "changes": [{"key": key, "from": old, "to": new} for key, old, new in found.changes],
        "policy": {"from": found.policy, "to": found.would_be_policy},
        "batches": found.batches,
        "places": [shown(shapes.PlaceMoved, move, batch=move.batch_id) for move in found.moves],
    }
