from __future__ import annotations

import math
from pathlib import Path

import pytest

from domain.batches import QoS
from domain.errors import InvalidInputError
from domain.settings import Settings
from domain.units import DAY_S, HOUR_S, Instant
from jobs.spec import parse_batch, size_of
from simulator.ports import Outage, ShareOf
from simulator.scenario import MONDAY, parse_scenario, read_scenario, shipped_scenarios
from tests.facts import missing, states

PLAIN: dict[str, object] = {"days": 10, "population": {"hosts": 5}}
BATCH: dict[str, object] = {"name": "a", "qos": "afap", "jobs": 3, "fpops_est": 1e13}


@pytest.mark.parametrize("name", shipped_scenarios())
def test_every_shipped_scenario_is_one(name: str) -> None:
    scenario = read_scenario(name)
    people = {one.submitter for one in scenario.submitters}

    assert scenario.name == name
    assert scenario.population.loss_fraction == 0.05
    assert scenario.population.share == 0.5
    for submission in scenario.submissions(1):
        spec = parse_batch(submission.batch)
        assert spec.submitter in people
        assert size_of(spec).jobs > 0
        assert all(job.job_class.delay_bound_s == 7 * DAY_S for job in spec.jobs)


@pytest.mark.parametrize(("name", "hosts", "urgent_jobs"), [("small", 60, 200), ("department", 600, 500)])
def test_the_scenarios_to_be_judged_by_are_as_large_as_they_say(name: str, hosts: int, urgent_jobs: int) -> None:
    scenario = read_scenario(name)

    assert [one.hosts for one in scenario.population.arrivals] == [hosts]
    assert [plan.jobs for plan in scenario.batches if plan.qos is QoS.AFAP] == [urgent_jobs]
    assert {plan.quorum for plan in scenario.batches} == {1}


def test_large_scenario_has_20_batches_of_all_kinds() -> None:
    large = read_scenario("large")

    assert len(large.batches) == 20
    assert {plan.qos for plan in large.batches} == set(QoS)
    assert large.population.arrivals[0].hosts == 10_000


def test_values_of_a_file_can_be_replaced() -> None:
    changed = read_scenario("department", {"population.loss_fraction": 0.1, "delay_bound_days": 14, "days": 60})

    assert changed.population.loss_fraction == 0.1
    assert {plan.delay_bound_s for plan in changed.batches} == {14 * DAY_S}
    assert changed.horizon_s == 60 * DAY_S


def test_settings_may_be_nested_or_not() -> None:
    scenario = parse_scenario({**PLAIN, "settings": {"deadline": {"p_tight": 0.8}, "feeder.slots": 500}}, folder=Path())

    assert Settings.from_mapping(scenario.settings).deadline.p_tight == 0.8
    assert Settings.from_mapping(scenario.settings).feeder.slots == 500


def test_an_app_has_a_version_for_every_platform_and_processor() -> None:
    scenario = parse_scenario(
        {
            **PLAIN,
            "population": {"hosts": 5, "platforms": {"linux": 1.0, "windows": 3.0}},
            "app": [
                {"name": "wide", "ncpus": 8},
                {"name": "both", "gpu_types": ["NVIDIA"]},
                {"name": "gpu", "gpu_types": ["ATI"], "on_cpus": False},
            ],
        },
        folder=Path(),
    )
    found = {
        program.app.name: [(v.platform, v.plan_class.name, v.processor_type) for v in program.versions]
        for program in scenario.programs
    }

    assert found == {
        "wide": [("linux", "mt8", "cpu"), ("windows", "mt8", "cpu")],
        "both": [
            ("linux", "", "cpu"),
            ("linux", "gpu_NVIDIA", "NVIDIA"),
            ("windows", "", "cpu"),
            ("windows", "gpu_NVIDIA", "NVIDIA"),
        ],
        "gpu": [("linux", "gpu_ATI", "ATI"), ("windows", "gpu_ATI", "ATI")],
    }


def test_every_batch_owner_is_a_submitter() -> None:
    scenario = parse_scenario(
        {**PLAIN, "submitter": [{"name": "ada", "shares": 3}], "batch": [{**BATCH, "submitter": "ben"}]}, folder=Path()
    )

    assert set(scenario.submitters) == {ShareOf("ada", 3.0), ShareOf("ben", 1.0)}


def test_outputs_are_compared_where_some_are_wrong() -> None:
    honest = parse_scenario({**PLAIN, "batch": [BATCH]}, folder=Path())
    mixed = parse_scenario(
        {**PLAIN, "population": {"hosts": 5, "garbage_fraction": 0.1}, "batch": [BATCH]}, folder=Path()
    )

    assert [job.job_class.outputs for job in parse_batch(honest.submissions(1)[0].batch).jobs] == [()]
    assert [len(job.job_class.outputs) for job in parse_batch(mixed.submissions(1)[0].batch).jobs] == [1]


