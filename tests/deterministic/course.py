"""Makes one run: creates a project, injects failures, then stops them, and checks the invariants."""

from __future__ import annotations

import asyncio
import gc
import hashlib
import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from administration.batches import Batches
from domain.errors import UnavailableError
from domain.submission import SubmissionKey
from domain.volunteers import Credentials
from simulator.services import NoFiles
from tests.deterministic.clients import HONEST, STORMY, Client, Manners, Totals
from tests.deterministic.clocks import EPOCH, NodeClock
from tests.deterministic.cluster import Cluster
from tests.deterministic.faults import MOST_SLOW_S, Fate, Faults, FaultyStore, Link, Plan, now_and_then
from tests.deterministic.loop import SeededLoop
from tests.deterministic.processes import SETTINGS
from tests.deterministic.witness import Auditor
from tests.memory import MemoryStore
from tests.worlds import a_registered_version

LOOK_S = 900.0
STEP_MOST_S = 3600.0
BATCHES: tuple[dict[str, object], ...] = (
    {"qos": "throughput", "jobs": {"count": 6}},
    {"qos": "throughput", "jobs": {"count": 4, "quorum": 2}},
    {"qos": "afap", "jobs": {"count": 5}},
    {"qos": "short_deadline", "deadline_s": 2 * 3600.0, "jobs": {"count": 3, "quorum": 2}},
)
JOB: dict[str, object] = {
    "fpops_est": 3e11,
    "delay_bound_s": 2400.0,
    "max_errors": 6,
    "max_instances": 12,
    "outputs": [{"name": "out", "max_bytes": 1000}],
}


@dataclass(frozen=True, slots=True)
class Weather:
    """How long failures last, and their rates; rates per hour are of process deaths and of clock steps."""

    storm_s: float = 1.5 * 3600.0
    volunteers: int = 5
    batches: int = 4
    fault_rate: float = 0.04
    deaths_per_h: float = 5.0
    clock_steps_per_h: float = 0.5
    manners: Manners = STORMY
    most_slow_s: float = MOST_SLOW_S
    most_calm_s: float = 16 * 3600.0  # when every batch must have ended


STORM = Weather()
SMALL = Weather(
    storm_s=1800.0,
    volunteers=2,
    batches=2,
    fault_rate=0.0,
    deaths_per_h=0.0,
    clock_steps_per_h=0.0,
    manners=HONEST,
    most_calm_s=4 * 3600.0,
)


@dataclass(frozen=True, slots=True)
class Outcome:
    seed: int
    breaches: tuple[str, ...]
    injected: Mapping[tuple[str, Fate], int]
    seen: Mapping[str, int]
    deaths: int
    clock_steps: int
    replays: int
    requests: int
    acknowledged: int
    uploads: int
    batches: int
    callbacks: int
    calls: int
    trace: str  # of every decision: two runs of a seed have the same

    @property
    def failures(self) -> int:
        return sum(self.injected.values()) + self.deaths + self.clock_steps + self.replays


def run(
    seed: int, weather: Weather = STORM, plan: Plan | None = None, spoil: Callable[[MemoryStore], None] | None = None
) -> Outcome:
    """Make one run. `plan`: the failures of store calls, instead of random ones.

    `spoil` breaks the store, to check that this is detected.
    """
    loop = SeededLoop(seed)  # type: ignore[abstract]  # without input and output
    collects = gc.isenabled()
    gc.disable()  # garbage collection depends on earlier runs, and ends coroutines without waiters
    try:
        course = _Course(seed, weather, plan, loop)
        if spoil is not None:
            spoil(course.store)
        return loop.run(course.run())
    finally:
        loop.close()
        if collects:
            gc.enable()


