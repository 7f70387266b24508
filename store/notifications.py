"""Stores events, subscriptions to them, and deliveries in PostgreSQL."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import msgspec

from domain.errors import ConflictError
from domain.notifications import (
    ENDED_LATELY_S,
    KEPT_S,
    MOST_EVENTS,
    MOST_PAUSE_S,
    MOST_SUBSCRIPTIONS,
    MOST_WAITING,
    UNCONFIRMED_S,
    AppFailures,
    BatchNews,
    Delivery,
    DeliveryRow,
    DeliveryState,
    EventKind,
    RaisedEvent,
    Subscription,
    pause_s,
)
from domain.units import DeliveryId, Instant, PersonId, SubscriptionId, later
from store import rows
from store.pool import Connection, OnDatabase
from store.queries import load
from store.rows import mapper

MOST_FAILURES = 20_000  # read per window
MOST_BATCHES = 1000  # per round; the next round reads further ones
WINDOW = "notifications"  # name of the note about the window


class FailureWindow(msgspec.Struct, frozen=True):
    """The window in which failures are counted, and the apps that failed in the previous one."""

    since_at: float
    failing: list[str] = []


_subscription = mapper(Subscription)
_delivery = mapper(Delivery, key=lambda row: str(row["key"]), state=lambda row: DeliveryState(row["status"]))
_row = mapper(DeliveryRow, delivery=_delivery)
_news = mapper(BatchNews)
_failures = mapper(AppFailures)
_event = mapper(
    RaisedEvent,
    detail=lambda row: rows.decoded_object(row["detail"]),
    submitter_ids=lambda row: tuple(msgspec.json.decode(row["submitter_ids"], type=list[int])),
)


class PostgresNotifications(OnDatabase):
    """Used by the periodic tasks, the API and the pages."""

    # ------------------------------------------------------------------ events

    async def batch_news(self, now: Instant) -> tuple[Sequence[BatchNews], Sequence[BatchNews]]:
        """Return the batches that ended, and those whose deadline is at risk or missed, unless raised before."""
        lately = later(now, -ENDED_LATELY_S)
        await self._database.execute("watch_active_batches", lately, MOST_BATCHES)
        ended = await self._database.fetch("ended_batches", lately, MOST_BATCHES)
        endangered = await self._database.fetch("endangered_batches", now, MOST_BATCHES)
        return [_news(row) for row in ended], [_news(row) for row in endangered]

    async def raise_events(self, events: Sequence[RaisedEvent]) -> None:
        """Raise events for the subscriptions to them. Events with a known key are left out."""

        async def write(connection: Connection) -> None:
            columns = (
                [one.key for one in events],
                [one.kind.value for one in events],
                [one.raised_at for one in events],
                [one.batch_id for one in events],
                [rows.encoded(one.submitter_ids) for one in events],
                [rows.encoded(one.detail) for one in events],
            )
            await connection.execute(load("raise_events"), *columns)
            await connection.execute(load("bound_notifications"), MOST_WAITING)

        if events:
            await self._database.in_transaction(write)

    async def window(self) -> FailureWindow | None:
        """Return the window of failures; None before the first one."""
        row = await self._database.fetch_one("report_of_duty", WINDOW)
        return None if row is None else msgspec.json.decode(row["report"], type=FailureWindow)

    async def app_failures(self, since: Instant) -> Sequence[AppFailures]:
        return [_failures(row) for row in await self._database.fetch("app_failures", since, MOST_FAILURES)]

    async def begin_window(self, window: FailureWindow, *, now: Instant) -> None:
        """Note the results reported so far, and delete what is no longer needed."""

        async def write(connection: Connection) -> None:
            await connection.execute(load("watch_no_ended_batches"), later(now, -ENDED_LATELY_S))
            await connection.execute(load("watch_results"))
            await connection.execute(load("note_report"), WINDOW, now, rows.encoded(window))
            await connection.execute(load("forget_unconfirmed"), later(now, -UNCONFIRMED_S))
            await connection.execute(load("forget_deliveries"), later(now, -KEPT_S))
            await connection.execute(load("forget_events"), later(now, -KEPT_S))

        await self._database.in_transaction(write)

    # ------------------------------------------------------------------ deliveries

    async def due_deliveries(
        self, now: Instant, limit: int, *, mails: int
    ) -> Sequence[tuple[Delivery, Subscription, Sequence[RaisedEvent]]]:
        """Make deliveries of waiting events, and claim due ones: their next attempt is planned before this one.

        `limit` is the most to claim, `mails` the most by e-mail.
        """
        await self._database.execute("make_deliveries", now, MOST_EVENTS)
        claimed = await self._database.fetch("claim_deliveries", now, limit, pause_s(1), MOST_PAUSE_S, mails)
        found = [_delivery(row) for row in claimed]
        known = await self._with([one.subscription_id for one in found])
        ids = [one.delivery_id for one in found]
        events = defaultdict[DeliveryId, list[RaisedEvent]](list)
        for row in await self._database.fetch("events_of_deliveries", ids) if ids else ():
            events[row["delivery_id"]].append(_event(row))
        return [
            (one, known[one.subscription_id], events[one.delivery_id]) for one in found if one.subscription_id in known
        ]

    async def end_attempt(self, delivery_id: DeliveryId, state: DeliveryState, outcome: str, *, now: Instant) -> None:
        await self._database.execute("end_attempt_at_delivery", delivery_id, state.value, outcome, now)

    async def deliveries(
        self,
        *,
        person_id: PersonId | None = None,
        subscription_id: SubscriptionId | None = None,
        before: int | None = None,
        limit: int,
    ) -> Sequence[DeliveryRow]:
        """Return deliveries, newest first: of one person or of everyone."""
        last = 2**62 if before is None else before
        found = await self._database.fetch("list_deliveries", person_id, last, limit, subscription_id)
        return [_row(row) for row in found]

    # ------------------------------------------------------------------ subscriptions

    async def add(self, new: Subscription) -> Subscription:
        """Return the subscription with its id. Raises ConflictError if the person has too many."""
        what = (new.person_id, new.channel.value, new.address, list(new.kinds), new.project_wide, new.interval_s)
        args = (*what, new.created_at, new.confirmed_at, MOST_SUBSCRIPTIONS)
        row = await self._database.fetch_one("insert_subscription", *args)
        if row is None:
            raise ConflictError(f"a person may have {MOST_SUBSCRIPTIONS} subscriptions: delete another one first")
        return await self.subscription(row["subscription_id"])

    async def subscription(self, subscription_id: int) -> Subscription:
        """Raises NotFoundError."""
        row = await self._database.fetch_known(
            "subscriptions_with", [subscription_id], kind="subscription", key=subscription_id
        )
        return _subscription(row)

    async def subscriptions(
        self, *, person_id: PersonId | None = None, after: int | None = None, limit: int
    ) -> Sequence[Subscription]:
        found = await self._database.fetch("list_subscriptions", person_id, after or 0, limit)
        return [_subscription(row) for row in found]

    async def set(
        self,
        subscription_id: SubscriptionId,
        *,
        kinds: Sequence[str] | None = None,
        interval_s: float | None = None,
        paused: bool | None = None,
    ) -> Subscription:
        """Change the given fields. Raises NotFoundError."""
        await self._database.fetch_known(
            "set_subscription", subscription_id, kinds, interval_s, paused, kind="subscription"
        )
        return await self.subscription(subscription_id)

    async def rotate(self, subscription_id: SubscriptionId, *, now: Instant) -> Subscription:
        """Count a new secret. Raises NotFoundError."""
        await self._database.fetch_known("rotate_subscription", subscription_id, now, kind="subscription")
        return await self.subscription(subscription_id)

    async def confirm(self, subscription_id: SubscriptionId, *, now: Instant) -> None:
        """Raises NotFoundError."""
        await self._database.fetch_known("confirm_subscription", subscription_id, now, kind="subscription")

    async def delete(self, subscription_id: SubscriptionId) -> None:
        """Raises NotFoundError."""
        await self._database.fetch_known("delete_subscription", subscription_id, kind="subscription")

    async def send(self, subscription_id: SubscriptionId, kind: EventKind, key: str, *, now: Instant) -> None:
        """Raise an event for this subscription only. Raises NotFoundError."""
        await self._database.fetch_known("add_event", subscription_id, key, kind.value, now, kind="subscription")

    async def _with(self, ids: Sequence[SubscriptionId]) -> Mapping[SubscriptionId, Subscription]:
        found = await self._database.fetch("subscriptions_with", list(ids)) if ids else []
        return {row["subscription_id"]: _subscription(row) for row in found}
