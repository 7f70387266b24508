"""Lists jobs that all hosts have refused so far, with the reasons, from the workers' reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from administration.explain.verdict import counted
from administration.heartbeats import SILENT_S
from administration.show import shown
from domain.clock import Clock
from domain.refusals import traits_of
from domain.units import BatchId, Instant, later
from domain.views import ProcessReport
from muster_client import shapes
from store.process_reports import PostgresProcessReports

Document = Mapping[str, Any]  # Any: a JSON document


GroupKey = tuple[int, int, bool]  # batch, class, urgent


@dataclass(frozen=True, slots=True)
class RefusedByAll:
    """Slots of a batch and class that all workers failed to place.

    `waiting` counts each slot once, even if several workers have it. `hosts` counts each host once, even if it
    contacted several workers. `codes` counts hosts by the latest reason at each worker, so a host may count under two
    codes. `since_at`: no slot has been taken since then. `more_hosts`, `more_s`: the group counts as unschedulable
    after this many more refusals or seconds; one of them is 0 if it already does. `at_least`: the counts are lower
    bounds, because several workers reported and not all listed the hosts.
    """

    batch_id: BatchId
    job_class_id: int
    urgent: bool
    waiting: int
    hosts: int
    codes: Sequence[tuple[str, int]]
    since_at: Instant
    rotated_out: bool
    more_hosts: int = 0
    more_s: float = 0.0
    at_least: bool = False

    @property
    def is_certain(self) -> bool:
        return not self.more_hosts or self.more_s <= 0.0

    @property
    def verdict(self) -> str:
        """Return one sentence: how many hosts refuse how many instances, by reason."""
        whys = ((count, traits_of(code), code) for code, count in self.codes)
        reasons = ", ".join(f"{count} {code if traits is None else traits.of_hosts}" for count, traits, code in whys)
        hosts = f"{'At least' if self.at_least else 'All'} {counted(self.hosts, 'host')}"
        return f"{hosts} refuse {counted(self.waiting, 'waiting instance')}{f': {reasons}' if reasons else ''}."

    @property
    def advice(self) -> str:
        """Return what to do about the most frequent reason."""
        traits = traits_of(self.codes[0][0]) if self.codes else None
        return traits.advice if traits is not None else ""


@dataclass(slots=True)
class _Reports:
    """Workers' reports about one group. Workers of older versions report no shards or hosts, and each worker lists a
    limited number of hosts; in both cases the counts are lower bounds.
    """

    since_at: float = float("inf")
    rotated_out: bool = False
    more_hosts: list[int] = field(default_factory=list)
    more_s: list[float] = field(default_factory=list)
    slots: dict[str, int] = field(default_factory=dict)  # by shard, the maximum over workers
    by_code: dict[str, set[int]] = field(default_factory=dict)  # hosts by code
    least_by_code: Counter[str] = field(default_factory=Counter)  # hosts by code
    least_waiting: int = 0
    least_hosts: int = 0
    workers: int = 0
    named: bool = True

    def add(self, row: Document) -> None:
        self.workers += 1
        self.named = self.named and (bool(row.get("refused_by")) or not row["hosts"])
        self.since_at = min(self.since_at, row["since_at"])
        self.rotated_out = self.rotated_out or row["rotated_out"]
        self.more_hosts.append(row.get("more_hosts", 0))
        self.more_s.append(row.get("more_s", 0.0))
        for shard, count in row.get("slots", {}).items():
            self.slots[shard] = max(count, self.slots.get(shard, 0))
        for code, host_ids in row.get("refused_by", {}).items():
            self.by_code.setdefault(code, set()).update(host_ids)
        self.least_by_code |= Counter(row["codes"])
        self.least_waiting = max(self.least_waiting, row["waiting"])
        self.least_hosts = max(self.least_hosts, row["hosts"])

    def refused(self, key: GroupKey, *, since_at: float) -> RefusedByAll:
        codes = self.least_by_code | Counter({code: len(host_ids) for code, host_ids in self.by_code.items()})
        return RefusedByAll(
            BatchId(key[0]),
            key[1],
            key[2],
            max(self.least_waiting, sum(self.slots.values())),
            max(self.least_hosts, len(set().union(*self.by_code.values()))),
            tuple(sorted(codes.items(), key=lambda item: (-item[1], item[0]))),
            Instant(since_at),
            self.rotated_out,
            min(self.more_hosts),
            min(self.more_s),
            at_least=self.workers > 1 and not self.named,
        )


def refused_of(workers: Sequence[ProcessReport], *, now: Instant) -> list[RefusedByAll]:
    """Return the groups that all requesting hosts refused so far, longest waiting first.

    Slots are counted by shard: slots that only the shard's owner has are added up; slots that all workers have
    (retries, the last jobs of a batch) are counted once. Groups taken from any worker within the last
    `feeder.cool_off_s` are omitted, because some host can run them.

    >>> row = {"batch_id": 7, "job_class_id": 1, "urgent": False, "waiting": 5, "slots": {"0": 5}, "since_at": 10.0,
    ...        "codes": {"disk": 2}, "refused_by": {"disk": [1, 2]}, "hosts": 2, "rotated_out": False}
    >>> more = row | {"slots": {"0": 1, "1": 4}, "refused_by": {"disk": [2], "cpus": [3]}, "since_at": 12.0}
    >>> reports = [ProcessReport("a", "worker", 0.0, {"unrunnable": [one]}) for one in (row, more)]
    >>> [(one.waiting, one.hosts, one.codes, one.since_at) for one in refused_of(reports, now=Instant(60.0))]
    [(9, 3, (('disk', 2), ('cpus', 1)), 10.0)]
    """
    reports: dict[GroupKey, _Reports] = {}
    taken_at: dict[GroupKey, float] = {}
    cool_off_s = 0.0
    for worker in workers:
        report: Document = worker.report
        cool_off_s = max(cool_off_s, report.get("cool_off_s", 0.0))
        for row in report["unrunnable"]:
            reports.setdefault((row["batch_id"], row["job_class_id"], row["urgent"]), _Reports()).add(row)
        for batch_id, job_class_id, urgent, at in report.get("taken", ()):
            key = (batch_id, job_class_id, urgent)
            taken_at[key] = max(at, taken_at.get(key, at))
    found = []
    for key, one in reports.items():
        last_at = taken_at.get(key)
        if last_at is None or last_at + cool_off_s <= now:
            found.append(one.refused(key, since_at=max(one.since_at, last_at or one.since_at)))
    return sorted(found, key=lambda one: (one.since_at, one.batch_id, one.job_class_id, one.urgent))


def is_cut(workers: Sequence[ProcessReport]) -> bool:
    """Return whether a worker's list of taken groups is incomplete. `refused_of` may then list groups being taken.

    >>> [is_cut([ProcessReport("a", "worker", 0.0, reports)]) for reports in ({}, {"taken_cut": True})]
    [False, True]
    """
    return any(one.report.get("taken_cut") for one in workers)


def conclusion_of(refused: Sequence[RefusedByAll]) -> str:
    """Return one sentence about all groups, with the reason for the largest.

    >>> disk = RefusedByAll(BatchId(7), 1, False, 5, 3, (("disk", 3),), Instant(0.0), False)
    >>> conclusion_of([disk])
    '5 instances of 1 batch find no host: 3 of 3 hosts have too little disk space.'
    >>> conclusion_of([])
    'Some host takes each kind of waiting work.'
    """
    if not refused:
        return "Some host takes each kind of waiting work."
    largest = max(refused, key=lambda one: one.waiting)
    batches = counted(len({one.batch_id for one in refused}), "batch", "batches")
    found = f"{counted(sum(one.waiting for one in refused), 'instance')} of {batches} find no host"
    traits = traits_of(largest.codes[0][0]) if largest.codes else None
    if traits is None:
        return f"{found}."
    most = "" if len(refused) == 1 else f"; for most of them, batch {largest.batch_id}"
    return f"{found}{most}: {largest.codes[0][1]} of {counted(largest.hosts, 'host')} {traits.of_hosts}."


def refused_as_json(one: RefusedByAll) -> shapes.RefusedShown:
    """Return one group as JSON, with advice; `codes` counts hosts by the latest reason at each worker."""
    return shown(shapes.RefusedShown, one, codes=dict(one.codes))


async def refused_lately(reports: PostgresProcessReports, clock: Clock) -> list[shapes.RefusedShown]:
    """Return the unschedulable groups reported by running workers, as JSON."""
    processes = await reports.since(later(clock.now(), -SILENT_S))
    workers = [one for one in processes if one.kind == "worker"]
    return [refused_as_json(one) for one in refused_of(workers, now=clock.now())]
