"""Lists work that no active host can run, as judged by the background process, and work refused so far.

Workers report the groups of slots that every requesting host has refused: candidates only, because ordinary hosts may
be busy with other batches and never look at them. The background process judges candidates with the active hosts
(administration/explain/fleet.py); only its verdict makes work unschedulable. Unsent work of an app without a version
needs no verdict: the catalogue shows it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from administration.apps import LostVersion, lost_versions
from administration.catalogue import fresh_catalogue
from administration.explain.verdict import BOUNDS, counted
from administration.heartbeats import SILENT_S
from administration.show import shown
from domain.batches import Batch
from domain.clock import Clock
from domain.refusals import About, RefusalCode, traits_of
from domain.units import AppId, BatchId, Instant, later, utc
from domain.views import ProcessReport
from muster_client import shapes
from store.postgres import PostgresStore

Document = Mapping[str, Any]  # Any: a JSON document


GroupKey = tuple[int, int, bool]  # batch, class, urgent


@dataclass(frozen=True, slots=True)
class RefusedByAll:
    """Slots of a batch and class that all workers failed to place.

    `waiting` counts each slot once, even if several workers have it. `hosts` counts each host once, even if it
    contacted several workers. `codes` counts hosts by reason, the most specific first; a host may count under two
    codes. `since_at`: no slot has been taken since then. `more_hosts`, `more_s`: the group is judged after this many
    more refusals or seconds; one of them is 0 if it is due. `at_least`: the counts are lower bounds, because several
    workers reported and not all listed the hosts.

    `active_hosts`: None until the group is judged, at `judged_at`; then `hosts` and `codes` count the judged ones of
    these hosts, none of which can run the jobs. `queue` is the batch's queue then, and `queue_needs` its condition, if
    hosts do not meet it. `lost`: why no version of the app gets jobs, "" if one does; then the group has all unsent
    instances of the batch, as class 0, and counts no hosts.
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
    active_hosts: int | None = None
    queue_needs: str = ""
    judged_at: Instant | None = None
    queue: str = ""
    lost: str = ""

    @property
    def key(self) -> GroupKey:
        return self.batch_id, self.job_class_id, self.urgent

    @property
    def is_due(self) -> bool:
        """Return whether enough hosts have refused it, or for long enough, to be judged."""
        return not self.more_hosts or self.more_s <= 0.0

    @property
    def has_value(self) -> bool:
        """Return whether another value of a job's field would let hosts run it, judging by the most specific reason."""
        return bool(self.codes) and not self.lost and self.codes[0][0] in BOUNDS

    @property
    def is_certain(self) -> bool:
        return self.active_hosts is not None

    @property
    def judged(self) -> str:
        """Return which hosts the counts are about, and when they were judged."""
        if self.active_hosts is None:
            return f"{'at least ' if self.at_least else ''}{counted(self.hosts, 'host')} that asked"
        some = f"{self.hosts} of the " if self.hosts < self.active_hosts else ""
        when = "" if self.judged_at is None else f" (judged at {utc(self.judged_at):%H:%M:%S} UTC)"
        return f"{some}{counted(self.active_hosts, 'active host')}{when}"

    @property
    def reasons(self) -> str:
        """Return the number of hosts by reason, in words."""
        whys = ((count, traits_of(code), code) for code, count in self.codes)
        return ", ".join(f"{count} {code if traits is None else traits.of(count)}" for count, traits, code in whys)

    @property
    def verdict(self) -> str:
        """Return one sentence: how many hosts refuse how many instances, by reason."""
        if self.lost:
            return f"{self.said[:1].upper()}{self.said[1:]}."
        start = f"None of {self.judged} can run" if self.is_certain else f"So far, all {self.judged} refused"
        reasons = f": {self.reasons}" if self.codes else ""
        return f"{start} {counted(self.waiting, 'waiting instance')}{reasons}."

    @property
    def said(self) -> str:
        """Return the instances that no version of the app can run, and why, as a clause."""
        return f"no host can run {counted(self.waiting, 'unsent instance')}: {self.lost}"

    @property
    def advice(self) -> str:
        """Return what to do about the most specific reason; nothing while other hosts may take the work."""
        if not self.is_certain:
            return "Nothing yet: the active hosts that have not asked may take it."
        if self.lost:
            return "Offer a version of the app again, or add one."
        if self.queue_needs and self.codes and self.codes[0][0] == RefusalCode.QUEUE:
            return (
                f"No active host that could run the app meets {self.queue_needs}, which the queue needs: label such "
                "hosts, each on its page or with `muster host set ID --label`, or move the batch to another queue on "
                "its page or with `muster batch set ID --queue`."
            )
        traits = traits_of(self.codes[0][0]) if self.codes else None
        return traits.advice if traits is not None else ""

    @property
    def waits_for(self) -> str:
        return "a host that can run its jobs"

    @property
    def reason(self) -> str:
        return self.verdict


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
            most_specific_first(codes),
            Instant(since_at),
            self.rotated_out,
            min(self.more_hosts),
            min(self.more_s),
            at_least=self.workers > 1 and not self.named,
        )