def test_batches_come_in_the_order_of_their_instants() -> None:
    scenario = parse_scenario(
        {
            **PLAIN,
            "batch": [
                {**BATCH, "name": "b", "at_hours": 5},
                {**BATCH, "name": "a", "times": 3, "every_hours": 4, "qos": "short_deadline", "deadline_hours": 24},
            ],
        },
        folder=Path(),
    )

    assert [(one.batch["name"], one.at - MONDAY) for one in scenario.submissions(1)] == [
        ("a-1", 0.0),
        ("a-2", 4 * HOUR_S),
        ("b", 5 * HOUR_S),
        ("a-3", 8 * HOUR_S),
    ]


def test_an_outage_has_a_beginning_and_an_end() -> None:
    scenario = parse_scenario({**PLAIN, "outage": [{"at_hours": 2, "hours": 3}]}, folder=Path())

    assert scenario.outages == (Outage(Instant(MONDAY + 2 * HOUR_S), Instant(MONDAY + 5 * HOUR_S)),)


@pytest.mark.parametrize(
    ("change", "facts"),
    [
        ({"days": 0}, ("days:", "above 0", "0")),
        ({"days": 1e9}, ("days:", "at most 3650", "1000000000.0")),
        ({"colour": 3}, ("colour:", "one of")),
        ({"population": {}}, ("population.hosts:", "whole", "1 to 1000000", "no value")),
        ({"settings": {"deadline.p_tight": 3}}, ("deadline.p_tight:", "0 to 1", "3")),
        ({"settings": {"nothing": 3}}, ("nothing:", "setting")),
        ({"batch": [{**BATCH, "qos": "soon"}]}, ("batch[0].qos:", "throughput", "long_deadline")),
        (
            {"batch": [{**BATCH, "qos": "short_deadline"}]},
            ("batch[0].deadline_hours:", "above 0", "no value"),
        ),
        ({"batch": [{**BATCH, "deadline_hours": 3}]}, ("batch[0].deadline_hours:", "afap")),
        ({"batch": [{**BATCH, "app": "other"}]}, ("batch a: app:", "['app']", "'other'")),
        (
            {"batch": [{**BATCH, "at_hours": 240}]},
            ("batch a: at_hours:", "10 days", "240.0"),
        ),
        ({"batch": [BATCH, BATCH]}, ("batch.name:", "unique", "'a'")),
        ({"batch": [{**BATCH, "times": 2}]}, ("batch[0].every_hours:", "above 0", "no value")),
        ({"batch": [{**BATCH, "name": "{i}"}]}, ("batch[0].name:", "{", "'{i}'")),
        ({"app": [{"name": "a", "on_cpus": False}]}, ("app[0].on_cpus:", "true", "gpu_types", "False")),
        ({"outage": [{"at_hours": 1, "hours": 0}]}, ("outage[0].hours:", "above 0", "0")),
        (
            {"outage": [{"at_hours": 5, "hours": 2}, {"at_hours": 6, "hours": 1}]},
            ("outage[1].at_hours:", "overlap", "6.0"),
        ),
        (
            {"outage": [{"at_hours": 240, "hours": 2}]},
            ("outage[0].at_hours:", "10 days", "240.0"),
        ),
        ({"outage": [{"at_hours": -1, "hours": 2}]}, ("outage[0].at_hours:", "at least 0", "-1")),
        ({"outage": [{"at_hours": True, "hours": 2}]}, ("outage[0].at_hours:", "at least 0", "True")),
        ({"days": math.nan}, ("days:", "above 0", "nan")),
        ({"starts_at": 1e12}, ("starts_at:", "1970", "2100", "1000000000000.0")),
        ({"name": ""}, ("name:", "''")),
        ({"submitter": [{"name": ""}]}, ("submitter[0].name:", "''")),
        (
            {"submitter": [{"name": "ada"}, {"name": "ada", "shares": 2}]},
            ("submitter[1].name:", "unique", "'ada'"),
        ),
        ({"app": [{"name": "a"}, {"name": "a", "ncpus": 4}]}, ("app[1].name:", "unique", "'a'")),
        ({"app": [{"name": ""}]}, ("app[0].name:", "''")),
        (
            {"app": [{"name": "a", "gpu_types": ["ATI", "ATI"]}]},
            ("app[0].gpu_types:", "duplicates", "['ATI', 'ATI']"),
        ),
        ({"batch": [{**BATCH, "every_hours": 5}]}, ("batch[0].every_hours:", "times", "above 1")),
        ({"batch": [{**BATCH, "times": 0}]}, ("batch[0].times:", "whole", "1 to 100000", "0")),
        ({"batch": [{**BATCH, "at_hours": -1}]}, ("batch[0].at_hours:", "at least 0", "-1")),
        ({"batch": [{**BATCH, "jobs": True}]}, ("batch[0].jobs:", "whole", "1 to 1000000", "True")),
        ({"batch": [{**BATCH, "fpops_est": math.inf}]}, ("batch[0].fpops_est:", "above 0", "inf")),
        ({"batch": [{**BATCH, "fpops_est": 1e300}]}, ("batch[0].fpops_est:", "at most 1e+24", "1e+300")),
        (
            {"batch": [{**BATCH, "times": 3, "every_hours": 200}]},
            ("batch a-3: at_hours:", "10 days", "400.0"),
        ),
        (
            {"batch": [{**BATCH, "ncpus": 64}]},
            ("batch a: ncpus:", "at most 24", "64.0"),
        ),
        (
            {"batch": [{**BATCH, "memory_gigabytes": 900}]},
            ("batch a: memory_gigabytes:", "population", "900.0"),
        ),
        (
            {"app": [{"name": "app", "ncpus": 64}], "batch": [BATCH]},
            ("batch a: app:", "population", "'app'"),
        ),
        (
            {"app": [{"name": "app", "gpu_types": ["ATI"], "on_cpus": False}], "batch": [BATCH]},
            ("batch a: app:", "population", "'app'"),
        ),
        (
            {"population": {"hosts": 5, "arrivals": [{"hosts": 1, "at_hours": 300}]}},
            ("population.arrivals[0].at_hours:", "10 days", "300.0"),
        ),
        (
            {"population": {"hosts": 5, "mean_stay_days": 1e-6}},
            ("population:", "at most 1000000", "10 days", "50000005"),
        ),
    ],
)
def test_what_is_wrong_is_named(change: dict[str, object], facts: tuple[str, ...]) -> None:
    with pytest.raises(InvalidInputError) as caught:
        parse_scenario({**PLAIN, **change}, folder=Path())

    assert not missing(str(caught.value), *facts)


