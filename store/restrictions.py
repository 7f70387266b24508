"""Stores operators' restrictions of volunteers, hosts and work, and finds volunteers, in PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence

from domain.errors import NotFoundError
from domain.restrictions import Restricted, Restriction
from domain.units import BatchId, VolunteerId
from domain.volunteers import ListedVolunteer
from store.pool import Connection, OnDatabase
from store.queries import load
from store.rows import mapper, values_of

LAST_ID = 2**31 - 1

restriction_of = mapper(Restriction)
_values = values_of("kind name max_jobs why set_by set_at")
_listed = mapper(ListedVolunteer)


class PostgresRestrictions(OnDatabase):
    """Stores restrictions. Running services apply a change within seconds."""

    async def restrictions(self) -> Sequence[Restriction]:
        """Return all restrictions, latest first."""
        return [restriction_of(row) for row in await self._database.fetch("list_restrictions")]

    async def put(self, restriction: Restriction) -> None:
        await self._database.fetch("put_restriction", *_values(restriction))

    async def lift(self, kind: Restricted, name: str) -> None:
        """Raises NotFoundError."""
        if await self._database.fetch_one("drop_restriction", kind, name) is None:
            raise NotFoundError("restriction", f"{kind} {name}")

    async def volunteers(self, text: str, *, before: VolunteerId | None, limit: int) -> Sequence[ListedVolunteer]:
        """Return volunteers, newest first: all, or those with a text in their e-mail, name or a host's name, or with a
        host whose address is the text.
        """
        last = LAST_ID if before is None else before
        if text:
            pattern = f"%{pattern_of(text.lower())}%"
            found = await self._database.fetch("find_volunteers", pattern, text.lower(), last, limit)
        else:
            found = await self._database.fetch("newest_volunteers", last, limit)
        return await self.listed([row["volunteer_id"] for row in found])

    async def listed(self, volunteer_ids: Sequence[VolunteerId]) -> Sequence[ListedVolunteer]:
        """Return these volunteers, newest first, without missing ones."""
        return [_listed(row) for row in await self._database.fetch("volunteers_with", list(volunteer_ids))]


async def end_pauses(connection: Connection, batch_ids: Sequence[BatchId]) -> None:
    """Delete the pauses of batches that end. Without any, nothing is written: each write reloads all catalogues."""
    for row in await connection.fetch(load("paused_among"), batch_ids) if batch_ids else ():
        await connection.execute(load("drop_restriction"), Restricted.BATCH, row["name"])


def pattern_of(text: str) -> str:
    r"""Return a text as a part of a LIKE pattern.

    >>> pattern_of("50%_a")
    '50\\%\\_a'
    """
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
