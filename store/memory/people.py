"""Accounts, submitters and volunteers over dictionaries."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace

from domain.batches import Account, Submitter
from domain.errors import AlreadyExistsError, ConflictError, NotFoundError
from domain.ordered_work import Permission
from domain.units import AccountId, Instant, SubmitterId, VolunteerId
from domain.volunteers import Credentials, Volunteer, VolunteerRecord
from store.memory.registry import Registry


class MemoryPeople:
    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def add_account(self, name: str, *, parent: str | None, shares: float) -> Account:
        registry = self._registry
        parent_id = None if parent is None else registry.account(parent).account_id
        if name in registry.account_ids:
            raise AlreadyExistsError("account", name)
        account = Account(AccountId(len(registry.accounts) + 1), name, parent_id, shares)
        registry.accounts[account.account_id] = account
        registry.account_ids[name] = account.account_id
        return account

    async def accounts(self) -> Sequence[Account]:
        return list(self._registry.accounts.values())

    async def set_account(self, name: str, *, shares: float) -> Account:
        account = replace(self._registry.account(name), shares=shares)
        self._registry.accounts[account.account_id] = account
        return account

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

    async def put_membership(self, submitter: str, *, account: str, shares: float) -> None:
        registry = self._registry
        submitter_id, account_id = registry.submitter(submitter).submitter_id, registry.account(account).account_id
        registry.memberships.setdefault(submitter_id, {})[account_id] = shares

    async def permit_account(self, name: str, permissions: Sequence[Permission]) -> None:
        account = self._registry.account(name)
        changed = replace(account, permissions=tuple(sorted(permissions)))
        self._registry.accounts[account.account_id] = changed

    async def permit_submitter(self, name: str, permissions: Sequence[Permission]) -> None:
        submitter = self._registry.submitter(name)
        changed = replace(submitter, permissions=tuple(sorted(permissions)))
        self._registry.submitters[submitter.submitter_id] = changed


class MemoryVolunteers:
    def __init__(self, registry: Registry) -> None:
        self._registry = registry

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

    async def volunteer_by_email(self, email: str) -> VolunteerRecord | None:
        volunteer_id = self._registry.volunteer_ids_by_email.get(email.lower())
        return None if volunteer_id is None else self._registry.volunteers[volunteer_id]

    async def volunteers(
        self, *, limit: int | None = None, after: VolunteerId | None = None
    ) -> Sequence[VolunteerRecord]:
        found = self._registry.volunteers.values()
        return [one for one in found if one.volunteer.volunteer_id > (after or 0)][:limit]

    async def set_volunteer(self, volunteer: Volunteer, *, instead_of: Volunteer | None = None) -> None:
        record = self._registry.volunteers.get(volunteer.volunteer_id)
        if instead_of is not None and (record is None or record.volunteer.preferred_at != instead_of.preferred_at):
            raise ConflictError("these preferences were changed elsewhere meanwhile")
        if record is None:
            raise NotFoundError("volunteer", volunteer.volunteer_id)
        changed = replace(
            record.volunteer,
            name=volunteer.name,
            beta=volunteer.beta,
            no_gpu=volunteer.no_gpu,
            max_jobs=volunteer.max_jobs,
            apps=volunteer.apps,
            no_cpu=volunteer.no_cpu,
            max_cpus=volunteer.max_cpus,
            preferred_at=volunteer.preferred_at,
        )
        self._registry.volunteers[volunteer.volunteer_id] = replace(record, volunteer=changed)

    async def set_volunteer_password(self, volunteer_id: VolunteerId, *, salt: bytes, password_hash: bytes) -> None:
        record = self._registry.volunteers.get(volunteer_id)
        if record is None:
            raise NotFoundError("volunteer", volunteer_id)
        kept = replace(record.credentials, password_salt=salt, password_hash=password_hash)
        self._registry.volunteers[volunteer_id] = replace(record, credentials=kept)
