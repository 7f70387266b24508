"""`muster estimate run`: its output."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import asyncpg
import pytest

from store import embedded
from tests.acceptance.host import LINUX
from tests.acceptance.test_command_line import CommandLine
from tests.facts import missing

BATCH = """
app = "pi"
qos = "{qos}"
{more}
[jobs]
count = 3
fpops_est = 1e12
delay_bound_s = 86400
"""


@pytest.fixture(scope="module")
def muster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    """A project with an app and no batch."""
    project = CommandLine(tmp_path_factory.mktemp("project") / "data")
    program = project.data_dir.parent / "main.sh"
    program.write_text("#!/bin/sh\n")
    project.json("init", "--url", "http://127.0.0.1:8089/")
    project.json("app", "add", "pi")
    project.json("app", "version", "add", "pi", "--platform", LINUX, "--version", "100", "--main", str(program))
    yield project
    embedded.stop(project.data_dir / "postgres")


def submitted(muster: CommandLine, qos: str, more: str = "") -> int:
    path = muster.data_dir.parent / "batch.toml"
    path.write_text(BATCH.format(qos=qos, more=more))
    batch_id = muster.json("batch", "submit", str(path))["batch_id"]
    assert isinstance(batch_id, int)
    return batch_id


def test_no_active_batches(muster: CommandLine) -> None:
    assert muster.run("estimate", "run") == (0, "No active batches.\n", "")


def test_forecast_is_shown_with_the_batch(muster: CommandLine) -> None:
    batch_id = submitted(muster, "afap")

    made = muster.json("estimate", "run", "--batch", str(batch_id))

    assert (made["changed"], made["held"], made["fallbacks"], made["failed"]) == (1, 0, 0, 0)
    [one] = made["batches"]
    forecast = one["forecast"]
    assert (one["batch_id"], one["outcome"]) == (batch_id, "changed")
    assert (forecast["trigger"], forecast["method"], forecast["jobs_total"]) == ("manual", "a_priori", 3)
    assert [forecast[name] for name in ("q10_at", "q50_at", "q90_at")] == [None] * 3
    assert [hold["kind"] for hold in forecast["holds"]] == ["not_sent"]
    shown = muster.json("batch", "show", str(batch_id))
    assert not missing(forecast["flag"], "more than 10 delay bounds")  # there is no host
    assert (shown["completion_q50_at"], shown["completion_q90_at"]) == (None, None)
    assert shown["completion_at"] == forecast["made_at"] + 10 * 86400


def test_second_run_holds_the_published_forecast(muster: CommandLine) -> None:
    muster.run("estimate", "run")

    done = muster.run("estimate", "run")

    assert done.exit_code == 0
    assert "1 of 1, batch 1 held: " in done.stderr and "the published value is kept" in done.stderr
    counts = ("0 changed", "1 held", "0 fell back", "0 elsewhere", "0 over", "0 failed", "0 ended")
    assert not missing(" ".join(done.stdout.split()), *counts, "3 first instances")


def test_no_deadline_risk_before_results(muster: CommandLine) -> None:
    batch_id = submitted(muster, "short_deadline", "deadline_s = 60")

    [one] = muster.json("estimate", "run", "--batch", str(batch_id))["batches"]

    assert one["forecast"]["q50_at"] is None
    assert muster.json("batch", "show", str(batch_id))["forecast_state"] == "first_results"


def test_inactive_batch_is_named(muster: CommandLine) -> None:
    assert muster.error("estimate", "run", "--batch", "99") == (1, "muster: no active batch 99\n")


def test_batch_claimed_by_another_process_is_skipped(muster: CommandLine) -> None:
    dsn = embedded.ensure_running(muster.data_dir / "postgres")

    async def with_the_batch_claimed() -> Any:
        connection = await asyncpg.connect(dsn)
        await connection.execute("SELECT pg_advisory_lock(1297437781, 1)")
        made = await asyncio.to_thread(muster.json, "estimate", "run", "--batch", "1")
        await connection.close()
        return made

    made = asyncio.run(with_the_batch_claimed())

    assert (made["elsewhere"], made["batches"]) == (1, [{"batch_id": 1, "outcome": "elsewhere"}])
