"""Trickle messages of instances in PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

from domain.dispatch import Trickle
from domain.units import InstanceId, Instant
from store.pool import Connection, Database
from store.queries import load

FORGET_AT_ONCE = 1000  # per request that brings messages, so that as many go as come


class PostgresTrickles:
    """Satisfies administration's Trickles; the ledger stores what requests bring."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def keep(self, found: Sequence[Trickle], *, per_instance: int, forget_before: Instant) -> int:
        """Store messages that came at one instant; how many there was no room for. See the scheduler's Ledger."""

        async def store(connection: Connection) -> int:
            await connection.execute(load("forget_trickles"), forget_before, FORGET_AT_ONCE)
            too_many: int = await connection.fetchval(
                load("keep_trickles"),
                [one.instance_id for one in found],
                [one.sent_at for one in found],
                [_digest(one) for one in found],
                [one.variety for one in found],
                [one.text for one in found],
                found[0].received_at,
                per_instance,
            )
            return too_many

        return await self._database.in_transaction(store)

    async def of_instance(self, instance_id: InstanceId, *, after: int, limit: int) -> Sequence[Trickle]:
        return [Trickle(**row) for row in await self._database.fetch("trickles_of_instance", instance_id, after, limit)]


def _digest(one: Trickle) -> bytes:
    return sha256(f"{len(one.variety)} {one.variety}{one.text}".encode()).digest()
