"""Stores operators' restrictions of volunteers, hosts and work, and finds volunteers, in PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from domain.dispatch import InstanceStep
from domain.errors import NotFoundError
from domain.forecasting import began_in_pause
from domain.jobs import InstanceState
from domain.restrictions import Restricted, Restriction
from domain.units import BatchId, Instant, VolunteerId
from domain.volunteers import ListedVolunteer
from lifecycle.states import Event, advance
from store.counters import CountChanges, StatisticsChanges, count_steps, step_columns
from store.pool import Connection, OnDatabase
from store.queries import load
from store.rows import mapper, values_of

LAST_ID = 2**31 - 1
CHUNK = 500  # instances per transaction
BANNED = "an operator banned the host or its volunteer"  # reason of the instances that a ban ends

restriction_of = mapper(Restriction)
_values = values_of("kind name max_jobs why set_by set_at abort")
_listed = mapper(ListedVolunteer)


class PostgresRestrictions(OnDatabase):
    """Stores restrictions. Running services apply a change within seconds."""

    async def restrictions(self) -> Sequence[Restriction]:
        """Return all restrictions, latest first."""
        return [restriction_of(row) for row in await self._database.fetch("list_restrictions")]

    async def put(self, restriction: Restriction) -> Restriction:
        """Store a restriction and return it. One with the same `max_jobs` keeps the time when it began, `set_at`."""
        return replace(restriction, **await self._database.fetch_first("put_restriction", *_values(restriction)))

    async def batches_stopped(self, kind: Restricted, name: str) -> int:
        """Return how many active batches with fresh unsent instances a pause of this work stops."""
        return int((await self._database.fetch_first("count_stopped_batches", kind, name))["batches"])

    async def lift(self, kind: Restricted, name: str, *, now: Instant) -> None:
        """Raises NotFoundError."""

        async def write(connection: Connection) -> None:
            set_at = await connection.fetchval(load("drop_restriction"), kind, name)
            if set_at is None:
                raise NotFoundError("restriction", f"{kind} {name}")
            if kind.is_work:
                await connection.execute(load("batches_resumed"), now, began_in_pause(set_at, now), kind, name)

        await self._database.in_transaction(write)

    async def abort_jobs(self, kind: Restricted, name: str) -> int:
        """End all instances in progress of a host or volunteer, in small transactions, and return their number.

        Their jobs are marked, so that the validator replaces the instances. It is not held against the hosts.
        """
        number, is_host = int(name), kind is Restricted.HOST
        ended = advance(InstanceState.IN_PROGRESS, Event.SERVER_ABORTED).state

        async def abort_some(connection: Connection) -> int:
            of = (number, None) if is_host else (None, number)
            found = [row["instance_id"] for row in await connection.fetch(load("lock_in_progress"), *of, CHUNK)]
            if not found:
                return 0
            steps = {one: InstanceStep(one, InstanceState.IN_PROGRESS, ended, reason=BANNED) for one in found}
            made = await connection.fetch(
                load("step_instances"), *step_columns(steps), [BANNED] * len(found), [None] * len(found)
            )
            counts, statistics = CountChanges(), StatisticsChanges()
            count_steps(made, steps, counts, statistics)
            await connection.execute(load("mark_jobs"), sorted({row["job_id"] for row in made}))
            await counts.write(connection)
            return len(found)

        total = 0
        while some := await self._database.in_transaction(abort_some):
            total += some
        return total

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
