"""Reads and stores the order of batches in PostgreSQL: charges in one transaction, places in chunks, and rules."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from domain.limits import Limit, Quantity, Scope
from domain.ordered_work import (
    Grant,
    LeafId,
    LeafStanding,
    LogicalCorrection,
    OrderedBatch,
    OrderingCharges,
    OrderingView,
    Reference,
    StoredPlace,
)
from domain.ordering import PlaceInOrder, Request, ServiceLevel
from domain.units import DAY_S, AccountId, AppId, BatchId, FlopPerSecond, HostId, Instant, Seconds, SubmitterId
from domain.usage import UsageRow
from store import rows
from store.pool import Connection, Database, OnDatabase
from store.queries import load

CHUNK: Final = 1_000  # batches moved or explained per transaction


class PostgresOrdering(OnDatabase):
    """Implements jobs' OrderedWork."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._read: dict[BatchId, tuple[rows.Row, OrderedBatch]] = {}  # of the last view: most rows do not change

    async def view(self) -> OrderingView:
        """Read all input; counters after the serial, in one query, so that the next pass sees later changes."""
        last = await self._database.fetch_first("last_ordering")
        fetch = self._database.fetch
        return OrderingView(
            last["serial"],
            self._ordered(await fetch("batches_to_order")),
            [rows.account(row) for row in await fetch("list_accounts")],
            [rows.member(row) for row in await fetch("ordering_members")],
            [rows.leaf_usage(row) for row in await fetch("list_usage")],
            [rows.window_usage(row) for row in await fetch("list_usage_windows")],
            [rows.grant(row) for row in await fetch("list_grants")],
            [rows.limit(row) for row in await fetch("list_limits")],
            rows.reference(last["reference"]),
            last["newest_host_id"],
        )

    def _ordered(self, found: Sequence[rows.Row]) -> list[OrderedBatch]:
        """Convert rows to batches, reusing the objects of unchanged rows."""
        known, self._read = self._read, {}
        for row in found:
            batch_id = row["batch_id"]
            old = known.get(batch_id)
            self._read[batch_id] = old if old is not None and old[0] == row else (row, rows.ordered_batch(row))
        return [one for _, one in self._read.values()]

    async def reference(self, *, active_since: Instant, now: Instant) -> Reference:
        row = await self._database.fetch_first("reference_host", active_since)
        if not row["hosts"]:
            return Reference(now, newest_host_id=row["newest_host_id"])
        return Reference(
            now,
            Request(row["cores"], row["memory_bytes"], row["disk_bytes"]),
            Request(row["most_cores"], row["most_memory_bytes"], row["most_disk_bytes"]),
            FlopPerSecond(row["flop_per_s"]),
            row["pool_flop_per_s"],
            row["newest_host_id"],
        )

    async def used_fractions(self, batch_ids: Sequence[BatchId]) -> Mapping[BatchId, Sequence[float]]:
        found: dict[BatchId, list[float]] = {}
        for row in await self._database.fetch("used_of_estimates", list(batch_ids)):
            found.setdefault(row["batch_id"], []).append(row["used_fraction"])
        return found

    async def charge(self, charges: OrderingCharges) -> int | None:
        async def write(connection: Connection) -> int | None:
            told = (charges.serial, charges.now, rows.encoded(charges.reference))
            serial = await connection.fetchval(load("count_ordering"), *told)
            if serial is not None:
                await _write(connection, charges)
            return None if serial is None else int(serial)

        return await self._database.in_transaction(write)

    async def move(self, places: Sequence[StoredPlace]) -> int:
        by_id = {place.batch_id: place for place in sorted(places, key=lambda place: place.batch_id)}
        moved = 0
        ids = list(by_id)
        for start in range(0, len(ids), CHUNK):
            moved += await self._move(ids[start : start + CHUNK], by_id)
        return moved

    async def _move(self, ids: Sequence[BatchId], by_id: Mapping[BatchId, StoredPlace]) -> int:
        async def write(connection: Connection) -> int:
            locked = await connection.fetch(load("lock_places"), ids)
            moved = [by_id[row["batch_id"]] for row in locked]
            await connection.execute(load("move_batches"), *rows.place_columns(moved))
            return len(moved)

        return await self._database.in_transaction(write)

    async def explain(self, records: Mapping[BatchId, Mapping[str, object]], *, now: Instant) -> None:
        ids = sorted(records)
        for start in range(0, len(ids), CHUNK):
            some = ids[start : start + CHUNK]
            texts = [rows.encoded(records[batch_id]) for batch_id in some]
            await self._database.execute("write_breakdowns", some, [now] * len(some), texts)


