"""Runs of `muster simulate`: on a Dask cluster, and with progress bars."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from distributed import LocalCluster
from rich.console import Console

from cli.main import main
from cli.simulate import Bars
from domain.units import DAY_S, HOUR_S, Instant
from simulator.run import Case
from simulator.scenario import MONDAY, FileScenario, parse_scenario
from simulator.sweep import run_here
from tests.facts import missing

TINY = """
days = 8
[population]
hosts = 10
[[batch]]
name = "rush"
qos = "afap"
jobs = 5
fpops_est = 1e13
"""


def printed(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    try:
        main(["simulate", *(str(argument) for argument in arguments)])
    except SystemExit as ended:
        assert not ended.code
    return capsys.readouterr().out


@pytest.mark.filterwarnings("ignore")  # log lines of the cluster itself
def test_dask_cluster_prints_the_same_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "tiny.toml"
    file.write_text(TINY, encoding="utf-8")
    command = (file, "--rule", "fixed", "--rule", "clairvoyant", "--seeds", 2, "--json")

    here = printed(capsys, *command, "--processes", 1)
    with LocalCluster(  # type: ignore[no-untyped-call]
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
    ) as cluster:
        there = printed(capsys, *command, "--dask", cluster.scheduler_address)

    assert there == here != ""


def a_scenario() -> FileScenario:
    batch = {"name": "rush", "qos": "afap", "jobs": 5, "fpops_est": 1e13}
    return parse_scenario({"days": 8, "population": {"hosts": 10}, "batch": [batch]}, folder=Path())


def on_a_terminal() -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=200)


def shown(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_bar_shows_simulated_date_and_finished_runs() -> None:
    console = on_a_terminal()
    scenario = a_scenario()
    with Bars([Case(scenario, seed, "fixed") for seed in (4, 5)], console=console) as bars:
        bars.moved(1, Instant(MONDAY + 2 * DAY_S + 6 * HOUR_S))
        bars._progress.refresh()
        while_it_runs = shown(console)
        bars.over(1)
        bars._progress.refresh()

    assert "run 2: fixed, seed 5" in while_it_runs
    assert not missing(while_it_runs, "Wed 07 Jan 2026 06:00", "day 2.2", "at most 8")
    assert "run 1:" not in while_it_runs  # not started yet
    assert "0 of 2 done" in while_it_runs
    assert "1 of 2 done" in shown(console)


def test_bars_follow_real_runs() -> None:
    console = on_a_terminal()
    with Bars([Case(a_scenario(), 1, "fixed")], console=console) as bars:
        run_here([Case(a_scenario(), 1, "fixed")], lambda store, catalogue, clock: [], bars)

    assert "1 of 1 done" in shown(console)


def test_no_bars_without_a_terminal() -> None:
    console = Console(file=io.StringIO(), force_terminal=False)
    with Bars([Case(a_scenario(), 1, "fixed")], console=console) as bars:
        bars.moved(0, Instant(MONDAY + DAY_S))
        bars.over(0)

    assert shown(console).strip() == ""
