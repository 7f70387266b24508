"""Exports the daily statistics: the credit of volunteers, teams and hosts, as files that statistics sites download."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from domain.clock import Clock
from domain.credit import CreditKind
from domain.units import DAY_S, HOUR_S, Instant, Seconds, later
from store.applications import PostgresApplications
from store.participation import PostgresParticipation
from transfer.files import make_folder, open_new, sync, sync_folder, temporary_beside, write_atomically
from wire import statistics

EVERY_S = DAY_S
LOOK_EVERY_S = HOUR_S  # for an export older than a day
TABLES = "tables.xml"
WITHDRAWN_FOR_S = 60 * DAY_S  # deleted accounts and hosts are listed this long, as in BOINC
MODE = 0o644
LEVEL = 6

Record = TypeVar("Record")


@dataclass(frozen=True, slots=True)
class Exported:
    """The size of each file in bytes, and the duration. Without files, the last export is still current."""

    files: dict[str, int]
    took_s: Seconds


class StatisticsExport:
    """Writes the export's files to a directory. Each file is replaced atomically, tables.xml last."""

    def __init__(
        self, participation: PostgresParticipation, applications: PostgresApplications, folder: Path, clock: Clock
    ) -> None:
        self._participation = participation
        self._applications = applications
        self._folder = folder
        self._clock = clock

    async def run_once(self) -> Exported:
        """Export, unless the last export is less than a day old. Raises UnavailableError."""
        age_s = self._clock.now() - await asyncio.to_thread(_made_at, self._folder / TABLES)
        return Exported({}, Seconds(0.0)) if 0.0 <= age_s < EVERY_S - LOOK_EVERY_S else await self.export()

    async def export(self) -> Exported:
        """Write all files from one snapshot of the database. Raises UnavailableError."""
        began_s, now = self._clock.monotonic(), self._clock.now()
        await self._participation.forget_withdrawn(later(now, -WITHDRAWN_FOR_S))
        catalogue = await self._applications.load_catalogue()
        apps = [app.user_friendly_name or app.name for app in catalogue.apps.values() if not app.deprecated]
        await asyncio.to_thread(make_folder, self._folder)
        async with self._participation.export() as reader:
            gone = reader.withdrawn
            nbytes = {
                "user.gz": await self._write("user.gz", "users", statistics.volunteer, reader.volunteers(), now),
                "team.gz": await self._write("team.gz", "teams", statistics.team, reader.teams(), now),
                "host.gz": await self._write("host.gz", "hosts", statistics.host, reader.hosts(), now),
                "user_deleted.gz": await self._write(
                    "user_deleted.gz", "users_deleted", statistics.gone_volunteer, gone(CreditKind.VOLUNTEER), now
                ),
                "host_deleted.gz": await self._write(
                    "host_deleted.gz", "hosts_deleted", statistics.gone_host, gone(CreditKind.HOST), now
                ),
            }
            content = statistics.tables(await reader.totals(), apps, now)
        await asyncio.to_thread(write_atomically, self._folder / TABLES, content, mode=MODE)
        return Exported({**nbytes, TABLES: len(content)}, Seconds(self._clock.monotonic() - began_s))

    async def _write(
        self,
        name: str,
        tag: str,
        render: Callable[[Record, Instant], str],
        chunks: AsyncIterator[Sequence[Record]],
        now: Instant,
    ) -> int:
        """Write one file, chunk by chunk in a thread. Return its size in bytes."""
        path = self._folder / name
        temporary = temporary_beside(path)

        def write(chunk: Sequence[Record]) -> None:
            packed.write(statistics.encoded("".join([render(one, now) for one in chunk])))

        try:
            with open_new(temporary, mode=MODE) as file:
                with gzip.GzipFile(filename="", mode="wb", compresslevel=LEVEL, fileobj=file, mtime=int(now)) as packed:
                    packed.write(f"{statistics.DECLARATION}<{tag}>\n".encode())
                    async for chunk in chunks:
                        await asyncio.to_thread(write, chunk)
                    packed.write(f"</{tag}>\n".encode())
                await asyncio.to_thread(sync, file)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
        await asyncio.to_thread(sync_folder, path.parent)
        return path.stat().st_size


def _made_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return float("-inf")
