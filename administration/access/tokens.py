"""Tokens of the API: made, looked up and revoked. The project's own token opens everything to who has its keys."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterable
from dataclasses import dataclass

from administration.access.errors import NotAllowedError, NotSignedInError
from administration.access.ports import AccessStore
from administration.access.sign_in import hash_of
from administration.access.who import Person, person_with
from administration.names import checked_name
from domain.access import Act, PersonRecord, Right, Role, Token
from domain.clock import Clock
from domain.errors import InvalidInputError
from domain.units import Instant, TokenId, later

PREFIX = "muster_"  # so that a token that lies about somewhere is known for one
NOTED_EVERY_S = 60.0
PROJECT = Person("api", Role.OPERATOR, Role.OPERATOR.rights)
DAYS_MOST = 3660


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token and the only sight of it. `waits_because`: what has to happen before it serves, if anything has to."""

    value: str
    token: Token
    waits_because: str | None


def _waits_because(owner: PersonRecord) -> str | None:
    if owner.one_time_until is None:
        return None
    return f"it is refused (403) until {owner.name} has signed in at the console for the first time"


class TokenDesk:
    """What the API, the console and the command line do with tokens."""

    def __init__(self, store: AccessStore, clock: Clock, *, project_token: str) -> None:
        self._store = store
        self._clock = clock
        self._project = hash_of(project_token)

    async def person_of(self, value: str) -> Person:
        """Whose token it is. Raises NotSignedInError for one that is unknown, expired or revoked."""
        given = hash_of(value)
        if hmac.compare_digest(given, self._project):
            return PROJECT
        found = await self._store.token(given)
        now = self._clock.now()
        if found is None or not found[0].serves(now):
            raise NotSignedInError(
                "the token is unknown, has expired or was revoked: send another as `Authorization: Bearer …`"
            )
        token, record = found
        if token.last_used_at is None or now - token.last_used_at >= NOTED_EVERY_S:
            await self._store.note_token_use(token.token_id, now=now)
        return person_with(record, rights=token.rights)

    async def add(
        self, owner: str, name: str, *, rights: Iterable[Right] | None = None, days: int | None = None
    ) -> NewToken:
        """A token of a person, with some of that person's rights, for some days or for good.

        Raises InvalidInputError, NotFoundError.
        """
        record = await self._store.person(owner)
        wanted = frozenset(record.role.rights if rights is None else rights)
        if not wanted or not wanted <= record.role.rights:
            known = ", ".join(one.value for one in Right if one in record.role.rights)
            raise InvalidInputError("scopes", f"some of {known}", ", ".join(sorted(wanted)) or "none")
        if days is not None and not 1 <= days <= DAYS_MOST:
            raise InvalidInputError("days", f"a whole number from 1 to {DAYS_MOST}", days)
        now, value = self._clock.now(), PREFIX + secrets.token_urlsafe(32)
        expires_at = None if days is None else Instant(later(now, days * 86400.0))
        token = await self._store.add_token(
            hash_of(value),
            name=checked_name(name),
            person_id=record.person_id,
            rights=wanted,
            expires_at=expires_at,
            now=now,
        )
        return NewToken(value, token, _waits_because(record))

    async def revoke(self, token_id: TokenId, *, by: Person) -> Token:
        """From now on it lets nobody in. Raises NotFoundError, and NotAllowedError for another person's."""
        if not by.may(Role.OPERATOR):
            own = await self._store.tokens(person_id=by.person_id, limit=1000)
            if token_id not in {one.token_id for one in own}:
                raise NotAllowedError(f"token {token_id} is not one of {by.name}'s")
        revoked = await self._store.revoke_token(token_id, now=self._clock.now())
        await self._store.note_act(Act(self._clock.now(), by.name, "revoke_token", f"token {token_id}"))
        return revoked
