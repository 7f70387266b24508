"""Stores the data that hosts send in addition to results: completed uploads and trickle messages."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from hashlib import sha256

from domain.dispatch import ExpectedOutput, Trickle, Upload
from domain.units import InstanceId, Instant
from lifecycle.states import ACCEPTS_OUTPUTS
from store.pool import Connection, OnDatabase
from store.queries import load


class PostgresUploads(OnDatabase):
    """Implements transfer's UploadRecords and UnneededFiles."""

    async def expected(self, instance_id: InstanceId, name: str) -> ExpectedOutput | None:
        row = await self._database.fetch_one("expected_output", instance_id, name)
        if row is None:
            return None
        recorded = None if row["md5"] is None else Upload(name, row["nbytes"], row["md5"])
        return ExpectedOutput(row["state"] in ACCEPTS_OUTPUTS, recorded)

    async def record_upload(
        self,
        instance_id: InstanceId,
        *,
        name: str,
        nbytes: int,
        md5: str,
        completed_at: Instant,
        replace: bool = False,
    ) -> bool:
        values = (instance_id, name, nbytes, md5, completed_at, sorted(ACCEPTS_OUTPUTS), replace)
        for query in ("record_upload", "record_finished_upload"):  # the instance may have been moved to the history
            if await self._database.fetch_one(query, *values) is not None:
                return True
        return False

    async def unneeded(self, files: Sequence[tuple[str, InstanceId]]) -> Collection[str]:
        names, instance_ids = [name for name, _ in files], [instance_id for _, instance_id in files]
        return [row["name"] for row in await self._database.fetch("unneeded_files", names, instance_ids)]


FORGET_AT_ONCE = 1000  # deleted per request with messages, so that deletion keeps up


class PostgresTrickles(OnDatabase):
    """Implements administration's Trickles; the ledger stores the messages of requests."""

    async def keep(self, found: Sequence[Trickle], *, per_instance: int, forget_before: Instant) -> int:
        """Store messages received at one instant. Return how many had no room. See the scheduler's Ledger."""

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
