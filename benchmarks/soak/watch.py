"""Samples the node's processes and its database."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from statistics import median

import asyncpg
import psutil

from benchmarks.dispatch.processes import Node
from benchmarks.soak.figures import MIB, Sample, Table
from benchmarks.statements import statements

TABLES = ("batch_count", "host", "host_app_version", "instance", "job", "job_todo")
ANEW_S = 3600.0  # time limit for rewriting a table


class Watch:
    """Samples a running node. `connection` must not be used elsewhere during that time."""

    def __init__(self, node: Node, connection: asyncpg.Connection, log_path: Path) -> None:
        self._node = node
        self._connection = connection
        self._log_path = log_path
        self._log_read = 0  # bytes

    async def sample(self, at_s: float, done: Mapping[str, float]) -> Sample:
        """Return a sample of a finished interval of load and the state at its end."""
        nbytes = await self._connection.fetchval("SELECT pg_database_size(current_database())")
        return Sample(
            at_s=round(at_s, 1),
            requests=int(done["requests"]),
            requests_per_s=round(done["requests_per_s"], 1),
            p50_ms=round(done["p50_ms"], 2),
            p99_ms=round(done["p99_ms"], 2),
            without_work=int(done["without_work"]),
            failed=int(done["failed"]),
            unsettled=int(await self._connection.fetchval("SELECT count(*) FROM job_todo")),
            rss_mib=self._rss_mib(),
            postgres_private_mib=self._postgres_private_mib(),
            database_mib=round(nbytes / MIB, 1),
            refill_s=self._refill_s(),
            tables=await tables(self._connection),
        )

    def _rss_mib(self) -> dict[str, float]:
        """Return the resident memory of each Python process of the node."""
        supervisor = self._node.workers[0].parent()
        assert supervisor is not None  # ends after its workers
        named = {f"worker {number}": worker for number, worker in enumerate(self._node.workers, 1)}
        named |= {f"background {number}": process for number, process in enumerate(self._node.background, 1)}
        named["supervisor"] = supervisor
        return {name: round(process.memory_info().rss / MIB, 1) for name, process in named.items()}

    def _postgres_private_mib(self) -> float:
        """Return the total unshared memory of all database processes."""
        nbytes = 0
        for process in (self._node.postmaster, *self._node.postmaster.children()):
            try:
                nbytes += process.memory_full_info().uss
            except psutil.NoSuchProcess:  # an autovacuum worker has finished
                continue
        return round(nbytes / MIB, 1)

    def _refill_s(self) -> float | None:
        """Return the median of the refills logged since the last call."""
        with self._log_path.open("rb") as log:
            log.seek(self._log_read)
            whole, _, _ = log.read().rpartition(b"\n")
        self._log_read += len(whole)
        lines = [json.loads(line) for line in whole.splitlines() if line.startswith(b"{")]
        medians = [line["median_s"] for line in lines if line.get("event") == "refills"]
        return median(medians) if medians else None


async def tables(connection: asyncpg.Connection) -> dict[str, Table]:
    """Return the tables that change with every request, by name."""
    return {
        row["name"]: Table(row["live"], row["dead"], row["table_bytes"], json.loads(row["index_bytes"]))
        for row in await connection.fetch(statements("soak")["tables"], list(TABLES))
    }


async def rewritten_tables(connection: asyncpg.Connection) -> dict[str, Table]:
    """Rewrite the tables without dead rows. This requires exclusive use."""
    for name in TABLES:
        await connection.execute(f'VACUUM (FULL, ANALYZE) "{name}"', timeout=ANEW_S)
    return await tables(connection)
