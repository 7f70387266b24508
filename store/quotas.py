"""Stores the daily quotas shared by the computers of an account or address, and their numbers of new hosts per day.

Hosts are locked before quotas, and quotas in order of name, here and when results are reported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from domain.quotas import KEPT_DAYS, QuotaGrant, QuotaRequest, SharedQuota, account_name, grants, moved, names_of
from domain.units import HostId
from store.pool import Connection, OnDatabase
from store.queries import load
from store.rows import mapper

shared_quota = mapper(SharedQuota)


async def reserve_many(connection: Connection, requests: Sequence[QuotaRequest], start: int) -> list[QuotaGrant]:
    """Charge the quotas for each request in order, and record the address of each host."""
    networks = {one.host_id: one.network for one in requests}
    await connection.execute(load("note_networks"), list(networks), list(networks.values()))
    names = sorted({name for one in requests for name in one.names})
    rows = await connection.fetch(load("open_quotas"), names, max(one.day for one in requests), KEPT_DAYS)
    quotas = [shared_quota(row) for row in rows]
    found, charges = grants(requests, quotas, start)
    if charges:
        day = max(one.day for one in quotas)
        await connection.execute(load("charge_quotas"), list(charges), list(charges.values()), day)
    return found


async def release(connection: Connection, request: QuotaRequest, unused: int) -> None:
    """Subtract jobs that were not sent from the counts for the day of the request."""
    names = request.names
    await connection.execute(load("charge_quotas"), list(names), [-unused] * len(names), request.day)


async def forget(connection: Connection, before_day: int) -> None:
    """Delete quotas not used since the given day."""
    await connection.execute(load("forget_quotas"), before_day)


async def earn(connection: Connection, added: Mapping[HostId, int], start: int) -> None:
    """Adjust the quotas of the hosts' accounts and addresses for their results.

    Quotas that stay at a bound are not locked, because a large account is usually at its maximum when results arrive.
    """
    if not added or not start:
        return
    rows = await connection.fetch(load("quotas_of_hosts"), list(added))
    known = {account_name(row["volunteer_id"]): row["earned"] for row in rows}
    changes = [(row["volunteer_id"], row["network"], added[row["host_id"]]) for row in rows]
    moving = moved(known, changes, start)
    changes = [one for one in changes if account_name(one[0]) in moving]
    names = sorted({name for volunteer_id, network, _ in changes for name in names_of(volunteer_id, network)})
    if not names:
        return
    locked = await connection.fetch(load("lock_quotas"), names)
    after = moved({row["name"]: row["earned"] for row in locked}, changes, start)
    if after:
        await connection.execute(load("earn_quotas"), list(after), list(after.values()))


class PostgresArrivals(OnDatabase):
    """Implements runtime.rate_limits's Arrivals."""

    async def arrive(self, day: int, most: Mapping[str, int]) -> str | None:
        """Count a new host for every key in `most`. If a key is at its limit, return it and count nothing."""

        async def count(connection: Connection) -> None:
            await connection.execute(load("forget_arrivals"), day)
            for who in sorted(most):
                if await connection.fetchval(load("count_arrival"), day, who, most[who]) is None:
                    raise _FullError(who)

        try:
            await self._database.in_transaction(count)
        except _FullError as full:
            return full.who
        return None


class _FullError(Exception):
    """Raised to roll back the counts."""

    def __init__(self, who: str) -> None:
        super().__init__(who)
        self.who = who
