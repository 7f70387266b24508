"""Manages subscriptions to notifications: each person's own, and everyone's for operators."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from administration.access.who import NotAllowedError, Person, RoleNeededError, TooManyAttemptsError
from administration.accounts import AccountKeys, checked_email
from administration.notifications.webhook import Webhooks
from domain.access import Guess, PersonRecord, Role
from domain.clock import Clock
from domain.errors import ConflictError, InvalidInputError, NotFoundError
from domain.notifications import KINDS, MOST_INTERVAL_S, Channel, DeliveryRow, EventKind, Subscription
from domain.settings import Settings
from domain.units import PersonId, Seconds, SubscriptionId
from store.notifications import PostgresNotifications
from store.people import PostgresAccess

UNNUMBERED = SubscriptionId(0)  # until it is stored


@dataclass(frozen=True, slots=True)
class NewSecret:
    """A subscription with the secret of its webhook, which is shown only now; None for e-mail."""

    subscription: Subscription
    secret: str | None


class Subscriptions:
    """Every method that names a subscription raises NotFoundError, also for another person's."""

    def __init__(
        self,
        store: PostgresNotifications,
        people: PostgresAccess,
        keys: AccountKeys,
        settings: Callable[[], Settings],
        clock: Clock,
    ) -> None:
        self._store = store
        self._people = people
        self._keys = keys
        self._settings = settings
        self._clock = clock
        self._webhooks = Webhooks(lambda: settings().notifications.private_networks)

    async def add(
        self,
        by: Person,
        channel: Channel,
        address: str,
        *,
        kinds: Sequence[str] | None,
        project_wide: bool,
        interval_s: float,
        person: str | None = None,
    ) -> NewSecret:
        """Add a subscription; `kinds` None: to all events. The owner of an e-mail address first has to confirm it.

        Raises InvalidInputError, NotAllowedError, NotFoundError (person), ConflictError, TooManyAttemptsError.
        """
        owner = await self._owner(by, person)
        if project_wide and owner.role is not Role.OPERATOR:
            raise RoleNeededError(Role.OPERATOR, owner.name)
        if not project_wide and owner.submitter_id is None:
            raise InvalidInputError("project_wide", f"true, because {owner.name} has no submitter", False)
        mail, now = self._settings().mail, self._clock.now()
        if channel is Channel.EMAIL and not (mail.server and mail.sender):
            who = "" if by.may(Role.OPERATOR) else "an operator has to "
            raise ConflictError(f"the project sends no mail: {who}set mail.server and mail.sender")
        is_email = channel is Channel.EMAIL
        checked = checked_email(address) if is_email else self._webhooks.checked_url(address)
        kinds, interval_s = _checked_kinds(KINDS if kinds is None else kinds), _checked_interval(interval_s)
        if is_email:  # its owner may be anyone, who gets a message at each request
            asked = Guess(f"confirm {checked}", f"person {by.name}")
            if wait_s := await self._people.begin_attempt(asked, now=now):
                raise TooManyAttemptsError(wait_s, "a message to confirm an address was requested")
        new = Subscription(
            UNNUMBERED, owner.person_id, owner.name, channel, checked, kinds, project_wide, interval_s, now
        )
        added = await self._store.add(new if is_email else replace(new, confirmed_at=now))
        if is_email:
            await self._send(added, EventKind.CONFIRM)
        return self._with_secret(added)

    async def own(self, by: Person, *, limit: int, after: int | None = None) -> Sequence[Subscription]:
        """Return the caller's subscriptions, all for operators."""
        return await self._store.subscriptions(person_id=_whose(by), after=after, limit=limit)

    async def deliveries(
        self, by: Person, *, limit: int, before: int | None = None, subscription_id: int | None = None
    ) -> Sequence[DeliveryRow]:
        """Return deliveries, newest first."""
        wanted = None if subscription_id is None else (await self._found(by, subscription_id)).subscription_id
        return await self._store.deliveries(person_id=_whose(by), subscription_id=wanted, before=before, limit=limit)

    async def set(
        self,
        by: Person,
        subscription_id: int,
        *,
        kinds: Sequence[str] | None = None,
        interval_s: float | None = None,
        paused: bool | None = None,
    ) -> Subscription:
        """Change the given fields. Raises InvalidInputError."""
        found = await self._found(by, subscription_id)
        return await self._store.set(
            found.subscription_id,
            kinds=None if kinds is None else _checked_kinds(kinds),
            interval_s=None if interval_s is None else _checked_interval(interval_s),
            paused=paused,
        )

    async def rotate(self, by: Person, subscription_id: int) -> NewSecret:
        """Make a new secret; for a day, messages are also signed with the previous one. Raises ConflictError."""
        found = await self._found(by, subscription_id)
        if found.channel is Channel.EMAIL:
            raise ConflictError(f"subscription {subscription_id} is to an e-mail address, which has no secret")
        return self._with_secret(await self._store.rotate(found.subscription_id, now=self._clock.now()))

    async def test(self, by: Person, subscription_id: int) -> Subscription:
        """Send a test message. Raises ConflictError while the address is not confirmed."""
        found = await self._found(by, subscription_id)
        if found.confirmed_at is None:
            raise ConflictError(f"{found.address} is not confirmed yet: open the link in the message it got")
        await self._send(found, EventKind.TEST)
        return found

    async def delete(self, by: Person, subscription_id: int) -> Subscription:
        found = await self._found(by, subscription_id)
        await self._store.delete(found.subscription_id)
        return found

    # ------------------------------------------------------------------ by the link in a message

    async def by_code(self, subscription_id: int, code: str) -> Subscription:
        """Return the subscription if the code in the link is right. Raises NotFoundError."""
        found = await self._store.subscription(subscription_id)
        right, given = self._keys.subscription_code(found.subscription_id, found.address), code.encode(errors="replace")
        if not hmac.compare_digest(right.encode(), given):
            raise NotFoundError("subscription", subscription_id)
        return found

    async def confirm(self, subscription_id: int, code: str) -> None:
        found = await self.by_code(subscription_id, code)
        await self._store.confirm(found.subscription_id, now=self._clock.now())

    async def stop(self, subscription_id: int, code: str) -> None:
        await self._store.delete((await self.by_code(subscription_id, code)).subscription_id)

    async def _owner(self, by: Person, person: str | None) -> PersonRecord:
        if person is not None and person != by.name and not by.may(Role.OPERATOR):
            raise NotAllowedError(f"{by.name} may subscribe only {by.name}")
        if person is None and by.person_id is None:
            raise InvalidInputError("person", "the owner of the subscription", "")
        return await self._people.person(by.name if person is None else person)

    async def _found(self, by: Person, subscription_id: int) -> Subscription:
        found = await self._store.subscription(subscription_id)
        if not by.may(Role.OPERATOR) and found.person_id != by.person_id:
            raise NotFoundError("subscription", subscription_id)
        return found

    async def _send(self, subscription: Subscription, kind: EventKind) -> None:
        key = f"{kind.value} {subscription.subscription_id} {secrets.token_hex(8)}"
        await self._store.send(subscription.subscription_id, kind, key, now=self._clock.now())

    def _with_secret(self, subscription: Subscription) -> NewSecret:
        if subscription.channel is Channel.EMAIL:
            return NewSecret(subscription, None)
        number, serial = subscription.subscription_id, subscription.secret_serial
        return NewSecret(subscription, self._keys.webhook_secret(number, serial))


def _whose(by: Person) -> PersonId | None:
    """Return whose subscriptions the caller sees: for operators None, everyone's."""
    return None if by.may(Role.OPERATOR) else by.person_id


def _checked_kinds(kinds: Sequence[str]) -> tuple[str, ...]:
    wrong = sorted(set(kinds).difference(KINDS))
    if wrong or not kinds:
        raise InvalidInputError("kinds", f"one or more of {', '.join(KINDS)}", ", ".join(wrong) or "none")
    return tuple(one.value for one in KINDS if one in set(kinds))


def _checked_interval(interval_s: float) -> Seconds:
    if not 0.0 <= interval_s <= MOST_INTERVAL_S:
        raise InvalidInputError("interval_s", f"a number from 0 to {MOST_INTERVAL_S:g}", interval_s)
    return Seconds(interval_s)
