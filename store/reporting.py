"""How do reports and detaches of many requests end their instances?"""

from __future__ import annotations

from collections.abc import Sequence

import asyncpg

from domain.dispatch import Report, RequestWrites
from domain.jobs import InstanceState
from domain.units import HostId, InstanceId, Instant, JobId
from store.counters import CountChanges, Counted, change_counts
from store.pool import Connection
from store.queries import load
from store.statistics import StatisticsChanges

STDERR_BYTES = 65_536  # kept of a report
INT32 = 2**31 - 1


async def record_reports(
    connection: Connection, writes: Sequence[RequestWrites], counts: CountChanges, statistics: StatisticsChanges
) -> set[JobId]:
    """Make the reports' steps; returns the jobs something happened to. A report that lost a race is left out."""
    reports: dict[InstanceId, tuple[Report, HostId]] = {}
    for write in writes:
        for report in write.reports:
            reports.setdefault(report.instance_id, (report, write.host.host_id))  # said twice counts once
    if not reports:
        return set()
    made = await _make_steps(connection, list(reports.values()))
    await _keep_stderr(connection, [reports[row["instance_id"]][0] for row in made])
    rows = {row["instance_id"]: row for row in made}
    for instance_id, (report, _) in reports.items():  # a host's events count in the order it reports them
        if instance_id in rows:
            row = rows[instance_id]
            before = _counted(row, report.from_state, row["reported_before_at"])
            after = _counted(row, report.to_state, report.reported_at)
            counts.add(row["batch_id"], row["shard"], change_counts(before, after))
            statistics.add(report.hav_event)
    return {row["job_id"] for row in made}


async def record_detaches(connection: Connection, writes: Sequence[RequestWrites], counts: CountChanges) -> set[JobId]:
    """End what detached hosts held; returns the jobs something happened to."""
    host_ids = sorted({write.host.host_id for write in writes if write.detach})
    if not host_ids:
        return set()
    made = await connection.fetch(load("abort_on_hosts"), host_ids)
    for row in made:
        before, after = (_counted(row, state, None) for state in (InstanceState.IN_PROGRESS, InstanceState.ABORTED))
        counts.add(row["batch_id"], row["shard"], change_counts(before, after))
    return {row["job_id"] for row in made}


async def _make_steps(connection: Connection, reports: Sequence[tuple[Report, HostId]]) -> list[asyncpg.Record]:
    return await connection.fetch(
        load("record_reports"),
        [report.instance_id for report, _ in reports],
        [host_id for _, host_id in reports],
        [report.from_state for report, _ in reports],
        [report.to_state for report, _ in reports],
        [report.reported_at for report, _ in reports],
        [report.elapsed_s for report, _ in reports],
        [report.cpu_s for report, _ in reports],
        [max(-INT32, min(INT32, report.exit_status)) for report, _ in reports],
        [storable(report.reason) for report, _ in reports],
        [report.turnaround_sample for report, _ in reports],
    )


async def _keep_stderr(connection: Connection, reports: Sequence[Report]) -> None:
    kept = [report for report in reports if report.stderr and report.to_state is not InstanceState.REPORTED]
    if kept:
        texts = [storable(report.stderr) for report in kept]
        await connection.execute(load("record_stderr"), [report.instance_id for report in kept], texts)


def storable(text: str) -> str:
    """`text` as PostgreSQL can keep it: without NUL, whole characters, at most 64 KiB.

    >>> storable("a\\0b")
    'ab'
    """
    return text.replace("\0", "").encode("utf-8", "replace")[:STDERR_BYTES].decode("utf-8", "ignore")


def _counted(row: asyncpg.Record, state: InstanceState, reported_at: Instant | None) -> Counted:
    return Counted(state, row["sent_at"], row["due_at"], reported_at)
