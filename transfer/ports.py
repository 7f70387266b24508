"""File transfer's ports to the database."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from domain.checking import KnownFile
from domain.dispatch import ExpectedOutput
from domain.units import InstanceId, Instant


class UploadRecords(Protocol):
    async def expected(self, instance_id: InstanceId, name: str) -> ExpectedOutput | None:
        """Return the record of an output, None if the instance does not exist."""
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
        """Record that an output is complete on disk. Durable on return, idempotent.

        Returns False if the instance is unknown or accepts no outputs, or if the content differs and `replace` is
        False.
        """
        ...


class UnneededFiles(Protocol):
    async def unneeded(self, files: Sequence[tuple[str, InstanceId]]) -> Collection[str]:
        """Return which of `files` (name, instance) are not needed.

        These are not recorded, and their instance, if it exists, is neither unsent nor in progress.
        """
        ...


class KnownFiles(Protocol):
    async def known(self, files: Sequence[tuple[str, InstanceId]]) -> Sequence[KnownFile]:
        """Return the records of files given by name and instance, in any order."""
        ...
