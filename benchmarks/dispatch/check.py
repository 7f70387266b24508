"""Was every job that a client was told given to that host, and to no other? What the logs say besides."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import asyncpg
import numpy as np
from numpy.typing import NDArray

from benchmarks.dispatch.world import SQL
from domain.units import Instant

FETCH = 50_000  # rows at a time


@dataclass(frozen=True, slots=True)
class Check:
    """`lost`: told, but not that host's in the database. `doubled`: told to two hosts, the instance or its job.

    `untold`: sent in the database, but told to nobody; such a job is sent again with the host's next request.
    `copies`: told instances that were made on purpose beyond what the job needs, for the last jobs of a batch, or
    instead of one that was given up; another host may have the same job.
    """

    told: int
    lost: int
    doubled: int
    untold: int
    copies: int


async def check(told_path: Path, connection: asyncpg.Connection, *, since: Instant) -> Check:
    """Compare everything that replies told with what the database shows as sent since."""
    return compared(np.load(told_path), await _sent(connection, since))


def compared(told: NDArray[np.int64], sent: NDArray[np.int64]) -> Check:
    """`told` has the columns host_id, job_id, instance_id; `sent` these and 1 where the instance is a copy. Pure.

    Every job has one instance that is no copy, and every instance is sent once. Job 5 told to host 1 is not that
    host's, job 6 was told to hosts 1 and 2, nobody heard of job 7, and instance 41 is a copy of job 4.

    >>> told = np.array([[1, 4, 40], [1, 5, 50], [1, 6, 60], [2, 6, 60], [1, 4, 40], [2, 4, 41]])
    >>> sent = np.array([[1, 4, 40, 0], [2, 5, 50, 0], [1, 6, 60, 0], [3, 7, 70, 0], [2, 4, 41, 1]])
    >>> compared(told, sent)
    Check(told=5, lost=2, doubled=1, untold=1, copies=1)
    """
    told = np.unique(told, axis=0)  # a job that is told again to the same host, after a lost reply, is one
    copies = np.isin(told[:, 2], sent[sent[:, 3] == 1, 2])
    once = told[~copies]
    return Check(
        told=len(told),
        lost=int(np.count_nonzero(~np.isin(_rows(told), _rows(sent[:, :3])))),
        # an instance of the first kind that is told twice is a job that is
        doubled=len(once) - len(np.unique(once[:, 1])) + len(told[copies]) - len(np.unique(told[copies, 2])),
        untold=int(np.count_nonzero(~np.isin(sent[:, 2], told[:, 2]))),
        copies=int(np.count_nonzero(copies)),
    )


async def _sent(connection: asyncpg.Connection, since: Instant) -> NDArray[np.int64]:
    """host_id, job_id, instance_id and whether it is a copy, of everything sent since."""
    parts = [np.empty((0, 4), dtype=np.int64)]
    async with connection.transaction():
        cursor = await connection.cursor(SQL["sent_since"], since)
        while rows := await cursor.fetch(FETCH):
            parts.append(np.array([tuple(row) for row in rows], dtype=np.int64))
    return np.concatenate(parts)


def _rows(table: NDArray[np.int64]) -> NDArray[np.void]:
    """Each row as one value that can be compared."""
    return np.ascontiguousarray(table).view([("host", "i8"), ("job", "i8"), ("instance", "i8")]).ravel()


def refill_s(log_path: Path) -> float | None:
    """The median refill of the workers' minutes; None when none was logged."""
    medians = [line["median_s"] for line in _lines(log_path) if line.get("event") == "refills"]
    return median(medians) if medians else None


def troubles(log_path: Path) -> list[str]:
    """What the node complained about."""
    return [
        str(line.get("event")) for line in _lines(log_path) if line.get("level") in ("warning", "error", "critical")
    ]


def _lines(log_path: Path) -> list[dict[str, Any]]:
    """The events of a log that several processes write: one that broke into another's line is two."""
    text = log_path.read_text(encoding="utf-8", errors="replace")
    lines = text.replace("}{", "}\n{").splitlines()
    return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]
