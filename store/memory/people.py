"""Accounts, submitters, volunteers, sign-in and the audit trail over dictionaries."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace

from domain.batches import Account, Submitter
from domain.errors import AlreadyExistsError
from domain.units import AccountId, Instant, SubmitterId, VolunteerId
from domain.volunteers import Credentials, Volunteer, VolunteerRecord
from store.memory.work import OnTables


class MemoryPeople(OnTables):
    async def accounts(self) -> Sequence[Account]:
        return list(self._registry.accounts.values())

    async def add_submitter(self, name: str, *, account: str, shares: float, now: Instant) -> Submitter:
        """`now` is when the submitter came to be; no question of this store depends on it."""
        del now
        registry = self._registry
        account_id = registry.account(account).account_id
        if name in registry.submitter_ids:
            raise AlreadyExistsError("submitter", name)
        submitter = Submitter(SubmitterId(len(registry.submitters) + 1), name, account_id, shares)
        registry.submitters[submitter.submitter_id] = submitter
        registry.submitter_ids[name] = submitter.submitter_id
        return submitter

    async def submitters(self) -> Sequence[Submitter]:
        return list(self._registry.submitters.values())

    async def submitter(self, name: str) -> Submitter:
        return self._registry.submitter(name)

    async def set_submitter(self, name: str, *, shares: float) -> Submitter:
        submitter = replace(self._registry.submitter(name), shares=shares)
        self._registry.submitters[submitter.submitter_id] = submitter
        return submitter

    async def memberships(self, submitter_id: SubmitterId) -> Mapping[AccountId, float]:
        return dict(sorted(self._registry.memberships.get(submitter_id, {}).items()))


class MemoryVolunteers(OnTables):
    async def add_volunteer(
        self, email: str, *, name: str, credentials: Credentials, cross_project_id: str, beta: bool, now: Instant
    ) -> VolunteerId:
        registry = self._registry
        email = email.lower()
        if email in registry.volunteer_ids_by_email:
            raise AlreadyExistsError("volunteer", email)
        if credentials.authenticator_hash in registry.volunteer_ids_by_hash:
            raise AlreadyExistsError("volunteer with the account key of", email)
        volunteer = Volunteer(
            VolunteerId(len(registry.volunteers) + 1),
            name,
            now,
            email_hash=hashlib.md5(email.encode(), usedforsecurity=False).hexdigest(),
            cross_project_id=cross_project_id,
            beta=beta,
        )
        registry.volunteers[volunteer.volunteer_id] = VolunteerRecord(volunteer, email, credentials)
        registry.volunteer_ids_by_email[email] = volunteer.volunteer_id
        registry.volunteer_ids_by_hash[credentials.authenticator_hash] = volunteer.volunteer_id
        return volunteer.volunteer_id
