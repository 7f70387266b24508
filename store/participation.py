"""Volunteers' public side in PostgreSQL: consent to the statistics, and the records of their export."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar

import asyncpg

from domain.credit import Credit, CreditKind
from domain.participation import (
    ExportedHost,
    ExportedTeam,
    ExportedVolunteer,
    ExportTotals,
    Participation,
    WithdrawnRecord,
)
from domain.progress import note_progress
from domain.units import Instant, VolunteerId
from store import rows
from store.percentiles import bulk_connection
from store.pool import OnDatabase, lost_means_unavailable
from store.queries import load
from store.rows import mapper

AT_A_TIME = 2000  # rows

Record = TypeVar("Record")


def credit(row: rows.Row) -> Credit:
    """Return the credit in a row's column; none for null."""
    return rows.credit(row["credit"])


_volunteer = mapper(ExportedVolunteer, credit=credit)
_team = mapper(ExportedTeam, credit=credit)
_host = mapper(ExportedHost, host=rows.host, credit=credit)
_withdrawn = mapper(WithdrawnRecord)
_totals = mapper(ExportTotals)
_participation = mapper(Participation)


class ExportReader:
    """Reads the export's records from one snapshot of the database, in chunks."""

    def __init__(self, connection: asyncpg.Connection[asyncpg.Record]) -> None:
        self._connection = connection

    async def totals(self) -> ExportTotals:
        row = await self._connection.fetchrow(load("export_totals"))
        assert row is not None
        return _totals(row)

    def volunteers(self) -> AsyncIterator[Sequence[ExportedVolunteer]]:
        return self._chunks(_volunteer, "exported_volunteers")

    def teams(self) -> AsyncIterator[Sequence[ExportedTeam]]:
        return self._chunks(_team, "exported_teams")

    def hosts(self) -> AsyncIterator[Sequence[ExportedHost]]:
        return self._chunks(_host, "exported_hosts")

    def withdrawn(self, kind: CreditKind) -> AsyncIterator[Sequence[WithdrawnRecord]]:
        return self._chunks(_withdrawn, "withdrawn_of_kind", kind)

    async def _chunks(
        self, made: Callable[..., Record], query: str, *arguments: object
    ) -> AsyncIterator[Sequence[Record]]:
        cursor = await self._connection.cursor(load(query), *arguments)
        while found := await cursor.fetch(AT_A_TIME):
            note_progress()
            yield [made(row) for row in found]


class PostgresParticipation(OnDatabase):
    """Volunteers' choices, and the export."""

    async def participation(self, volunteer_id: VolunteerId) -> Participation:
        row = await self._database.fetch_one("participation_of", volunteer_id)
        return Participation() if row is None else _participation(row)

    async def set_export_consent(self, volunteer_id: VolunteerId, consent_at: Instant | None) -> None:
        """Note the consent to the export, or its withdrawal (None)."""
        await self._database.fetch("set_export_consent", volunteer_id, consent_at)

    @asynccontextmanager
    async def export(self) -> AsyncIterator[ExportReader]:
        """Open one snapshot of the database. Raises UnavailableError."""
        async with bulk_connection(self._database.dsn) as connection:
            with lost_means_unavailable():
                async with connection.transaction(isolation="repeatable_read", readonly=True):
                    yield ExportReader(connection)
