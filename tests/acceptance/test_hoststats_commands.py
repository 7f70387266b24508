"""`muster hoststats`, for cron and operators."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import asyncpg
import pytest

from domain.clock import SystemClock
from store import embedded
from store.percentiles import RUN_LOCK
from tests.acceptance.host import LINUX
from tests.acceptance.test_command_line import CommandLine
from tests.facts import missing

HOSTS = """
    INSERT INTO host (
        host_id, volunteer_id, created_at, last_rpc_at, ncpus, flop_per_s, ram_bytes, disk_free_bytes, on_fraction,
        active_fraction, gpu_active_fraction, platforms
    )
    SELECT n, volunteer_id, $1, $1, 1, 1e9, 1e9, 1e9, 1, 1, 1, '{}' FROM volunteer, generate_series(1, 25) AS n
"""
ROWS = """
    INSERT INTO host_app_version (
        host_id, app_version_id, consecutive_valid, stats_at, relaxed_n, relaxed_sum, speed_n, speed_sum, log_n,
        log_sum, log_sum_sq
    )
    SELECT n, 1, 12, $1, 10, n, 10, 1e-8, 10, 80, 640 FROM generate_series(1, 25) AS n
"""


@pytest.fixture(scope="module")
def muster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    """A project with one app, for which 25 hosts have a record; host 1 is the best."""
    project = CommandLine(tmp_path_factory.mktemp("project") / "data")
    program = project.data_dir.parent / "main.sh"
    program.write_text("#!/bin/sh\n")
    project.json("init", "--url", "http://127.0.0.1:8089/")
    project.json("app", "add", "pi")
    project.json("app", "version", "add", "pi", "--platform", LINUX, "--version", "100", "--main", str(program))
    project.json("volunteer", "add", "ada@example.org")
    asyncio.run(executed(project, HOSTS, ROWS))
    yield project
    embedded.stop(project.data_dir / "postgres")


async def executed(project: CommandLine, *statements: str) -> None:
    connection = await asyncpg.connect(embedded.ensure_running(project.data_dir / "postgres"))
    for statement in statements:
        await connection.execute(statement, SystemClock().now())
    await connection.close()


def test_no_ranking_yet_names_the_command(muster: CommandLine) -> None:
    done = muster.run("hoststats", "show")

    assert (done.exit_code, done.stderr) == (0, "")
    assert not missing(done.stdout, "No ranking", "muster hoststats run")


def test_run_and_show_print_the_ranking(muster: CommandLine) -> None:
    run = muster.json("hoststats", "run")

    assert (run["full"], run["apps"], run["rows"], run["ranked"]) == (True, 1, 25, 25)
    [part] = run["parts"]
    assert (part["app_name"], part["processor_type"], part["population"]) == ("pi", "cpu", 25)
    assert (part["small_population"], part["newcomers"]) == (False, 0)
    assert part["median_score"] == pytest.approx(1.3)
    assert muster.json("hoststats", "show") == run


def test_run_reports_progress_and_outcome(muster: CommandLine) -> None:
    done = muster.run("hoststats", "run")

    assert done.exit_code == 0
    read, ranked = done.stderr.splitlines()
    assert not missing(read, "app 1 of 1", "pi:", "25 rows read")
    assert not missing(ranked, "app 1 of 1", "pi cpu:", "25 rows ranked")
    assert "1 apps, 25 rows, 25 ranked" in done.stdout


def test_show_host_percentiles(muster: CommandLine) -> None:
    muster.json("hoststats", "run")

    assert muster.json("hoststats", "show", "--host", "1") == [
        {"app_version_id": 1, "p": pytest.approx(0.98), "x": pytest.approx(0.98), "y": None}
    ]
    assert muster.error("hoststats", "show", "--host", "99") == (1, "muster: no host 99\n")


def test_cut_points_only_run(muster: CommandLine) -> None:
    assert muster.json("hoststats", "run", "--cut-points-only")["full"] is False


def test_concurrent_run_is_refused(muster: CommandLine) -> None:
    dsn = embedded.ensure_running(muster.data_dir / "postgres")

    async def with_the_lock_taken() -> tuple[int, str]:
        connection = await asyncpg.connect(dsn)
        await connection.execute("SELECT pg_advisory_lock(1297437780, hashtext($1))", RUN_LOCK)
        done = await asyncio.to_thread(muster.run, "hoststats", "run")
        await connection.close()
        return done.exit_code, done.stderr

    code, line = asyncio.run(with_the_lock_taken())
    assert (code, line.count("\n"), missing(line, "muster:", "Another ranking")) == (1, 1, [])
