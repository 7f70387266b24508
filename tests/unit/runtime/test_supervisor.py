"""Children of a node die, are restarted, and stop on request: with small real processes."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import socket
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from domain.units import Seconds
from runtime.supervisor import HEALTHY_S, Child, PortInUseError, Supervisor, check_port_free, restart_pause_s
from tests.facts import missing, states
from tests.faults.waiting import until
from tests.unit.administration.clocks import HastyClock, StillClock

# Reports ready, then runs until its standard input closes or it is asked to stop.
OBEDIENT = "import sys; print('ready', flush=True); sys.stdin.read()"
DEAF = "import signal, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + OBEDIENT
SHORT_LIVED = "import sys; sys.exit(3)"
PATIENT_S = 60.0  # far longer than any of these tests needs


def program(script: str) -> Sequence[str]:
    return (sys.executable, "-S", "-c", script)


@asynccontextmanager
async def running(supervisor: Supervisor) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(supervisor.run())
    try:
        yield task
    finally:
        supervisor.stop()
        await asyncio.wait_for(task, PATIENT_S)


def is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def pid_of(child: Child) -> int:
    assert child.process is not None
    return child.process.pid


async def test_children_are_started_said_to_be_ready_and_ended() -> None:
    children = [Child("one", ["--first"]), Child("two", ["--second"])]
    supervisor = Supervisor(children, StillClock(), program=program(OBEDIENT))

    async with running(supervisor):
        await asyncio.wait_for(supervisor.wait_ready(), PATIENT_S)
        pids = [pid_of(child) for child in children]
        assert len(set(pids)) == 2
        lines = [Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0") for pid in pids]
        assert [line[-2] for line in lines] == [b"--first", b"--second"]

    assert not any(is_alive(pid) for pid in pids)
    assert [child.process.returncode for child in children if child.process] == [-signal.SIGTERM] * 2


async def test_dying_child_is_restarted_with_growing_pauses() -> None:
    clock, child = HastyClock(rounds=7), Child("one", [])

    async with running(Supervisor([child], clock, program=program(SHORT_LIVED))):
        await asyncio.wait_for(clock.done.wait(), PATIENT_S)

    assert clock.sleeps == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
    assert child.deaths == 8


async def test_a_killed_child_is_replaced_and_its_sibling_left_alone() -> None:
    clock, one, two = HastyClock(rounds=5), Child("one", []), Child("two", [])
    supervisor = Supervisor([one, two], clock, program=program(OBEDIENT))

    async with running(supervisor):
        await asyncio.wait_for(supervisor.wait_ready(), PATIENT_S)
        before = (pid_of(one), pid_of(two))
        one.ready.clear()
        os.kill(before[0], signal.SIGKILL)
        await asyncio.wait_for(one.ready.wait(), PATIENT_S)
        assert pid_of(one) != before[0]
        assert pid_of(two) == before[1]
        assert (one.deaths, two.deaths) == (1, 0)


class LongLivedClock(StillClock):
    """Consecutive readings are further apart than a healthy lifetime."""

    def __init__(self) -> None:
        super().__init__()
        self._reading = 0.0

    def monotonic(self) -> Seconds:
        self._reading += HEALTHY_S + 1.0
        return Seconds(self._reading)


async def test_a_long_life_forgives_earlier_deaths() -> None:
    clock, child = LongLivedClock(), Child("one", [], deaths=6)

    async with running(Supervisor([child], clock, program=program(SHORT_LIVED))):
        await asyncio.wait_for(clock.slept.wait(), PATIENT_S)

    assert (child.deaths, clock.sleeps) == (1, [0.5])


async def test_stopping_does_not_wait_for_a_pause_to_end() -> None:
    clock = StillClock()
    supervisor = Supervisor([Child("one", [])], clock, program=program(SHORT_LIVED))

    async with running(supervisor) as task:
        await asyncio.wait_for(clock.slept.wait(), PATIENT_S)
        supervisor.stop()
        await asyncio.wait_for(task, PATIENT_S)

    assert clock.sleeps == [0.5]


async def test_a_child_that_does_not_end_when_asked_is_killed() -> None:
    child = Child("deaf", [])
    supervisor = Supervisor([child], StillClock(), program=program(DEAF), stop_s=0.05)

    async with running(supervisor):
        await asyncio.wait_for(supervisor.wait_ready(), PATIENT_S)

    assert child.process is not None
    assert child.process.returncode == -signal.SIGKILL


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_stops_the_supervisor_and_its_children(number: signal.Signals) -> None:
    child = Child("one", [])
    supervisor = Supervisor([child], StillClock(), program=program(OBEDIENT))

    async with running(supervisor) as task:
        await asyncio.wait_for(supervisor.wait_ready(), PATIENT_S)
        os.kill(os.getpid(), number)
        await asyncio.wait_for(task, PATIENT_S)

    assert not is_alive(pid_of(child))


async def test_children_see_the_environment_they_are_given() -> None:
    script = "import os, sys; print(os.environ['MUSTER_TEST_WORD'], flush=True); sys.stdin.read()"
    child = Child("one", [])
    supervisor = Supervisor([child], StillClock(), program=program(script), environment={"MUSTER_TEST_WORD": "ready"})

    async with running(supervisor):
        await asyncio.wait_for(child.ready.wait(), PATIENT_S)


class StoppedWhileRestarting(Supervisor):
    """A supervisor that is stopped while it restarts a child."""

    async def _start(self, child: Child) -> None:
        if child.deaths == 1:
            self.stop()
        await super()._start(child)


async def test_starting_child_does_not_outlive_the_supervisor() -> None:
    one, deaf = Child("one", []), Child("deaf", [])
    supervisor = StoppedWhileRestarting([one, deaf], HastyClock(rounds=5), program=program(DEAF), stop_s=0.1)

    async with running(supervisor) as task:
        await asyncio.wait_for(supervisor.wait_ready(), PATIENT_S)
        os.kill(pid_of(one), signal.SIGKILL)
        await asyncio.wait_for(task, PATIENT_S)

    assert not is_alive(pid_of(one))
    assert not is_alive(pid_of(deaf))


async def test_a_program_that_does_not_exist_ends_the_supervisor() -> None:
    supervisor = Supervisor([Child("one", [])], StillClock(), program=("/no/such/program",))

    with pytest.raises(FileNotFoundError):
        await asyncio.wait_for(supervisor.run(), PATIENT_S)


@pytest.mark.parametrize(("deaths", "pause_s"), [(1, 0.5), (2, 1.0), (6, 16.0), (7, 30.0), (2000, 30.0)])
def test_pauses_double_up_to_half_a_minute(deaths: int, pause_s: float) -> None:
    assert restart_pause_s(deaths) == pause_s


def test_a_free_port_is_free() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]

    check_port_free("127.0.0.1", port)


@pytest.mark.parametrize("shared", [False, True])
def test_a_port_another_program_listens_on_is_named(*, shared: bool) -> None:
    with socket.socket() as other:
        if shared:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]

        with states(PortInUseError, f"127.0.0.1 port {port}:", "in use"):
            check_port_free("127.0.0.1", port)


def test_an_address_that_is_not_ours_is_named() -> None:
    with pytest.raises(PortInUseError, match=r"^cannot listen on 192\.0\.2\.1 port 8080: "):
        check_port_free("192.0.2.1", 8080)


BEATING = """
import os, threading
pause = threading.Event()
os.write(1, b'ready\\n')
while True:
    os.write(1, b'alive\\n')
    pause.wait(0.05)
