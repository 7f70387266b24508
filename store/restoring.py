"""What a restored database needs before it serves: ids that no client and no file knows."""

from __future__ import annotations

from collections.abc import Sequence

from domain.checking import KnownFile, NewIds
from domain.units import InstanceId
from store.pool import Database
from store.queries import load

INT_STEP = 1_000_000  # hosts and the like; clients keep 31 bits, so there is room for 2,000 restores


class PostgresRestoring:
    """Satisfies administration.restoring's RestoredDatabase."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def known(self, files: Sequence[tuple[str, InstanceId]]) -> Sequence[KnownFile]:
        """What is known of some files, given by name and instance, in any order."""
        names, instance_ids = [name for name, _ in files], [instance_id for _, instance_id in files]
        rows = await self._database.fetch("check_files_known", names, instance_ids)
        return [KnownFile(row["name"], row["state"], row["nbytes"], row["reported_success"]) for row in rows]

    async def serving(self) -> int:
        """Sessions of processes that serve the project."""
        row = await self._database.fetch_one("sessions_that_lock")
        assert row is not None
        return int(row["sessions"])

    async def renumber(self, *, beyond: int, step: int) -> NewIds:
        """Move sequences `step` or more forward, past `beyond`, and give unsent instances new ids; all or nothing."""
        async with self._database.transaction() as connection:
            greatest = await connection.fetchval(load("greatest_instance_id"))
            behind = max(int(greatest), beyond) + step
            await connection.fetch(load("forget_uploads_of_unsent"))
            unsent = await connection.fetchval(load("renumber_unsent"), behind)
            advanced = await connection.fetch(load("advance_sequences"), behind + unsent, step, INT_STEP)
        return NewIds(unsent, len(advanced))
