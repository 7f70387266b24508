"""Tests the jobs of a table: columns with dots, texts with `{column}` and `{i}`, and what they share."""

from __future__ import annotations

import doctest
from collections.abc import Iterable, Mapping
from itertools import count
from typing import Any

import pytest

import jobs.table
from domain.errors import InvalidInputError
from domain.jobs import Output, ValidatorKind
from jobs.flaws import MOST_FLAWS
from jobs.requirements import InputSpec, JobSpec
from jobs.spec import parse_batch, size_of, with_rows
from jobs.table import MOST_FURTHER_ROWS
from tests.facts import missing

LEAST = {"app": "pi", "qos": "afap", "submitter": "ada"}
OUT = [{"name": "out", "max_bytes": 9}]


def of_table(rows: Iterable[Mapping[str, Any]], **shared: object) -> list[JobSpec]:
    spec = parse_batch({**LEAST, "jobs": {"fpops_est": 1e12, **shared}, "jobs_csv": "jobs.csv"})
    return list(with_rows(spec, lambda: rows).jobs)


def flaws_of(rows: Iterable[Mapping[str, Any]], **shared: object) -> list[str]:
    with pytest.raises(InvalidInputError) as caught:
        of_table(rows, **shared)
    return [one.field for one in (caught.value, *caught.value.others)]


def files_of(job: JobSpec) -> dict[str, str]:
    return {one.open_name: one.name or one.path for one in (*job.shared_inputs, *job.own_inputs)}


def test_columns_with_dots_name_files_and_validator() -> None:
    row = {
        "input.in.txt": "a.txt",
        "output.out/b.nc": "70",
        "validator.kind": "tolerance",
        "validator.tolerance": "1e-3",
    }
    [job] = of_table([{**row, "fpops_est": "2e12"}], outputs=OUT)

    assert files_of(job) == {"in.txt": "a.txt"}
    assert job.job_class.outputs == (Output("out/b.nc", 70),)
    assert (job.job_class.validator, job.job_class.tolerance) == (ValidatorKind.TOLERANCE, 1e-3)
    assert job.job_class.fpops_est_flop == 2e12


def test_columns_fill_texts_of_the_row_and_of_all_jobs() -> None:
    inputs = [{"name": "common.bin"}, {"name": "{sample}.csv", "open_name": "data/in.csv"}]
    rows = [{"sample": "a", "n": "1"}, {"sample": "{n}", "n": "2", "command_line": "--only {n} {other}"}]
    jobs = of_table(rows, inputs=inputs, command_line="--n {n} --i {i}", outputs=OUT)

    assert [job.command_line for job in jobs] == ["--n 1 --i {i}", "--only 2 {other}"]
    assert [files_of(job) for job in jobs] == [
        {"common.bin": "common.bin", "data/in.csv": "a.csv"},
        {"common.bin": "common.bin", "data/in.csv": "{n}.csv"},  # a cell of another column stays as it is
    ]
    assert jobs[0].job_class is jobs[1].job_class
    assert jobs[0].shared_inputs == jobs[1].shared_inputs == (InputSpec("common.bin", name="common.bin"),)


def test_number_fills_file_names_job_by_job() -> None:
    rows = [{"count": "2", "input.in": "part_{i}.csv"}, {}]
    jobs = of_table(rows, outputs=[{"name": "out_{i}", "max_bytes": 9}], command_line="{i}")

    assert [job.job_class.outputs[0].name for job in jobs] == ["out_0", "out_1", "out_2"]
    assert [files_of(job) for job in jobs] == [{"in": "part_0.csv"}, {"in": "part_1.csv"}, {}]
    assert [(job.count, job.command_line) for job in jobs] == [(1, "0"), (1, "1"), (1, "2")]


