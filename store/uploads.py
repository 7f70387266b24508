"""Outputs that are whole on disk, in PostgreSQL."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from domain.units import InstanceId, Instant
from store.pool import Database


class PostgresUploads:
    """Satisfies transfer's UploadRecords and UnneededFiles."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def record_upload(
        self, instance_id: InstanceId, *, name: str, nbytes: int, md5: str, completed_at: Instant
    ) -> bool:
        for query in ("record_upload", "record_finished_upload"):  # the instance may have been moved to the history
            if await self._database.fetch_one(query, instance_id, name, nbytes, md5, completed_at) is not None:
                return True
        return False

    async def recorded_bytes(self, instance_id: InstanceId, name: str) -> int | None:
        row = await self._database.fetch_one("recorded_upload", instance_id, name)
        return None if row is None else int(row["nbytes"])

    async def unneeded(self, files: Sequence[tuple[str, InstanceId]]) -> Collection[str]:
        names, instance_ids = [name for name, _ in files], [instance_id for _, instance_id in files]
        return [row["name"] for row in await self._database.fetch("unneeded_files", names, instance_ids)]
