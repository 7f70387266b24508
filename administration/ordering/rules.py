"""Validates and changes grants and limits of accounts and submitters."""

from __future__ import annotations

from collections.abc import Sequence

from administration.names import checked_name, chosen
from domain.bounds import in_bounds
from domain.clock import Clock
from domain.errors import InvalidInputError, NotFoundError
from domain.limits import Limit, Quantity, Scope
from domain.ordered_work import Grant
from domain.units import AccountId, Seconds
from priority.charging import queues
from store.postgres import PostgresStore

QUANTITIES = {one.name.lower(): one for one in Quantity if one is not Quantity.IDLE_JOBS}  # by name


MOST_NAMED = 20  # existing names that a refusal lists


class Rules:
    """Manages grants and limits for the command line and the API. Changes take effect at the next ordering pass."""

    def __init__(self, store: PostgresStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def grants(self) -> dict[str, Grant]:
        """Return the grants as of the last ordering pass, by account name."""
        names = {one.account_id: one.name for one in await self._store.people.accounts()}
        return {names[one.account_id]: one for one in await self._store.ordering_rules.grants()}

    async def grant(self, account: str, *, granted_su: float, period_s: float) -> None:
        """Set an account's grant per period; its usage is kept. Raises InvalidInputError, NotFoundError."""
        in_bounds("granted_su", granted_su)
        in_bounds("period_s", period_s)
        account_id = (await self._account_ids()).get(account)
        if account_id is None:
            raise NotFoundError("account", account)
        known = (await self.grants()).get(account)
        now = self._clock.now()
        starts_at = now if known is None else min(now, known.period_start_at)
        await self._store.ordering_rules.put_grant(
            account_id, granted_su=granted_su, starts_at=starts_at, period_s=Seconds(period_s)
        )

    async def take_grant(self, account: str) -> None:
        """Remove an account's grant, so that its usage is no longer charged. Raises NotFoundError without a grant."""
        await self._store.ordering_rules.drop_grant((await self.grant_of(account)).account_id)

    async def grant_of(self, account: str) -> Grant:
        """Raises NotFoundError without a grant."""
        known = (await self.grants()).get(account)
        if known is None:
            raise NotFoundError("grant of account", account)
        return known

    async def limits(self) -> Sequence[Limit]:
        """Return all limits."""
        return await self._store.ordering_rules.limits()

    async def limit_of(self, scope: str, quantity: str, *, name: str | None = None) -> Limit:
        """Return the limit of one name, or the default. Raises InvalidInputError, NotFoundError."""
        key = chosen(Scope, scope, "scope"), _quantity(quantity), name
        found = next((one for one in await self.limits() if (one.scope, one.quantity, one.name) == key), None)
        if found is None:
            raise NotFoundError("limit", f"{scope} {quantity} {name or ''}".rstrip())
        return found

    async def limit(
        self,
        scope: str,
        quantity: str,
        *,
        name: str | None = None,
        soft: float | None = None,
        hard: float | None = None,
    ) -> Limit:
        """Set or replace a limit; without a name, it applies to all. Raises InvalidInputError, also for a name that
        does not exist.
        """
        made = Limit(
            chosen(Scope, scope, "scope"), _quantity(quantity), name if name is None else checked_name(name), soft, hard
        )
        for field, bound in (("soft", soft), ("hard", hard)):
            if bound is not None:
                in_bounds(field, bound)
        if soft is None and hard is None:
            raise InvalidInputError("soft", "a soft limit, a hard limit, or both", "")
        if soft is not None and hard is not None and soft > hard:
            raise InvalidInputError("soft", f"at most the hard limit of {hard:g}", soft)
        if name is not None and name not in (known := await self._names(made.scope)):
            some = f" ({', '.join(sorted(known)[:MOST_NAMED])})" if len(known) <= MOST_NAMED else ""
            raise InvalidInputError("name", f"the name of an existing {scope}{some}", name)
        await self._store.ordering_rules.put_limit(made)
        return made

    async def former_limit(self, scope: str, quantity: str, name: str | None) -> dict[str, object]:
        """Return the bounds of a limit before a change, for the audit trail; none if there is no such limit."""
        known = {(str(one.scope), one.quantity.name.lower(), one.name): one for one in await self.limits()}
        found = known.get((scope, quantity, name))
        return {} if found is None else {"soft": found.soft, "hard": found.hard}

    async def former_grant(self, account: str) -> dict[str, object]:
        """Return the grant of an account before a change, for the audit trail; empty without one."""
        found = (await self.grants()).get(account)
        return {} if found is None else {"granted_su": found.granted_su, "period_s": found.period_s}

    async def _names(self, scope: Scope) -> set[str]:
        match scope:
            case Scope.SUBMITTER:
                return {one.name for one in await self._store.people.submitters()}
            case Scope.ACCOUNT:
                return set(await self._account_ids())
            case Scope.APP:
                return {one.name for one in await self._store.applications.apps()}
            case _:
                settings = await self._store.settings.in_force()
                return set(queues(settings.ordering.queues))

    async def lift(self, scope: str, quantity: str, *, name: str | None = None) -> None:
        """Remove a limit. Raises InvalidInputError, NotFoundError."""
        await self._store.ordering_rules.drop_limit(chosen(Scope, scope, "scope"), _quantity(quantity), name)

    async def _account_ids(self) -> dict[str, AccountId]:
        return {one.name: one.account_id for one in await self._store.people.accounts()}


def _quantity(word: str) -> Quantity:
    """Return the quantity with this name. Idle jobs are limited by settings, equally for all users.

    >>> _quantity("job_pe")
    <Quantity.JOB_PE: 'processor equivalents per job'>
    """
    if word not in QUANTITIES:
        raise InvalidInputError("quantity", "one of " + ", ".join(QUANTITIES), word)
    return QUANTITIES[word]
