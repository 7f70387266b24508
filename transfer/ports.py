"""What file transfer needs from the database."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from domain.dispatch import ExpectedOutput
from domain.units import InstanceId, Instant


class UploadRecords(Protocol):
    async def expected(self, instance_id: InstanceId, name: str) -> ExpectedOutput | None:
        """What is known of an output; None when there is no such instance."""
        ...

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
        """Record that an output is whole on disk; durable on return. Idempotent.

        False when the instance does not exist or does not accept outputs, or when other content is recorded and
        `replace` is not set.
        """
        ...


class UnneededFiles(Protocol):
    async def unneeded(self, files: Sequence[tuple[str, InstanceId]]) -> Collection[str]:
        """Those of the files, given by name and instance, that nobody needs.

        They are not recorded, and their instance, if there is one, neither waits nor is under way.
        """
        ...
