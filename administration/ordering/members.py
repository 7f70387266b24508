"""Changes what accounts and submitters are owed and may do, and shows how they stand then."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from administration.ordering.rules import Rules, RuleStore
from administration.ordering.sharing import Sharing, SharingStore
from administration.shares import checked_shares
from domain.clock import Clock
from domain.errors import InvalidInputError


class MemberStore(SharingStore, RuleStore, Protocol):
    """What is read and written of the database."""


class Members:
    """What the command line and the API do with accounts and submitters."""

    def __init__(self, store: MemberStore, clock: Clock) -> None:
        self._store = store
        self._sharing = Sharing(store, clock)
        self._rules = Rules(store, clock)

    async def set_account(
        self, name: str, *, shares: float | None = None, permissions: Sequence[str] | None = None
    ) -> dict[str, object]:
        """Its shares, and what all who submit in it or below it may do; what is None stays.

        Raises InvalidInputError, NotFoundError.
        """
        _check(shares, permissions)
        if permissions is not None:
            await self._rules.permit(permissions, account=name)
        if shares is not None:
            await self._sharing.set_account(name, shares)
        [changed] = [one for one in await self._store.people.accounts() if one.name == name]
        return {
            "account_id": changed.account_id,
            "shares": changed.shares,
            "permissions": list(changed.permissions),
        }

    async def set_submitter(
        self,
        name: str,
        *,
        shares: float | None = None,
        account: str | None = None,
        permissions: Sequence[str] | None = None,
    ) -> dict[str, object]:
        """Its shares, which are in `account` where that is told, and what it may do; what is None stays.

        Raises InvalidInputError, NotFoundError.
        """
        if account is not None and shares is None:
            shares = 1.0
        _check(shares, permissions)
        if permissions is not None:
            await self._rules.permit(permissions, submitter=name)
        if shares is not None:
            await self._sharing.set_submitter(name, shares, account)
        people = self._store.people
        changed = await people.submitter(name)
        names = {one.account_id: one.name for one in await people.accounts()}
        further = await people.memberships(changed.submitter_id)
        return {
            "submitter_id": changed.submitter_id,
            "shares": changed.shares,
            "further_accounts": {names[one]: part for one, part in further.items()},
            "permissions": list(changed.permissions),
        }


def _check(shares: float | None, permissions: Sequence[str] | None) -> None:
    if shares is None and permissions is None:
        raise InvalidInputError("shares", "shares or permissions", "neither")
    if shares is not None:
        checked_shares(shares)
