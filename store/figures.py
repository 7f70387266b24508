"""How does the store itself do: connections, shared round trips, sessions and size of the database?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from domain.units import Instant, Seconds
from store.group import Grouped
from store.ledger import PostgresLedger
from store.pool import Database


@dataclass(frozen=True, slots=True)
class PoolFigures:
    """Connections of the pool, and what went through it so far: statements, and transactions as one each."""

    idle: int
    connections: int
    most: int
    calls: int


@dataclass(frozen=True, slots=True)
class GroupFigures:
    """Groups served so far by their size, asks that wait for the next one, and connections that serve them."""

    sizes: Mapping[int, int]
    waiting: int
    connections: int


@dataclass(frozen=True, slots=True)
class DatabaseFigures:
    """The database as a whole. `sessions` by state, as PostgreSQL names states; `oldest_s` of open transactions."""

    size_bytes: int
    oldest_s: Seconds
    sessions: Mapping[str, int]


class PostgresFigures:
    """What this process's store and its database come to. Nothing but `database` asks the database."""

    def __init__(self, database: Database, ledger: PostgresLedger) -> None:
        self._database = database
        self._ledger = ledger

    def pool(self) -> PoolFigures:
        return PoolFigures(*self._database.connections(), self._database.calls)

    def groups(self) -> Mapping[str, GroupFigures]:
        """Of those that read and those that write."""
        return {"read": _of(self._ledger.reads), "write": _of(self._ledger.writes)}

    async def database(self, now: Instant) -> DatabaseFigures:
        """Raises UnavailableError."""
        row = await self._database.fetch_one("database_figures", now)
        assert row is not None
        sessions = dict(zip(row["states"], row["sessions"], strict=True))
        return DatabaseFigures(row["size_bytes"], Seconds(row["oldest_s"] or 0.0), sessions)

    async def web_sessions(self, now: Instant) -> Mapping[str, int]:
        """Who is signed in: people of the project, and volunteers. Raises UnavailableError."""
        row = await self._database.fetch_one("count_web_sessions", now)
        assert row is not None
        return dict(row)


def _of(grouped: Grouped[Any, Any]) -> GroupFigures:  # Any: whatever is asked and answered
    return GroupFigures(grouped.sizes, grouped.waiting(), grouped.connected())
