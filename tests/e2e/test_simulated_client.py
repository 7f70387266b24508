"""The simulated client requests and gets jobs like the stock client: the same project is run with each.

The stock client runs in real time, so jobs take seconds and buffers hold minutes of work.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean

import pytest

from domain.apps import App, AppVersion
from domain.units import AppId, AppVersionId, Instant, Seconds
from simulator.availability import Availability
from simulator.client import SimulatedVolunteer
from simulator.engine import Engine
from simulator.ports import Participant, Program
from simulator.run import warnings_only
from simulator.traits import Fates, Traits
from simulator.virtual_time import run_without_threads
from simulator.work_buffer import Buffer
from tests.e2e.server import Server
from tests.e2e.stock_client import StockClient, wait_for
from tests.memory import MemoryStore
from tests.unit.simulator.rig import LINUX, START, PlainScenario, a_batch, no_more_tasks
from wire.messages import SchedulerReply, SchedulerRequest

pytestmark = [pytest.mark.comparison, pytest.mark.timeout(240)]

MakeClient = Callable[..., StockClient]

HOSTS = (1, 2, 1)  # processors per host
JOBS = 18
JOB_S = 15.0
FLOP_PER_S = 1e9  # a stock client's speed before its first benchmark
DELAY_S = 12.0
LATER_S = 7.0  # a stock client acts every 5 s, and a request takes 2 s
BUFFER_DAYS = 0.0025
SETTINGS = {
    "scheduler.request_delay_s": DELAY_S,
    "scheduler.no_work_delay_s": DELAY_S,
    "scheduler.jobs_per_request": 2,
}
BATCH = f"""
app = "testapp"
qos = "throughput"
[jobs]
count = {JOBS}
command_line = "{JOB_S:g}"
fpops_est = {JOB_S * FLOP_PER_S:g}
delay_bound_s = 72000
outputs = [{{ name = "out", max_bytes = 100000 }}]
"""


@dataclass(slots=True)
class Call:
    """One scheduler request and its outcome; `at_s` counts from the first request of any host."""

    at_s: float
    reason: str = ""
    asked_s: float = 0.0
    idle: float = 0.0
    reported: int = 0
    got: int = 0


LINE = re.compile(r"^(\d\d-\w{3}-\d{4} \d\d:\d\d:\d\d) \[[^]]*\] (.*)$", re.MULTILINE)
PARTS = (
    ("asked_s", re.compile(r"\[sched_op\] CPU work request: ([\d.]+) seconds")),
    ("idle", re.compile(r"\[sched_op\] CPU work request: .*; ([\d.]+) devices")),
    ("reported", re.compile(r"Reporting (\d+) completed tasks")),
    ("got", re.compile(r"Scheduler request completed: got (\d+) new tasks")),
)


def calls_of(log: str) -> list[Call]:
    """Parse the requests of a stock client from its log; times in seconds since 1970."""
    found: list[Call] = []
    for stamp, text in LINE.findall(log):
        if text.startswith("Sending scheduler request: "):
            at_s = datetime.strptime(stamp, "%d-%b-%Y %H:%M:%S").replace(tzinfo=UTC).timestamp()
            found.append(Call(at_s, text.removeprefix("Sending scheduler request: ").rstrip(".")))
        for name, pattern in PARTS:
            match = pattern.search(text)
            if match is not None and found:
                setattr(found[-1], name, type(getattr(found[-1], name))(float(match[1])))
    return found


def stock_calls(server: Server, client: MakeClient, binary: Path) -> list[list[Call]]:
    """Return each host's requests until all jobs are validated."""
    server.init(**{key.replace(".", "__"): value for key, value in SETTINGS.items()})
    server.start()
    server.add_app("testapp", binary)
    batch_id = server.submit(BATCH)
    clients = [client(ncpus=ncpus, buffer_days=BUFFER_DAYS, report_immediately=False) for ncpus in HOSTS]
    wait_for(lambda: server.batch(batch_id)["state"] == "complete", 170, "the batch")
    every = [calls_of(one.log()) for one in clients]
    first_at = min(calls[0].at_s for calls in every)
    for call in (call for calls in every for call in calls):
        call.at_s -= first_at
    return every


class HeardVolunteer(SimulatedVolunteer):
    """A simulated client that records its requests."""

    calls: list[Call]

    def request(self, now: Instant) -> SchedulerRequest | None:
        request = super().request(now)
        if request is not None:
            call = Call(now - START, "", request.cpu_req_s, request.cpu_req_instances, len(request.results))
            self.calls.append(call)
        return request

    def receive(self, reply: SchedulerReply, now: Instant) -> None:
        self.calls[-1].got = len(reply.results)
        super().receive(reply, now)


