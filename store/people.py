"""Accounts, submitters and volunteers in PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import asyncpg

from domain.batches import Account, Submitter
from domain.errors import AlreadyExistsError, ConflictError, NotFoundError
from domain.ordered_work import Permission
from domain.units import AccountId, Instant, SubmitterId, VolunteerId
from domain.volunteers import Credentials, Volunteer, VolunteerRecord
from store import rows
from store.pool import Database


class PostgresPeople:
    """Satisfies administration's People."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add_account(self, name: str, *, parent: str | None, shares: float) -> Account:
        parent_id = None if parent is None else (await self._account(parent)).account_id
        try:
            row = await self._database.fetch_one("insert_account", name, parent_id, shares)
        except asyncpg.UniqueViolationError as error:
            raise AlreadyExistsError("account", name) from error
        return rows.account(_present(row, "account", name))

    async def accounts(self) -> Sequence[Account]:
        return [rows.account(row) for row in await self._database.fetch("list_accounts")]

    async def set_account(self, name: str, *, shares: float) -> Account:
        row = await self._database.fetch_one("update_account_shares", name, shares)
        return rows.account(_present(row, "account", name))

    async def add_submitter(self, name: str, *, account: str, shares: float, now: Instant) -> Submitter:
        account_id = (await self._account(account)).account_id
        try:
            row = await self._database.fetch_one("insert_submitter", name, account_id, shares, now)
        except asyncpg.UniqueViolationError as error:
            raise AlreadyExistsError("submitter", name) from error
        return rows.submitter(_present(row, "submitter", name))

    async def submitters(self) -> Sequence[Submitter]:
        return [rows.submitter(row) for row in await self._database.fetch("list_submitters")]

    async def submitter(self, name: str) -> Submitter:
        row = await self._database.fetch_one("submitter_by_name", name)
        return rows.submitter(_present(row, "submitter", name))

    async def set_submitter(self, name: str, *, shares: float) -> Submitter:
        row = await self._database.fetch_one("update_submitter_shares", name, shares)
        return rows.submitter(_present(row, "submitter", name))

    async def memberships(self, submitter_id: SubmitterId) -> Mapping[AccountId, float]:
        found = await self._database.fetch("memberships_of", submitter_id)
        return {row["account_id"]: row["shares"] for row in found}

    async def put_membership(self, submitter: str, *, account: str, shares: float) -> None:
        who, where = await self.submitter(submitter), await self._account(account)
        await self._database.fetch("put_membership", who.submitter_id, where.account_id, shares)

    async def permit_account(self, name: str, permissions: Sequence[Permission]) -> None:
        row = await self._database.fetch_one("permit_account", name, sorted(permissions))
        _present(row, "account", name)

    async def permit_submitter(self, name: str, permissions: Sequence[Permission]) -> None:
        row = await self._database.fetch_one("permit_submitter", name, sorted(permissions))
        _present(row, "submitter", name)

    async def _account(self, name: str) -> Account:
        return rows.account(_present(await self._database.fetch_one("account_by_name", name), "account", name))


class PostgresVolunteers:
    """Satisfies administration's Volunteers."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add_volunteer(
        self, email: str, *, name: str, credentials: Credentials, cross_project_id: str, beta: bool, now: Instant
    ) -> VolunteerId:
        row = await self._database.fetch_one(
            "insert_volunteer",
            email.lower(),
            name,
            credentials.authenticator_nonce,
            credentials.authenticator_hash,
            credentials.password_salt,
            credentials.password_hash,
            cross_project_id,
            beta,
            now,
        )
        if row is None:
            raise AlreadyExistsError("volunteer", email.lower())
        return VolunteerId(row["volunteer_id"])

    async def volunteer_by_email(self, email: str) -> VolunteerRecord | None:
        row = await self._database.fetch_one("volunteer_by_email", email.lower())
        return None if row is None else rows.volunteer_record(row)

    async def volunteers(
        self, *, limit: int | None = None, after: VolunteerId | None = None
    ) -> Sequence[VolunteerRecord]:
        return [rows.volunteer_record(row) for row in await self._database.fetch("list_volunteers", limit, after or 0)]

    async def set_volunteer(self, volunteer: Volunteer, *, instead_of: Volunteer | None = None) -> None:
        row = await self._database.fetch_one(
            "update_volunteer",
            volunteer.volunteer_id,
            volunteer.name,
            volunteer.beta,
            volunteer.no_gpu,
            volunteer.max_jobs,
            list(volunteer.apps),
            volunteer.no_cpu,
            volunteer.max_cpus,
            volunteer.preferred_at,
            instead_of is not None,
            None if instead_of is None else instead_of.preferred_at,
        )
        if row is None and instead_of is not None:
            raise ConflictError("these preferences were changed elsewhere meanwhile")
        _present(row, "volunteer", volunteer.volunteer_id)

    async def set_volunteer_password(self, volunteer_id: VolunteerId, *, salt: bytes, password_hash: bytes) -> None:
        row = await self._database.fetch_one("update_volunteer_password", volunteer_id, salt, password_hash)
        _present(row, "volunteer", volunteer_id)


def _present(row: asyncpg.Record | None, kind: str, key: object) -> asyncpg.Record:
    if row is None:
        raise NotFoundError(kind, key)
    return row
