"""Whose service units does a batch spend, and which queue is it in when they are spent? No input or output."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from domain.batches import Account
from domain.errors import InvalidInputError
from domain.ordered_work import StoredGrant
from domain.units import AccountId, Instant
from priority.charging import Grant, Queue, queue_of


class Grants:
    """The grants of accounts in the periods they are in; an account without one spends that of the next above it."""

    def __init__(self, accounts: Iterable[Account], stored: Iterable[StoredGrant], now: Instant) -> None:
        self._parents = {account.account_id: account.parent_id for account in accounts}
        self._grants = {one.account_id: grant_of(one).at(now) for one in stored}
        self._stored = {one.account_id: one for one in stored}
        self._reserved = dict.fromkeys(self._grants, 0.0)

    def payer(self, account_id: AccountId) -> AccountId | None:
        """The account whose grant is spent."""
        found: AccountId | None = account_id
        while found is not None and found not in self._grants:
            found = self._parents.get(found)
        return found

    def queue_of(self, name: str, account_id: AccountId, queues: Mapping[str, Queue]) -> tuple[Queue, str]:
        """The queue a batch is really in, and why; one there is no more is as good as normal."""
        payer = self.payer(account_id)
        try:
            return queue_of(name, None if payer is None else self._grants[payer], queues)
        except InvalidInputError:
            plain = Queue(name, 1, 0.0, 1.0)
            return plain, f"{name}: there is no such queue any more; charged 1"

    def take(self, account_id: AccountId, *, used_su: float, reserved_su: float) -> None:
        """Charge a batch's account."""
        payer = self.payer(account_id)
        if payer is not None:
            self._grants[payer] = self._grants[payer].charged(used_su=used_su, reserved_su=0.0)
            self._reserved[payer] += reserved_su

    def charged(self) -> Sequence[StoredGrant]:
        """The grants that are not as they are stored."""
        found = []
        for account_id, grant in sorted(self._grants.items()):
            old = self._stored[account_id]
            new = replace(
                old,
                period_start_at=grant.period_start_at,
                used_su=grant.used_su,
                reserved_su=self._reserved[account_id],
            )
            if new != old:
                found.append(new)
        return found


def grant_of(stored: StoredGrant) -> Grant:
    """A grant as it is stored."""
    return Grant(
        stored.account_id,
        stored.granted_su,
        stored.period_start_at,
        stored.period_s,
        stored.used_su,
        stored.reserved_su,
    )