@dataclass(frozen=True, slots=True)
class SameProject(PlainScenario):
    """The project with these hosts, which send their first requests at these seconds."""

    first_calls_s: tuple[float, ...] = ()

    def volunteers(self, seed: int) -> Sequence[Participant]:  # type: ignore[override]
        return [_client(*one) for one in zip(HOSTS, self.first_calls_s, strict=True)]


def _client(ncpus: int, first_call_s: float) -> HeardVolunteer:
    buffer = Buffer(Seconds(BUFFER_DAYS * 86400.0), Seconds(0.0))
    number = round(1e6 * first_call_s) + ncpus
    traits = Traits(
        number=number,
        authenticator=f"{number:032x}",
        ncpus=ncpus,
        flop_per_s=FLOP_PER_S,
        stretch=1.0,
        ram_bytes=8e9,
        disk_bytes=5e10,
        platform=LINUX,
        os_name="Linux",
        share=1.0,
        buffer=buffer,
        joins_at=START,
        first_call_at=Instant(START + first_call_s),
    )
    on = Availability(iter([(START, START + 1e6)]), start_at=START)
    made = HeardVolunteer(traits, on, Fates(0.0, 0.0, 0.0, 0.0, 1, random.Random(1)), random.Random(ncpus))
    made.calls = []
    return made


def simulated_calls(first_calls_s: Sequence[float]) -> list[list[Call]]:
    version = AppVersion(AppVersionId(0), AppId(0), LINUX, 100)
    scenario = SameProject(
        programs=(Program(App(AppId(0), "testapp"), (version,)),),
        batches=[
            a_batch("b", jobs=JOBS, qos="throughput", app="testapp", fpops_est=JOB_S * FLOP_PER_S, delay_bound_s=72000)
        ],
        first_calls_s=tuple(first_calls_s),
    )
    engine = Engine(
        scenario,
        1,
        store=lambda _clock: MemoryStore(),
        settings=SETTINGS,
        more_tasks=no_more_tasks,
        watch=lambda _at: None,
    )
    with warnings_only():
        run_without_threads(engine.run())
    return [one.calls for one in engine.volunteers if isinstance(one, HeardVolunteer)]


def shown(stock: list[list[Call]], simulated: list[list[Call]]) -> str:
    """Return both clients side by side, per host and request, as the table in docs/formulas.md."""
    lines = []
    for ncpus, ours, theirs in zip(HOSTS, stock, simulated, strict=True):
        lines.append(
            f"| {ncpus} processors: call | asked for (s), stock | simulated | reported | simulated | got | simulated |"
        )
        for n in range(max(len(ours), len(theirs))):
            pair = [calls[n] if n < len(calls) else None for calls in (ours, theirs)]
            cells = [
                " / ".join("" if one is None else f"{one.at_s:.0f} s" for one in pair),
                *("" if one is None else f"{one.asked_s:.0f}" for one in pair),
                *("" if one is None else str(one.reported) for one in pair),
                *("" if one is None else str(one.got) for one in pair),
            ]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def test_simulated_clients_call_as_stock_clients_do(server: Server, client: MakeClient, app_binary: Path) -> None:
    stock = stock_calls(server, client, app_binary)
    simulated = simulated_calls([calls[0].at_s for calls in stock])
    table = shown(stock, simulated)
    print(table)  # for the documentation, with -s

    for ours, theirs in zip(stock, simulated, strict=True):
        assert (ours[0].asked_s, ours[0].idle, ours[0].got) == (theirs[0].asked_s, theirs[0].idle, theirs[0].got), table
        assert ours[1].asked_s == pytest.approx(theirs[1].asked_s, rel=0.1), table
        assert abs(ours[1].at_s - theirs[1].at_s) <= 10.0, table
        assert sum(call.got for call in ours) == pytest.approx(sum(call.got for call in theirs), abs=2), table
        asking = [[call.asked_s for call in calls[1:] if call.asked_s > 0.0] for calls in (ours, theirs)]
        assert fmean(asking[0]) == pytest.approx(fmean(asking[1]), rel=0.25), table
        assert len(ours) == pytest.approx(len(theirs), rel=0.34, abs=2), table
    assert sum(call.got for calls in stock for call in calls) == JOBS
    ends_s = [max(calls[-1].at_s for calls in every) for every in (stock, simulated)]
    most_calls = max(len(calls) for every in (stock, simulated) for calls in every)
    assert abs(ends_s[0] - ends_s[1]) <= LATER_S * most_calls, table