class _Course:
    def __init__(self, seed: int, weather: Weather, plan: Plan | None, loop: SeededLoop) -> None:
        self.seed, self.weather, self.loop = seed, weather, loop
        self.draw = random.Random(f"course {seed}")
        self.store = MemoryStore()
        self.true = NodeClock(loop)
        faults_draw = random.Random(f"faults {seed}")
        self.faults = Faults(plan or now_and_then(faults_draw, weather.fault_rate), faults_draw)
        self.faults.most_slow_s = weather.most_slow_s
        clocks = (NodeClock(loop), NodeClock(loop))
        self.cluster = Cluster(loop, self.store, self.faults, random.Random(f"cluster {seed}"), clocks)
        self.auditor = Auditor(self.store)
        self.totals = Totals()
        self.clients: list[Client] = []
        self.clock_steps = 0

    async def run(self) -> Outcome:
        await self._make_project()
        self.cluster.start_all()
        for _ in range(self.weather.volunteers):
            await self._join(self.weather.manners)
        submissions = [self.loop.create_task(self._submit(n)) for n in range(self.weather.batches)]
        troubles = [self.loop.create_task(self._kill_and_start()), self.loop.create_task(self._step_clocks())]
        await self._pass(self.weather.storm_s)
        for trouble in troubles:
            trouble.cancel()
        await self._calm(submissions)
        return self._outcome()

    # ------------------------------------------------------------ the project

    async def _make_project(self) -> None:
        for key, value in SETTINGS.items():
            await self.store.settings.set_setting(key, value, now=EPOCH, who="test", why="a short run")
        await a_registered_version(self.store)

    async def _join(self, manners: Manners) -> None:
        """Add a volunteer with one host, every third with two."""
        number = len(await self.store.volunteers.volunteers()) + 1
        key = f"key-{number}"
        await self.store.volunteers.add_volunteer(
            f"volunteer{number}@example.org",
            name=f"Volunteer {number}",
            credentials=Credentials(b"nonce-%d" % number, hashlib.sha256(key.encode()).digest()),
            cross_project_id=f"{number:032x}",
            beta=False,
            now=self.true.now(),
        )
        for _ in range(2 if number % 3 == 0 else 1):
            host = len(self.clients) + 1
            draw = random.Random(f"client {self.seed} {host}")
            client = Client(host, key, self.cluster, self.auditor, self.true, self.totals, draw, manners)
            self.clients.append(client)
            self.loop.create_task(client.run())

    async def _submit(self, number: int) -> None:
        """Submit one batch, repeated with the same key until its number is received."""
        name = f"batch {number}"
        link = Link(self.faults, self.true)
        # Any: FaultyStore has every port of the store it wraps.
        batches = Batches(cast("Any", FaultyStore(self.store, link)), cast("Any", NoFiles()), self.true)
        plan = BATCHES[number % len(BATCHES)]
        jobs = {**JOB, **cast("dict[str, object]", plan["jobs"])}
        key = SubmissionKey("default", name, hashlib.sha256(name.encode()).digest())
        await self.true.sleep(self.draw.uniform(0.0, 0.7 * self.weather.storm_s))
        while True:
            try:
                values = {**plan, "name": name, "app": "pi", "jobs": jobs}
                await batches.submit_and_preview(values, key=key)
            except UnavailableError:
                await self.true.sleep(self.draw.uniform(1.0, 120.0))
            else:
                self.auditor.promised[name] = int(cast("int", jobs["count"]))
                return

    # ------------------------------------------------------------ the storm

    async def _kill_and_start(self) -> None:
        cluster = self.cluster
        while self.weather.deaths_per_h:
            await self.true.sleep(self.draw.expovariate(self.weather.deaths_per_h / 3600.0))
            living = [*cluster.workers.values(), *cluster.backgrounds.values()]
            if not living:
                continue
            process = self.draw.choice(living)
            is_worker = cluster.workers.get(process.node) is process
            cluster.kill(process)
            again = partial(self._start, process.node, is_worker=is_worker)
            self.loop.call_later(self.draw.choice((0.1, self.draw.uniform(0.0, 1800.0))), again)

    def _start(self, node: int, *, is_worker: bool) -> None:
        if is_worker:
            self.cluster.start_worker(node)
        else:
            self.cluster.start_background(node)

    async def _step_clocks(self) -> None:
        """Step a node's clock by seconds to an hour, either way, for a while; then set it right."""
        while self.weather.clock_steps_per_h:
            await self.true.sleep(self.draw.expovariate(self.weather.clock_steps_per_h / 3600.0))
            clock = self.draw.choice(self.cluster.clocks)
            most_s = self.draw.choice((2.0, 60.0, STEP_MOST_S))
            clock.off_s = self.draw.choice((0.0, self.draw.uniform(-most_s, most_s)))
            self.clock_steps += 1

    async def _pass(self, duration_s: float) -> None:
        ends_at_s = self.loop.time() + duration_s
        while self.loop.time() < ends_at_s and not self._breached():
            await self.true.sleep(min(LOOK_S, ends_at_s - self.loop.time()))
            await self.auditor.look()

    def _breached(self) -> bool:
        return bool(self.auditor.breaches or self.cluster.breaches or self.loop.errors)

    # ------------------------------------------------------------ the calm

    async def _calm(self, submissions: list[asyncio.Task[None]]) -> None:
        """Stop failures, make all hosts honest, add volunteers, and check that every batch ends."""
        self.faults.on = False
        for clock in self.cluster.clocks:
            clock.off_s = 0.0
        for client in self.clients:
            client.manners = HONEST
        ends_at_s = self.loop.time() + self.weather.most_calm_s
        while not self._breached():
            await self._pass(LOOK_S)
            if all(task.done() for task in submissions) and not await self.auditor.batches_under_way():
                break
            if self.loop.time() > ends_at_s:
                self.auditor.breaches.append(f"unfinished batches: {await self.auditor.batches_under_way()}")
                break
            if round(self.loop.time() / LOOK_S) % 4 == 0:
                await self._join(HONEST)
        for task in submissions:
            if task.done():
                task.result()
        await self.auditor.check_promises()

    def _outcome(self) -> Outcome:
        failed = [duty for one in self.cluster.backgrounds.values() for duty in getattr(one.runs, "duties", ())]
        breaches = [*self.auditor.breaches, *self.cluster.breaches, *self.loop.errors]
        breaches += [f"duty {duty.name} failed: {duty.failure}" for duty in failed if duty.failures > duty.overruns]
        seen = Counter(self.faults.seen)
        trace = (
            f"{self.loop.callbacks} {self.loop.time():.6f} {self.faults.calls} {sorted(self.faults.injected.items())}"
        )
        return Outcome(
            self.seed,
            tuple(breaches),
            dict(self.faults.injected),
            seen,
            self.cluster.deaths,
            self.clock_steps,
            self.totals.replays,
            self.totals.requests,
            self.totals.acknowledged,
            self.totals.uploads,
            len(self.auditor.promised),
            self.loop.callbacks,
            self.faults.calls,
            hashlib.sha256(trace.encode()).hexdigest(),
        )
