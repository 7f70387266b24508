"""What a volunteer sees of his own, in PostgreSQL: every query asks for the volunteer's things alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import asyncpg
import msgspec

from domain.errors import NotFoundError
from domain.jobs import InstanceState
from domain.refusals import Whys
from domain.units import HostId, VolunteerId
from domain.views import ListedInProgress
from domain.volunteers import OUTCOMES, Outcome, OwnHost, OwnResult, OwnTotals, ResultPlace
from store import rows
from store.listings import LAST_HOST_ID, LAST_ID, held_instance
from store.pool import Database

LOOKED_AT = 5000  # results of all kinds, for those that are chosen from them


class PostgresBelongings:
    """Satisfies the volunteers' pages' Belongings."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def hosts(self, volunteer_id: VolunteerId, *, before: HostId | None, limit: int) -> Sequence[OwnHost]:
        last = LAST_HOST_ID if before is None else before
        return [_own_host(row) for row in await self._database.fetch("hosts_of_volunteer", volunteer_id, last, limit)]

    async def host(self, volunteer_id: VolunteerId, host_id: HostId) -> OwnHost:
        row = await self._database.fetch_one("host_of_volunteer", volunteer_id, host_id)
        if row is None:
            raise NotFoundError("computer", host_id)
        return _own_host(row)

    async def held(
        self, volunteer_id: VolunteerId, *, host_id: HostId | None, limit: int
    ) -> Sequence[ListedInProgress]:
        found = await self._database.fetch("held_of_volunteer", volunteer_id, host_id, limit)
        return [held_instance(row) for row in found]

    async def results(
        self,
        volunteer_id: VolunteerId,
        *,
        outcome: Outcome | None,
        host_id: HostId | None,
        after: ResultPlace | None,
        limit: int,
    ) -> Sequence[OwnResult]:
        place: tuple[Any, ...] = (float("inf"), LAST_ID) if after is None else (after.sent_at, after.instance_id)
        states = None if outcome is None else [state for state, meant in OUTCOMES.items() if meant is outcome]
        looked_at = limit if outcome is None and host_id is None else LOOKED_AT
        found = await self._database.fetch(
            "results_of_volunteer", volunteer_id, *place, looked_at, host_id, states, limit
        )
        return [_own_result(row) for row in found]

    async def totals(self, volunteer_id: VolunteerId) -> OwnTotals:
        row = await self._database.fetch_one("totals_of_volunteer", volunteer_id)
        assert row is not None
        return OwnTotals(row["hosts"], row["in_progress"], row["valid"], row["failed"], row["late"])


def _own_host(row: asyncpg.Record) -> OwnHost:
    kept = row["refused"]
    refused = () if kept is None else msgspec.json.decode(kept, type=Whys)
    return OwnHost(rows.host(row), row["in_progress"], row["refused_at"], refused)


def _own_result(row: asyncpg.Record) -> OwnResult:
    return OwnResult(
        row["instance_id"],
        row["batch_id"],
        row["app_name"],
        row["host_id"],
        InstanceState(row["state"]),
        row["sent_at"],
        row["due_at"],
        row["reported_at"],
        row["elapsed_s"],
        row["reason"] or "",
    )