def test_an_app_for_gpus_that_some_have_can_be_run() -> None:
    scenario = parse_scenario(
        {
            "days": 10,
            "population": {"hosts": 5, "gpus": [{"share": 0.1, "type": "ATI"}]},
            "app": [{"name": "app", "gpu_types": ["ATI"], "on_cpus": False}],
            "batch": [BATCH],
        },
        folder=Path(),
    )

    assert len(scenario.batches) == 1


def test_a_file_that_is_not_there_or_no_toml_is_refused(tmp_path: Path) -> None:
    with states(InvalidInputError, "scenario:", "TOML", "big_jobs, department"):
        read_scenario(tmp_path / "missing.toml")
    with pytest.raises(InvalidInputError, match="a TOML file, or one of"):
        read_scenario("huge")
    (tmp_path / "bad.toml").write_text("days = = 3", encoding="utf-8")
    with pytest.raises(InvalidInputError, match="a readable TOML file"):
        read_scenario(tmp_path / "bad.toml")


LOG = """\
1 10 0 3600 2 -1 -1 2 7200 -1 1 5 1 1 1 1 -1 -1
2 700000 0 3600 3 -1 -1 3 7200 -1 1 6 1 1 1 1 -1 -1
"""


def test_a_log_replaces_the_batches(tmp_path: Path) -> None:
    log = tmp_path / "log.swf"
    log.write_text(LOG, encoding="utf-8")
    replayed = read_scenario("small", {"delay_bound_days": 2}).with_trace(log)

    assert [(plan.name, plan.jobs, plan.submitter) for plan in replayed.batches] == [
        ("job1", 2, "user5"),
        ("job2", 3, "user6"),
    ]
    assert {plan.delay_bound_s for plan in replayed.batches} == {2 * DAY_S}
    assert "user5" in {one.submitter for one in replayed.submitters}


def test_a_log_may_be_cut_short_and_its_time_may_pass_faster(tmp_path: Path) -> None:
    log = tmp_path / "log.swf"
    log.write_text(LOG, encoding="utf-8")
    scenario = read_scenario("small")

    assert [plan.name for plan in scenario.with_trace(log, most_jobs=1).batches] == ["job1"]
    assert [plan.at_s for plan in scenario.with_trace(log, speed_up=10.0).batches] == [0.0, 69_999.0]


def test_log_for_an_infeasible_app_is_refused(tmp_path: Path) -> None:
    log = tmp_path / "log.swf"
    log.write_text(LOG, encoding="utf-8")
    scenario = parse_scenario({**PLAIN, "app": [{"name": "wide", "ncpus": 64}]}, folder=Path())

    with states(InvalidInputError, "batch job1:", "app:"):
        scenario.with_trace(log)


def test_a_log_of_nothing_that_ran_is_refused(tmp_path: Path) -> None:
    log = tmp_path / "log.swf"
    log.write_text("; nothing\n1 10 0 -1 2 -1 -1 2 7200 -1 1 5 1 1 1 1 -1 -1\n", encoding="utf-8")

    with states(InvalidInputError, "trace:", "a job that ran", "first 40"):
        read_scenario("small").with_trace(log)
