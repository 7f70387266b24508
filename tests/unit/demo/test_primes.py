"""The demonstration's application counts correctly."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demo import primes
from demo.primes import primes_between


def is_prime(number: int) -> bool:
    return number > 1 and all(number % divisor for divisor in range(2, int(number**0.5) + 1))


@pytest.mark.parametrize(("below", "count"), [(10, 4), (100, 25), (1000, 168), (10_000, 1229), (100_000, 9592)])
def test_primes_below_powers_of_ten_match_known_counts(below: int, count: int) -> None:
    assert primes_between(0, below) == count


def test_distant_interval_matches_known_counts() -> None:
    assert primes_between(100_000, 900_000) == 78_498 - 9592


@given(st.integers(0, 20_000), st.integers(0, 300))
def test_any_interval_agrees_with_trial_division(first: int, length: int) -> None:
    assert primes_between(first, length) == sum(is_prime(number) for number in range(first, first + length))


@given(st.integers(0, 20_000), st.integers(0, 300), st.integers(0, 300))
def test_neighbouring_intervals_add_up(first: int, length: int, more: int) -> None:
    assert primes_between(first, length) + primes_between(first + length, more) == primes_between(first, length + more)


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(Path(primes.__file__)), *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_a_job_writes_its_count_and_says_that_it_has_ended(tmp_path: Path) -> None:
    ended = run(tmp_path, "1000", "100", "2")

    assert ended.returncode == 0
    assert (tmp_path / "out").read_text() == f"1200 100 {primes_between(1200, 100)}\n"
    assert (tmp_path / "boinc_finish_called").read_text() == "0\n"
    assert "1200" in ended.stderr


def test_asked_to_fail_it_fails_and_leaves_nothing(tmp_path: Path) -> None:
    ended = run(tmp_path, "--fail")

    assert (ended.returncode, ended.stderr) == (3, "asked to fail\n")
    assert list(tmp_path.iterdir()) == []


def test_the_file_can_be_run_as_it_is() -> None:
    assert Path(primes.__file__).read_text().startswith("#!/usr/bin/env python3\n")