def most_specific_first(codes: Mapping[str, int]) -> Sequence[tuple[str, int]]:
    """Return hosts by code. Reasons of the job come before those of its queue, which only hosts with a version of the
    app meet, and these before reasons of the host; then the most frequent comes first.

    >>> most_specific_first({"platform": 9, "queue": 6, "banned": 1})
    (('queue', 6), ('platform', 9), ('banned', 1))
    >>> most_specific_first({"queue": 9, "disk": 1, "memory": 2})
    (('memory', 2), ('disk', 1), ('queue', 9))
    """

    def place(item: tuple[str, int]) -> tuple[int, int, str]:
        code, count = item
        traits = traits_of(code)
        is_of_job = traits is not None and traits.about is About.JOBS
        return 1 if code == RefusalCode.QUEUE else 0 if is_of_job else 2, -count, code

    return tuple(sorted(codes.items(), key=place))


def refused_of(processes: Sequence[ProcessReport], *, now: Instant) -> list[RefusedByAll]:
    """Return the groups that all requesting hosts of the workers refused so far, longest waiting first.

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
    for worker in _workers(processes):
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


def _workers(processes: Sequence[ProcessReport]) -> list[ProcessReport]:
    return [one for one in processes if one.kind == "worker"]


def unschedulable_of(processes: Sequence[ProcessReport]) -> list[RefusedByAll]:
    """Return the groups that background processes judged to be unschedulable, longest waiting first."""
    rows: list[Document] = [row for one in _judging(processes) for row in one["unschedulable"]]
    found = [
        RefusedByAll(
            **{name: row[name] for name in JUDGED},
            codes=most_specific_first(row["codes"]),
            **{name: row[name] for name in ("judged_at", "queue") if name in row},  # older versions have none
        )
        for row in rows
    ]
    return sorted(found, key=lambda one: (one.since_at, one.key))


JUDGED = (
    *("batch_id", "job_class_id", "urgent", "waiting", "hosts", "since_at", "rotated_out", "active_hosts"),
    "queue_needs",
)  # fields of a judged group that its JSON has, besides `codes`


def _judging(processes: Sequence[ProcessReport]) -> list[Document]:
    """Return the verdicts in background processes' reports; processes of older versions have none."""
    reports: list[Document] = [one.report for one in processes if one.kind == "background"]
    return [one["judged"] for one in reports if one.get("judged")]


def by_batch(refused: Sequence[RefusedByAll]) -> Mapping[BatchId, RefusedByAll]:
    """Return each batch's group with the most waiting slots."""
    worst: dict[BatchId, RefusedByAll] = {}
    for one in refused:
        if one.batch_id not in worst or one.waiting > worst[one.batch_id].waiting:
            worst[one.batch_id] = one
    return worst


def all_refused_of(processes: Sequence[ProcessReport], *, now: Instant) -> list[RefusedByAll]:
    """Return the unschedulable groups, and those that hosts have refused so far and that are not judged yet."""
    certain = unschedulable_of(processes)
    judged = {one.key for one in certain} | {tuple(key) for one in _judging(processes) for key in one["able"]}
    return [*certain, *(one for one in refused_of(processes, now=now) if one.key not in judged)]


