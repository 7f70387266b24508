"""Subscriptions to notifications in memory, for tests of the user interfaces; events are not raised."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from domain.errors import ConflictError, NotFoundError
from domain.notifications import MOST_SUBSCRIPTIONS, DeliveryRow, EventKind, Subscription
from domain.units import Instant, PersonId, Seconds, SubscriptionId


class MemoryNotifications:
    def __init__(self) -> None:
        self._kept: dict[int, Subscription] = {}
        self._added = 0

    async def add(self, new: Subscription) -> Subscription:
        if len(await self.subscriptions(person_id=new.person_id, limit=MOST_SUBSCRIPTIONS)) == MOST_SUBSCRIPTIONS:
            raise ConflictError("too many subscriptions")
        self._added += 1
        number = SubscriptionId(self._added)
        self._kept[number] = replace(new, subscription_id=number)
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
