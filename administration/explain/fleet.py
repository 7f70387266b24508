"""Judges work that every requesting host refused: could any host that was active in the last day run it?

Hosts with work from other batches never look at a waiting batch, so the refusals of those that do say little about the
others. Each group of slots is therefore evaluated for the active hosts as by `muster explain batch`, until one could
run it. A round evaluates some hosts, in an order independent of their properties, and the next continues.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from administration.catalogue import fresh_catalogue
from administration.explain.batch import hold_of
from administration.explain.dry_run import AT_A_TIME, all_answers, array_of, read_views
from administration.explain.verdict import HostAnswer
from administration.heartbeats import SILENT_S
from administration.unschedulable import GroupKey, RefusedByAll, most_specific_first, refused_as_json, refused_of
from domain.batches import BatchState
from domain.catalogue import Catalogue
from domain.clock import Clock
from domain.dispatch import RequestView
from domain.insight import Caller
from domain.jobs import Candidate, JobClass
from domain.queue_hosts import hosts_of_queue
from domain.refusals import RefusalCode
from domain.restrictions import Restrictions
from domain.units import DAY_S, BatchId, Instant, JobClassId, Seconds, later
from feeder.array import JobArray
from store.postgres import PostgresStore

JUDGE_EVERY_S = Seconds(20.0)
KEPT_S = Seconds(60.0)  # how long a verdict holds before the group is judged again
MOST_HOSTS = 20_000  # hosts that are evaluated for a verdict
HOSTS_A_ROUND = 500
MOST_GROUPS = 20  # groups that are judged at a time, the longest without a verdict first
MOST_READ = 200  # instances of a batch, of which those of the group are evaluated

NOT_OF_HOSTS = frozenset({RefusalCode.PROJECT_DOWN, RefusalCode.PAUSED, RefusalCode.NO_SLOTS})


def could_run(answer: HostAnswer) -> bool:
    """Return whether the host could run the work now, once it is idle, or once operators resume sending work."""
    of_hosts = all(one.code not in NOT_OF_HOSTS for one in answer.refusals)
    return bool(answer.jobs) or answer.wait_s is not None or not of_hosts


@dataclass(slots=True)
class _Judged:
    """A group under evaluation, or its verdict at `at`. `array` is None for work that does not wait for hosts."""

    array: JobArray | None
    queue_needs: str
    at: Instant
    active: int = 0
    hosts: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    able: bool = False

    def add(self, answer: HostAnswer) -> None:
        self.able = self.able or could_run(answer)
        self.hosts += 1
        self.codes.update({one.code.value for one in answer.refusals})


class FleetJudge:
    """Keeps a verdict for each group that workers report as refused by all requesting hosts."""

    def __init__(self, store: PostgresStore, clock: Clock, *, hosts_a_round: int = HOSTS_A_ROUND) -> None:
        self._hosts_a_round = hosts_a_round
        self._store = store
        self._clock = clock
        self._verdicts: dict[GroupKey, _Judged] = {}
        self._due: Mapping[GroupKey, RefusedByAll] = {}
        self._sweep: dict[GroupKey, _Judged] = {}
        self._left: Sequence[Caller] = ()  # hosts that the sweep has not evaluated yet
        self._restrictions: Restrictions = {}  # in the last sweep; all groups are judged again if they change

    def forget(self) -> None:
        """Forget all verdicts: another process judges from now on."""
        self._verdicts, self._sweep, self._left = {}, {}, ()

    def report(self) -> dict[str, object]:
        """Return the verdicts as JSON: the unschedulable groups, and the keys of those that some host could run."""
        judged = [(self._due[key], one) for key, one in self._verdicts.items() if key in self._due]
        unable = [(refused, one) for refused, one in judged if not one.able]
        return {
            "unschedulable": [refused_as_json(_with(refused, one)) for refused, one in unable],
            "able": [list(refused.key) for refused, one in judged if one.able],
        }

    async def run_once(self) -> None:
        """Judge the groups that are due, with the next hosts."""
        now = self._clock.now()
        processes = await self._store.process_reports.since(later(now, -SILENT_S), kind="worker")
        self._due = {one.key: one for one in refused_of(processes, now=now) if one.is_due}
        self._verdicts = {key: one for key, one in self._verdicts.items() if key in self._due}
        self._sweep = {key: one for key, one in self._sweep.items() if key in self._due}
        catalogue = await fresh_catalogue(self._store.applications, self._clock)
        if not self._sweep:
            await self._begin(catalogue, now)
        if self._sweep:
            await self._continue(catalogue, now)

    async def _begin(self, catalogue: Catalogue, now: Instant) -> None:
        """Choose the groups to judge, and the hosts."""
        since = {key: self._verdicts[key].at if key in self._verdicts else later(now, -DAY_S) for key in self._due}
        kept_s = KEPT_S if catalogue.restrictions == self._restrictions else 0.0
        self._restrictions = catalogue.restrictions
        keys = sorted((key for key in since if since[key] <= now - kept_s), key=lambda key: (since[key], key))
        if not keys:
            return
        self._left, active = await self._store.insight.active_callers(MOST_HOSTS, active_since=later(now, -DAY_S))
        for key in keys[:MOST_GROUPS] if active else ():
            self._sweep[key] = replace(await self._group(key, catalogue, now), active=active)

    async def _group(self, key: GroupKey, catalogue: Catalogue, now: Instant) -> _Judged:
        """Return a group with a job array that contains only its slots."""
        batch_id, class_id, urgent = BatchId(key[0]), JobClassId(key[1]), key[2]
        waiting, batch = self._store.waiting, await self._store.views.batch(batch_id)
        needs = hosts_of_queue(catalogue.settings.ordering.queue_hosts, batch.queue) or ""
        read, known = await asyncio.gather(
            waiting.urgent([batch_id], MOST_READ) if urgent else waiting.tail([batch_id], MOST_READ),
            self._store.views.classes_of_batch(batch_id),
        )
        classes = {one.job_class_id: one for one in known}
        slots = _of_class(read, class_id, classes)
        if batch.state is not BatchState.ACTIVE or hold_of(batch, catalogue) or not slots:
            return _Judged(None, needs, now, able=True)
        return _Judged(array_of(slots, batch, classes, catalogue, self._clock), needs, now)

    async def _continue(self, catalogue: Catalogue, now: Instant) -> None:
        """Evaluate the next hosts, and conclude what they decide."""
        part, self._left = self._left[: self._hosts_a_round], self._left[self._hosts_a_round :]
        for first in range(0, len(part), AT_A_TIME):
            callers = part[first : first + AT_A_TIME]
            open_ = [one for one in self._sweep.values() if not one.able]
            if open_:
                views = await read_views(self._store, callers)
                await asyncio.to_thread(_evaluate, open_, callers, views, catalogue, now)
        decided = {key: one for key, one in self._sweep.items() if one.able or not self._left}
        for key, one in decided.items():
            self._verdicts[key] = replace(one, array=None, at=now)
            del self._sweep[key]


def _with(refused: RefusedByAll, judged: _Judged) -> RefusedByAll:
    codes = most_specific_first(judged.codes)
    needs = judged.queue_needs if RefusalCode.QUEUE in judged.codes else ""
    found = replace(refused, hosts=judged.hosts, codes=codes, active_hosts=judged.active, at_least=False)
    return replace(found, queue_needs=needs, judged_at=judged.at)


def _of_class(
    read: Sequence[Candidate], class_id: JobClassId, classes: Mapping[JobClassId, JobClass]
) -> Sequence[Candidate]:
    """Return the instances of a class. If it has none among those that were read, another one stands for it."""
    if class_id not in classes:
        return ()
    found = [one for one in read if one.ready.job_class_id == class_id]
    return found or [replace(one, ready=replace(one.ready, job_class_id=class_id)) for one in read[:1]]


def _evaluate(
    groups: Sequence[_Judged],
    callers: Sequence[Caller],
    views: Sequence[RequestView],
    catalogue: Catalogue,
    now: Instant,
) -> None:
    """Add the answers of hosts to each group, until one could run it."""
    for one in groups:
        for caller, view in zip(callers, views, strict=True):
            if one.array is not None and not one.able:
                for answer in all_answers([caller], [view], one.array, catalogue, now):
                    one.add(answer)