"""
HANGING = "import sys; print('ready\\nalive\\nhangs validator', flush=True); sys.stdin.read()"
TICK_S = 0.1
EVER = 1_000_000  # restarts


def watched(script: str, silence_s: float) -> tuple[Child, Supervisor]:
    """A child with a heartbeat limit, and its supervisor."""
    child = Child("one", [], Seconds(silence_s))
    return child, Supervisor([child], HastyClock(rounds=EVER), program=program(script), tick_s=TICK_S)


async def restarted(child: Child, before: int) -> None:
    """Return when the child was replaced and the next one is ready."""
    await until(
        lambda: child.restarts > 0 and child.ready.is_set() and pid_of(child) != before, PATIENT_S, "it was restarted"
    )


async def test_stopped_child_is_killed_and_restarted() -> None:
    child, supervisor = watched(BEATING, 2.0)

    with capture_logs() as logs:
        async with running(supervisor):
            await until(lambda: child.beats, PATIENT_S, "its first heartbeat")  # before, the limit is longer
            before = pid_of(child)
            os.kill(before, signal.SIGSTOP)
            await until(lambda: not is_alive(before), PATIENT_S, "it was killed")
            await restarted(child, before)

    said = [line["why"] for line in logs if line["event"] == "process hangs, killing it"]
    assert said and not any(missing(why, "no heartbeat for 2 s", "limit 2 s") for why in said)


async def test_child_that_says_it_hangs_is_restarted() -> None:
    child, supervisor = watched(HANGING, 3600.0)

    with capture_logs() as logs:
        async with running(supervisor):
            await until(lambda: child.restarts > 0, PATIENT_S, "it was restarted")

    assert "validator" in [line.get("why") for line in logs]


async def test_child_with_heartbeats_is_left_alone() -> None:
    child, supervisor = watched(BEATING, 3600.0)

    async with running(supervisor):
        await asyncio.wait_for(supervisor.wait_ready(), PATIENT_S)
        for _ in range(3):  # heartbeats keep arriving
            child.ticks = 5
            await until(lambda: child.ticks < 5, PATIENT_S, "a heartbeat")

    assert child.restarts == 0


class SteppedClock(StillClock):
    """Each sleep ends when `step` is called."""

    def __init__(self) -> None:
        super().__init__()
        self._steps = asyncio.Semaphore(0)

    async def sleep(self, duration_s: float) -> None:
        self.sleeps.append(duration_s)
        await self._steps.acquire()

    async def after(self, *sleeps: float) -> None:
        """Return when exactly these sleeps have begun."""
        await until(lambda: self.sleeps == list(sleeps), PATIENT_S, f"pauses of {sleeps} s")

    def step(self) -> None:
        self._steps.release()


@contextmanager
def no_files_left() -> Iterator[None]:
    """Inside, this process can open no file, so that no process can be started."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (4, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextmanager
