"""Tests that outputs are compared in child processes, which crash instead of the service."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from domain.dispatch import Upload
from domain.errors import UnavailableError
from domain.jobs import ValidatorKind
from domain.settings import Settings, ValidationSettings
from domain.units import InstanceId, Seconds
from jobs.comparing_pool import PROGRAM, ComparingPool
from jobs.comparing_process import encode_task
from jobs.comparisons import Comparison, OutputFile, TooSlowError
from lifecycle.leaves import ReadingLimits
from lifecycle.settle import UNREADABLE

GOOD = b'{"pi": [3.14159, "ok"]}'
CLOSE = b'{"pi": [3.14160, "ok"]}'
POISON = b"[" * 950 + b"1," * 498_000 + b"1" + b"]" * 950


@asynccontextmanager
async def a_pool(folder: Path, **changes: object) -> AsyncIterator[ComparingPool]:
    settings: ValidationSettings = replace(Settings().validation, **changes)  # type: ignore[arg-type]
    pool = ComparingPool(_in(folder), lambda: settings)
    try:
        yield pool
    finally:
        await pool.close()


def a_comparison(folder: Path, *contents: bytes | None) -> Comparison:
    """Build a comparison of instances 1, 2, 3, ... with one output each; None: its file is missing."""
    outputs = {}
    for number, content in enumerate(contents, start=1):
        name = f"pi_1_1_{number}_r0"
        if content is not None:
            (folder / name).write_bytes(content)
        outputs[InstanceId(number)] = (OutputFile("out", name, len(content or b""), "0" * 32),)
    return Comparison(ValidatorKind.TOLERANCE, 1e-3, outputs)


def children() -> list[psutil.Process]:
    return [one for one in psutil.Process().children() if "jobs.comparing_process" in one.cmdline()]


async def test_close_outputs_agree(tmp_path: Path) -> None:
    async with a_pool(tmp_path) as pool:
        found = await pool.compare(a_comparison(tmp_path, GOOD, CLOSE, b"[1]"))
    assert (found.groups, found.because) == ({1: 0, 2: 0, 3: 1}, {})


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (POISON, "nested deeper than 100 levels"),
        (b"[" + b"9" * 2_000_000 + b"]", "2000000 digits"),
        (b"[" * 1_000_000, "nested deeper"),
        (b"\xff\xfe", "not UTF-8"),
        (None, "not on the server"),
    ],
    ids=["poison", "digits", "deep", "encoding", "missing"],
)
async def test_one_bad_output_is_named_and_the_rest_agree(tmp_path: Path, bad: bytes | None, why: str) -> None:
    async with a_pool(tmp_path) as pool:
        found = await pool.compare(a_comparison(tmp_path, GOOD, bad, CLOSE))
    assert found.groups == {1: 0, 2: UNREADABLE, 3: 0}
    assert found.because.keys() == {2}
    assert why in found.because[InstanceId(2)]


async def test_an_output_that_takes_too_much_memory_is_to_blame(tmp_path: Path) -> None:
    large = b"[" + b"{}," * 4_000_000 + b"1]"
    async with a_pool(tmp_path, max_memory_bytes=200_000_000) as pool:
        found = await pool.compare(a_comparison(tmp_path, GOOD, large, CLOSE))
    assert found.groups == {1: 0, 2: UNREADABLE, 3: 0}
    assert "200 MB of memory" in found.because[InstanceId(2)]


async def test_an_output_that_takes_too_long_is_to_blame(tmp_path: Path) -> None:
    slow = b"[" + b"1.5," * 4_000_000 + b"1]"  # takes several seconds on any current machine
    async with a_pool(tmp_path, max_read_s=Seconds(1.0)) as pool:
        found = await pool.compare(a_comparison(tmp_path, GOOD, slow, CLOSE))
    assert found.groups == {1: 0, 2: UNREADABLE, 3: 0}
    assert "took more than 1 s" in found.because[InstanceId(2)]


async def test_outputs_that_take_too_long_to_compare_are_nobodys_fault(tmp_path: Path) -> None:
    alike = b"[" + b"1," * 10_000
    outputs = [alike + str(number).encode() + b"]" for number in range(100, 220)]  # 7140 pairs that differ at their end
    async with a_pool(tmp_path, max_read_s=Seconds(1.0)) as pool:
        with pytest.raises(TooSlowError, match="120 outputs"):
            await pool.compare(a_comparison(tmp_path, *outputs))
        assert (await pool.compare(a_comparison(tmp_path, GOOD, CLOSE))).groups == {1: 0, 2: 0}


async def test_a_child_that_is_killed_while_it_parses_blames_no_output(tmp_path: Path) -> None:
    """For example by the kernel when memory runs out, or together with its service."""
    slow = b"[" + b"1.5," * 4_000_000 + b"1]"
    async with a_pool(tmp_path) as pool:
        comparing = asyncio.create_task(pool.compare(a_comparison(tmp_path, GOOD, slow, CLOSE)))
        while not (found := [one for one in children() if one.cpu_times().user > 0.5]):  # reading the first is faster
            await asyncio.wait([comparing], timeout=0.01)
        found[0].kill()
        with pytest.raises(UnavailableError):
            await comparing


async def test_a_read_that_hangs_is_no_output_to_blame(tmp_path: Path) -> None:
    """For example a read from a file server that does not respond."""
    comparison = a_comparison(tmp_path, GOOD, None)
    os.mkfifo(tmp_path / "pi_1_1_2_r0")
    pool = ComparingPool(_in(tmp_path), lambda: replace(Settings().validation, max_read_s=Seconds(0.1)))
    with pytest.raises(UnavailableError):
        await pool.compare(comparison)
    await pool.close()
    assert children() == []


async def test_a_child_is_used_again_and_replaced_when_it_ends(tmp_path: Path) -> None:
    comparison = a_comparison(tmp_path, GOOD, CLOSE)
    async with a_pool(tmp_path) as pool:
        await pool.compare(comparison)
        [first] = children()
        await pool.compare(comparison)
        assert children() == [first]
        first.kill()
        first.wait()
        found = await pool.compare(comparison)
    assert found.groups == {1: 0, 2: 0}
    assert children() == []


@pytest.mark.parametrize("hangs", [True, False], ids=["reads", "parses"])
async def test_a_child_ends_with_its_parent(tmp_path: Path, hangs: bool) -> None:
    """The parent's end of the input closes while the child waits for a file, or parses one for many seconds."""
    content = None if hangs else b"[" + b"1.5," * 4_000_000 + b"1]"
    comparison = a_comparison(tmp_path, content)
    if hangs:
        os.mkfifo(tmp_path / "pi_1_1_1_r0")
    limits = ReadingLimits(max_bytes=100_000_000, max_values=100_000_000, max_depth=100)
    with subprocess.Popen([*PROGRAM, "4000000000", "60"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None and child.stdout is not None
        child.stdin.write(encode_task(comparison, {"pi_1_1_1_r0": tmp_path / "pi_1_1_1_r0"}, limits))
        child.stdin.flush()
        last = b"read" if hangs else b"parse"
        while last not in child.stdout.readline():
            pass
        child.stdin.close()
        assert child.wait(5.0) == -signal.SIGIO


async def test_other_limits_need_another_child(tmp_path: Path) -> None:
    limits = [Settings().validation]
    pool = ComparingPool(_in(tmp_path), lambda: limits[-1])
    comparison = a_comparison(tmp_path, GOOD, b"[1, 2, 3]")
    assert (await pool.compare(comparison)).because == {}
    limits.append(replace(limits[0], max_values=2))
    assert (await pool.compare(comparison)).because.keys() == {2}
    await pool.close()


def _in(folder: Path) -> Callable[[Sequence[Upload]], AbstractAsyncContextManager[Mapping[str, Path]]]:
    return lambda uploads: nullcontext({one.name: folder / one.name for one in uploads})
