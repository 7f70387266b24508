"""What accounts are granted, what is limited, what was used, and why batches stand where they stand, in PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from domain.errors import NotFoundError
from domain.limits import Limit, Quantity, Scope
from domain.ordered_work import LeafUsage, StoredGrant, WindowUsage
from domain.ordering import PlaceInOrder, ServiceLevel
from domain.units import AccountId, BatchId, Instant, Seconds
from store import order_rows, rows
from store.pool import Connection, Database
from store.queries import load


class PostgresOrderingRules:
    """Satisfies administration's OrderingRules."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def grants(self) -> Sequence[StoredGrant]:
        return [order_rows.grant(row) for row in await self._database.fetch("list_grants")]

    async def put_grant(
        self, account_id: AccountId, *, granted_su: float, starts_at: Instant, period_s: Seconds
    ) -> None:
        await self._execute("put_grant", account_id, granted_su, starts_at, period_s)

    async def drop_grant(self, account_id: AccountId) -> None:
        await self._execute("drop_grant", account_id)

    async def limits(self) -> Sequence[Limit]:
        return [order_rows.limit(row) for row in await self._database.fetch("list_limits")]

    async def put_limit(self, limit: Limit) -> None:
        key = (limit.scope, order_rows.quantity_word(limit.quantity), limit.name or "")
        await self._execute("put_limit", *key, limit.soft, limit.hard)

    async def drop_limit(self, scope: Scope, quantity: Quantity, name: str | None) -> None:
        key = (scope, order_rows.quantity_word(quantity), name or "")
        if await self._database.fetch_one("drop_limit", *key) is None:
            raise NotFoundError("limit", " ".join(key).strip())

    async def usage(self) -> Sequence[LeafUsage]:
        return [order_rows.leaf_usage(row) for row in await self._database.fetch("list_usage")]

    async def windows(self) -> Sequence[WindowUsage]:
        return [order_rows.window_usage(row) for row in await self._database.fetch("list_usage_windows")]

    async def set_user_priority(self, batch_id: BatchId, priority: int) -> None:
        if await self._database.fetch_one("set_user_priority", batch_id, priority) is None:
            raise NotFoundError("active batch", batch_id)

    async def set_service(self, batch_id: BatchId, *, level: ServiceLevel | None, queue: str | None) -> None:
        if await self._database.fetch_one("set_service", batch_id, level, queue) is None:
            raise NotFoundError("active batch", batch_id)

    async def set_account(self, batch_id: BatchId, account_id: AccountId) -> None:
        if await self._database.fetch_one("set_account", batch_id, account_id) is None:
            raise NotFoundError("active batch of which nothing was sent", batch_id)

    async def set_deadline(self, batch_id: BatchId, deadline_at: Instant) -> None:
        if await self._database.fetch_one("set_deadline", batch_id, deadline_at) is None:
            raise NotFoundError("active batch with a deadline", batch_id)

    async def in_order(self, limit: int) -> Sequence[BatchId]:
        return [row["batch_id"] for row in await self._database.fetch("batches_in_order", limit)]

    async def places(self, batch_ids: Sequence[BatchId]) -> Mapping[BatchId, PlaceInOrder]:
        found = await self._database.fetch("places_of_batches", list(batch_ids))
        return {row["batch_id"]: PlaceInOrder(row["place"], row["active"]) for row in found}

    async def breakdowns(self, batch_ids: Sequence[BatchId]) -> Mapping[BatchId, Mapping[str, object]]:
        found = {
            row["batch_id"]: row["record"] for row in await self._database.fetch("list_breakdowns", list(batch_ids))
        }
        return {batch_id: rows.decoded_object(text) for batch_id, text in found.items()}

    async def _execute(self, query: str, *arguments: object) -> None:
        async def write(connection: Connection) -> None:
            await connection.execute(load(query), *arguments)

        await self._database.in_transaction(write)
