"""Tests that a batch is accepted, or refused with the field, the expected and the actual value."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from domain.batches import QoS
from domain.errors import InvalidInputError
from domain.jobs import Output, ValidatorKind
from domain.settings import FileSettings
from jobs.flaws import MOST_FLAWS, MOST_TABLES
from jobs.requirements import InputSpec, JobSpec
from jobs.spec import BatchSpec, parse_batch, parse_for_all_errors, size_of, with_rows
from tests.facts import missing, states


def a_batch(jobs: Mapping[str, object] | None = None, /, **changes: object) -> dict[str, object]:
    table = {"count": 10, "fpops_est": 1e12, **(jobs or {})}
    return {"app": "pi", "qos": "throughput", "submitter": "ada", "jobs": table, **changes}


def only_job(**jobs: object) -> JobSpec:
    [job] = parse_batch(a_batch(jobs)).jobs
    return job


def refusal(values: Mapping[str, Any]) -> str:
    with pytest.raises(InvalidInputError) as caught:
        size_of(parse_batch(values))
    return str(caught.value)


def from_csv(rows: Iterable[Mapping[str, str]], **jobs: object) -> BatchSpec:
    kept = list(rows)
    spec = parse_batch({"app": "pi", "qos": "afap", "submitter": "ada", "jobs": jobs, "jobs_csv": "jobs.csv"})
    return with_rows(spec, lambda: kept)


# ------------------------------------------------------------------ what is taken


def test_a_small_batch_gets_the_defaults() -> None:
    job_class = only_job().job_class
    assert (job_class.fpops_bound_flop, job_class.memory_bytes, job_class.disk_bytes) == (1e13, 5e8, 1e9)
    assert (job_class.delay_bound_s, job_class.ncpus, job_class.quorum) == (7 * 86400.0, 1.0, 1)
    assert (job_class.max_errors, job_class.max_instances, job_class.hr_type) == (3, 10, 0)
    assert (job_class.validator, job_class.tolerance) == (ValidatorKind.BITWISE, 0.0)
    assert (job_class.inputs, job_class.outputs) == ((), ())


def test_every_field_of_a_batch_is_read() -> None:
    spec = parse_batch(a_batch(qos="short_deadline", deadline_s=60, name="tonight", account="lab", user_priority=-3))
    assert (spec.app, spec.qos, spec.submitter, spec.name) == ("pi", QoS.SHORT_DEADLINE, "ada", "tonight")
    assert (spec.account, spec.deadline_s, spec.user_priority) == ("lab", 60.0, -3)


def test_every_field_of_a_job_is_read() -> None:
    job = only_job(
        fpops_bound=2e12,
        memory_bytes=0,
        disk_bytes=1,
        delay_bound_s=25.0,
        ncpus=2,
        quorum=3,
        max_errors=4,
        max_instances=5,
        hr_type=1,
        validator={"kind": "tolerance", "tolerance": 1e-6},
        outputs=[{"name": "out", "max_bytes": 100, "optional": True}],
    )
    assert job.job_class.fpops_bound_flop == 2e12
    assert (job.job_class.memory_bytes, job.job_class.disk_bytes, job.job_class.delay_bound_s) == (0.0, 1.0, 25.0)
    assert (job.job_class.ncpus, job.job_class.quorum, job.job_class.hr_type) == (2.0, 3, 1)
    assert (job.job_class.max_errors, job.job_class.max_instances) == (4, 5)
    assert (job.job_class.validator, job.job_class.tolerance) == (ValidatorKind.TOLERANCE, 1e-6)
    assert job.job_class.outputs == (Output("out", 100, optional=True),)


def test_a_quorum_above_ten_raises_the_instances_allowed() -> None:
    assert only_job(quorum=15).job_class.max_instances == 15


def test_the_index_of_a_job_enters_its_command_line() -> None:
    assert only_job(command_line="--from {i} --seed {i}").command_line_of(12) == "--from 12 --seed 12"


def test_input_open_name_defaults_to_its_own_name() -> None:
    job = only_job(inputs=[{"path": "data/in.txt"}, {"name": "table_v1", "open_name": "table", "sticky": True}])
    assert job.shared_inputs == (
        InputSpec("in.txt", path="data/in.txt"),
        InputSpec("table", name="table_v1", sticky=True),
    )
    assert job.own_inputs == ()


def test_job_tables_inherit_from_shared_table() -> None:
    spec = parse_batch(
        {
            "app": "pi",
            "qos": "afap",
            "submitter": "ada",
            "jobs": {"fpops_est": 1e12, "quorum": 2, "inputs": [{"path": "shared"}]},
            "job": [{"count": 5}, {"fpops_est": 3e12, "inputs": [{"path": "own"}]}],
        }
    )
    first, second = spec.jobs
    assert (first.count, first.job_class.fpops_est_flop, first.job_class.quorum) == (5, 1e12, 2)
    assert (second.count, second.job_class.fpops_est_flop, second.job_class.quorum) == (1, 3e12, 2)
    assert (first.shared_inputs, first.own_inputs) == ((InputSpec("shared", path="shared"),), ())
    assert (second.shared_inputs, second.own_inputs) == (first.shared_inputs, (InputSpec("own", path="own"),))


def test_job_tables_need_no_shared_table() -> None:
    spec = parse_batch({"app": "pi", "qos": "afap", "submitter": "ada", "job": [{"fpops_est": 1e12}]})
    assert size_of(spec).jobs == 1


def test_a_batch_weighs_its_jobs_work_times_their_quorum() -> None:
    spec = parse_batch(
        {"app": "pi", "qos": "afap", "submitter": "ada", "job": [{"fpops_est": 2.0, "quorum": 3}, {"fpops_est": 5.0}]}
    )
    assert (size_of(spec).jobs, size_of(spec).flop) == (2, 11.0)


def test_rows_of_a_csv_file_override_the_shared_table() -> None:
    spec = from_csv([{"command_line": "a", "fpops_est": "3e12"}, {"command_line": "", "fpops_est": ""}], fpops_est=1e12)
    assert [(job.command_line, job.job_class.fpops_est_flop) for job in spec.jobs] == [("a", 3e12), ("", 1e12)]
    assert size_of(spec).jobs == 2


def test_equal_rows_keep_own_command_lines_and_counts() -> None:
    rows = [{"command_line": text, "count": count} for text, count in (("a", "1"), ("b", "7"), ("c {i}", ""))]
    spec = from_csv(rows, fpops_est=1e12)
    assert [(job.command_line, job.count) for job in spec.jobs] == [("a", 1), ("b", 7), ("c {i}", 1)]


# ------------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    ("changes", "facts"),
    [
        ({"cuont": 1}, ("cuont:", "account", "app", "deadline_s")),
        ({"app": ""}, ("app:", "''")),
        ({"app": 3}, ("app:", "at most 200")),
        ({"submitter": ""}, ("submitter:", "''")),
        ({"qos": "fast"}, ("qos:", "throughput", "long_deadline", "afap", "short_deadline", "'fast'")),
        ({"qos": None}, ("qos:", "throughput", "long_deadline", "afap", "short_deadline", "no value")),
        ({"qos": "short_deadline"}, ("deadline_s:", "1 to 3153600000", "no value")),
        ({"qos": "short_deadline", "deadline_s": 0}, ("deadline_s:", "1 to 3153600000", "0")),
        (
            {"qos": "short_deadline", "deadline_s": math.inf},
            ("deadline_s:", "1 to 3153600000", "inf"),
        ),
        ({"qos": "afap", "deadline_s": 60}, ("deadline_s:", "afap", "short_deadline")),
        ({"user_priority": -1025}, ("user_priority:", "whole", "-1024 to 1023", "-1025")),
        ({"user_priority": 1024}, ("user_priority:", "whole", "-1024 to 1023", "1024")),
        ({"level": "urgent"}, ("level:", "expedite", "normal", "standby", "'urgent'")),
        ({"queue": 7}, ("queue:", "at most 32")),
        ({"name": "a\nb"}, ("name:", "at most 200", "control")),
        ({"jobs": []}, ("jobs:", "table", "[]")),
        ({"jobs": {}}, ("jobs.count:", "whole", "1 to 1000000", "no value")),
        ({"jobs": {}, "job": {}}, ("job:", "tables", "{}")),
        ({"job": [{}]}, ("jobs.count:", "[[job]]", "CSV", "10")),
        ({"jobs": {"fpops_est": 1}, "job": []}, ("jobs:", "one", "0")),
        (
            {"jobs": {}, "job": [{"fpops_est": 1}, {}]},
            ("job[1].fpops_est:", "1 to 1e+21", "no value"),
        ),
        ({"jobs": {}, "job": [{"fpops": 1}]}, ("job[0].fpops:", "command_line", "count")),
        ({"jobs": {}, "job": [{}], "jobs_csv": "x"}, ("jobs_csv:", "[[job]]", "CSV")),
        ({"jobs_csv": "x"}, ("jobs.count:", "[[job]]", "CSV", "10")),
    ],
)
def test_a_wrong_batch_is_refused_by_field(changes: dict[str, object], facts: tuple[str, ...]) -> None:
    assert not missing(refusal(a_batch(**changes)), *facts)


@pytest.mark.parametrize(
    ("jobs", "facts"),
    [
        ({"cuont": 1}, ("jobs.cuont:", "command_line", "count", "delay_bound_s")),
        ({"count": 0}, ("jobs.count:", "whole", "1 to 1000000", "0")),
        ({"count": 1_000_001}, ("jobs.count:", "whole", "1 to 1000000", "1000001")),
        ({"count": -5}, ("jobs.count:", "whole", "1 to 1000000", "-5")),
        ({"count": True}, ("jobs.count:", "whole", "1 to 1000000", "True")),
        ({"count": "3"}, ("jobs.count:", "whole", "1 to 1000000", "'3'")),
        ({"count": 2.5}, ("jobs.count:", "whole", "1 to 1000000", "2.5")),
        ({"fpops_est": 0}, ("jobs.fpops_est:", "1 to 1e+21", "0")),
        ({"fpops_est": math.nan}, ("jobs.fpops_est:", "1 to 1e+21", "nan")),
        ({"fpops_est": 10**400}, ("jobs.fpops_est:", "1 to 1e+21")),
        ({"fpops_est": "1e12"}, ("jobs.fpops_est:", "1 to 1e+21", "'1e12'")),
        ({"fpops_bound": 1e25}, ("jobs.fpops_bound:", "1 to 1e+24", "1e+25")),
        (
            {"fpops_bound": 1e11},
            ("jobs.fpops_bound:", "at least fpops_est", "1e+12", "100000000000.0"),
        ),
        ({"memory_bytes": -1}, ("jobs.memory_bytes:", "0 to 1e+15", "-1")),
        ({"disk_bytes": -1}, ("jobs.disk_bytes:", "0 to 1e+15", "-1")),
        ({"delay_bound_s": 0}, ("jobs.delay_bound_s:", "1 to 315360000", "0")),
        ({"ncpus": 0}, ("jobs.ncpus:", "0.001 to 4096", "0")),
        ({"quorum": 0}, ("jobs.quorum:", "whole", "1 to 20", "0")),
        ({"quorum": 21}, ("jobs.quorum:", "whole", "1 to 20", "21")),
        ({"max_errors": 0}, ("jobs.max_errors:", "whole", "1 to 1000", "0")),
        ({"quorum": 3, "max_instances": 2}, ("jobs.max_instances:", "quorum", "3", "2")),
        ({"hr_type": 3}, ("jobs.hr_type:", "whole", "0 to 2", "3")),
        ({"command_line": "x" * 10_001}, ("jobs.command_line:", "at most 10000")),
        (
            {"command_line": "{i}" * 3_000},
            ("jobs.command_line:", "at most 10000", "{i}"),
        ),
        ({"command_line": "a\0b"}, ("jobs.command_line:", "at most 10000", "control")),
        ({"command_line": "\ud800"}, ("jobs.command_line:", "at most 10000", "control")),
        ({"validator": "bitwise"}, ("jobs.validator:", "table", "'bitwise'")),
        ({"validator": {"kind": "fuzzy"}}, ("jobs.validator.kind:", "bitwise", "tolerance", "accept")),
        (
            {"validator": {"kind": "tolerance"}},
            ("jobs.validator.tolerance:", "1e-300 to 1", "no value"),
        ),
        (
            {"validator": {"tolerance": 0.1}},
            ("jobs.validator.tolerance:", "bitwise"),
        ),
        ({"outputs": {}}, ("jobs.outputs:", "tables", "{}")),
        ({"outputs": [{"name": "out"}]}, ("jobs.outputs[0].max_bytes:", "whole", "1 to 1000000000")),
        ({"outputs": [{"name": "o", "max_bytes": 2e9}]}, ("jobs.outputs[0].max_bytes:", "1 to 1000000000")),
        ({"outputs": [{"name": "../o", "max_bytes": 1}]}, ("jobs.outputs[0].name:", "file name", "/")),
        ({"outputs": [{"name": "o", "max_bytes": 1}] * 2}, ("jobs.outputs:", "distinct", "'o'")),
        ({"inputs": [{}]}, ("jobs.inputs[0]:", "path", "registered", "{}")),
        ({"inputs": [{"path": "a", "name": "a"}]}, ("jobs.inputs[0]:", "path", "registered")),
        ({"inputs": [{"path": "a/"}, {"path": "b/a"}]}, ("jobs.inputs:", "distinct", "'a'")),
        ({"inputs": [{"path": "a", "open_name": "../a"}]}, ("jobs.inputs[0].open_name:", "file name")),
        ({"inputs": [{"path": "/"}]}, ("jobs.inputs[0].open_name:", "file name")),
        ({"inputs": [{"path": "a", "sticky": 1}]}, ("jobs.inputs[0].sticky:", "true", "false", "1")),
    ],
)
def test_a_wrong_job_is_refused_by_field(jobs: dict[str, object], facts: tuple[str, ...]) -> None:
    assert not missing(refusal(a_batch(jobs)), *facts)


def test_the_projects_limit_bounds_outputs() -> None:
    outputs = {"outputs": [{"name": "o", "max_bytes": 101}]}
    with states(InvalidInputError, "jobs.outputs[0].max_bytes:", "1 to 100", "got 101"):
        parse_batch(a_batch(outputs), files=FileSettings(max_output_bytes=100))


def test_counts_that_add_up_to_too_many_jobs_are_refused() -> None:
    tables = [{"count": 600_000}, {"count": 400_001}]
    message = refusal(a_batch(jobs={"fpops_est": 1}, job=tables))
    assert not missing(message, "jobs:", "at most 1000000 jobs", "got '1000001 or more'")


@pytest.mark.parametrize(
    ("row", "facts"),
    [
        ({"fpops_est": "much"}, ("jobs_csv row 2.fpops_est:", "1 to 1e+21", "'much'")),
        ({"count": "1_0"}, ("jobs_csv row 2.count:", "whole", "1 to 1000000", "'1_0'")),
        ({"cuont": "1"}, ("jobs_csv row 2.cuont:", "command_line", "count")),
        ({"outputs": "x"}, ("jobs_csv row 2.outputs:", "list of tables")),
        ({"input.../in": "a"}, ("jobs_csv row 2.inputs[0].open_name:", "'../in'")),
        ({"input.in": "a/b"}, ("jobs_csv row 2.inputs[0].name:", "'a/b'")),
        ({"output.out": "much"}, ("jobs_csv row 2.outputs[0].max_bytes:", "'much'")),
        ({"output.out": "9", "outputs": [{}]}, ("jobs_csv row 2.outputs:", "not both")),
        ({"inputs": [{"name": "a"}], "input.in": "b"}, ("jobs_csv row 2.inputs:", "not both")),
    ],
)
def test_a_wrong_row_is_named(row: dict[Any, Any], facts: tuple[str, ...]) -> None:
    with pytest.raises(InvalidInputError) as caught:
        size_of(from_csv([{"command_line": "a"}, row], fpops_est=1e12))
    assert not missing(str(caught.value), *facts)


def test_a_csv_file_without_rows_is_refused() -> None:
    with states(InvalidInputError, "jobs_csv:", "at least one job", "got 0"):
        size_of(from_csv([], fpops_est=1e12))


def test_rows_for_a_batch_that_names_no_file_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="jobs_csv"):
        with_rows(parse_batch(a_batch()), list)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
FIELDS = ["count", "command_line", "fpops_est", "fpops_bound", "quorum", "validator", "outputs", "inputs", "ncpus"]
ODD_KEYS = ["app.jobs.x", "job.jobs.x", "jobs.x", "app[0].x", "$", "x\n", f"[{'9' * 5000}]"]


@given(
    batch=st.dictionaries(
        st.sampled_from(["qos", "name", "deadline_s", "user_priority", "jobs", "job", "jobs_csv", *ODD_KEYS]), JSON
    ),
    jobs=st.dictionaries(st.sampled_from([*FIELDS, *ODD_KEYS, ""]), JSON),
)
@example(batch={"app.jobs.x": 1}, jobs={})
@example(batch={"job": [{}], "job.jobs.x": 1}, jobs={})
@example(batch={ODD_KEYS[-1]: 1}, jobs={})
def test_any_input_is_accepted_or_refused_with_a_field(batch: dict[str, Any], jobs: dict[str, Any]) -> None:
    try:
        spec = parse_for_all_errors(a_batch(jobs) | batch)
        sizes = [job.job_class.fpops_est_flop for job in spec.jobs]
    except InvalidInputError as error:
        assert error.field
        return
    assert all(0.0 < size < math.inf for size in sizes)


def flaws_of(values: dict[str, Any]) -> list[str]:
    with pytest.raises(InvalidInputError) as caught:
        parse_for_all_errors(values)
    return [one.field for one in (caught.value, *caught.value.others)]


@pytest.mark.parametrize(
    ("values", "fields"),
    [
        ({"qos": "afap", "jobs": {"count": 0}}, ["app", "submitter", "jobs.count", "jobs.fpops_est"]),
        (
            {"app": "pi", "submitter": "ada", "qos": "soon", "deadline_s": 60.0, "jobs": {"cuont": 1}},
            ["qos", "jobs.cuont", "jobs.count", "jobs.fpops_est"],
        ),
        (
            {
                "app": "pi",
                "submitter": "ada",
                "qos": "afap",
                "deadline_s": 60.0,
                "jobs": {"count": 2, "fpops_est": 1e9},
                "job": [{"quorum": 0, "memory_bytes": -1}, {"quorum": 99}],
            },
            ["deadline_s", "jobs.count", "job[0].quorum", "job[0].memory_bytes", "job[1].quorum"],
        ),
        ({"app": 7, "submitter": "ada", "qos": "afap", "jobs": 7}, ["app", "jobs"]),
        (a_batch(app=7, jobs={}, job={"fpops_est": 1}), ["app", "job"]),
        (a_batch(jobs={}, job=[1]), ["job"]),
        (a_batch(jobs={}, jobs_csv=7), ["jobs_csv"]),
        (a_batch({"": 1, "count": 0}), ["jobs."]),
        (a_batch({"$": 1, "count": 0}), ["jobs.$"]),
        (a_batch({"inputs": [{"name": "a/b"}]}), ["jobs.inputs[0].name"]),
        (
            a_batch({"validator": {"kind": "near", "tolerance": 0.1}, "hr_type": -1}),
            ["jobs.validator.kind", "jobs.hr_type"],
        ),
    ],
)
def test_all_errors_of_a_batch_are_reported_at_once(values: dict[str, Any], fields: list[str]) -> None:
    assert flaws_of(values) == fields


def test_number_of_errors_reported_at_once_is_limited() -> None:
    values = {"app": "pi", "submitter": "ada", "qos": "afap", "jobs": {f"x{number}": 1 for number in range(99)}}

    assert len(flaws_of(values)) == MOST_FLAWS


def test_batch_of_many_tables_is_refused_with_its_first_error() -> None:
    """Each further error costs a complete parse."""
    good, wrong = {"fpops_est": 1}, {"fpops_est": 1, "quorum": 0}
    tables = [*[good] * (MOST_TABLES - 2), wrong, dict(wrong)]

    found = [len(flaws_of(a_batch(jobs={}, job=job))) for job in (tables, [good, *tables])]
    assert found == [2, 1]


def test_only_a_user_who_reads_all_errors_pays_for_them() -> None:
    with pytest.raises(InvalidInputError) as caught:
        parse_batch({"qos": "afap"})
    assert caught.value.others == ()


def test_size_has_the_first_and_last_jobs() -> None:
    size = size_of(parse_batch(a_batch(jobs={}, job=[{"fpops_est": one} for one in (1, 2, 3)])))
    assert [int(one.job_class.fpops_est_flop) for one in size.ends] == [1, 3]