def test_number_fills_file_names_without_a_table() -> None:
    inputs = [{"name": "part_{i}.csv", "open_name": "in"}, {"name": "common"}]
    spec = parse_batch({**LEAST, "jobs": {"count": 3, "fpops_est": 1e12, "inputs": inputs}})

    assert [files_of(job)["in"] for job in spec.jobs] == ["part_0.csv", "part_1.csv", "part_2.csv"]
    assert {job.shared_inputs for job in spec.jobs} == {(InputSpec("common", name="common"),)}
    assert size_of(spec).jobs == 3


def test_own_input_replaces_a_common_one_of_its_name() -> None:
    own: dict[str, Any] = {"inputs": [{"name": "b", "open_name": "in"}]}
    rows = [own, {"input.in": "c"}, {"input.in": ""}]
    jobs = of_table(rows, inputs=[{"name": "a", "open_name": "in"}, {"name": "x"}])

    assert [files_of(job) for job in jobs] == [{"x": "x", "in": name} for name in "bca"]


def test_rows_of_json_keep_their_types() -> None:
    row: dict[str, Any] = {"fpops_est": 3e12, "ncpus": 2, "outputs": OUT, "x": 0.5, "quorum": None}
    [job] = of_table([{**row, "command_line": "{x}"}])

    assert (job.job_class.ncpus, job.job_class.quorum, job.command_line) == (2.0, 1, "0.5")


@pytest.mark.parametrize(
    ("row", "shared", "facts"),
    [
        (
            {"unused": "a", "sample": "b"},
            {"command_line": "{sample}"},
            ("jobs_csv column unused:", "input.OPEN_NAME", "{unused}", "got 'unused'"),
        ),
        (
            {"seed": "1", "memory_bytes": "9"},
            {"command_line": "{sed} {memory_bytes}"},
            ("jobs.command_line:", "seed, memory_bytes", "got '{sed}'"),
        ),
        ({"n": "1"}, {"inputs": [{"name": "a"}, {"name": "{s}"}]}, ("jobs.inputs[1].name:", "(n)", "got '{s}'")),
        ({"n": "1", "s": None}, {"command_line": "{n} {s}"}, ("jobs_csv row 1.s:", "[jobs]", "columns are n")),
        ({"s": "../b"}, {"inputs": [{"name": "{s}"}]}, ("jobs.inputs[0].name:", "'../b'")),
        ({"input.a": "x", "input.a/b": "y"}, {}, ("jobs_csv row 1.inputs:", "folder", "'a'")),
        ({"i": "7"}, {}, ("jobs_csv column i:", "{i}")),
    ],
)
def test_wrong_column_is_named(row: dict[str, Any], shared: dict[str, Any], facts: tuple[str, ...]) -> None:
    with pytest.raises(InvalidInputError) as caught:
        of_table([row], **shared)
    assert not missing(str(caught.value), *facts)


def test_examples_hold() -> None:
    assert doctest.testmod(jobs.table).failed == 0


def test_errors_of_several_rows_are_reported_at_once() -> None:
    rows = [{"quorum": one} for one in ("1", "0", "1", "x", *["0"] * 50)]

    assert flaws_of(rows) == [f"jobs_csv row {number}.quorum" for number in (2, 4, *range(5, 3 + MOST_FLAWS))]


def test_rows_read_after_an_error_are_limited() -> None:
    assert flaws_of({"quorum": "1" if number else "0"} for number in count()) == ["jobs_csv row 1.quorum"]


def test_error_far_behind_the_first_is_not_searched() -> None:
    good = [{"quorum": "1"}] * (MOST_FURTHER_ROWS - 1)
    rows = [{"quorum": "0"}, *good, {"quorum": "0"}, {"quorum": "0"}]
    assert flaws_of(rows) == ["jobs_csv row 1.quorum", f"jobs_csv row {MOST_FURTHER_ROWS + 1}.quorum"]


def test_missing_column_is_reported_once() -> None:
    spec = parse_batch({**LEAST, "jobs_csv": "jobs.csv"})
    with pytest.raises(InvalidInputError) as caught:
        size_of(with_rows(spec, lambda: [{"quorum": "1"}] * 12))
    assert (caught.value.field, caught.value.others) == ("jobs_csv row 1.fpops_est", ())