async def _write(connection: Connection, charges: OrderingCharges) -> None:
    """Write all charges in key order. Empty parts are skipped, because most passes charge few submitters."""
    if charges.notes:
        ids = sorted(charges.notes)
        notes = rows.notes_columns([charges.notes[batch_id] for batch_id in ids])
        await connection.execute(load("write_batch_orders"), ids, *notes)
    forgotten = [*charges.forgotten, *await correct_logical_times(connection, charges.corrections)]
    if forgotten:
        await connection.execute(load("drop_batch_orders"), forgotten)
        await connection.execute(load("drop_breakdowns"), forgotten)
    if charges.usage:
        await connection.execute(load("write_usage"), *rows.usage_columns(charges.usage))
    if charges.windows:
        await connection.execute(load("add_usage_windows"), *rows.window_columns(charges.windows))
        await connection.execute(load("drop_usage_windows"), charges.windows_from)
    if charges.used:
        day = Instant(charges.now // DAY_S * DAY_S)
        await connection.execute(load("add_usage_days"), day, *rows.history_columns(charges.used))
        await connection.execute(load("thin_usage_days"), charges.days_from)
    if charges.standings:
        await _write_standings(connection, charges.standings, charges.now)
    if charges.grants:
        await connection.execute(load("write_grants"), *rows.grant_columns(charges.grants))


async def correct_logical_times(connection: Connection, corrections: Sequence[LogicalCorrection]) -> list[BatchId]:
    """Charge corrections of logical time, skipping submitters with a locked row. Return the charged batches."""
    if not corrections:
        return []
    found = await connection.fetch(load("correct_logical_times"), *rows.correction_columns(corrections))
    return [row["batch_id"] for row in found]


async def _write_standings(connection: Connection, standings: Mapping[LeafId, LeafStanding], now: Instant) -> None:
    leaves = sorted(standings)
    texts = [rows.encoded(standings[leaf]) for leaf in leaves]
    ids = ([submitter_id for submitter_id, _ in leaves], [account_id for _, account_id in leaves])
    await connection.execute(load("write_standings"), *ids, now, texts)


class PostgresOrderingRules(OnDatabase):
    """Stores grants, limits, usage, and the breakdown of each batch's place."""

    async def grants(self) -> Sequence[Grant]:
        return [rows.grant(row) for row in await self._database.fetch("list_grants")]

    async def put_grant(
        self, account_id: AccountId, *, granted_su: float, starts_at: Instant, period_s: Seconds
    ) -> None:
        """Replace the account's grant. Its usage is kept."""
        await self._database.execute("put_grant", account_id, granted_su, starts_at, period_s)

    async def drop_grant(self, account_id: AccountId) -> None:
        await self._database.execute("drop_grant", account_id)

    async def limits(self) -> Sequence[Limit]:
        return [rows.limit(row) for row in await self._database.fetch("list_limits")]

    async def put_limit(self, limit: Limit) -> None:
        """Store a limit, replacing one with the same scope, quantity and name."""
        key = (limit.scope, rows.quantity_word(limit.quantity), limit.name or "")
        await self._database.execute("put_limit", *key, limit.soft, limit.hard)

    async def drop_limit(self, scope: Scope, quantity: Quantity, name: str | None) -> None:
        """Raises NotFoundError."""
        key = (scope, rows.quantity_word(quantity), name or "")
        await self._database.fetch_known("drop_limit", *key, kind="limit", key=" ".join(key).strip())

    async def months_until(self) -> Instant | None:
        """Return the start of the last month of which the history of usage has no days; None: it has all days."""
        starts_at: Instant | None = (await self._database.fetch_first("last_usage_month"))["starts_at"]
        return starts_at

    async def usage_report(
        self,
        starts_at: Instant,
        ends_at: Instant,
        *,
        unit: str | None,
        by_account: bool,
        by_submitter: bool,
        accounts: Sequence[AccountId] | None,
        submitter_id: SubmitterId | None,
        limit: int,
    ) -> Sequence[UsageRow]:
        """Return the history of usage, of some accounts or of all (None), in sums by `unit`: day, week or month."""
        found = await self._database.fetch(
            "usage_report", starts_at, ends_at, unit, by_account, by_submitter, accounts, submitter_id, limit
        )
        return [rows.usage_row(row) for row in found]

    async def set_host_labels(self, host_id: HostId, labels: Sequence[str]) -> None:
        """Effective from the host's next request. Raises NotFoundError."""
        await self._database.fetch_known("set_host_labels", host_id, list(labels), kind="host")

    async def set_user_priority(self, batch_id: BatchId, priority: int) -> None:
        """Takes effect at the next ordering pass. Raises NotFoundError unless the batch is active."""
        await self._database.fetch_known("set_user_priority", batch_id, priority, kind="active batch")

    async def set_moved(self, batch_id: BatchId, by_at: Instant) -> None:
        """Record that changes move the batch, at the latest at `by_at`. Raises NotFoundError likewise."""
        await self._database.fetch_known("set_moved", batch_id, by_at, kind="active batch")

    async def reset_usage(self, *, submitter: str | None, account: str | None) -> int:
        """Delete all recorded usage, or only that of a submitter or an account. Return the number of records."""
        return len(await self._database.fetch("reset_usage", submitter, account))

    async def release(self, batch_id: BatchId) -> None:
        """End the batch's wait for other batches, as of the next ordering pass. Raises NotFoundError likewise."""
        await self._database.fetch_known("release_batch", batch_id, kind="active batch")

    async def set_service(
        self,
        batch_id: BatchId,
        *,
        level: ServiceLevel | None,
        queue: str | None,
        tiers: Mapping[ServiceLevel, int] | None = None,
    ) -> None:
        """Change the level, the queue, or both, as of the next ordering pass; the level at once if levels are `tiers`.
        Raises NotFoundError likewise.
        """
        by_level = None if tiers is None else rows.encoded({one.value: tier for one, tier in tiers.items()})
        await self._database.fetch_known("set_service", batch_id, level, queue, by_level, kind="active batch")

    async def set_account(self, batch_id: BatchId, account_id: AccountId) -> None:
        """Set the account to charge. Raises NotFoundError unless the batch is active and has no sent instance."""
        await self._database.fetch_known(
            "set_account", batch_id, account_id, kind="active batch without sent instances"
        )

    async def set_deadline(self, batch_id: BatchId, deadline_at: Instant) -> None:
        """Raises NotFoundError unless the batch is active and has a deadline."""
        await self._database.fetch_known("set_deadline", batch_id, deadline_at, kind="active batch with a deadline")

    async def in_order(self, limit: int) -> Sequence[BatchId]:
        """Return the first active batches, in dispatch order, with fresh unsent instances."""
        return [row["batch_id"] for row in await self._database.fetch("batches_in_order", limit)]

    async def places(
        self, batch_ids: Sequence[BatchId], apps: Collection[AppId], *, without: Collection[BatchId]
    ) -> Mapping[BatchId, PlaceInOrder]:
        """Return places among the ready batches of some apps with fresh unsent instances: those that are neither paused
        nor blocked. Others, and those of `without`, have no entry.
        """
        found = await self._database.fetch("places_of_batches", list(batch_ids), list(apps), list(without))
        return {row["batch_id"]: rows.place(row) for row in found}

    async def with_fresh(self, batch_ids: Sequence[BatchId]) -> Collection[BatchId]:
        """Return those of some batches that have fresh unsent instances."""
        return {row["batch_id"] for row in await self._database.fetch("batches_with_fresh", list(batch_ids))}

    async def around(
        self, place: tuple[int, float, BatchId], limit: int, *, without: Collection[BatchId]
    ) -> tuple[Sequence[BatchId], Sequence[BatchId]]:
        """Return the last `limit` active batches before a place in the order with fresh instances, and the
        first after it, both in order. `without`: batches that are left out.
        """
        found = await self._database.fetch("batches_around", *place, limit, list(without))
        before = [row["batch_id"] for row in found if row["is_before"]]
        return before[::-1], [row["batch_id"] for row in found if not row["is_before"]]

    async def breakdowns(self, batch_ids: Sequence[BatchId]) -> Mapping[BatchId, Mapping[str, object]]:
        """Return the stored breakdowns. A batch without one has no entry."""
        found = {
            row["batch_id"]: row["record"] for row in await self._database.fetch("list_breakdowns", list(batch_ids))
        }
        return {batch_id: rows.decoded_object(text) for batch_id, text in found.items()}
