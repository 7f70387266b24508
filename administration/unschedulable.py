"""Work that every host refuses, and why: what workers met lately, by batch and kind of slot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from administration.heartbeats import SILENT_S
from administration.ports import ProcessReports
from administration.show import shown
from domain.clock import Clock
from domain.refusals import traits_of
from domain.units import BatchId, Instant, later
from domain.views import ProcessReport
from muster_client import shapes

Document = Mapping[str, Any]  # Any: a JSON document


GroupKey = tuple[int, int, bool]  # batch, class, urgent


@dataclass(frozen=True, slots=True)
class RefusedByAll:
    """A kind of slot of a batch, by all workers together.

    `waiting` counts each slot once, though several workers may hold it. `hosts` counts each host once, though it called
    several workers; `codes` counts hosts by the latest reason that a worker gave them: a host that was given two by two
    workers is in both. `since_at`: no worker had it taken since. `at_least`: several workers met them, and not
    all named the hosts, so that there may be more.
    """

    batch_id: BatchId
    job_class_id: int
    urgent: bool
    waiting: int
    hosts: int
    codes: Sequence[tuple[str, int]]
    since_at: Instant
    rotated_out: bool
    at_least: bool = False

    @property
    def advice(self) -> str:
        """What to do about the most frequent reason."""
        traits = traits_of(self.codes[0][0]) if self.codes else None
        return traits.advice if traits is not None else ""


@dataclass(slots=True)
class _Told:
    """What workers tell of one kind of slot. A worker of an older version names no shards and no hosts, and any worker
    names so many hosts in all: then its counts are the least that there is."""

    since_at: float = float("inf")
    rotated_out: bool = False
    slots: dict[str, int] = field(default_factory=dict)  # by shard, the most that a worker holds
    said: dict[str, set[int]] = field(default_factory=dict)  # hosts by code
    least: Counter[str] = field(default_factory=Counter)  # hosts by code
    least_waiting: int = 0
    least_hosts: int = 0
    workers: int = 0
    named: bool = True

    def add(self, row: Document) -> None:
        self.workers += 1
        self.named = self.named and (bool(row.get("refused_by")) or not row["hosts"])
        self.since_at = min(self.since_at, row["since_at"])
        self.rotated_out = self.rotated_out or row["rotated_out"]
        for shard, count in row.get("slots", {}).items():
            self.slots[shard] = max(count, self.slots.get(shard, 0))
        for code, host_ids in row.get("refused_by", {}).items():
            self.said.setdefault(code, set()).update(host_ids)
        self.least |= Counter(row["codes"])
        self.least_waiting = max(self.least_waiting, row["waiting"])
        self.least_hosts = max(self.least_hosts, row["hosts"])

    def refused(self, key: GroupKey, *, since_at: float) -> RefusedByAll:
        codes = self.least | Counter({code: len(host_ids) for code, host_ids in self.said.items()})
        return RefusedByAll(
            BatchId(key[0]),
            key[1],
            key[2],
            max(self.least_waiting, sum(self.slots.values())),
            max(self.least_hosts, len(set().union(*self.said.values()))),
            tuple(sorted(codes.items(), key=lambda item: (-item[1], item[0]))),
            Instant(since_at),
            self.rotated_out,
            at_least=self.workers > 1 and not self.named,
        )


def refused_of(workers: Sequence[ProcessReport], *, now: Instant) -> list[RefusedByAll]:
    """What all hosts refused that called any worker, the longest first.

    Slots are counted by shard: what only the shard's own worker holds adds up, what every worker holds (retries, the
    last jobs of a batch) is counted once. What a host took from any worker within the last `feeder.cool_off_s` is left
    out: somebody can run it.

    >>> row = {"batch_id": 7, "job_class_id": 1, "urgent": False, "waiting": 5, "slots": {"0": 5}, "since_at": 10.0,
    ...        "codes": {"disk": 2}, "refused_by": {"disk": [1, 2]}, "hosts": 2, "rotated_out": False}
    >>> more = row | {"slots": {"0": 1, "1": 4}, "refused_by": {"disk": [2], "cpus": [3]}, "since_at": 12.0}
    >>> reports = [ProcessReport("a", "worker", 0.0, {"unrunnable": [one]}) for one in (row, more)]
    >>> [(one.waiting, one.hosts, one.codes, one.since_at) for one in refused_of(reports, now=Instant(60.0))]
    [(9, 3, (('disk', 2), ('cpus', 1)), 10.0)]
    """
    told: dict[GroupKey, _Told] = {}
    taken_at: dict[GroupKey, float] = {}
    patience_s = 0.0
    for worker in workers:
        report: Document = worker.report
        patience_s = max(patience_s, report.get("cool_off_s", 0.0))
        for row in report["unrunnable"]:
            told.setdefault((row["batch_id"], row["job_class_id"], row["urgent"]), _Told()).add(row)
        for batch_id, job_class_id, urgent, at in report.get("taken", ()):
            key = (batch_id, job_class_id, urgent)
            taken_at[key] = max(at, taken_at.get(key, at))
    found = []
    for key, one in told.items():
        last_at = taken_at.get(key)
        if last_at is None or last_at + patience_s <= now:
            found.append(one.refused(key, since_at=max(one.since_at, last_at or one.since_at)))
    return sorted(found, key=lambda one: (one.since_at, one.batch_id, one.job_class_id, one.urgent))


def is_cut(workers: Sequence[ProcessReport]) -> bool:
    """Whether a worker told not all that hosts took lately: some of what `refused_of` finds may be taken by hosts.

    >>> [is_cut([ProcessReport("a", "worker", 0.0, told)]) for told in ({}, {"taken_cut": True})]
    [False, True]
    """
    return any(one.report.get("taken_cut") for one in workers)


def refused_as_json(one: RefusedByAll) -> shapes.RefusedShown:
    """What nobody can run, with what to do about it; `codes`: how many hosts, by the latest reason of a worker."""
    return shown(shapes.RefusedShown, one, codes=dict(one.codes))


async def refused_lately(reports: ProcessReports, clock: Clock) -> list[shapes.RefusedShown]:
    """What the workers that are there say that nobody can run, as JSON."""
    processes = await reports.since(later(clock.now(), -SILENT_S))
    workers = [one for one in processes if one.kind == "worker"]
    return [refused_as_json(one) for one in refused_of(workers, now=clock.now())]
