"""How many new hosts volunteers and addresses brought today, in PostgreSQL: exact, however many workers count."""

from __future__ import annotations

from collections.abc import Mapping

from store.pool import Connection, Database
from store.queries import load


class PostgresArrivals:
    """Satisfies runtime.rate_limits's Arrivals."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def arrive(self, day: int, most: Mapping[str, int]) -> str | None:
        """Count a new host of everybody in `most`, or of nobody: then who has brought as many as it may."""

        async def count(connection: Connection) -> None:
            await connection.execute(load("forget_arrivals"), day)
            for who in sorted(most):
                if await connection.fetchval(load("count_arrival"), day, who, most[who]) is None:
                    raise _FullError(who)

        try:
            await self._database.in_transaction(count)
        except _FullError as full:
            return full.who
        return None


class _FullError(Exception):
    """Takes back what was counted."""

    def __init__(self, who: str) -> None:
        super().__init__(who)
        self.who = who
