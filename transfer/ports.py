"""What file transfer needs from the database."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from domain.units import InstanceId, Instant


class UploadRecords(Protocol):
    async def record_upload(
        self, instance_id: InstanceId, *, name: str, nbytes: int, md5: str, completed_at: Instant
    ) -> bool:
        """Remember that an output is whole on disk; durable on return. Idempotent.

        False when there is no such instance: the file then has no owner.
        """
        ...

    async def recorded_bytes(self, instance_id: InstanceId, name: str) -> int | None:
        """Bytes of an output that was recorded; None where it was not."""
        ...


class UnneededFiles(Protocol):
    async def unneeded(self, files: Sequence[tuple[str, InstanceId]]) -> Collection[str]:
        """Those of the files, given by name and instance, that nobody needs.

        They are not recorded, and their instance, if there is one, neither waits nor is under way.
        """
        ...
