"""Simulates, in virtual time, a fixed number of processors that request one job whenever they are idle."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.workload.submitted import Submitted, Workload
from benchmarks.workload.waiting import Waiting
from domain.ordered_work import LeafId
from domain.units import Instant


@dataclass(slots=True)
class Went:
    """The times of a batch: first job sent, last job sent, last job done."""

    submitted: Submitted
    first_sent_at: Instant
    last_sent_at: Instant
    done_at: Instant


Sample = Callable[[dict[LeafId, int], dict[LeafId, int]], None]  # running and waiting jobs by submitter


def pulled(workload: Workload, waiting: Waiting, *, processors: int, sample: Sample, every_s: float) -> list[Went]:
    """Run the workload. A batch lasts as long as its slowest job. Calls `sample` every `every_s` while jobs wait."""
    arrivals = workload.batches
    running: list[tuple[float, int, Instant, Submitted]] = []  # (done at, serial, sent at, of)
    by_leaf: dict[LeafId, int] = {}
    went: dict[int, Went] = {}
    free, serial, place, sampled_at = processors, 0, 0, -every_s
    while running or place < len(arrivals):
        now = min(
            running[0][0] if running else float("inf"), arrivals[place].at if place < len(arrivals) else float("inf")
        )
        while running and running[0][0] <= now:
            _, _, sent_at, one = heapq.heappop(running)
            waiting.finished(one, sent_at=sent_at)
            by_leaf[one.leaf] -= 1
            free += 1
        while place < len(arrivals) and arrivals[place].at <= now:
            waiting.submit(arrivals[place])
            place += 1
        while free and waiting.unsent_jobs:
            sent = waiting.send(Instant(now), idle=free)
            if sent is None:
                break
            free, serial = free - 1, serial + 1
            done_at = Instant(now + sent.run_s)
            heapq.heappush(running, (done_at, serial, Instant(now), sent))
            by_leaf[sent.leaf] = by_leaf.get(sent.leaf, 0) + 1
            _note(went, sent, Instant(now), done_at)
        if waiting.unsent_jobs and now - sampled_at >= every_s:
            sampled_at = now
            sample(by_leaf, dict(waiting.waiting_jobs()))
    return list(went.values())


def _note(went: dict[int, Went], sent: Submitted, now: Instant, done_at: Instant) -> None:
    known = went.get(sent.batch_id)
    if known is None:
        went[sent.batch_id] = Went(sent, now, now, done_at)
    else:
        known.last_sent_at = now
        known.done_at = max(known.done_at, done_at)
