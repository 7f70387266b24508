"""Compares the volunteers' records with the database and the upload folder."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import asyncpg

from administration.checking.files import shard_of
from domain.jobs import instance_id_of
from tests.chaos.told import Told

INSTANCES = """
    SELECT instance_id, host_id, state, reported_at, exit_status, reason
    FROM instance WHERE instance_id = ANY($1::bigint[])
    UNION ALL
    SELECT instance_id, host_id, state, reported_at, exit_status, reason
    FROM finished_instance WHERE instance_id = ANY($1::bigint[])
"""
COMPUTERS = """
    SELECT host_id, min(host_id) OVER (PARTITION BY volunteer_id, host_cpid) AS computer FROM host
"""
OUTSTANDING = ("unsent", "in_progress")
UPLOADS = "SELECT name, nbytes, md5 FROM upload WHERE name = ANY($1::text[])"


@dataclass(slots=True)
class Verdict:
    """Findings in sentences: missing, doubled, or reported by the inspection."""

    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    @property
    def good(self) -> bool:
        return not (self.lost or self.doubled or self.wrong)


async def compare(told: Told, dsn: str, upload_dir: Path) -> Verdict:
    """Check everything in the volunteers' records."""
    connection = await asyncpg.connect(dsn)
    try:
        ids = sorted({instance_id for _, instance_id in told.jobs | told.reports | told.failures})
        rows = {row["instance_id"]: row for row in await connection.fetch(INSTANCES, ids)}
        computers = {row["host_id"]: row["computer"] for row in await connection.fetch(COMPUTERS)}
        recorded = {row["name"]: row for row in await connection.fetch(UPLOADS, list(told.outputs))}
    finally:
        await connection.close()
    given = {(computers.get(host_id), instance_id) for host_id, instance_id in told.jobs}
    times = Counter(instance_id for _, instance_id in given)
    doubled = [f"instance {one} was sent to {n} hosts" for one, n in times.items() if n > 1]
    return Verdict([*_jobs_lost(told, rows, computers), *_outputs_lost(told, recorded, upload_dir)], doubled)


def _jobs_lost(told: Told, rows: Mapping[int, asyncpg.Record], computers: Mapping[int, int]) -> list[str]:
    """Return recorded jobs that are missing; an instance may have moved to another record of the same host."""

    def found(host_id: int, instance_id: int) -> asyncpg.Record | None:
        row = rows.get(instance_id)
        return row if row is not None and computers.get(row["host_id"]) == computers.get(host_id) else None

    lost = []
    for host_id, instance_id in sorted(told.jobs):
        if found(host_id, instance_id) is None:
            lost.append(f"instance {instance_id} was sent to host {host_id}, but is {_whose(rows.get(instance_id))}")
    for host_id, instance_id in sorted(told.reports):
        row = found(host_id, instance_id)
        if row is None or row["reported_at"] is None:
            is_now = _whose(rows.get(instance_id))
            lost.append(f"the report of instance {instance_id} by host {host_id} is missing: it is {is_now}")
    for host_id, instance_id in sorted(told.failures):
        row = found(host_id, instance_id)
        if row is None or row["state"] in OUTSTANDING:
            is_now = _whose(rows.get(instance_id))
            lost.append(f"the failure of instance {instance_id} at host {host_id} is missing: it is {is_now}")
    return lost


def _outputs_lost(told: Told, recorded: Mapping[str, asyncpg.Record], upload_dir: Path) -> list[str]:
    lost = []
    for name, (nbytes, md5) in sorted(told.outputs.items()):
        row = recorded.get(name)
        if row is None or (row["nbytes"], row["md5"]) != (nbytes, md5):
            lost.append(f"output {name} was accepted, but its record differs")
        path = upload_dir / shard_of(name) / name
        if not path.exists() or hashlib.md5(path.read_bytes()).hexdigest() != md5:
            lost.append(f"output {name} was accepted, but its file is missing or different")
    return lost


async def described(dsn: str, places: Sequence[str]) -> list[str]:
    """Return the database rows of the instances of these files in the upload folder."""
    names = [place.rpartition("/")[2] for place in places]
    ids = [instance_id_of(name.removesuffix(".part")) for name in names]
    connection = await asyncpg.connect(dsn)
    try:
        rows = {row["instance_id"]: row for row in await connection.fetch(INSTANCES, ids)}
    finally:
        await connection.close()
    return [f"{place}, {_whose(rows.get(instance_id))}" for place, instance_id in zip(places, ids, strict=True)]


def _whose(row: asyncpg.Record | None) -> str:
    if row is None:
        return "not there"
    return (
        f"{row['state']}, of host {row['host_id']}, reported at {row['reported_at']} with {row['exit_status']}, "
        f"because {row['reason']}"
    )
