"""Stores volunteers' public data in PostgreSQL: teams, consent to the statistics export, the export, and news."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar

import asyncpg

from domain.credit import CreditKind
from domain.errors import AlreadyExistsError, ConflictError, NotFoundError
from domain.participation import (
    ExportedHost,
    ExportedTeam,
    ExportedVolunteer,
    ExportTotals,
    News,
    Participation,
    ProjectFigures,
    Team,
    TeamMember,
    WithdrawnRecord,
)
from domain.progress import note_progress
from domain.units import HostId, Instant, TeamId, VolunteerId
from store import rows
from store.percentiles import bulk_connection
from store.pool import Connection, OnDatabase, lost_means_unavailable
from store.queries import load
from store.rows import mapper

AT_A_TIME = 2000  # rows per chunk

Record = TypeVar("Record")


_volunteer = mapper(ExportedVolunteer, credit=rows.credit_of)
_team = mapper(ExportedTeam, credit=rows.credit_of)
_host = mapper(ExportedHost, host=rows.host, credit=rows.credit_of)
_withdrawn = mapper(WithdrawnRecord)
_totals = mapper(ExportTotals)
_participation = mapper(Participation)
_team_of = mapper(Team, founder_name=rows.or_empty("founder_name"), exported="exported", credit=rows.credit_of)
_member = mapper(TeamMember, credit=rows.credit_of)
_news = mapper(News)
_figures = mapper(ProjectFigures)


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
    """Stores volunteers' choices, and reads the export."""

    async def participation(self, volunteer_id: VolunteerId) -> Participation:
        row = await self._database.fetch_one("participation_of", volunteer_id)
        return Participation() if row is None else _participation(row)

    async def set_export_consent(self, volunteer_id: VolunteerId, consent_at: Instant | None) -> None:
        """Record the consent to the export, or its withdrawal (None)."""
        await self._database.fetch("set_export_consent", volunteer_id, consent_at)

    # ------------------------------------------------------------------ teams

    async def team(self, team_id: TeamId) -> Team:
        """Raises NotFoundError."""
        return _team_of(await self._database.fetch_known("team_by_id", team_id, kind="team"))

    async def teams(self, text: str, *, now: Instant, limit: int) -> Sequence[Team]:
        """Return the teams whose names contain the text, in descending order of recent credit."""
        return [_team_of(row) for row in await self._database.fetch("teams_named", text.lower(), now, limit)]

    async def members(self, team_id: TeamId, *, limit: int) -> Sequence[TeamMember]:
        """Return the members in descending order of credit."""
        return [_member(row) for row in await self._database.fetch("members_of_team", team_id, limit)]

    async def add_team(self, name: str, founder_id: VolunteerId, *, url: str, description: str, now: Instant) -> TeamId:
        """Add a team, which its founder joins. Raises AlreadyExistsError."""

        async def write(connection: Connection) -> TeamId:
            team_id = TeamId(await connection.fetchval(load("insert_team"), name, founder_id, url, description, now))
            await connection.execute(load("join_team"), founder_id, team_id, now)
            return team_id

        try:
            return await self._database.in_transaction(write)
        except asyncpg.UniqueViolationError as error:
            raise AlreadyExistsError("team", name) from error

    async def change_team(
        self, team_id: TeamId, founder_id: VolunteerId, *, name: str, url: str, description: str
    ) -> None:
        """Raises AlreadyExistsError, and NotFoundError if the team has another founder."""
        try:
            await self._database.fetch_known("change_team", team_id, founder_id, name, url, description, kind="team")
        except asyncpg.UniqueViolationError as error:
            raise AlreadyExistsError("team", name) from error

    async def name_founder(self, team_id: TeamId, founder_id: VolunteerId, member_id: VolunteerId) -> None:
        """Make another member the founder. Raises NotFoundError, also if the team has another founder."""

        async def write(connection: Connection) -> None:
            await _own(connection, team_id, founder_id)
            if await connection.fetchval(load("name_founder"), team_id, member_id) is None:
                raise NotFoundError("member of this team with number", member_id)

        await self._database.in_transaction(write)

    async def drop_team(self, team_id: TeamId, founder_id: VolunteerId) -> None:
        """Delete a team. Its members keep their own credit. Raises NotFoundError if it has another founder."""

        async def write(connection: Connection) -> None:
            await _own(connection, team_id, founder_id)
            await _drop(connection, team_id)

        await self._database.in_transaction(write)

    async def join_team(self, volunteer_id: VolunteerId, team_id: TeamId | None, *, now: Instant) -> None:
        """Leave the current team and join another, or none if `team_id` is None.

        Raises NotFoundError, and ConflictError for the founder of the current team.
        """

        async def write(connection: Connection) -> None:
            if team_id is not None and await connection.fetchval(load("lock_team"), team_id) is None:
                raise NotFoundError("team", team_id)
            own = [row["team_id"] for row in await connection.fetch(load("teams_of_founder"), volunteer_id)]
            if own and own != [team_id]:
                raise ConflictError("you founded your team: give it to another member or delete it first")
            await connection.execute(load("join_team"), volunteer_id, team_id, None if team_id is None else now)

        await self._database.in_transaction(write)

    # ------------------------------------------------------------------ accounts and hosts that leave

    async def forget_volunteer(self, volunteer_id: VolunteerId, unused_hash: bytes, *, now: Instant) -> None:
        """Delete the personal data of an account. Its teams pass to their oldest members. Raises NotFoundError.

        `unused_hash` replaces the hash of the account key.
        """

        async def write(connection: Connection) -> None:
            for row in await connection.fetch(load("teams_of_founder"), volunteer_id):
                await connection.execute(load("lock_team"), row["team_id"])
                heir = await connection.fetchval(load("oldest_member"), row["team_id"], volunteer_id)
                if heir is None:
                    await _drop(connection, row["team_id"])
                else:
                    await connection.execute(load("name_founder"), row["team_id"], heir)
            if await connection.fetchval(load("forget_volunteer"), volunteer_id, unused_hash, now) is None:
                raise NotFoundError("volunteer", volunteer_id)

        await self._database.in_transaction(write)

    async def drop_host(self, volunteer_id: VolunteerId, host_id: HostId, *, now: Instant) -> None:
        """Raises ConflictError if the host has jobs in progress or a lease, or belongs to another volunteer."""
        if await self._database.fetch_one("drop_host", volunteer_id, host_id, now) is None:
            raise ConflictError("it has jobs in progress, or is promised to a batch: let it finish, or abort them")

    # ------------------------------------------------------------------ news and figures

    async def add_news(self, title: str, body: str, *, by: str, now: Instant) -> int:
        return int((await self._database.fetch_first("add_news", title, body, now, by))["news_id"])

    async def drop_news(self, news_id: int) -> str:
        """Delete a news item and return its title. Raises NotFoundError."""
        return str((await self._database.fetch_known("drop_news", news_id, kind="news"))["title"])

    async def news(self, *, limit: int) -> Sequence[News]:
        """Return the news, newest first."""
        return [_news(row) for row in await self._database.fetch("list_news", limit)]

    async def figures(self, now: Instant) -> ProjectFigures:
        """Count volunteers and hosts. This reads whole tables."""
        return _figures(await self._database.fetch_first("project_figures", now))

    # ------------------------------------------------------------------ the export

    async def forget_withdrawn(self, before: Instant) -> None:
        """Forget accounts and hosts that were deleted before this time."""
        await self._database.fetch("forget_withdrawn", before)

    @asynccontextmanager
    async def export(self) -> AsyncIterator[ExportReader]:
        """Open a reader on a snapshot of the database. Raises UnavailableError."""
        async with bulk_connection(self._database.dsn) as connection:
            with lost_means_unavailable():
                async with connection.transaction(isolation="repeatable_read", readonly=True):
                    yield ExportReader(connection)


async def _own(connection: Connection, team_id: TeamId, founder_id: VolunteerId) -> None:
    """Lock a team. Raises NotFoundError if it has another founder."""
    if await connection.fetchval(load("lock_team"), team_id) != founder_id:
        raise NotFoundError("team of yours with number", team_id)


async def _drop(connection: Connection, team_id: TeamId) -> None:
    await connection.execute(load("leave_all"), team_id)
    await connection.execute(load("drop_team"), team_id)
