"""The quotas that computers of an account and at an address share, in PostgreSQL.

Rows of hosts are locked before those of quotas, and quotas in the order of their names, here and where results come in.
"""

from __future__ import annotations

from collections.abc import Mapping

from domain.quotas import KEPT_DAYS, QuotaGrant, QuotaRequest, bounds, grant
from domain.units import HostId
from store.pool import Connection
from store.queries import load


async def reserve(connection: Connection, request: QuotaRequest, start: int) -> QuotaGrant:
    """Charge what the quotas allow, and note where the host asked from."""
    await connection.execute(load("note_network"), request.host_id, request.network)
    await connection.execute(load("forget_quotas"), request.day - KEPT_DAYS)
    rows = await connection.fetch(load("open_quotas"), list(request.names), request.day)
    found = grant(request, [(row["name"], row["earned"], row["sent"]) for row in rows], start)
    if found.granted:
        await charge(connection, request, found.granted)
    return found


async def charge(connection: Connection, request: QuotaRequest, jobs: int) -> None:
    """Count so many more jobs as sent, on the day of the request; less than 0 takes back."""
    await connection.execute(load("charge_quotas"), list(request.names), request.day, jobs)


async def earn(connection: Connection, added: Mapping[HostId, int], start: int) -> None:
    """Add to the quotas of hosts what their results earned; quotas that are at their bound stay unlocked."""
    if added and start:
        await connection.execute(load("earn_quotas"), list(added), list(added.values()), *bounds(start))
