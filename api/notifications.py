"""Subscriptions to notifications, and deliveries, over the API."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal

import msgspec

from administration.notifications.subscriptions import Subscriptions
from administration.show import shown
from api.paging import Page, key_of, page_of
from api.table import Ask, NoParams, operation
from domain.access import Right
from domain.notifications import Channel, DeliveryRow
from muster_client import shapes

KindName = Literal["batch_done", "batch_at_risk", "batch_missed", "app_failing", "work_stuck"]
Number = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
Interval = Annotated[float, msgspec.Meta(ge=0, le=86400)]
Kinds = Annotated[list[KindName], msgspec.Meta(min_length=1, max_length=5)]


class SubscriptionParams(msgspec.Struct, forbid_unknown_fields=True):
    subscription_id: Number


class DeliveryPageParams(Page, kw_only=True):
    subscription_id: Number | None = None


class NewSubscriptionBody(msgspec.Struct, forbid_unknown_fields=True):
    """`kinds` None: all kinds of events. `interval_s`: minimum time between two messages. `person` None: the caller."""

    channel: Literal["email", "webhook"]
    address: Annotated[str, msgspec.Meta(min_length=3, max_length=2000)]
    kinds: Kinds | None = None
    project_wide: bool = False
    interval_s: Interval = 300.0
    person: str | None = None


class SubscriptionBody(msgspec.Struct, forbid_unknown_fields=True):
    """Omitted fields keep their values."""

    kinds: Kinds | None = None
    interval_s: Interval | None = None
    paused: bool | None = None


def delivery_as_json(row: DeliveryRow) -> shapes.DeliveryShown:
    return shown(shapes.DeliveryShown, row, row.delivery)


class NotificationsApi:
    TAG = "notifications"

    def __init__(self, subscriptions: Subscriptions) -> None:
        self._subscriptions = subscriptions

    @operation("GET", "/subscriptions", "The caller's subscriptions to notifications; for operators, all of them.")
    async def list_subscriptions(self, ask: Ask[Page, None]) -> shapes.SubscriptionPage:
        after = key_of(ask.params.cursor, "subscriptions", int)
        rows = await self._subscriptions.own(ask.person, limit=ask.params.limit + 1, after=after)
        show = partial(shown, shapes.SubscriptionShown)
        return page_of(shapes.SubscriptionPage, rows, ask.params, lambda one: one.subscription_id, show)

    @operation(
        "POST",
        "/subscriptions",
        "Subscribe an e-mail address or a webhook to notifications. The secret of a webhook is shown only once.",
        right=Right.SUBMIT,
        status=201,
        errors=(404, 409),
    )
    async def add_subscription(self, ask: Ask[NoParams, NewSubscriptionBody]) -> shapes.NewSubscriptionShown:
        body = ask.body
        added = await self._subscriptions.add(
            ask.person,
            Channel(body.channel),
            body.address,
            kinds=body.kinds,
            project_wide=body.project_wide,
            interval_s=body.interval_s,
            person=body.person,
        )
        return shown(shapes.NewSubscriptionShown, added)

    @operation(
        "PATCH",
        "/subscriptions/{subscription_id}",
        "Change the events of a subscription, or pause it.",
        right=Right.SUBMIT,
        errors=(404,),
    )
    async def set_subscription(self, ask: Ask[SubscriptionParams, SubscriptionBody]) -> shapes.SubscriptionShown:
        body, number = ask.body, ask.params.subscription_id
        changed = await self._subscriptions.set(
            ask.person, number, kinds=body.kinds, interval_s=body.interval_s, paused=body.paused
        )
        return shown(shapes.SubscriptionShown, changed)

    @operation(
        "DELETE", "/subscriptions/{subscription_id}", "Delete a subscription.", right=Right.SUBMIT, errors=(404,)
    )
    async def delete_subscription(self, ask: Ask[SubscriptionParams, None]) -> shapes.SubscriptionShown:
        return shown(shapes.SubscriptionShown, await self._subscriptions.delete(ask.person, ask.params.subscription_id))

    @operation(
        "POST",
        "/subscriptions/{subscription_id}/secret",
        "Make a new secret of a webhook. For a day, messages are also signed with the previous one.",
        right=Right.SUBMIT,
        errors=(404, 409),
    )
    async def rotate_secret(self, ask: Ask[SubscriptionParams, None]) -> shapes.NewSubscriptionShown:
        rotated = await self._subscriptions.rotate(ask.person, ask.params.subscription_id)
        return shown(shapes.NewSubscriptionShown, rotated)

    @operation(
        "POST",
        "/subscriptions/{subscription_id}/test",
        "Send a test message to a subscription.",
        right=Right.SUBMIT,
        errors=(404, 409),
    )
    async def test_subscription(self, ask: Ask[SubscriptionParams, None]) -> shapes.SubscriptionShown:
        return shown(shapes.SubscriptionShown, await self._subscriptions.test(ask.person, ask.params.subscription_id))

    @operation("GET", "/deliveries", "Deliveries of notifications, newest first.", errors=(404,))
    async def list_deliveries(self, ask: Ask[DeliveryPageParams, None]) -> shapes.DeliveryPage:
        before = key_of(ask.params.cursor, "deliveries", int)
        wanted = ask.params.subscription_id
        rows = await self._subscriptions.deliveries(
            ask.person, limit=ask.params.limit + 1, before=before, subscription_id=wanted
        )
        return page_of(shapes.DeliveryPage, rows, ask.params, lambda one: one.delivery.delivery_id, delivery_as_json)
