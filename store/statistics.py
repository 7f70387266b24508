"""What does a transaction change in the statistics of hosts' app versions? Gathered, then added relatively."""

from __future__ import annotations

from math import floor

from domain.havs import HavDelta, HavEvent, combine
from domain.settings import SchedulerSettings
from domain.units import DAY_S, AppVersionId, HostId, Instant
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
        changes = self._columns()
        if not changes[0]:
            return
        quotas = (settings.daily_quota_start, settings.daily_quota)
        found = await connection.fetch(load("change_statistics"), *changes, *quotas)
        if len(found) == len(changes[0]):
            return
        there = {(row["host_id"], row["app_version_id"]) for row in found}
        new = [position for position, key in enumerate(zip(changes[0], changes[1], strict=True)) if key not in there]
        changes = [[column[position] for position in new] for column in changes]
        await connection.execute(load("add_statistics_rows"), changes[0], changes[1])
        await connection.execute(load("change_statistics"), *changes, *quotas)

    def _columns(self) -> list[list[object]]:
        """The array arguments of sql/change_statistics.sql, keys in order."""
        deltas = {(delta.host_id, delta.app_version_id): delta for delta in combine(self._events)}
        keys = sorted({*deltas, *self._sent})
        lines = [self._line(key, deltas.get(key)) for key in keys]
        return [list(column) for column in zip(*lines, strict=True)] or [[]]

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
            *self._sent.get(key, (0, 0)),
        )
