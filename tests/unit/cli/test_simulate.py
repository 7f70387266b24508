"""`muster simulate`: output, errors and reproducibility."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from cli.main import main
from cli.simulate import axis_of
from tests.facts import missing

# Periodic tasks at a slow pace: they would take most of the time.
TINY = """
name = "tiny"
days = 8

[settings]
estimator.pause_s = 43200
estimator.timer_s = 43200
lifecycle.sweep_interval_s = 900
ordering.interval_s = 21600

[population]
hosts = 10

[[batch]]
name = "bulk"
qos = "throughput"
jobs = 10
fpops_est = 1e13

[[batch]]
name = "rush"
qos = "afap"
at_hours = 12
jobs = 5
fpops_est = 1e13
"""
LOG = """\
; MaxProcs: 4
1 10 0 3600 2 -1 -1 2 7200 -1 1 8 1 1 1 1 -1 -1
2 70 0 7200 3 -1 -1 3 7200 -1 1 9 1 1 1 1 -1 -1
"""
KEYS = {  # keys that every comparison of rules must have
    "afap_makespan_s",
    "other_makespan_s",
    "instances_per_job",
    "tight_fraction",
    "deadline_mode_fraction",
    "deadline_miss_fraction",
    "preempted_s_per_job",
    "validation_delay_s",
}

Run = tuple[str, str, int]


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> Run:
    """Run `muster simulate` in this process; returns standard output, standard error and exit code."""
    code = 0
    try:
        main(["simulate", *(str(argument) for argument in arguments), "--processes", "1"])
    except SystemExit as ended:
        code = int(ended.code or 0)
    printed = capsys.readouterr()
    return printed.out, printed.err, code


def last_object(out: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(out.splitlines()[-1])
    return found


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    file = tmp_path / "tiny.toml"
    file.write_text(TINY, encoding="utf-8")
    return file


def test_output_is_a_table_charts_and_a_json_line(tiny: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, err, code = run(capsys, tiny, "--rule", "fixed", "--rule", "clairvoyant", "--seeds", 2)
    found = last_object(out)

    assert (code, err) == (0, "")
    assert (found["scenario"], found["seeds"], list(found["rules"])) == ("tiny", 2, ["fixed", "clairvoyant"])
    assert found["rules"]["fixed"].keys() >= KEYS
    assert 0 < found["rules"]["clairvoyant"]["afap_makespan_s"] < found["rules"]["fixed"]["afap_makespan_s"]
    assert "tiny: medians over 2 seeds" in out
    assert "AFAP makespan" in out
    assert "AFAP jobs finished" in out


def test_output_is_reproducible_and_json_prints_only_json(tiny: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = (tiny, "--first-seed", 5, "--json")
    once, again = run(capsys, *command), run(capsys, *command)

    assert once == again
    assert len(once[0].splitlines()) == 1
    assert list(last_object(once[0])["rules"]) == ["muster"]


def test_settings_and_scenario_values_can_be_changed(tiny: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain, _, _ = run(capsys, tiny, "--json")
    patient, _, _ = run(capsys, tiny, "--json", "--set", "deadline.min_slack_s=36000")
    changes = ("--with", "population.loss_fraction=1", "--with", "days=2", "--with", "name=other")
    hopeless, _, code = run(capsys, tiny, "--json", *changes)

    assert last_object(patient) != last_object(plain)
    assert (code, last_object(hopeless)["scenario"]) == (0, "other")
    assert last_object(hopeless)["rules"]["muster"]["batches_unfinished"] == 2


def test_sweep_prints_every_combination_and_a_json_line(
    tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    command = (tiny, "--sweep", "lifecycle.tail_overhead_fraction=0,0.5", "--set", "deadline.p_afap=0.3")
    out, err, code = run(capsys, *command, "--charts", tmp_path)
    found = last_object(out)
    again, _, _ = run(capsys, *command, "--json")

    assert (code, err) == (0, f"charts: {tmp_path / 'tiny-frontier.png'}\n")
    assert again.splitlines() == out.splitlines()[-1:]
    assert set(found) == {"scenario", "seeds", "sweep"}
    assert [one["settings"] for one in found["sweep"]] == [
        {"lifecycle.tail_overhead_fraction": 0.0},
        {"lifecycle.tail_overhead_fraction": 0.5},
    ]
    plain, copied = (one["rules"]["muster"] for one in found["sweep"])
    assert plain.keys() >= KEYS
    assert plain["instances_per_job"] < copied["instances_per_job"]
    assert found["sweep"][0]["frontier"] is True
    assert not missing(out, "tiny, muster: 2 combinations", "medians over 1 seed")


def test_sweep_values_are_parsed_like_set() -> None:
    assert axis_of("deadline.afap=prompt,table") == ("deadline.afap", ["prompt", "table"])
    assert axis_of("feeder.slots=1, 2") == ("feeder.slots", [1, 2])


def test_default_rule_is_the_scenarios(tiny: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, _, _ = run(capsys, tiny, "--with", "settings.deadline.rule=fixed", "--json")

    assert list(last_object(out)["rules"]) == ["fixed"]


@pytest.mark.parametrize("packed", [False, True])
def test_workload_log_replaces_the_batches(
    tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], packed: bool
) -> None:
    log = tmp_path / ("log.swf.gz" if packed else "log.swf")
    log.write_bytes(gzip.compress(LOG.encode()) if packed else LOG.encode())

    whole, _, code = run(capsys, tiny, "--trace", log, "--rule", "clairvoyant", "--json")
    first, told, _ = run(capsys, tiny, "--trace", log, "--trace-jobs", 1, "--rule", "clairvoyant", "--json")

    assert not missing(told, f"{log}:", "batches: 1", "jobs: 2", "left out: 1")
    assert code == 0
    assert [last_object(out)["rules"]["clairvoyant"]["batches"] for out in (whole, first)] == [2, 1]
    assert set(last_object(whole)["rules"]["clairvoyant"]["makespan_s"]) == {"afap", "long_deadline"}


def test_jobs_of_a_log_run(tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log.swf"
    log.write_text(LOG)
    out, _, code = run(capsys, tiny, "--trace", log, "--trace-speed-up", 2, "--json")
    figures = last_object(out)["rules"]["muster"]

    assert (code, figures["batches"], figures["batches_unfinished"], figures["jobs_failed"]) == (0, 2, 0, 0)


def test_charts_are_written_to_the_folder(tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    folder = tmp_path / "charts"
    out, err, code = run(capsys, tiny, "--rule", "fixed", "--charts", folder, "--json")

    assert (code, len(out.splitlines())) == (0, 1)
    assert sorted(path.name for path in folder.iterdir()) == ["tiny-end.png", "tiny-makespan.png", "tiny-price.png"]
    assert err.startswith("charts: ")


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        (("--rule", "luck"), ("'luck'", "'muster'", "'proposal'", "'fixed'", "'accelerated'", "'fixed+copies'")),
        (("--set", "deadline.p_thigh=1"), ("deadline.p_thigh:", "setting")),
        (("--set", "deadline.p_tight=2"), ("deadline.p_tight:", "0 to 1", "2")),
        (("--set", "deadline.rule=fixed"), ("--set:", "deadline.rule", "--rule")),
        (("--set", "deadline.p_tight"), ("--set:", "KEY=VALUE", "'deadline.p_tight'")),
        (("--sweep", "deadline.p_afap"), ("--sweep:", "KEY=VALUE,VALUE", "'deadline.p_afap'")),
        (("--sweep", "deadline.p_afap=0.1,,0.2"), ("--sweep:", "KEY=VALUE,VALUE", "'deadline.p_afap=0.1,,0.2'")),
        (("--sweep", "deadline.p_thigh=1,2"), ("deadline.p_thigh:", "setting")),
        (("--sweep", "deadline.p_tight=0.5,2"), ("deadline.p_tight:", "0 to 1", "2")),
        (("--with", "population.host=3"), ("population.host:", "hosts")),
        (("--with", "days=0"), ("days:", "above 0", "0")),
        (("--seeds", "0"), ("0", "x>=1")),
        (("--trace", "missing.swf"), ("'missing.swf'", "exist")),
        (("--trace-jobs", "0"), ("0", "x>=1")),
    ],
)
def test_invalid_arguments_are_named(
    tiny: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], facts: tuple[str, ...]
) -> None:
    out, err, code = run(capsys, tiny, *arguments)

    assert code in (1, 2)
    assert out == ""
    assert not missing(" ".join(err.split()), *facts)
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("days = = 3", ("TOML", "line 1", "column 8")),
        ("days = 3\n[population]\nhosts = -1", ("population.hosts:", "whole", "1 to 1000000", "-1")),
        ("days = 3\ncolour = 1\n[population]\nhosts = 1", ("colour:", "one of")),
        (TINY.replace('"afap"', '"soon"'), ("batch[1].qos:", "afap")),
        (TINY.replace("jobs = 5", "jobs = 1.5"), ("batch[1].jobs:", "whole")),
    ],
)
def test_scenario_errors_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, facts: tuple[str, ...]
) -> None:
    file = tmp_path / "bad.toml"
    file.write_text(text, encoding="utf-8")
    out, err, code = run(capsys, file)

    assert (out, code) == ("", 1)
    assert not missing(err, *facts)
    assert "Traceback" not in err


def test_unknown_scenario_lists_the_shipped_ones(capsys: pytest.CaptureFixture[str]) -> None:
    _, err, code = run(capsys, "nowhere.toml")

    assert code == 1
    assert not missing(err, "scenario:", "TOML", "big_jobs, department")


@pytest.mark.parametrize(
    ("line", "facts"),
    [
        ("1 10 0 3600 2", ("log.swf line 1:", "18", "'5 columns'")),
        ("1 ten 0 3600 2 -1 -1 2 7200 -1 1 8 1 1 1 1 -1 -1", ("log.swf line 1, submit:", "number")),
        ("; nothing", ("trace:", "8 days")),
    ],
)
def test_log_errors_are_named(
    tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str, facts: tuple[str, ...]
) -> None:
    log = tmp_path / "log.swf"
    log.write_text(line)
    out, err, code = run(capsys, tiny, "--trace", log)

    assert (out, code) == ("", 1)
    assert not missing(err, *facts)
