"""Outputs that are whole on disk, in PostgreSQL."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from domain.dispatch import ExpectedOutput, Upload
from domain.units import InstanceId, Instant
from lifecycle.states import ACCEPTS_OUTPUTS
from store.pool import Database


class PostgresUploads:
    """Satisfies transfer's UploadRecords and UnneededFiles."""

    def __init__(self, database: Database) -> None:
        self._database = database

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
