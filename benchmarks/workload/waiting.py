"""Runs the real ordering code (standings, order, charges, limits) on waiting batches."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from benchmarks.workload.submitted import Submitted, Workload
from domain.limits import Holds, Limit, Quantity, RequestedAmounts, Scope
from domain.ordered_work import LeafId
from domain.ordering import BatchFacts, QueueClock
from domain.settings import Settings
from domain.units import BatchId, Flop, FlopPerSecond, Instant, Seconds
from domain.usage import Amounts, DecayedUsage
from priority.charging import usage_weights
from priority.equal_access import Claim, shuffled
from priority.fair_share import Leaf
from priority.limits import holds
from priority.logical_time import charge_batch, correct_charge
from priority.measures import ACCURACY_JOBS
from priority.order import BatchOrder
from priority.policies import policy_of
from priority.scheme import PolicyContext
from priority.standings import Submitting, standings, window_of
from simulator.swf import FLOP_PER_S

ONE_JOB_PE = 1.0
SHARES = 1.0  # of each submitter
NOTHING_HOLDS = Holds()


@dataclass(slots=True)
class _Account:
    """The ordering's state for one submitter in one account."""

    usage: DecayedUsage = field(default_factory=DecayedUsage)
    windows: dict[int, float] = field(default_factory=dict)
    jobs: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=ACCURACY_JOBS))
    held_pe: float = 0.0
    logical_at: Instant = Instant(0.0)


@dataclass(slots=True)
class _Batch:
    submitted: Submitted
    facts: BatchFacts
    charged_s: Seconds
    unfinished: int


