"""Who may sign in: added, changed, given a new password, and shut out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from administration.access.passwords import COST, Cost, one_time_password, stretched
from administration.access.ports import AccessStore
from administration.names import checked_name
from domain.access import AccessSettings, PersonRecord, Role
from domain.batches import Submitter
from domain.clock import Clock
from domain.errors import InvalidInputError
from domain.units import Instant, SubmitterId, later


class KnownSubmitters(Protocol):
    async def submitter(self, name: str) -> Submitter: ...


@dataclass(frozen=True, slots=True)
class Invited:
    """A person and a password to begin with, which is shown only now and has to be changed at once."""

    person: PersonRecord
    password: str
    until: Instant


class PeopleDesk:
    """What the command line and the API do with people who sign in."""

    def __init__(
        self,
        store: AccessStore,
        submitters: KnownSubmitters,
        settings: Callable[[], AccessSettings],
        clock: Clock,
        *,
        cost: Cost = COST,
    ) -> None:
        self._store = store
        self._submitters = submitters
        self._settings = settings
        self._clock = clock
        self._cost = cost

    async def add(self, name: str, *, role: Role, submitter: str | None = None) -> Invited:
        """Somebody new. A submitter's batches are those of the submitter named, who must exist.

        Raises InvalidInputError, AlreadyExistsError, NotFoundError.
        """
        checked_name(name)
        submitter_id = await self._submitter_id(role, submitter)
        now, password = self._clock.now(), one_time_password()
        until = later(now, self._settings().one_time_s)
        kept = await asyncio.to_thread(stretched, password, self._cost)
        person = await self._store.add_person(
            name, role=role, submitter_id=submitter_id, password=kept, one_time_until=until, now=now
        )
        return Invited(person, password, until)

    async def set(
        self, name: str, *, role: Role | None = None, submitter: str | None = None, active: bool | None = None
    ) -> PersonRecord:
        """Change what is given. Whoever is shut out, or may do less, is signed out everywhere."""
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
        """A new password to begin with, for whoever has forgotten the old one; signed out everywhere."""
        person = await self._store.person(name)
        password, until = one_time_password(), later(self._clock.now(), self._settings().one_time_s)
        kept = await asyncio.to_thread(stretched, password, self._cost)
        await self._store.set_password(person.person_id, kept, one_time_until=until)
        await self._store.end_sessions_of_person(person.person_id)
        return Invited(person, password, until)

    async def end_sessions(self, name: str) -> int:
        """Sign somebody out everywhere; how many sessions that were."""
        return await self._store.end_sessions_of_person((await self._store.person(name)).person_id)

    async def _submitter_id(self, role: Role, submitter: str | None) -> SubmitterId | None:
        if submitter is not None:
            return (await self._submitters.submitter(checked_name(submitter, "submitter"))).submitter_id
        if role is Role.SUBMITTER:
            raise InvalidInputError("submitter", "whose batches are this person's own", "nothing")
        return None
