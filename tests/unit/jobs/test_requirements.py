"""Tests which jobs of a batch share a command line or input files."""

from __future__ import annotations

from domain.settings import FileSettings
from jobs.fields import Fields
from jobs.requirements import JOB_FIELDS, MOST_REMEMBERED, JobSpec, SharedTexts, parse_job
from jobs.spec import parse_batch, size_of

LONG = "x" * 100


def a_job(command_line: str, count: int = 1, **more: object) -> JobSpec:
    table = {"fpops_est": 1e12, "command_line": command_line, "count": count, **more}
    return parse_job(Fields(table, known=JOB_FIELDS), Fields({}, known=()), FileSettings())


def sharing(*jobs: JobSpec) -> list[str | None]:
    texts = SharedTexts(lambda job: job.command_line)
    return [texts.of(job) for job in jobs]


def test_a_table_of_several_jobs_shares_at_once() -> None:
    assert sharing(a_job(LONG, 2), a_job("short", 2), a_job(LONG + "y")) == [LONG, None, None]


def test_rows_share_from_the_second_time_on() -> None:
    assert sharing(a_job(LONG), a_job(LONG + "y"), a_job(LONG), a_job(LONG)) == [None, None, LONG, LONG]


def test_own_inputs_are_shared_like_a_command_line() -> None:
    inputs = [{"name": "a.txt"}]
    assert sharing(a_job("", 2, inputs=inputs), a_job("", 2)) == ["", None]


def test_a_bounded_number_of_texts_is_remembered() -> None:
    others = [a_job(f"{LONG} {number}") for number in range(MOST_REMEMBERED)]
    assert sharing(a_job(LONG), *others, a_job(LONG)) == [None] * (MOST_REMEMBERED + 2)


def test_what_is_shared_counts_once_in_the_size() -> None:
    def nbytes(command_line: str, *, count: int) -> int:
        jobs = {"fpops_est": 1e12, "count": count, "command_line": command_line}
        return size_of(parse_batch({"app": "pi", "qos": "afap", "submitter": "ada", "jobs": jobs})).nbytes

    assert nbytes("x" * 9000, count=1000) - nbytes("", count=1000) == 9000
    assert nbytes("x" * 9000, count=1) - nbytes("", count=1) == 9000