def conclusion_of(
    refused: Sequence[RefusedByAll], batches: Mapping[BatchId, Batch] | None = None, *, left_out: int = 0
) -> str:
    """Return one sentence about all groups, with the reason for the largest. `left_out` batches are not among them;
    `batches` have the names.

    >>> from dataclasses import replace
    >>> disk = RefusedByAll(BatchId(7), 1, False, 5, 3, (("disk", 3),), Instant(0.0), False)
    >>> conclusion_of([disk])
    'No work is unschedulable: of what hosts refused so far, nothing has been judged yet.'
    >>> judged = replace(disk, active_hosts=3)
    >>> conclusion_of([judged])
    '5 instances of 1 batch find no host: 3 of 3 hosts have too little disk space.'
    >>> conclusion_of([judged, replace(judged, batch_id=BatchId(8), waiting=3)])
    '8 instances of 2 batches find no host, 5 of them of batch 7: 3 of 3 hosts have too little disk space.'
    >>> conclusion_of([judged], left_out=4).partition(":")[0]
    'At least 5 instances of 5 batches find no host, 5 of them of batch 7'
    """
    refused = [one for one in refused if one.is_certain]
    if not refused:
        return "No work is unschedulable: of what hosts refused so far, nothing has been judged yet."
    largest = max(refused, key=lambda one: one.waiting)
    many = counted(len({one.batch_id for one in refused}) + left_out, "batch", "batches")
    instances = counted(sum(one.waiting for one in refused), "instance")
    found = f"{'At least ' if left_out else ''}{instances} of {many} find no host"
    traits = traits_of(largest.codes[0][0]) if largest.codes else None
    if traits is None and not largest.lost:
        return f"{found}."
    batch = (batches or {}).get(largest.batch_id)
    named = (batch.name if batch else "") or f"batch {largest.batch_id}"
    most = "" if len(refused) == 1 and not left_out else f", {largest.waiting} of them of {named}"
    if largest.lost or traits is None:
        return f"{found}{most}: {largest.lost}."
    return f"{found}{most}: {largest.codes[0][1]} of {counted(largest.hosts, 'host')} {traits.of(largest.codes[0][1])}."


def refused_as_json(one: RefusedByAll) -> shapes.RefusedShown:
    """Return one group as JSON, with advice."""
    return shown(shapes.RefusedShown, one, codes=dict(one.codes))


def waits_since(batch: Batch) -> Instant:
    """Return when the first instance of a job was last sent, or else when the batch was submitted."""
    return batch.created_at if batch.last_first_dispatch_at is None else batch.last_first_dispatch_at


def about(refused: Sequence[RefusedByAll], batches: Iterable[Batch]) -> list[RefusedByAll]:
    """Return the groups without those whose batch has ended or moved to another queue since, longest waiting first.

    Workers know how long a group waits only since they started, the database since the batch was submitted.
    """
    known, found = {one.batch_id: one for one in batches}, []
    for one in refused:
        batch = known.get(one.batch_id)
        if batch is None or batch.ended_at is not None or one.queue not in ("", batch.queue):
            continue
        found.append(one if one.urgent else replace(one, since_at=min(one.since_at, waits_since(batch))))
    return sorted(found, key=lambda one: (one.since_at, one.key))


MOST_LOST = 200  # batches without a version that are listed


class RefusedLately(NamedTuple):
    """Groups that hosts refuse, longest waiting first, and their batches. `lost`: the apps without a version for new
    work; `left_out` batches of such apps are not listed.
    """

    groups: Sequence[RefusedByAll]
    batches: Mapping[BatchId, Batch]
    lost: Mapping[AppId, LostVersion]
    left_out: int


def without_version(batch: Batch, lost: LostVersion) -> RefusedByAll:
    """Return the unsent instances of a batch whose app has no version for new work, as a group."""
    return RefusedByAll(
        batch.batch_id,
        0,
        False,
        batch.counts.unsent,
        0,
        (),
        waits_since(batch),
        rotated_out=False,
        active_hosts=0,
        queue=batch.queue,
        lost=lost.words,
    )


async def lost_apps(store: PostgresStore, clock: Clock) -> Mapping[AppId, LostVersion]:
    """Return the apps without a version for new work that have active batches with unsent instances."""
    app_ids = await store.attention.apps_without_version()
    return (
        await lost_versions(store.access, await fresh_catalogue(store.applications, clock), app_ids) if app_ids else {}
    )


async def refused_lately(
    store: PostgresStore, clock: Clock, processes: Sequence[ProcessReport] | None = None
) -> RefusedLately:
    """Return the unschedulable groups, and those refused so far. `processes`: those that report."""
    now = clock.now()
    reports = await store.process_reports.since(later(now, -SILENT_S)) if processes is None else processes
    lost = await lost_apps(store, clock)
    without, found = await store.attention.without_version(list(lost), MOST_LOST) if lost else ((), 0)
    refused = all_refused_of(reports, now=now)
    batches = await store.views.batches_with(sorted({one.batch_id for one in refused})) if refused else []
    known = {one.batch_id: one for one in (*batches, *without)}
    groups = [
        *(without_version(one, lost[one.app_id]) for one in without),
        *(one for one in refused if one.batch_id in known and known[one.batch_id].app_id not in lost),
    ]
    return RefusedLately(about(groups, known.values()), known, lost, found - len(without))
