"""Manages users, who may sign in to the console, and API tokens.

The project's own token gives all rights to anyone who can read its file.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from administration.access.sign_in import hash_of, one_time_password, stretched
from administration.access.who import NotAllowedError, NotSignedInError, Person, person_with
from administration.names import checked_name
from domain.access import AccessSettings, Act, PersonRecord, Right, Role, Stretched, Token
from domain.clock import Clock
from domain.errors import InvalidInputError
from domain.units import Instant, SubmitterId, TokenId, later
from store.people import PostgresAccess, PostgresPeople


@dataclass(frozen=True, slots=True)
class Invited:
    """A user with the one-time password, which is shown only now and must be changed at the first sign-in."""

    person: PersonRecord
    password: str
    until: Instant


class PeopleAdmin:
    """Manages users for the command line and the API."""

    def __init__(
        self,
        store: PostgresAccess,
        submitters: PostgresPeople,
        settings: Callable[[], AccessSettings],
        clock: Clock,
    ) -> None:
        self._store = store
        self._submitters = submitters
        self._settings = settings
        self._clock = clock

    async def add(self, name: str, *, role: Role, submitter: str | None = None) -> Invited:
        """Add a user. Raises InvalidInputError, AlreadyExistsError, or NotFoundError for an unknown submitter."""
        checked_name(name)
        submitter_id = await self._submitter_id(role, submitter)
        password, until, kept = await self._one_time()
        person = await self._store.add_person(
            name, role=role, submitter_id=submitter_id, password=kept, one_time_until=until, now=self._clock.now()
        )
        return Invited(person, password, until)

    async def set(
        self,
        name: str,
        *,
        role: Role | None = None,
        submitter: str | None = None,
        active: bool | None = None,
        by: str = "",
    ) -> PersonRecord:
        """Change the given fields. Reducing access or rights ends all sessions of the user.

        Raises InvalidInputError, NotFoundError, or NotAllowedError if the user `by` restricts the own account.
        """
        if name == by and (active is False or role not in (None, Role.OPERATOR)):
            raise NotAllowedError("you cannot restrict your own account: ask another operator")
        before = await self._store.person(name)
        wanted = before.role if role is None else role
        submitter_id = before.submitter_id
        if submitter is not None or (wanted is Role.SUBMITTER and submitter_id is None):
            submitter_id = await self._submitter_id(wanted, submitter)
        still = before.active if active is None else active
        changed = await self._store.set_person(before.person_id, role=wanted, submitter_id=submitter_id, active=still)
        if not still or not before.role.rights <= wanted.rights:
            await self._store.end_sessions_of_person(before.person_id)
        return changed

    async def invite_again(self, name: str) -> Invited:
        """Set a new one-time password and end all sessions of the user."""
        person = await self._store.person(name)
        password, until, kept = await self._one_time()
        await self._store.set_password(person.person_id, kept, one_time_until=until)
        await self._store.end_sessions_of_person(person.person_id)
        return Invited(person, password, until)

    async def _one_time(self) -> tuple[str, Instant, Stretched]:
        """Return a new one-time password, when it expires, and how it is stored."""
        password, until = one_time_password(), later(self._clock.now(), self._settings().one_time_s)
        return password, until, await asyncio.to_thread(stretched, password)

    async def end_sessions(self, name: str) -> int:
        """End all sessions of the user and return their number."""
        return await self._store.end_sessions_of_person((await self._store.person(name)).person_id)

    async def _submitter_id(self, role: Role, submitter: str | None) -> SubmitterId | None:
        if submitter is not None:
            return (await self._submitters.submitter(checked_name(submitter, "submitter"))).submitter_id
        if role is Role.SUBMITTER:
            raise InvalidInputError("submitter", "the submitter whose batches the user manages", "")
        return None


PREFIX = "muster_"  # makes leaked tokens recognisable
NOTED_EVERY_S = 60.0
PROJECT_NAME = "api"  # user name of the project's own token
DAYS_MOST = 3660


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token, with its value, which is shown only now. `waits_because` is why it is not valid yet, or None."""

    value: str
    token: Token
    waits_because: str | None


def _waits_because(owner: PersonRecord) -> str | None:
    if owner.one_time_until is None:
        return None
    return f"it is refused (403) until {owner.name} has signed in to the console for the first time"


class TokenAdmin:
    """Manages tokens for the API, the console and the command line."""

    def __init__(self, store: PostgresAccess, clock: Clock, *, project_token: str, user: str = PROJECT_NAME) -> None:
        self._store = store
        self._clock = clock
        self._project = hash_of(project_token)
        self._user = Person(user, Role.OPERATOR, Role.OPERATOR.rights)

    async def person_of(self, value: str) -> Person:
        """Return a token's owner. Raises NotSignedInError if the token is unknown, expired or revoked."""
        given = hash_of(value)
        if hmac.compare_digest(given, self._project):
            return self._user
        found = await self._store.token(given)
        now = self._clock.now()
        if found is None or not found[0].serves(now):
            raise NotSignedInError(
                "the token is unknown, expired or revoked: send a valid one as `Authorization: Bearer …`"
            )
        token, record = found
        if token.last_used_at is None or now - token.last_used_at >= NOTED_EVERY_S:
            await self._store.note_token_use(token.token_id, now=now)
        return person_with(record, rights=token.rights)

    async def add(
        self, owner: str, name: str, *, rights: Iterable[Right] | None = None, days: int | None = None
    ) -> NewToken:
        """Add a token with some or all of the owner's rights. Raises InvalidInputError, NotFoundError."""
        record = await self._store.person(owner)
        wanted = frozenset(record.role.rights if rights is None else rights)
        if not wanted or not wanted <= record.role.rights:
            known = ", ".join(one.value for one in Right if one in record.role.rights)
            raise InvalidInputError("scopes", f"any of {known}", ", ".join(sorted(wanted)))
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

    async def add_by(
        self,
        caller: Person,
        name: str,
        *,
        owner: str | None = None,
        rights: Iterable[Right] | None = None,
        days: int | None = None,
    ) -> tuple[str, NewToken]:
        """Add a token for the caller, with at most the caller's rights, or for `owner`. Return the owner's name, too.

        Raises InvalidInputError, NotFoundError, NotAllowedError.
        """
        whose = caller.name if owner is None else owner
        if whose != caller.name and not caller.may(Role.OPERATOR):
            raise NotAllowedError(f"{caller.name} may create tokens only for {caller.name}")
        if caller.person_id is None and owner is None:
            raise InvalidInputError("person", "the owner of the token", "")
        if whose == caller.name:
            rights = caller.rights if rights is None else frozenset(rights)
            if not rights <= caller.rights:
                have = sorted(caller.rights)
                raise NotAllowedError(f"a new token may have at most the scopes of the caller: {have}")
        return whose, await self.add(whose, name, rights=rights, days=days)

    async def revoke(self, token_id: TokenId, *, by: Person, address: str = "") -> Token:
        """Revoke a token, asked from an address. Raises NotFoundError, or NotAllowedError for another user's token."""
        if not by.may(Role.OPERATOR):
            own = await self._store.tokens(person_id=by.person_id, limit=1000)
            if token_id not in {one.token_id for one in own}:
                raise NotAllowedError(f"token {token_id} does not belong to {by.name}")
        revoked = await self._store.revoke_token(token_id, now=self._clock.now())
        note = Act(self._clock.now(), by.name, "revoke_token", f"token {token_id}", address=address)
        await self._store.note_act(note)
        return revoked
