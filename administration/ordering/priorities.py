"""Shows why batches stand where they stand, and previews and changes how they are ordered."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from administration.catalogue import fresh_catalogue
from administration.names import checked_text
from administration.ordering.knobs import Changes, with_ordering
from administration.ordering.ports import OrderingRules
from administration.ordering.records import breakdown_of
from administration.ports import Applications, SettingStore, Views
from domain.catalogue import Catalogue
from domain.clock import Clock
from domain.errors import InvalidInputError, NotFoundError
from domain.ordered_work import OrderingView, Reference
from domain.ordering import Breakdown, PlaceInOrder
from domain.settings import Settings
from domain.units import DAY_S, BatchId, Instant
from jobs.ordering.ordering_pass import OrderingPass, look
from jobs.ports import OrderedWork

ACTIVE_HOST_S = 7 * DAY_S
REASONS = 30  # of a preview


class PriorityStore(Protocol):
    """What is read and written of the database."""

    @property
    def ordering(self) -> OrderedWork: ...
    @property
    def ordering_rules(self) -> OrderingRules: ...
    @property
    def applications(self) -> Applications: ...
    @property
    def settings(self) -> SettingStore: ...
    @property
    def views(self) -> Views: ...


@dataclass(frozen=True, slots=True)
class Shown:
    """Batches in their order with the reasons of the last ordering; `unordered` wait for their first.

    `places` has no entry for a batch that is over.
    """

    breakdowns: Sequence[Breakdown]
    records: Sequence[dict[str, object]]
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

    def __init__(self, store: PriorityStore, clock: Clock) -> None:
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
            [{"place": places[one].place if one in places else None, **records[one]} for one in known],
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

    async def set(self, changes: Changes, *, who: str, why: str) -> list[dict[str, object]]:
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
