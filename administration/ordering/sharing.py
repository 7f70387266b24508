"""Shows fair shares and usage of accounts and submitters; changes shares, memberships and permissions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from administration.names import checked_shares, chosen
from administration.show import shown
from domain.batches import Account, TreeKind
from domain.clock import Clock
from domain.errors import NotFoundError
from domain.ordered_work import Member, OrderingView, Permission
from domain.ordering_settings import OrderingSettings
from domain.units import AccountId, Instant
from jobs.ordering.usage import UsageLedger
from muster_client import shapes
from priority.charging import usage_weights
from priority.fair_share import FairShares, Leaf, Share, fair_shares
from priority.standings import credential_usage, window_of
from store.postgres import PostgresStore


class Sharing:
    """Manages shares and permissions for the command line and the API."""

    def __init__(self, store: PostgresStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def show(self) -> list[shapes.ShareShown]:
        """Return the tree, parents before children, with usage decayed to the current time."""
        settings = await self._store.settings.in_force()
        return share_rows(await self._store.ordering.view(), settings.ordering, self._clock.now())

    async def windows(self) -> shapes.WindowsShown:
        """Return recent usage of users, groups, accounts and levels, compared with their targets."""
        settings = await self._store.settings.in_force()
        view, now, length_s = await self._store.ordering.view(), self._clock.now(), settings.ordering.window_s
        ledger = UsageLedger(view, settings.ordering, now)
        delivered, rows = credential_usage(
            view.accounts,
            ledger.submitting({}),
            settings.ordering,
            now=now,
            level_windows=ledger.level_windows(),
        )
        newest = window_of(now, length_s)
        starts = [(newest - age) * length_s for age in range(len(delivered))]
        used = [shown(shapes.CredentialUsageShown, one) for one in rows]
        return {"window_s": length_s, "starts_at": starts, "delivered_flop": delivered, "usage": used}

    async def reset(self, *, submitter: str | None, account: str | None) -> int:
        """Reset recorded usage to 0, discard the windows behind targets, and return the number of records changed.

        Grants are kept. Work in progress is still corrected when it is returned. Raises NotFoundError.
        """
        people = self._store.people
        if submitter is not None:
            await people.submitter(submitter)
        if account is not None and account not in [one.name for one in await people.accounts()]:
            raise NotFoundError("account", account)
        return await self._store.ordering_rules.reset_usage(submitter=submitter, account=account)

    async def change_account(
        self,
        name: str,
        *,
        shares: float | None = None,
        permissions: Sequence[str] | None = None,
        parent: str | None = None,
        new_name: str | None = None,
    ) -> shapes.AccountStanding:
        """Change what is not None: move the account below `parent` ("" = to the top), rename it, set the others.

        Raises InvalidInputError, NotFoundError, AlreadyExistsError, and ConflictError for a place below itself.
        """
        _check(shares)
        _permitted(permissions or ())
        if parent is not None:
            await self._store.people.move_account(name, parent=parent or None)
        if new_name is not None:
            await self._store.people.rename("account", name, new_name)
            name = new_name
        if permissions is not None:
            await self._store.people.permit_account(name, _permitted(permissions))
        if shares is not None:
            await self._store.people.set_account(name, shares=shares)
        for one in await self._store.people.accounts():
            if one.name == name:
                return shown(shapes.AccountStanding, one)
        raise NotFoundError("account", name)

    async def change_submitter(
        self,
        name: str,
        *,
        shares: float | None = None,
        account: str | None = None,
        permissions: Sequence[str] | None = None,
        new_name: str | None = None,
    ) -> shapes.SubmitterStanding:
        """Change what is not None: rename the submitter, set shares (in `account`, if given) and permissions.

        Raises InvalidInputError, NotFoundError, AlreadyExistsError.
        """
        people = self._store.people
        if account is not None and shares is None:
            shares = 1.0
        _check(shares)
        _permitted(permissions or ())
        if new_name is not None:
            await people.rename("submitter", name, new_name)
            name = new_name
        if permissions is not None:
            await people.permit_submitter(name, _permitted(permissions))
        names = {one.account_id: one.name for one in await people.accounts()}
        if shares is not None and account not in (None, names[(await people.submitter(name)).account_id]):
            await people.put_membership(name, account=account, shares=shares)
        elif shares is not None:
            await people.set_submitter(name, shares=shares)
        changed = await people.submitter(name)
        further = await people.memberships(changed.submitter_id)
        further_accounts = {names[one]: part for one, part in further.items()}
        return shown(shapes.SubmitterStanding, changed, further_accounts=further_accounts)

    async def former(self, kind: str, name: str, account: str | None = None) -> dict[str, object]:
        """Return the values of an account or submitter before a change, for the audit trail.

        With `account`: a submitter's shares there; none before the submitter may use it.
        """
        for row in await self._store.people.tree():
            if row.name != name or (row.kind is TreeKind.ACCOUNT) != (kind == "account"):
                continue
            if kind == "account":
                return {"shares": row.shares, "parent": row.parent, "permissions": list(row.permissions)}
            if account in (None, row.parent):
                own = {} if account else {"permissions": list(row.permissions)}
                return {"shares": row.shares, **own}
        return {}


def share_rows(view: OrderingView, settings: OrderingSettings, now: Instant) -> list[shapes.ShareShown]:
    """Return the tree as rows. Accounts without any submitter below them are omitted."""
    weights = usage_weights(settings.usage_weights)
    used = {one.leaf: one.usage.read(now, settings.half_life_s).weighed(weights) for one in view.usage}
    leaves = [Leaf(*one.leaf, one.shares, used.get(one.leaf, 0.0)) for one in view.members]
    found = fair_shares(view.accounts, leaves, damping=settings.damping_factor)
    return list(_Rows(view.accounts, view.members, found).below(None, 0))


class _Rows:
    def __init__(self, accounts: Sequence[Account], members: Sequence[Member], found: FairShares) -> None:
        self._accounts = accounts
        self._members = members
        self._found = found

    def below(self, parent: AccountId | None, depth: int) -> Iterator[shapes.ShareShown]:
        for account in self._accounts:
            share = self._found.accounts.get(account.account_id)
            if account.parent_id != parent or share is None:
                continue
            yield _row(depth, account.name, None, share)
            for one in self._members:
                if one.account_id == account.account_id:
                    yield _row(depth + 1, account.name, one.name, self._found.leaves[one.leaf])
            yield from self.below(account.account_id, depth + 1)


def _row(depth: int, account: str, submitter: str | None, share: Share) -> shapes.ShareShown:
    """Return one node. JSON has no infinity, so the level weight of an unused node is null."""
    return shown(
        shapes.ShareShown,
        share,
        depth=depth,
        account=account,
        submitter=submitter,
        fairshare_ratio=share.ratio,
        level_weight=share.level_weight if math.isfinite(share.level_weight) else None,
        fairshare_rank=share.rank,
    )


def _permitted(permissions: Sequence[str]) -> list[Permission]:
    return sorted({chosen(Permission, one, "permission") for one in permissions})


def _check(shares: float | None) -> None:
    if shares is not None:
        checked_shares(shares)
