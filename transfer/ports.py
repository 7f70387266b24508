"""What file transfer needs from the database."""

from __future__ import annotations

from typing import Protocol

from domain.units import InstanceId, Instant


class UploadRecords(Protocol):
    async def record_upload(
        self, instance_id: InstanceId, *, name: str, nbytes: int, md5: str, completed_at: Instant
    ) -> bool:
        """Remember that an output is whole on disk; durable on return. Idempotent.

        False when there is no such instance: the file is then nobody's.
        """
        ...
