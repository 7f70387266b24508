"""Phases of the test suite run in parallel: their output is kept apart, and no failure is lost."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "side_by_side.sh"


def side_by_side(*commands: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["bash", str(SCRIPT), *commands], capture_output=True, text=True, timeout=30, check=False)


def test_last_phase_is_shown_first_then_the_others(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"  # each waits for the other, which proves that they run in parallel

    done = side_by_side(
        f"mkfifo {fifo}; echo one; echo two; cat {fifo}",
        f"until [ -p {fifo} ]; do :; done; echo three > {fifo}; echo four",
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0] == "four"
    assert done.stdout.splitlines()[-3:] == ["one", "two", "three"]


@pytest.mark.parametrize(
    "commands", [("exit 3", "true", "true"), ("true", "exit 3", "true"), ("true", "true", "exit 3")]
)
def test_any_failure_fails_the_whole_and_is_named(commands: tuple[str, ...]) -> None:
    done = side_by_side(*commands)

    assert (done.returncode, done.stderr) == (1, "failed: exit 3\n")


def test_what_is_still_running_ends_with_it(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    long = f"echo $$ > {pid}.new; mv {pid}.new {pid}; exec sleep 600"
    last = f"until [ -s {pid} ]; do :; done; echo ready; exec sleep 600"
    with subprocess.Popen(["bash", str(SCRIPT), long, last], stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "ready\n"
        other = Path(f"/proc/{pid.read_text().strip()}")
        assert other.exists()

        running.terminate()

        assert running.wait(30) != 0
        assert not other.exists()
