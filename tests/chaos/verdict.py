"""What volunteers were told against what the database and the upload folder hold."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import asyncpg

from operations.checking.folder import shard_of
from tests.chaos.told import Told

INSTANCES = """
    SELECT instance_id, host_id, state, reported_at FROM instance WHERE instance_id = ANY($1::bigint[])
    UNION ALL
    SELECT instance_id, host_id, state, reported_at FROM finished_instance WHERE instance_id = ANY($1::bigint[])
"""
OUTSTANDING = ("unsent", "in_progress")
UPLOADS = "SELECT name, nbytes, md5 FROM upload WHERE name = ANY($1::text[])"


@dataclass(slots=True)
class Verdict:
    """In sentences: what was promised and is not there, what was given twice, what an inspection found."""

    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    @property
    def good(self) -> bool:
        return not (self.lost or self.doubled or self.wrong)


async def compare(told: Told, dsn: str, upload_dir: Path) -> Verdict:
    """Look for everything that was told."""
    connection = await asyncpg.connect(dsn)
    try:
        ids = sorted({instance_id for _, instance_id in told.jobs | told.reports | told.failures})
        rows = {row["instance_id"]: row for row in await connection.fetch(INSTANCES, ids)}
        recorded = {row["name"]: row for row in await connection.fetch(UPLOADS, list(told.outputs))}
    finally:
        await connection.close()
    verdict = Verdict()
    for host_id, instance_id in sorted(told.jobs):
        row = rows.get(instance_id)
        if row is None or row["host_id"] != host_id:
            verdict.lost.append(f"instance {instance_id} was told to host {host_id}, and is {_whose(row)}")
    for host_id, instance_id in sorted(told.reports):
        row = rows.get(instance_id)
        if row is None or row["host_id"] != host_id or row["reported_at"] is None:
            verdict.lost.append(
                f"the report of instance {instance_id} by host {host_id} is not there: it is {_whose(row)}"
            )
    for host_id, instance_id in sorted(told.failures):
        row = rows.get(instance_id)
        if row is None or row["host_id"] != host_id or row["state"] in OUTSTANDING:
            verdict.lost.append(
                f"the failure of instance {instance_id} at host {host_id} is not there: it is {_whose(row)}"
            )
    for name, (nbytes, md5) in sorted(told.outputs.items()):
        row = recorded.get(name)
        if row is None or (row["nbytes"], row["md5"]) != (nbytes, md5):
            verdict.lost.append(f"output {name} was taken, and is not recorded so")
        path = upload_dir / shard_of(name) / name
        if not path.exists() or hashlib.md5(path.read_bytes()).hexdigest() != md5:
            verdict.lost.append(f"output {name} was taken, and its file is not there or another")
    times = Counter(instance_id for _, instance_id in told.jobs)
    verdict.doubled += [f"instance {one} was told to {n} hosts" for one, n in times.items() if n > 1]
    return verdict


def _whose(row: asyncpg.Record | None) -> str:
    if row is None:
        return "not there"
    return f"{row['state']}, of host {row['host_id']}, reported at {row['reported_at']}"
