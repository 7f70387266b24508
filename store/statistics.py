"""What does a transaction change in the statistics of hosts' app versions? Gathered, then added relatively."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor

from domain.havs import HavDelta, HavEvent, combine
from domain.quotas import earned
from domain.settings import SchedulerSettings
from domain.units import DAY_S, AppVersionId, HostId, Instant
from store import quotas
from store.pool import Connection
from store.queries import load

Key = tuple[HostId, AppVersionId]


class StatisticsChanges:
    """Events and dispatches by (host, app version). One per transaction."""

    def __init__(self) -> None:
        self._events: list[HavEvent] = []
        self._sent: dict[Key, tuple[int, int]] = {}

    def add(self, event: HavEvent | None) -> None:
        if event is not None:
            self._events.append(event)

    def note_dispatch(self, host_id: HostId, app_version_id: AppVersionId, sent_at: Instant) -> None:
        """Count an instance in sent_today; of two days, the later one counts."""
        key, day = (host_id, app_version_id), floor(sent_at / DAY_S)
        last_day, count = self._sent.get(key, (day, 0))
        if day >= last_day:
            self._sent[key] = (day, count + 1 if day == last_day else 1)

    async def write(self, connection: Connection, settings: SchedulerSettings) -> None:
        """Add everything gathered to the rows; rows seen for the first time are made."""
        if self._events:
            columns = self._columns(settings.daily_quota)
            await _change(connection, "change_statistics", columns, (settings.daily_quota_start,))
            await quotas.earn(connection, earned(self._events), settings.shared_quota_start)
        elif self._sent:
            lines = [(*key, *self._sent[key]) for key in sorted(self._sent)]
            await _change(connection, "count_sent", [list(column) for column in zip(*lines, strict=True)], ())

    def _columns(self, quota_most: int) -> list[list[object]]:
        """The array arguments of sql/hav_tables.sql (change_statistics), keys in order."""
        deltas = {
            (delta.host_id, delta.app_version_id): delta for delta in combine(self._events, quota_most=quota_most)
        }
        keys = sorted({*deltas, *self._sent})
        lines = [self._line(key, deltas.get(key)) for key in keys]
        return [list(column) for column in zip(*lines, strict=True)]

    def _line(self, key: Key, delta: HavDelta | None) -> tuple[object, ...]:
        judged, change = delta is not None, delta or HavDelta(*key, at=Instant(0.0))
        sums = (value for s in (change.speed, change.tight, change.relaxed) for value in (s.n, s.total, s.total_sq))
        return (
            *key,
            change.at,
            judged,
            change.valid_reset,
            change.valid_added,
            change.quota_factor,
            change.quota_added,
            *sums,
            change.log_n,
            change.log_sum,
            change.log_sum_sq,
            change.n_valid,
            change.n_error,
            change.n_timeout,
            change.tight_missed_n,
            *self._sent.get(key, (0, 0)),
            change.quota_least,
            change.quota_most,
        )


async def _change(
    connection: Connection, query: str, columns: Sequence[list[object]], others: tuple[object, ...]
) -> None:
    """Run a statement whose first two arguments are keys, once more for keys that had no row yet."""
    found = await connection.fetch(load(query), *columns, *others)
    if len(found) == len(columns[0]):
        return
    there = {(row["host_id"], row["app_version_id"]) for row in found}
    new = [position for position, key in enumerate(zip(columns[0], columns[1], strict=True)) if key not in there]
    columns = [[column[position] for position in new] for column in columns]
    await connection.execute(load("add_statistics_rows"), columns[0], columns[1])
    await connection.execute(load(query), *columns, *others)