class Waiting:
    """The batches with unsent jobs, in an order that is at most `interval_s` old."""

    def __init__(self, workload: Workload, settings: Settings, *, processors: int, limits: Sequence[Limit]) -> None:
        self._settings = settings.ordering
        self._policy = policy_of(self._settings)
        self._workload = workload
        self._pool = FlopPerSecond(processors * FLOP_PER_S)
        self._limits = limits
        self._books: dict[LeafId, _Account] = {leaf: _Account() for leaf in workload.leaves}
        self._weights = usage_weights(self._settings.usage_weights)
        self._batches: dict[BatchId, _Batch] = {}
        self._unsent: dict[BatchId, int] = {}
        self._moment = PolicyContext(Instant(0.0), pool_flop_per_s=self._pool)
        self._ordered_at: float | None = None
        self._queue: list[tuple[int, float, BatchId]] = []
        self._turns: deque[BatchId] = deque()
        self._held: list[tuple[int, float, BatchId]] = []
        self.orderings = 0
        self.unsent_jobs = 0

    def submit(self, one: Submitted) -> None:
        """Add a batch with its logical time. It is last until the next ordering."""
        book = self._books[one.leaf]
        times = charge_batch(
            logical_at=book.logical_at,
            now=one.at,
            batch_flop=Flop(one.jobs * one.job_flop),
            pool_flop_per_s=self._pool,
            share_fraction=SHARES / len(self._books),
            rule=self._settings.let_rule,
        )
        book.logical_at = times.submitter_logical_at
        facts = BatchFacts(
            one.batch_id,
            *one.leaf,
            one.at,
            logical_end_at=times.logical_end_at,
            clock=QueueClock(Seconds(0.0), one.at),
            job_runtime_s=one.estimate_s,
            batch_flop=Flop(one.jobs * one.job_flop),
            unsent=one.jobs,
        )
        self._batches[one.batch_id] = _Batch(one, facts, times.charged_s, one.jobs)
        self._unsent[one.batch_id] = one.jobs
        self.unsent_jobs += one.jobs
        found = self._policy.breakdown(facts, replace(self._moment, now=one.at))
        heapq.heappush(self._queue, (found.tier, found.key, one.batch_id))

    def send(self, now: Instant, *, idle: int) -> Submitted | None:
        """Return a job for a requesting processor, one of `idle`, or None if nothing may be sent."""
        all_go = self.unsent_jobs <= idle and not self._limits  # the order does not matter then
        one = self._first() if all_go else self._in_order(now)
        if one is None:
            return None
        batch_id = one.batch_id
        self._unsent[batch_id] -= 1
        self.unsent_jobs -= 1
        if self._unsent[batch_id] == 0:
            del self._unsent[batch_id]
        self._charge(one, now, _estimate(one), held_pe=ONE_JOB_PE)
        return one

    def _in_order(self, now: Instant) -> Submitted | None:
        """Return the next job in the current order, which is recomputed if it is too old."""
        if self._ordered_at is None or now - self._ordered_at >= self._settings.interval_s:
            self._reorder(now)
        if self._policy.name != "equal_access":
            return self._first()
        one = self._next_turn()
        if one is None and self.unsent_jobs and now != self._ordered_at:
            self._reorder(now)  # all positions of the last ordering are used up
            one = self._next_turn()
        return one

    def finished(self, one: Submitted, *, sent_at: Instant) -> None:
        """Record a finished job. The batch's last job corrects its submitter's logical time."""
        used = Amounts(flop=one.run_s * FLOP_PER_S, cpu_s=one.run_s)
        self._charge(one, sent_at, used.minus(_estimate(one)), held_pe=-ONE_JOB_PE)
        book, batch = self._books[one.leaf], self._batches[one.batch_id]
        book.jobs.appendleft((one.estimate_s, one.run_s))
        batch.unfinished -= 1
        if batch.unfinished == 0:
            correction = correct_charge(
                charged_s=batch.charged_s,
                used_flop=Flop(one.jobs * one.run_s * FLOP_PER_S),
                left_flop=Flop(0.0),
                pool_flop_per_s=self._pool,
                share_fraction=SHARES / len(self._books),
            )
            book.logical_at = Instant(book.logical_at + correction.moved_s)
            del self._batches[one.batch_id]
        for held in self._held:
            heapq.heappush(self._queue, held)
        self._held.clear()

    def waiting_jobs(self) -> Mapping[LeafId, int]:
        """Return the number of unsent jobs of each submitter with any."""
        found: dict[LeafId, int] = {}
        for batch_id, unsent in self._unsent.items():
            leaf = self._batches[batch_id].submitted.leaf
            found[leaf] = found.get(leaf, 0) + unsent
        return found

    # ------------------------------------------------------------------ order

    def _reorder(self, now: Instant) -> None:
        self._ordered_at = now
        self.orderings += 1
        self._moment = self._moment_at(now)
        waiting = [self._with_limits(self._batches[batch_id], now) for batch_id in self._unsent]
        if self._policy.name == "equal_access":
            self._turns = deque(self._shuffled(waiting))
            return
        self._held.clear()
        places = BatchOrder(self._policy, waiting, self._moment).places
        self._queue = [(place.tier, place.key, place.batch_id) for place in places]  # sorted, and so a heap

    def _moment_at(self, now: Instant) -> PolicyContext:
        half_life_s = self._settings.half_life_s
        submitting = [
            Submitting(
                Leaf(*leaf, SHARES, max(0.0, book.usage.read(now, half_life_s).weighed(self._weights))),
                f"user{leaf[0]}",
                {number: max(0.0, flop) for number, flop in book.windows.items()},
                book.jobs,
                book.held_pe,
            )
            for leaf, book in self._books.items()
        ]
        found = standings(self._workload.accounts, submitting, self._settings, now=now)
        return PolicyContext(now, found.leaves, pool_flop_per_s=self._pool, held_by_account=found.held_by_account)

    def _with_limits(self, batch: _Batch, now: Instant) -> BatchFacts:
        """Return the batch with its exceeded soft limits and with a clock that pauses while a hard limit blocks it."""
        facts = replace(batch.facts, unsent=self._unsent[batch.submitted.batch_id])
        if self._limits:
            found = self._holds(batch.submitted)
            clock = facts.clock.pauses(now) if found.hard else facts.clock.runs(now)
            facts = replace(facts, clock=clock, soft_limits=tuple(hold.sentence() for hold in found.soft))
        batch.facts = facts
        return facts

    def _asked(self, one: Submitted) -> RequestedAmounts:
        names = {Scope.SUBMITTER: f"user{one.leaf[0]}"}
        return RequestedAmounts(
            names, {Quantity.JOBS: 1.0, Quantity.PE: ONE_JOB_PE, Quantity.PE_SECONDS: one.estimate_s}
        )

    def _counts(self, leaf: LeafId) -> Mapping[tuple[Scope, str, Quantity], float]:
        name, held = f"user{leaf[0]}", self._books[leaf].held_pe
        return {(Scope.SUBMITTER, name, Quantity.JOBS): held, (Scope.SUBMITTER, name, Quantity.PE): held}

    def _holds(self, one: Submitted) -> Holds:
        return holds(self._asked(one), self._limits, self._counts(one.leaf)) if self._limits else NOTHING_HOLDS

    def _shuffled(self, waiting: Iterable[BatchFacts]) -> list[BatchId]:
        claims = [
            Claim(
                facts.batch_id,
                facts.submitter_id,
                1 if facts.soft_limits else 0,
                ONE_JOB_PE,
                facts.unsent,
                facts.submitted_at,
            )
            for facts in waiting
        ]
        held: dict[int, float] = {}
        for (submitter_id, _), book in self._books.items():
            held[submitter_id] = held.get(submitter_id, 0.0) + book.held_pe
        return shuffled(claims, held_pe=held, slots=int(self._pool / FLOP_PER_S))

    def _next_turn(self) -> Submitted | None:
        while self._turns:
            batch_id = self._turns.popleft()
            if batch_id in self._unsent and not self._holds(self._batches[batch_id].submitted).hard:
                return self._batches[batch_id].submitted
        return None

    def _first(self) -> Submitted | None:
        while self._queue:
            entry = self._queue[0]
            if entry[2] not in self._unsent:
                heapq.heappop(self._queue)
                continue
            one = self._batches[entry[2]].submitted
            found = self._holds(one)
            if found.hard:
                self._held.append(heapq.heappop(self._queue))
            elif found.soft and entry[0] % 2 == 0:  # the limit was exceeded since the last ordering
                heapq.heapreplace(self._queue, (entry[0] + 1, *entry[1:]))
            else:
                return one
        return None

    # ------------------------------------------------------------------ charges

    def _charge(self, one: Submitted, sent_at: Instant, usage: Amounts, *, held_pe: float) -> None:
        book = self._books[one.leaf]
        book.usage = book.usage.charged(usage, since=sent_at, half_life_s=self._settings.half_life_s)
        book.held_pe += held_pe
        window = window_of(sent_at, self._settings.window_s)
        book.windows[window] = book.windows.get(window, 0.0) + usage.flop


def _estimate(one: Submitted) -> Amounts:
    return Amounts(flop=one.job_flop, cpu_s=one.estimate_s)
