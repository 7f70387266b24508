"""Stores reservations for big jobs in PostgreSQL: leases in a table, reserved slots in a periodic task's report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from domain.dispatch import RequestWrites
from domain.host_classes import NO_CLASSES, AlikeHosts, ClassesByApp, HostClasses
from domain.ordered_work import Reference
from domain.ordering import Request
from domain.reservations import BigBatch, Kept, Lease, LeaseEnd, LeaseStanding, Reserved
from domain.units import AppId, Flop, Instant
from store import rows
from store.pool import Connection, OnDatabase
from store.queries import load
from store.rows import columns_of, encoded, mapper
from store.settings import read_report

KEPT = "kept slots"  # names of periodic tasks
CLASSES = "host classes found"


class PostgresReserving(OnDatabase):
    """Implements jobs' ReservedWork."""

    async def reference(self) -> Reference | None:
        last = await self._database.fetch_first("last_ordering")
        return rows.reference(last["reference"])

    async def big_batches(self, least: Request, app_ids: Sequence[AppId], limit: int) -> Sequence[BigBatch]:
        found = await self._database.fetch(
            "big_batches", least.cores, least.memory_bytes, least.disk_bytes, list(app_ids), limit
        )
        return [BigBatch(**row) for row in found]

    async def reserved(self) -> Reserved:
        return await self._database.in_transaction(read_reserved)

    async def standing_leases(self) -> Sequence[LeaseStanding]:
        return [_standing(row) for row in await self._database.fetch("standing_leases")]

    async def redundant_lines(self) -> Mapping[tuple[AppId, int], Mapping[int, Flop]]:
        batches = await self._database.fetch("redundant_batches")
        found: dict[tuple[AppId, int], dict[int, Flop]] = {(row["app_id"], row["hr_type"]): {} for row in batches}
        if found:
            ids = sorted({row["batch_id"] for row in batches})
            for row in await self._database.fetch("queued_of_classes", ids):
                found[row["app_id"], row["hr_type"]][row["hr_class"]] = Flop(row["flop"])
        return found

    async def alike_hosts(self, *, active_since: Instant) -> Sequence[AlikeHosts]:
        return [_alike_hosts(row) for row in await self._database.fetch("alike_hosts", active_since)]

    async def note_classes(self, classes: HostClasses) -> None:
        await self._database.execute("note_report", CLASSES, classes.computed_at, encoded(classes))

    async def reserve(
        self, kept: Sequence[Kept], ends: Sequence[LeaseEnd], *, forget_before: Instant, now: Instant
    ) -> None:
        async def write(connection: Connection) -> None:
            await connection.execute(load("note_report"), KEPT, now, encoded(tuple(kept)))
            over = sorted(ends, key=lambda one: one.host_id)
            if over:
                ids = ([one.host_id for one in over], [one.batch_id for one in over])
                await connection.execute(load("end_leases"), *ids, [one.because for one in over], now)
            await connection.execute(load("forget_leases"), forget_before, [one.host_id for one in over if one.of_use])

        await self._database.in_transaction(write)


async def read_reserved(connection: Connection) -> Reserved:
    """Return the reserved slots and leases for a catalogue."""
    kept = await read_report(connection, KEPT, tuple[Kept, ...]) or ()
    leases = [_lease(row) for row in await connection.fetch(load("list_leases"))]
    return Reserved({one.batch_id: one for one in kept}, {one.host_id: one for one in leases})


async def read_classes(connection: Connection) -> ClassesByApp:
    """Return the host classes for a catalogue."""
    found = await read_report(connection, CLASSES, HostClasses)
    return NO_CLASSES if found is None else ClassesByApp.made(found)


async def insert_leases(connection: Connection, writes: Sequence[RequestWrites]) -> None:
    """Insert the leases made by requests, in order of batch. Most groups of requests make none."""
    made = sorted((one.lease for one in writes if one.lease is not None), key=lambda lease: lease.batch_id)
    if made:
        await connection.execute(load("insert_leases"), *_lease_columns(made))


_lease_columns = columns_of("host_id batch_id processor_type cores start_at limit_s made_at expires_at")
_lease = mapper(Lease)
_standing = mapper(LeaseStanding, lease=_lease)
_alike_hosts = mapper(AlikeHosts)
