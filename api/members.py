"""Accounts, submitters and volunteers changed over the API."""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from administration.ordering.sharing import Members, MemberStore
from administration.ports import Applications, Volunteers
from administration.volunteers import Wishes, change_volunteer
from api import shapes
from api.table import Ask, Route
from domain.access import Right
from domain.clock import Clock

TAG = "people"


class ChangedStore(MemberStore, Protocol):
    """What is read and written of the database."""

    @property
    def volunteers(self) -> Volunteers: ...
    @property
    def applications(self) -> Applications: ...


class NameParams(msgspec.Struct, forbid_unknown_fields=True):
    name: str


class EmailParams(msgspec.Struct, forbid_unknown_fields=True):
    email: str


class AccountBody(msgspec.Struct, forbid_unknown_fields=True):
    """What is left out stays. `permissions` are all there are from then on."""

    shares: float | None = None
    permissions: list[str] | None = None


class SubmitterBody(msgspec.Struct, forbid_unknown_fields=True):
    """What is left out stays. `account`: the shares are in that one, where the submitter may submit, too."""

    shares: float | None = None
    account: str | None = None
    permissions: list[str] | None = None


class VolunteerBody(msgspec.Struct, forbid_unknown_fields=True):
    """What is left out stays. `max_jobs`: most jobs in progress per host, `max_cpus`: most CPUs of a job; 0 = any.

    `apps`: the names of those chosen; an empty list: all, and those that are to come.
    """

    beta: bool | None = None
    cpu: bool | None = None
    gpu: bool | None = None
    max_jobs: int | None = None
    max_cpus: int | None = None
    apps: list[str] | None = None


class MembersApi:
    def __init__(self, store: ChangedStore, clock: Clock) -> None:
        self._volunteers = store.volunteers
        self._applications = store.applications
        self._clock = clock
        self._members = Members(store, clock)

    def routes(self) -> list[Route[Any, Any]]:
        return [
            Route(
                "PATCH",
                "/accounts/{name}",
                "set_account",
                "An account's shares, and what all who submit in it or below it may do.",
                self.set_account,
                TAG,
                shapes.AccountStanding,
                NameParams,
                body=AccountBody,
                right=Right.OPERATE,
                errors=(404,),
            ),
            Route(
                "PATCH",
                "/submitters/{name}",
                "set_submitter",
                "A submitter's shares, the accounts it may submit in, and what it may do.",
                self.set_submitter,
                TAG,
                shapes.SubmitterStanding,
                NameParams,
                body=SubmitterBody,
                right=Right.OPERATE,
                errors=(404,),
            ),
            Route(
                "PATCH",
                "/volunteers/{email}",
                "set_volunteer",
                "What a volunteer takes, and how much of it.",
                self.set_volunteer,
                TAG,
                shapes.VolunteerShown,
                EmailParams,
                body=VolunteerBody,
                right=Right.OPERATE,
                errors=(404, 409),
            ),
        ]

    async def set_account(self, ask: Ask[NameParams, AccountBody]) -> object:
        body = ask.body
        return await self._members.set_account(ask.params.name, shares=body.shares, permissions=body.permissions)

    async def set_submitter(self, ask: Ask[NameParams, SubmitterBody]) -> object:
        body = ask.body
        return await self._members.set_submitter(
            ask.params.name, shares=body.shares, account=body.account, permissions=body.permissions
        )

    async def set_volunteer(self, ask: Ask[EmailParams, VolunteerBody]) -> object:
        wishes = Wishes(**msgspec.structs.asdict(ask.body))
        now = self._clock.now()
        return await change_volunteer(self._volunteers, self._applications, ask.params.email, wishes, now=now)
