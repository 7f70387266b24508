"""A simulated volunteer computes with the real application, in its own folder."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from demo import primes
from demo.load.jobs import Profile, TaskRunner, VolunteerTask
from demo.primes import primes_between
from domain.units import Instant
from tests.unit.administration.clocks import HastyClock, StillClock
from wire.messages import STATE_COMPUTE_ERROR, STATE_UPLOADED, FileRef, ResultElement, WorkunitElement

HOST = Profile(1, "a@x", ncpus=1, flop_per_s=1e9, stretch=1.0)
PATIENT_S = 60.0


def a_task(**changes: Any) -> VolunteerTask:
    """A job of the demonstration: 100 numbers from 1200."""
    workunit = WorkunitElement("primes_1_1", "primes", 2e9, 2e10, 5e7, 1e7, "1000 100 2")
    output = FileRef("primes_1_1_1_r0", open_name="out")
    result = ResultElement("primes_1_1_1", "primes_1_1", Instant(0.0), "linux", 100, file_refs=(output,))
    task = VolunteerTask(
        result, workunit, "primes.py", {"primes_1_1_1_r0": 1000}, {"primes_1_1_1_r0": "token"}, "http://x/"
    )
    return replace(task, **changes)


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    folder = tmp_path / "files"
    folder.mkdir()
    shutil.copy(Path(primes.__file__), folder / "primes.py")
    (folder / "primes.py").chmod(0o755)
    return folder


def a_runner(cache: Path, clock: HastyClock) -> TaskRunner:
    return TaskRunner(clock, cache, cache.parent / "slots", at_once=2)


def draw() -> random.Random:
    return random.Random(1)


async def test_a_task_is_computed_and_its_output_collected(cache: Path) -> None:
    clock = HastyClock(rounds=10)

    finished = await a_runner(cache, clock).run(a_task(), HOST, draw())

    assert (finished.exit_status, finished.state) == (0, STATE_UPLOADED)
    assert finished.outputs == {"primes_1_1_1_r0": f"1200 100 {primes_between(1200, 100)}\n".encode()}
    assert finished.stderr == "counted primes from 1200\n"


async def test_a_task_takes_as_long_as_on_a_host_of_that_speed(cache: Path) -> None:
    fast, slow = HastyClock(rounds=10), HastyClock(rounds=10)

    on_fast = await a_runner(cache, fast).run(a_task(), replace(HOST, flop_per_s=4e9), draw())
    on_slow = await a_runner(cache, slow).run(a_task(), replace(HOST, stretch=2.0), draw())

    assert on_slow.elapsed_s == pytest.approx(8 * on_fast.elapsed_s)
    assert on_fast.elapsed_s == pytest.approx(0.5, rel=0.9)


async def test_no_slot_is_left_behind(cache: Path) -> None:
    runner = a_runner(cache, HastyClock(rounds=10))

    await runner.run(a_task(), HOST, draw())
    await runner.run(a_task(), HOST, draw())

    assert list((cache.parent / "slots").iterdir()) == []


async def test_a_faulty_host_reports_an_error_with_its_exit_status(cache: Path) -> None:
    finished = await a_runner(cache, HastyClock(rounds=10)).run(a_task(), replace(HOST, error_fraction=1.0), draw())

    assert (finished.exit_status, finished.state, finished.outputs) == (3, STATE_COMPUTE_ERROR, {})
    assert finished.stderr == "asked to fail\n"


async def test_a_cheat_brings_something_else(cache: Path) -> None:
    finished = await a_runner(cache, HastyClock(rounds=10)).run(a_task(), replace(HOST, garbage_fraction=1.0), draw())

    assert finished.state == STATE_UPLOADED
    assert finished.outputs["primes_1_1_1_r0"].endswith(b"\nmade up\n")


async def test_an_output_over_its_size_is_an_error(cache: Path) -> None:
    task = a_task(max_bytes={"primes_1_1_1_r0": 3})

    finished = await a_runner(cache, HastyClock(rounds=10)).run(task, HOST, draw())

    assert (finished.exit_status, finished.state, finished.outputs) == (0, STATE_COMPUTE_ERROR, {})


async def test_inputs_are_there_under_the_names_the_program_opens(cache: Path) -> None:
    (cache / "stored_a").write_text("first\n")
    (cache / "stored_b").write_text("second\n")
    (cache / "join.sh").write_text("#!/bin/sh\ncat in stored_b > out\n")
    (cache / "join.sh").chmod(0o755)
    inputs = (FileRef("stored_a", open_name="in"), FileRef("stored_b"))
    task = a_task(main_program="join.sh", workunit=replace(a_task().workunit, file_refs=inputs))

    finished = await a_runner(cache, HastyClock(rounds=10)).run(task, HOST, draw())

    assert finished.outputs == {"primes_1_1_1_r0": b"first\nsecond\n"}


async def test_a_cancelled_task_takes_its_process_and_its_slot_with_it(cache: Path) -> None:
    fifo = cache.parent / "started"
    os.mkfifo(fifo)
    (cache / "wait.sh").write_text(f"#!/bin/sh\necho $$ > {fifo}\nexec sleep 600\n")
    (cache / "wait.sh").chmod(0o755)
    runner = TaskRunner(StillClock(), cache, cache.parent / "slots", at_once=1)

    work = asyncio.create_task(runner.run(a_task(main_program="wait.sh"), HOST, draw()))
    pid = await asyncio.wait_for(first_line_of(fifo), PATIENT_S)
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)

    assert work.cancelled()
    assert not Path(f"/proc/{pid}").exists()
    assert list((cache.parent / "slots").iterdir()) == []


async def first_line_of(fifo: Path) -> int:
    """Read a number from a named pipe; waits for the writer."""
    return int(await asyncio.to_thread(fifo.read_text))
