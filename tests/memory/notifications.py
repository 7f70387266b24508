"""Subscriptions to notifications in memory, for tests of the user interfaces; events are not raised."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from domain.errors import ConflictError, NotFoundError
from domain.notifications import MOST_SUBSCRIPTIONS, Channel, DeliveryRow, EventKind, Subscription
from domain.units import Instant, PersonId, Seconds, SubscriptionId
from tests.memory.people import MemoryAccess


class MemoryNotifications:
    def __init__(self, people: MemoryAccess) -> None:
        self._people = people
        self._kept: dict[int, Subscription] = {}
        self._added = 0

    async def add(
        self,
        person_id: PersonId,
        channel: Channel,
        address: str,
        *,
        kinds: Sequence[str],
        project_wide: bool,
        interval_s: Seconds,
        confirmed_at: Instant | None,
        now: Instant,
    ) -> Subscription:
        if len(await self.subscriptions(person_id=person_id, limit=MOST_SUBSCRIPTIONS)) == MOST_SUBSCRIPTIONS:
            raise ConflictError("too many subscriptions")
        [person] = [one.name for one in await self._people.people(limit=10_000) if one.person_id == person_id]
        self._added += 1
        number, texts = SubscriptionId(self._added), tuple(kinds)
        self._kept[number] = Subscription(
            number, person_id, person, channel, address, texts, project_wide, interval_s, now, confirmed_at
        )
        return self._kept[number]

    async def subscription(self, subscription_id: int) -> Subscription:
        if subscription_id not in self._kept:
            raise NotFoundError("subscription", subscription_id)
        return self._kept[subscription_id]

    async def subscriptions(
        self, *, person_id: PersonId | None = None, after: int | None = None, limit: int
    ) -> Sequence[Subscription]:
        found = (one for one in self._kept.values() if person_id is None or one.person_id == person_id)
        return [one for one in found if one.subscription_id > (after or 0)][:limit]

    async def set(
        self,
        subscription_id: SubscriptionId,
        *,
        kinds: Sequence[str] | None = None,
        interval_s: float | None = None,
        paused: bool | None = None,
    ) -> Subscription:
        known = await self.subscription(subscription_id)
        self._kept[subscription_id] = replace(
            known,
            kinds=known.kinds if kinds is None else tuple(kinds),
            interval_s=known.interval_s if interval_s is None else Seconds(interval_s),
            paused=known.paused if paused is None else paused,
        )
        return self._kept[subscription_id]

    async def rotate(self, subscription_id: SubscriptionId, *, now: Instant) -> Subscription:
        known = await self.subscription(subscription_id)
        self._kept[subscription_id] = replace(known, secret_serial=known.secret_serial + 1, rotated_at=now)
        return self._kept[subscription_id]

    async def confirm(self, subscription_id: SubscriptionId, *, now: Instant) -> None:
        self._kept[subscription_id] = replace(await self.subscription(subscription_id), confirmed_at=now)

    async def delete(self, subscription_id: SubscriptionId) -> None:
        await self.subscription(subscription_id)
        del self._kept[subscription_id]

    async def send(self, subscription_id: SubscriptionId, kind: EventKind, key: str, *, now: Instant) -> None:
        await self.subscription(subscription_id)

    async def deliveries(
        self,
        *,
        person_id: PersonId | None = None,
        subscription_id: SubscriptionId | None = None,
        before: int | None = None,
        limit: int,
    ) -> Sequence[DeliveryRow]:
        return []
