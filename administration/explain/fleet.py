"""Judges work that no host takes: could any host that was active in the last day run it?

Hosts with work from other batches never look at a waiting batch, so the refusals of those that do say little about the
others. Workers report what requesting hosts refused, but only since they started, and nothing of paused and blocked
batches; these, and a batch of which nothing has been in progress for the length of a back-off, are judged as well. Each
group of slots is evaluated for the active hosts as by `muster explain batch`, until one could run it. A round evaluates
some hosts, in an order independent of their properties, and the next continues.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from administration.catalogue import fresh_catalogue
from administration.explain.dry_run import AT_A_TIME, all_answers, array_of, read_views, without_pauses
from administration.explain.verdict import HostAnswer
from administration.heartbeats import SILENT_S
from administration.unschedulable import (
    GroupKey,
    RefusedByAll,
    most_specific_first,
    refused_as_json,
    refused_of,
    waits_since,
)
from domain.batches import Batch, BatchState
from domain.catalogue import Catalogue
from domain.clock import Clock
from domain.dispatch import RequestView
from domain.insight import Caller
from domain.jobs import Candidate, JobClass
from domain.queue_hosts import hosts_of_queue
from domain.refusals import RefusalCode
from domain.restrictions import pause_of
from domain.units import DAY_S, BatchId, Instant, JobClassId, Seconds, later
from feeder.array import JobArray
from store.postgres import PostgresStore

JUDGE_EVERY_S = Seconds(20.0)
KEPT_S = Seconds(60.0)  # how long a verdict holds before the group is judged again
MOST_HOSTS = 20_000  # hosts that are evaluated for a verdict
HOSTS_A_ROUND = 500
MOST_GROUPS = 20  # groups that are judged at a time, the longest without a verdict first
MOST_KEPT = 100  # verdicts of each kind in the report, and about waiting batches that no host can run
MOST_READ = 200  # instances of a batch, of which those of the group are evaluated
MOST_BATCHES = 500  # first ready batches in the order that are searched, and first paused or blocked ones
NEVER = Instant(-math.inf)

Batches = Mapping[BatchId, Batch]


def could_run(answer: HostAnswer) -> bool:
    """Return whether the host could run the work now, or once it is idle."""
    no_slots = any(one.code is RefusalCode.NO_SLOTS for one in answer.refusals)
    return bool(answer.jobs) or answer.wait_s is not None or no_slots


@dataclass(slots=True)
class _Judged:
    """A group under evaluation, or its verdict at `at`. `array` is None for work that does not wait for hosts."""

    refused: RefusedByAll
    array: JobArray | None
    queue: str
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


@dataclass(frozen=True, slots=True)
class _Turn:
    """When groups of a waiting batch were last chosen, and the last class of them: the next turn continues there."""

    at: Instant = NEVER
    class_id: int = 0


class FleetJudge:
    """Keeps a verdict for each group that all requesting hosts refused, and those of waiting batches that none can run.

    Batches of which nothing is in progress, and paused or blocked ones, take turns: a verdict that some host could run
    a group frees its place. Verdicts of paused and blocked batches stay. Batches of an app without a version need none.
    """

    def __init__(self, store: PostgresStore, clock: Clock, *, hosts_a_round: int = HOSTS_A_ROUND) -> None:
        self._hosts_a_round = hosts_a_round
        self._store = store
        self._clock = clock
        self._verdicts: dict[GroupKey, _Judged] = {}
        self._refused: Mapping[GroupKey, RefusedByAll] = {}  # due groups that workers report
        self._turns: dict[BatchId, _Turn] = {}
        self._sweep: dict[GroupKey, _Judged] = {}
        self._left: Sequence[Caller] = ()  # hosts that the sweep has not evaluated yet
        self._rules: object = None  # in the last sweep; all groups are judged again if they change

    def forget(self) -> None:
        """Forget all verdicts: another process judges from now on."""
        self._verdicts, self._turns, self._sweep, self._left = {}, {}, {}, ()

    def report(self) -> dict[str, object]:
        """Return the verdicts as JSON: the unschedulable groups, longest waiting first, and the keys of those that all
        requesting hosts refused although some host could run them.
        """
        unable = [(self._refused.get(key, one.refused), one) for key, one in self._verdicts.items() if not one.able]
        longest = sorted(unable, key=lambda pair: (pair[0].since_at, pair[0].key))[:MOST_KEPT]
        return {
            "unschedulable": [refused_as_json(_with(refused, one)) for refused, one in longest],
            "able": [list(key) for key, one in self._verdicts.items() if one.able][:MOST_KEPT],
        }

    async def run_once(self) -> None:
        """Judge the groups that are due, with the next hosts."""
        now = self._clock.now()
        processes = await self._store.process_reports.since(later(now, -SILENT_S), kind="worker")
        fresh = await fresh_catalogue(self._store.applications, self._clock)
        catalogue = without_pauses(fresh)
        self._refused = {one.key: one for one in refused_of(processes, now=now) if one.is_due}
        waiting = await self._waiting(catalogue, now)
        self._turns = {batch_id: one for batch_id, one in self._turns.items() if batch_id in waiting}
        judged = {BatchId(key[0]) for key in (*self._verdicts, *self._sweep)}
        ids = sorted({*judged, *(one.batch_id for one in self._refused.values())} - waiting.keys())
        others = await self._store.views.batches_with(ids) if ids else ()
        batches = {**waiting, **{one.batch_id: one for one in others if catalogue.is_sent(one.app_id)}}
        held = {one.batch_id for one in batches.values() if one.hold or pause_of(fresh.restrictions, one)}
        self._verdicts = self._valid(self._verdicts, waiting, batches, held)
        self._sweep = self._valid(self._sweep, waiting, batches, held)
        if not self._sweep:
            await self._begin(catalogue, waiting, batches, now)
        if self._sweep:
            await self._continue(catalogue, now)

    def _valid(
        self, judged: Mapping[GroupKey, _Judged], waiting: Batches, batches: Batches, held: Collection[int]
    ) -> dict[GroupKey, _Judged]:
        """Return the groups that still wait, in the same queue. `held`: the batches that are paused or blocked."""
        queues = {batch_id: one.queue for batch_id, one in batches.items()}
        return {
            key: one
            for key, one in judged.items()
            if (key in self._refused or (not one.able and (key[0] in held or (key[0] in waiting and not key[2]))))
            and one.queue == queues.get(BatchId(key[0]))
        }

    async def _waiting(self, catalogue: Catalogue, now: Instant) -> Batches:
        """Return the batches that have nothing in progress, or are paused or blocked, and of which nothing was sent for
        the length of a back-off.
        """
        before_at = later(now, -catalogue.settings.feeder.cool_off_s)
        ready = await self._store.waiting.ready_batches(MOST_BATCHES, catalogue.sent_apps())
        halted = await self._store.waiting.paused_or_blocked(MOST_BATCHES)
        return {
            one.batch_id: one
            for one in (*(one for one in ready if not one.counts.in_progress), *halted)
            if waits_since(one) <= before_at and catalogue.is_sent(one.app_id)
        }

    async def _begin(self, catalogue: Catalogue, waiting: Batches, batches: Batches, now: Instant) -> None:
        """Choose the groups to judge, and the hosts."""
        rules = catalogue.restrictions, catalogue.apps, catalogue.current, catalogue.settings.ordering.queue_hosts
        before_at = later(now, -KEPT_S) if rules == self._rules else now
        self._rules = rules
        since = dict.fromkeys(self._refused, NEVER) | {key: one.at for key, one in self._verdicts.items()}
        turns = await self._next(waiting, before_at, now)
        due = sorted((at, key) for key, at in {**turns, **since}.items() if at <= before_at and key[0] in batches)
        if not due:
            return
        self._left, active = await self._store.insight.active_callers(MOST_HOSTS, active_since=later(now, -DAY_S))
        chosen = [key for _, key in due[:MOST_GROUPS]] if active else []
        for key in chosen:
            batch = batches[BatchId(key[0])]
            if key in turns:
                self._turns[batch.batch_id] = _Turn(now, key[1])
            self._sweep[key] = replace(await self._group(key, batch, catalogue, now), active=active)

    async def _next(self, waiting: Batches, before_at: Instant, now: Instant) -> Mapping[GroupKey, Instant]:
        """Return groups without a verdict of the waiting batches whose turn is next, with the time of the last turn."""
        last = {batch_id: self._turns.get(batch_id, _Turn()) for batch_id in waiting}
        due = [one for one in waiting.values() if last[one.batch_id].at <= before_at]
        due.sort(key=lambda one: (last[one.batch_id].at, waits_since(one), one.batch_id))
        ids = [one.batch_id for one in due[:MOST_GROUPS]]
        read = await self._store.waiting.tail(ids, MOST_READ) if ids else ()
        unjudged = sorted(
            {(one.ready.batch_id, int(one.ready.job_class_id), False) for one in read} - self._verdicts.keys()
        )
        found: dict[GroupKey, Instant] = {}
        for batch_id in ids:
            at, class_id = last[batch_id].at, last[batch_id].class_id
            own = [key for key in unjudged if key[0] == batch_id]
            found.update(dict.fromkeys([key for key in own if key[1] > class_id] or own, at))
            if not own:
                self._turns[batch_id] = _Turn(now)
        return found

    async def _group(self, key: GroupKey, batch: Batch, catalogue: Catalogue, now: Instant) -> _Judged:
        """Return a group with a job array that contains only its slots."""
        batch_id, class_id, urgent = batch.batch_id, JobClassId(key[1]), key[2]
        waiting = self._store.waiting
        needs = hosts_of_queue(catalogue.settings.ordering.queue_hosts, batch.queue) or ""
        read, known = await asyncio.gather(
            waiting.urgent([batch_id], MOST_READ) if urgent else waiting.tail([batch_id], MOST_READ),
            self._store.views.classes_of_batch(batch_id),
        )
        classes = {one.job_class_id: one for one in known}
        slots = _of_class(read, class_id, classes)
        refused = _counted(self._refused.get(key), batch, key, read, one_class=len(known) == 1)
        if batch.state is not BatchState.ACTIVE or not slots:
            return _Judged(refused, None, batch.queue, needs, now, able=True)
        return _Judged(refused, array_of(slots, batch, classes, catalogue, self._clock), batch.queue, needs, now)

    async def _continue(self, catalogue: Catalogue, now: Instant) -> None:
        """Evaluate the next hosts, and conclude what they decide."""
        part, self._left = self._left[: self._hosts_a_round], self._left[self._hosts_a_round :]
        for first in range(0, len(part), AT_A_TIME):
            callers = part[first : first + AT_A_TIME]
            open_ = [one for one in self._sweep.values() if not one.able]
            if open_:
                views = await read_views(self._store, callers, idle=True)
                await asyncio.to_thread(_evaluate, open_, callers, views, catalogue, now)
        decided = {key: one for key, one in self._sweep.items() if one.able or not self._left}
        for key, one in decided.items():
            self._verdicts[key] = replace(one, array=None, at=now)
            del self._sweep[key]
        unable = [key for key, one in self._verdicts.items() if key not in self._refused and not one.able]
        unable.sort(key=lambda key: (self._verdicts[key].refused.since_at, key))
        self._verdicts = {
            key: one for key, one in self._verdicts.items() if key in self._refused or key in unable[:MOST_KEPT]
        }


def _with(refused: RefusedByAll, judged: _Judged) -> RefusedByAll:
    """Return the group with its verdict and its number of instances then."""
    return replace(
        refused,
        waiting=judged.refused.waiting,
        hosts=judged.hosts,
        codes=most_specific_first(judged.codes),
        active_hosts=judged.active,
        at_least=False,
        queue=judged.queue,
        queue_needs=judged.queue_needs if RefusalCode.QUEUE in judged.codes else "",
        judged_at=judged.at,
    )


def _counted(
    reported: RefusedByAll | None, batch: Batch, key: GroupKey, read: Sequence[Candidate], *, one_class: bool
) -> RefusedByAll:
    """Return a group with its number of unsent instances. If the batch has more than were read, of retries, or of
    several classes, it is the number that was read or that workers report, whichever is larger.
    """
    _, class_id, urgent = key
    waiting = sum(one.ready.job_class_id == class_id for one in read)
    if len(read) >= MOST_READ:
        is_all = one_class and not urgent
        waiting = batch.counts.unsent if is_all else max(waiting, reported.waiting if reported is not None else 0)
    made = RefusedByAll(batch.batch_id, class_id, urgent, waiting, 0, (), waits_since(batch), rotated_out=False)
    return made if reported is None else replace(reported, waiting=waiting)


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
