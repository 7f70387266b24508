"""Simulates a population of hosts and a batch until its end, with snapshots in between.

Hosts differ in speed, number of jobs in progress, reliability and reply times; some leave. Independent of the
estimator's model.
"""

from __future__ import annotations

import heapq
import math
import random
from dataclasses import dataclass, field

import numpy as np

from batch_estimator.snapshot import BatchSnapshot, HavRows, InstanceRows, InstanceStanding, JobRows, SentRows
from domain.units import DAY_S, HOUR_S, Instant, Seconds

HISTORY_S = 12 * DAY_S
CHECKPOINTS = (0.1, 0.25, 0.5, 0.75, 0.9)


@dataclass(slots=True)
class Host:
    host_id: int
    median_s: float
    sigma: float
    holds: int
    lost_fraction: float
    error_fraction: float
    leaves_at: float
    seen: list[float] = field(default_factory=list)


@dataclass(slots=True)
class Played:
    """One instance; its job is -1 for other work. `back_at` is infinite if it never returns."""

    job: int
    host_id: int
    created_at: float
    sent_at: float
    back_at: float
    error: bool


class World:
    """Simulates `n_jobs` jobs with a time-out of `bound_s`; instants count from the submission."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(f"world-{seed}")
        rng = self.random
        self.n_jobs = int(math.exp(rng.uniform(math.log(40), math.log(600))))
        self.quorum = rng.choice([1, 1, 2])
        self.bound_s = rng.choice([2, 4, 7]) * DAY_S
        self.share = rng.choice([0.3, 0.6, 1.0])
        median_s = math.exp(rng.uniform(math.log(3), math.log(15))) * HOUR_S
        self.hosts = [self._host(number, median_s) for number in range(rng.randint(60, 200))]
        self.played: list[Played] = []
        self.waiting: list[tuple[int, float]] = []  # jobs with an unsent instance, and its creation time
        self.done_at = [math.inf] * self.n_jobs
        self.successes = [0] * self.n_jobs
        self._play()

    @property
    def ended_at(self) -> float:
        return max(self.done_at)

    def _host(self, number: int, median_s: float) -> Host:
        rng = self.random
        own_s = median_s * math.exp(rng.gauss(0.0, 0.7))
        life_s = rng.expovariate(1 / (120 * DAY_S))
        return Host(
            number, own_s, rng.uniform(0.3, 0.9), rng.choice([1, 2, 4]), rng.betavariate(0.5, 15.0),
            rng.betavariate(0.5, 20.0), life_s - HISTORY_S,
        )  # fmt: skip

    def _play(self) -> None:
        events: list[tuple[float, int, str, int]] = []
        for host in self.hosts:
            for _ in range(host.holds):
                at = -HISTORY_S + self.random.random() * DAY_S
                heapq.heappush(events, (at, len(events), "ask", host.host_id))
        serial, submitted = len(events), False
        while events and self.ended_at == math.inf:
            at, _, kind, which = heapq.heappop(events)
            if at >= 0.0 and not submitted:
                submitted = True
                self.waiting = [(job, 0.0) for job in range(self.n_jobs) for _ in range(self.quorum)]
            new = self._asks(at, which) if kind == "ask" else self._comes_back(at, kind, which)
            for event in new:
                serial += 1
                heapq.heappush(events, (event[0], serial, event[1], event[2]))

    def _asks(self, at: float, host_id: int) -> list[tuple[float, str, int]]:
        host, rng = self.hosts[host_id], self.random
        if at > host.leaves_at:
            return []
        host.seen.append(at)
        job, created_at = -1, at
        while self.waiting and rng.random() < self.share:
            job, created_at = self.waiting.pop(0)
            if self.done_at[job] == math.inf:
                break
            job = -1
        back_at = at + host.median_s * math.exp(rng.gauss(0.0, host.sigma))
        free_at = back_at + rng.expovariate(1 / HOUR_S)
        if rng.random() < host.lost_fraction or back_at > host.leaves_at:
            back_at = math.inf
        self.played.append(Played(job, host_id, created_at, at, back_at, rng.random() < host.error_fraction))
        number = len(self.played) - 1
        later = [(free_at, "ask", host_id)]
        if back_at < math.inf:
            later.append((back_at, "back", number))
        if job >= 0 and back_at > at + self.bound_s:
            later.append((at + self.bound_s, "timeout", number))
        return later

    def _comes_back(self, at: float, kind: str, number: int) -> list[tuple[float, str, int]]:
        instance = self.played[number]
        job = instance.job
        if kind == "back":
            self.hosts[instance.host_id].seen.append(at)
        if job < 0 or self.done_at[job] < math.inf:
            return []
        if kind == "back" and not instance.error:
            self.successes[job] += 1
            if self.successes[job] >= self.quorum:
                self.done_at[job] = at
        elif kind == "timeout" or at <= instance.sent_at + self.bound_s:
            self.waiting.insert(0, (job, at))
        return []

    def checkpoints(self) -> list[float]:
        """Return the instants at which these shares of the jobs are done."""
        ends = sorted(self.done_at)
        instants = [ends[math.ceil(share * self.n_jobs) - 1] + 1.0 for share in CHECKPOINTS]
        return [at for at in instants if at < self.ended_at - 600.0]

    def snapshot(self, at: float) -> BatchSnapshot:
        """Return the database's contents at `at`."""
        mine = [each for each in self.played if each.job >= 0 and each.sent_at <= at]
        other = [each for each in self.played if each.job < 0 and each.sent_at <= at]
        done = np.array(self.done_at) <= at
        return BatchSnapshot(
            now=Instant(at),
            submitted_at=Instant(0.0),
            delay_bound_s=Seconds(self.bound_s),
            jobs=JobRows(
                np.full(self.n_jobs, 1e13),
                ~done,
                np.full(self.n_jobs, self.quorum),
                np.zeros(self.n_jobs, dtype=np.int64),
            ),
            instances=self._instances(mine, self._unsent(at, done), at),
            havs=self._records(other, at),
            sent=SentRows(
                np.array([each.host_id for each in other], dtype=np.int64),
                np.ones(len(other), dtype=np.int64),
                np.array([self._standing(each, at) for each in other], dtype=np.int64),
                np.array([each.sent_at for each in other]),
                np.array([each.back_at if each.back_at <= at else math.nan for each in other]),
                np.arange(len(other)),
            ),
            mean_ln_fpops=math.log(1e13) if other else math.nan,
            active_hosts=sum(1 for host in self.hosts if any(at - DAY_S < seen <= at for seen in host.seen)),
            median_flop_per_s=4e9,
        )

    def _standing(self, each: Played, at: float) -> int:
        if each.back_at <= at:
            return InstanceStanding.ERROR if each.error else InstanceStanding.SUCCESS
        return InstanceStanding.TIMED_OUT if each.sent_at + self.bound_s <= at else InstanceStanding.IN_PROGRESS

    def _unsent(self, at: float, done: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> list[tuple[int, float]]:
        later = [
            (each.job, each.created_at)
            for each in self.played
            if each.job >= 0 and each.sent_at > at >= each.created_at
        ]
        return [(job, created_at) for job, created_at in [*later, *self.waiting] if created_at <= at and not done[job]]

    def _instances(self, mine: list[Played], unsent: list[tuple[int, float]], at: float) -> InstanceRows:
        none = [math.nan] * len(unsent)
        return InstanceRows(
            job=np.array([each.job for each in mine] + [job for job, _ in unsent], dtype=np.int64),
            host_id=np.array([each.host_id for each in mine] + [-1] * len(unsent), dtype=np.int64),
            app_version_id=np.array([1] * len(mine) + [-1] * len(unsent), dtype=np.int64),
            standing=np.array(
                [self._standing(each, at) for each in mine] + [InstanceStanding.UNSENT] * len(unsent), dtype=np.int64
            ),
            created_at=np.array([each.created_at for each in mine] + [created_at for _, created_at in unsent]),
            sent_at=np.array([each.sent_at for each in mine] + none),
            timeout_at=np.array([each.sent_at + self.bound_s for each in mine] + none),
            reported_at=np.array([each.back_at if each.back_at <= at else math.nan for each in mine] + none),
        )

    def _records(self, other: list[Played], at: float) -> HavRows:
        sums = {host.host_id: [0, 0.0, 0.0, 0, 0, 0] for host in self.hosts}
        for each in other:
            row, standing = sums[each.host_id], self._standing(each, at)
            if standing == InstanceStanding.SUCCESS:
                ln_s = math.log(each.back_at - each.sent_at)
                row[0], row[1], row[2] = row[0] + 1, row[1] + ln_s, row[2] + ln_s**2
            row[3] += standing == InstanceStanding.ERROR
            row[4] += standing == InstanceStanding.TIMED_OUT
            row[5] += each.sent_at + self.bound_s <= at
        columns = [np.array(column) for column in zip(*sums.values(), strict=True)]
        last = [max((seen for seen in host.seen if seen <= at), default=math.nan) for host in self.hosts]
        return HavRows(
            np.array(list(sums), dtype=np.int64),
            np.ones(len(sums), dtype=np.int64),
            columns[0].astype(np.int64),
            columns[1].astype(np.float64),
            columns[2].astype(np.float64),
            columns[3].astype(np.int64),
            columns[4].astype(np.int64),
            columns[5].astype(np.int64),
            np.array(last),
            np.ones(len(sums)),
        )