def no_threads_left() -> Iterator[None]:
    """Inside, no thread can be started, as if no process id were left."""
    size = threading.stack_size(1 << 46)
    try:
        with pytest.raises(RuntimeError, match="can't start new thread"):
            threading.Thread(target=print).start()
        yield
    finally:
        threading.stack_size(size)


@pytest.mark.parametrize("lack", [no_files_left, no_threads_left])
async def test_failed_restart_is_retried_and_spares_siblings(lack: Callable[[], AbstractContextManager[None]]) -> None:
    clock, one, two = SteppedClock(), Child("one", []), Child("two", [])

    with capture_logs() as logs:
        async with running(Supervisor([one, two], clock, program=program(OBEDIENT))) as task:
            await until(lambda: one.ready.is_set() and two.ready.is_set(), PATIENT_S, "both are ready")
            before = (pid_of(one), pid_of(two))
            os.kill(before[0], signal.SIGKILL)
            await clock.after(0.5)
            with lack():
                clock.step()
                await clock.after(0.5, 1.0)
                clock.step()
                await clock.after(0.5, 1.0, 2.0)
            assert not task.done()
            assert two.runs() and is_alive(before[1])
            clock.step()
            await restarted(one, before[0])
            assert pid_of(two) == before[1]

    assert [line["tries"] for line in logs if "process not started" in line["event"]] == [2, 3]
