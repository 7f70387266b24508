"""Collects a transaction's changes to batch counters and host statistics, then writes them in key order.

A trigger marks a batch as waiting when it gets its first unsent instance, and a batch may end when its jobs end. Both
update the batch's row, so every writer locks these rows in key order before the first counter.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from math import floor

import asyncpg

from domain.batches import BatchCounts
from domain.dispatch import InstanceStep
from domain.havs import HavDelta, HavEvent, combine
from domain.quotas import earned
from domain.settings import SchedulerSettings
from domain.units import DAY_S, AppVersionId, BatchId, HostId, InstanceId, Instant
from store import quotas
from store.counting import Counted, change_counts
from store.pool import Connection
from store.queries import load
from store.rows import values_of

FIELDS = tuple(field.name for field in fields(BatchCounts) if field.name != "jobs_total")  # as in add_counts


class CountChanges:
    """Collects changes to counters by batch. Use one object per transaction."""

    def __init__(self) -> None:
        self._changes: dict[BatchId, dict[BatchCounts, int]] = defaultdict(dict)

    def add(self, batch_id: BatchId, change: BatchCounts, times: int = 1) -> None:
        changes = self._changes[batch_id]
        changes[change] = changes.get(change, 0) + times

    def rising(self) -> set[BatchId]:
        """Return the batches whose number of unsent instances increases.

        >>> counts = CountChanges()
        >>> counts.add(BatchId(1), BatchCounts(unsent=1), 2)
        >>> counts.add(BatchId(1), BatchCounts(unsent=-1, sent=1))
        >>> counts.add(BatchId(2), BatchCounts(unsent=-1, sent=1))
        >>> counts.rising()
        {1}
        """
        return {batch_id for batch_id in self._changes if self._sum(batch_id, "unsent") > 0}

    async def write(self, connection: Connection, *, ended: Collection[BatchId] = ()) -> None:
        """Add the collected changes to the counters. `ended`: batches whose rows the caller will change afterwards."""
        locked = self.rising().union(ended)
        if locked:
            await connection.execute(load("lock_batches"), sorted(locked))
        batch_ids = sorted(self._changes)
        if batch_ids:
            columns = zip(*map(self._line, batch_ids), strict=True)
            await connection.execute(load("add_counts"), *map(list, columns))

    def _line(self, batch_id: BatchId) -> tuple[object, ...]:
        """Return one entry for each array argument of sql/settling.sql (add_counts)."""
        sums = (self._sum(batch_id, field) for field in FIELDS)
        return (batch_id, *sums)

    def _sum(self, batch_id: BatchId, field: str) -> int:
        return sum(getattr(change, field) * times for change, times in self._changes[batch_id].items())


Key = tuple[HostId, AppVersionId]


class StatisticsChanges:
    """Collects events and dispatches by (host, app version). Use one object per transaction."""

    def __init__(self) -> None:
        self._events: list[HavEvent] = []
        self._sent: dict[Key, tuple[int, int]] = {}

    def add(self, event: HavEvent | None) -> None:
        if event is not None:
            self._events.append(event)

    def note_dispatch(self, host_id: HostId, app_version_id: AppVersionId, sent_at: Instant) -> None:
        """Count an instance in sent_today. If dispatches are on two days, only the later day counts."""
        key, day = (host_id, app_version_id), floor(sent_at / DAY_S)
        last_day, count = self._sent.get(key, (day, 0))
        if day >= last_day:
            self._sent[key] = (day, count + 1 if day == last_day else 1)

    async def write(self, connection: Connection, settings: SchedulerSettings) -> None:
        """Add the collected changes to the rows, inserting missing rows."""
        if self._events or self._sent:
            await _change(connection, self._columns(settings.daily_quota), settings.daily_quota_start)
        if self._events:
            await quotas.earn(connection, earned(self._events), settings.shared_quota_start)

    def _columns(self, quota_most: int) -> list[list[object]]:
        """Return the array arguments of sql/percentiles.sql (change_statistics), in key order."""
        deltas = {
            (delta.host_id, delta.app_version_id): delta for delta in combine(self._events, quota_most=quota_most)
        }
        keys = sorted({*deltas, *self._sent})
        lines = [self._line(key, deltas.get(key)) for key in keys]
        return [list(column) for column in zip(*lines, strict=True)]

    def _line(self, key: Key, delta: HavDelta | None) -> tuple[object, ...]:
        change = _delta_values(delta or HavDelta(*key, at=Instant(0.0)))
        return (*key, delta is not None, *self._sent.get(key, (0, 0)), *change)


_delta_values = values_of(
    "at valid_reset valid_added quota_factor quota_added speed.n speed.total speed.total_sq tight.n tight.total"
    " tight.total_sq relaxed.n relaxed.total relaxed.total_sq log_n log_sum log_sum_sq n_valid n_error n_timeout"
    " tight_missed_n quota_least quota_most"
)


async def _change(connection: Connection, columns: Sequence[list[object]], quota_start: int) -> None:
    """Run the statement, whose first two arguments are keys, and run it again for keys that had no row."""
    found = await connection.fetch(load("change_statistics"), *columns, quota_start)
    if len(found) == len(columns[0]):
        return
    there = {(row["host_id"], row["app_version_id"]) for row in found}
    new = [position for position, key in enumerate(zip(columns[0], columns[1], strict=True)) if key not in there]
    columns = [[column[position] for position in new] for column in columns]
    await connection.execute(load("add_statistics_rows"), columns[0], columns[1])
    await connection.execute(load("change_statistics"), *columns, quota_start)


def distinct_steps(steps: Sequence[InstanceStep]) -> dict[InstanceId, InstanceStep]:
    """Return the first step of each instance."""
    first: dict[InstanceId, InstanceStep] = {}
    for step in steps:
        first.setdefault(step.instance_id, step)
    return first


def step_columns(steps: Mapping[InstanceId, InstanceStep]) -> tuple[list[object], ...]:
    """Return the array arguments of sql/settling.sql (step_instances) and sql/sweeping.sql (time_out_instances)."""
    return (
        list(steps),
        [step.from_state for step in steps.values()],
        [step.to_state for step in steps.values()],
        [step.turnaround_sample for step in steps.values()],
    )


def count_steps(
    made: Sequence[asyncpg.Record],
    steps: Mapping[InstanceId, InstanceStep],
    counts: CountChanges,
    statistics: StatisticsChanges,
) -> None:
    """Count the steps that were made, and record their events."""
    rows = {row["instance_id"]: row for row in made}
    for instance_id, step in steps.items():  # events count in the order of the steps
        row = rows.get(instance_id)
        if row is None:
            continue
        before = Counted(step.from_state, row["sent_at"], row["due_at"], row["reported_at"])
        after = Counted(step.to_state, row["sent_at"], row["due_at"], row["reported_at"])
        counts.add(row["batch_id"], change_counts(before, after))
        statistics.add(step.hav_event)
