"""Deletes what nobody will bring the rest of: parts and files that were never recorded, after a time without a byte.

A file the database knows of stays until it is purged, and so does everything of an instance that is under way. A round
looks at one of the 256 sub-folders, which one the time says, so that restarts leave none out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import structlog

from domain.clock import Clock
from domain.settings import StorageSettings
from domain.units import InstanceId, Instant, Seconds, later
from transfer.names import parse_output_name
from transfer.ports import UnneededFiles
from transfer.upload_folder import Leftover, UploadFolder

SUB_FOLDERS: Final = 256
LOOK_EVERY_S: Final = Seconds(300.0)  # at another sub-folder: at all of them in 21 hours
PAGE: Final = 1_000  # files between two questions to the database


@dataclass(frozen=True, slots=True)
class LeftoverReport:
    """One round: old unfinished files of a sub-folder, and those that were deleted."""

    old: int = 0
    deleted: int = 0
    deleted_bytes: int = 0


class LeftoverCleaner:
    """Runs in one process for each upload folder, however many nodes share it; two at once do no harm."""

    def __init__(
        self, folder: UploadFolder, files: UnneededFiles, clock: Clock, settings: Callable[[], StorageSettings]
    ) -> None:
        self._folder = folder
        self._files = files
        self._clock = clock
        self._settings = settings
        self._log = structlog.get_logger("transfer.leftovers")

    async def run_once(self) -> LeftoverReport:
        """Look at the sub-folder whose turn it is."""
        now = self._clock.now()
        sub_folder = f"{int(now // LOOK_EVERY_S) % SUB_FOLDERS:02x}"
        return await self.clean(sub_folder, before=later(now, -self._settings().keep_parts_s))

    async def clean(self, sub_folder: str, *, before: Instant) -> LeftoverReport:
        """Delete what nobody needs of a sub-folder, and nothing that changed since `before`."""
        old = [one for one in await asyncio.to_thread(self._folder.unfinished, sub_folder, before) if _instance(one)]
        deleted: list[Leftover] = []
        for start in range(0, len(old), PAGE):
            deleted += await self._delete(old[start : start + PAGE], before)
        if deleted:
            self._log.info("unfinished files deleted", files=len(deleted), nbytes=sum(one.nbytes for one in deleted))
        return LeftoverReport(len(old), len(deleted), sum(one.nbytes for one in deleted))

    async def _delete(self, old: Sequence[Leftover], before: Instant) -> list[Leftover]:
        """A whole file is made a part first and asked about once more: who brings it now has to bring it anew."""
        unneeded = await self._unneeded(old)
        aside = [one for one in unneeded if not one.whole or await asyncio.to_thread(self._folder.set_aside, one.name)]
        still = await self._unneeded(aside)
        for one in aside:
            if one not in still and one.whole:
                await asyncio.to_thread(self._folder.put_back, one.name)
        return [one for one in still if await asyncio.to_thread(self._folder.drop_part, one.name, before)]

    async def _unneeded(self, files: Sequence[Leftover]) -> list[Leftover]:
        if not files:
            return []
        names = set(await self._files.unneeded([(one.name, _instance(one) or InstanceId(0)) for one in files]))
        return [one for one in files if one.name in names]


def _instance(file: Leftover) -> InstanceId | None:
    output = parse_output_name(file.name)
    return None if output is None else output.instance_id
