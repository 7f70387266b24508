"""Checks that every job in a client's replies was assigned only to its host, and reads the logs."""

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

FETCH = 50_000  # rows per fetch


@dataclass(frozen=True, slots=True)
class Check:
    """`lost`: in a reply to a host, but not assigned to it in the database. `doubled`: in replies to two hosts.

    `untold`: sent according to the database, but not in any reply; such a job is resent at the host's next request.
    `copies`: instances in replies that were intended as additional copies of a batch's last jobs, or as replacements;
    another host may have the same job.
    """

    told: int
    lost: int
    doubled: int
    untold: int
    copies: int


async def check(told_path: Path, connection: asyncpg.Connection, *, since: Instant) -> Check:
    """Compare all replies with the instances sent since `since` according to the database."""
    return compared(np.load(told_path), await _sent(connection, since))


def compared(told: NDArray[np.int64], sent: NDArray[np.int64]) -> Check:
    """Compare `told` (columns host_id, job_id, instance_id) with `sent` (the same, and 1 for a copy). Pure.

    Every job has one instance that is not a copy, and every instance is sent once. In the example, job 5 in a reply to
    host 1 is not assigned to it, job 6 is in two hosts' replies, job 7 is in none, and instance 41 is a copy of job 4.

    >>> told = np.array([[1, 4, 40], [1, 5, 50], [1, 6, 60], [2, 6, 60], [1, 4, 40], [2, 4, 41]])
    >>> sent = np.array([[1, 4, 40, 0], [2, 5, 50, 0], [1, 6, 60, 0], [3, 7, 70, 0], [2, 4, 41, 1]])
    >>> compared(told, sent)
    Check(told=5, lost=2, doubled=1, untold=1, copies=1)
    """
    told = np.unique(told, axis=0)  # a job resent to the same host after a lost reply counts once
    copies = np.isin(told[:, 2], sent[sent[:, 3] == 1, 2])
    once = told[~copies]
    return Check(
        told=len(told),
        lost=int(np.count_nonzero(~np.isin(_rows(told), _rows(sent[:, :3])))),
        # without copies, an instance sent twice is a job sent twice
        doubled=len(once) - len(np.unique(once[:, 1])) + len(told[copies]) - len(np.unique(told[copies, 2])),
        untold=int(np.count_nonzero(~np.isin(sent[:, 2], told[:, 2]))),
        copies=int(np.count_nonzero(copies)),
    )


async def _sent(connection: asyncpg.Connection, since: Instant) -> NDArray[np.int64]:
    """Return host_id, job_id, instance_id and whether it is a copy, for each instance sent since `since`."""
    parts = [np.empty((0, 4), dtype=np.int64)]
    async with connection.transaction():
        cursor = await connection.cursor(SQL["sent_since"], since)
        while rows := await cursor.fetch(FETCH):
            parts.append(np.array([tuple(row) for row in rows], dtype=np.int64))
    return np.concatenate(parts)


def _rows(table: NDArray[np.int64]) -> NDArray[np.void]:
    """Return each row as one comparable value."""
    return np.ascontiguousarray(table).view([("host", "i8"), ("job", "i8"), ("instance", "i8")]).ravel()


def refill_s(log_path: Path) -> float | None:
    """Return the median refill time in the workers' per-minute log entries, None if there are none."""
    medians = [line["median_s"] for line in _lines(log_path) if line.get("event") == "refills"]
    return median(medians) if medians else None


def troubles(log_path: Path) -> list[str]:
    """Return the node's warnings and errors."""
    return [
        str(line.get("event")) for line in _lines(log_path) if line.get("level") in ("warning", "error", "critical")
    ]


def _lines(log_path: Path) -> list[dict[str, Any]]:
    """Return the events in a log written by several processes, in which one line may interrupt another."""
    text = log_path.read_text(encoding="utf-8", errors="replace")
    lines = text.replace("}{", "}\n{").splitlines()
    return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]
