"""Tests that each attempt at a delivery ends with an outcome."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import pytest

from administration.accounts import AccountKeys
from administration.mail import Mailer
from administration.notifications.delivery import Deliverer
from administration.notifications.webhook import Webhooks
from domain.notifications import MOST_ATTEMPTS, Channel, Delivery, DeliveryState, RaisedEvent, Subscription
from domain.settings import Settings
from domain.units import DeliveryId, Instant, PersonId, Seconds, SubscriptionId
from store.notifications import PostgresNotifications
from tests.unit.administration.clocks import StillClock

NOW = Instant(1000.0)


class Due:
    """Deliveries that are due, and how their attempts ended."""

    def __init__(self, *attempts: int) -> None:
        self.attempts = attempts
        self.ended = dict[int, tuple[DeliveryState, str]]()

    async def due_deliveries(
        self, now: Instant, limit: int, *, mails: int
    ) -> Sequence[tuple[Delivery, Subscription, Sequence[RaisedEvent]]]:
        return [(a_delivery(number, tried), a_subscription(number), ()) for number, tried in enumerate(self.attempts)]

    async def end_attempt(self, delivery_id: DeliveryId, state: DeliveryState, outcome: str, *, now: Instant) -> None:
        self.ended[delivery_id] = (state, outcome)


class Faulty(Webhooks):
    """Has a fault in the code, but only for one address."""

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> str:
        if url.endswith("/0"):
            raise KeyError("broken")
        return "HTTP status 204"


@pytest.mark.parametrize(("attempts", "state"), [(1, DeliveryState.WAITING), (MOST_ATTEMPTS, DeliveryState.FAILED)])
async def test_fault_is_an_outcome_and_stops_no_other(attempts: int, state: DeliveryState) -> None:
    due = Due(attempts, 1)

    report = await a_deliverer(due, Faulty(lambda: "")).run_once()

    assert report.attempts == 2
    assert (due.ended[0][0], "broken" in due.ended[0][1]) == (state, True)
    assert due.ended[1][0] is DeliveryState.SENT


def a_deliverer(due: Due, webhooks: Webhooks) -> Deliverer:
    settings = Settings()
    store = cast("PostgresNotifications", due)
    mailer = Mailer(lambda: settings.mail)
    return Deliverer(store, AccountKeys(b"secret"), mailer, webhooks, lambda: settings, StillClock())


def a_subscription(number: int) -> Subscription:
    return Subscription(
        SubscriptionId(number),
        PersonId(1),
        "grace",
        Channel.WEBHOOK,
        f"https://example.org/{number}",
        ("batch_done",),
        True,
        Seconds(0.0),
        NOW,
        NOW,
    )


def a_delivery(number: int, attempts: int) -> Delivery:
    key, state = f"key {number}", DeliveryState.WAITING
    return Delivery(DeliveryId(number), key, SubscriptionId(number), NOW, state, attempts, NOW, None, "", 0)
