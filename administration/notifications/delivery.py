"""Delivers notifications by e-mail and webhook, with retries."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import structlog

from administration.accounts import AccountKeys
from administration.mail import AT_ONCE as MAILS_AT_ONCE
from administration.mail import Mailer
from administration.notifications.messages import mail_text, webhook_body
from administration.notifications.webhook import Webhooks, signature
from domain.clock import Clock
from domain.errors import MusterError
from domain.notifications import MOST_ATTEMPTS, Channel, Delivery, DeliveryState, EventKind, RaisedEvent, Subscription
from domain.settings import Settings
from domain.units import DAY_S
from store.notifications import PostgresNotifications

EVERY_S = 4.0
AT_ONCE = 16  # of them mails: as many as the mailer sends at once, so that none waits and a round ends in time
MOST_OUTCOME_CHARS = 300
OVERLAP_S = DAY_S  # the previous secret of a webhook also signs for this long

log = structlog.get_logger()


class NoMailServerError(MusterError):
    """`mail.server` or `mail.sender` is not set."""


@dataclass(frozen=True, slots=True)
class DeliveryReport:
    attempts: int
    more: bool


class Deliverer:
    """Sends due deliveries at least once: a repeated one has the same key. A receiver that fails delays no other."""

    def __init__(
        self,
        store: PostgresNotifications,
        keys: AccountKeys,
        mailer: Mailer,
        webhooks: Webhooks,
        settings: Callable[[], Settings],
        clock: Clock,
    ) -> None:
        self._store = store
        self._keys = keys
        self._mailer = mailer
        self._webhooks = webhooks
        self._settings = settings
        self._clock = clock

    async def run_once(self) -> DeliveryReport:
        due = await self._store.due_deliveries(self._clock.now(), AT_ONCE, mails=MAILS_AT_ONCE)
        await asyncio.gather(*[self._attempt(*one) for one in due])
        mails = sum(subscription.channel is Channel.EMAIL for _, subscription, _ in due)
        return DeliveryReport(len(due), len(due) == AT_ONCE or mails == MAILS_AT_ONCE)

    async def _attempt(self, delivery: Delivery, subscription: Subscription, events: Sequence[RaisedEvent]) -> None:
        try:
            outcome, state = await self._send(delivery, subscription, events), DeliveryState.SENT
        except Exception as error:  # a fault, too: without an outcome, the delivery blocks its subscription for ever
            known = isinstance(error, (MusterError, ValueError))  # ValueError: text that no header may contain
            outcome = str(error) if known else f"internal error: {error!r}"
            state = DeliveryState.FAILED if delivery.attempts >= MOST_ATTEMPTS else DeliveryState.WAITING
            about = {"key": delivery.key, "attempts": delivery.attempts, "why": outcome}
            log.warning("notification not delivered", **about, exc_info=None if known else error)
        shown = "".join(one if one.isprintable() else "?" for one in outcome[:MOST_OUTCOME_CHARS])
        await self._store.end_attempt(delivery.delivery_id, state, shown, now=self._clock.now())

    async def _send(self, delivery: Delivery, subscription: Subscription, events: Sequence[RaisedEvent]) -> str:
        """Send a message and return the outcome. Raises MailError, NoMailServerError, WebhookError."""
        project = self._settings().project
        if subscription.channel is Channel.WEBHOOK:
            body = webhook_body(delivery, events, project)
            headers = {
                "Content-Type": "application/json",
                "User-Agent": "Muster",
                "Idempotency-Key": delivery.key,
                "Muster-Signature": signature(self._secrets(subscription), int(self._clock.now()), body),
            }
            return await self._webhooks.post(subscription.address, body, headers)
        if not self._mailer.is_on:
            raise NoMailServerError("mail.server or mail.sender is not set")
        number, address = subscription.subscription_id, subscription.address
        stop = f"{project.url}console/subscription/{number}/{self._keys.subscription_code(number, address)}"
        subject, text = mail_text(subscription, delivery, events, project, stop)
        headers = {"Message-ID": f"<{delivery.key}@{self._settings().mail.sender.partition('@')[2]}>"}
        if not any(one.kind is EventKind.CONFIRM for one in events):
            headers |= {"List-Unsubscribe": f"<{stop}>", "List-Unsubscribe-Post": "List-Unsubscribe=One-Click"}
        await self._mailer.send(address, subject, text, headers)
        return "accepted by the mail server"

    def _secrets(self, subscription: Subscription) -> list[str]:
        """Return the secrets that sign: the current one, and for a day after a rotation the previous one."""
        serial, rotated_at = subscription.secret_serial, subscription.rotated_at
        recent = rotated_at is not None and self._clock.now() - rotated_at < OVERLAP_S
        serials = [serial, serial - 1] if recent else [serial]
        return [self._keys.webhook_secret(subscription.subscription_id, one) for one in serials]
