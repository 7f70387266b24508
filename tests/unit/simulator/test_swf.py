from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from domain.batches import QoS
from domain.errors import InvalidInputError
from domain.units import Seconds
from simulator.swf import LeftOut, LoggedJob, Replay, parse_swf, plans_of, processors_of, read_swf, told
from tests.facts import missing, states

LOG = """\
; Version: 2.2
; UnixStartTime: 0

1    100  0  3600  4 -1 -1  4  7200 -1 1 8 1 1 1 1 -1 -1
2    160  5  3500  2 -1 -1  2  7200 -1 1 8 1 1 1 1 -1 -1 ; the same script again
3    200  0  -777 16 -1 -1 16  7200 -1 5 9 1 1 1 1 -1 -1
4    300  0  7200 -1 -1 -1  8  7200 -1 1 9 1 1 1 1 -1 -1
5  90000  0  3600  1 -1 -1  1  7200 -1 1 8 1 1 1 1 -1 -1
"""
WEEK = Seconds(7 * 86400.0)
REPLAY = Replay("app", WEEK, WEEK)


def jobs_of(text: str) -> list[LoggedJob]:
    return list(parse_swf(text.splitlines(), "log.swf"))


def test_jobs_that_ran_are_read_and_comments_are_not() -> None:
    assert jobs_of(LOG) == [
        LoggedJob(1, 100.0, 3600.0, 4, 8, 1, 0.0, 7200.0),
        LoggedJob(2, 160.0, 3500.0, 2, 8, 1, 5.0, 7200.0),
        LoggedJob(4, 300.0, 7200.0, 8, 9, 1, 0.0, 7200.0),
        LoggedJob(5, 90000.0, 3600.0, 1, 8, 1, 0.0, 7200.0),
    ]


def test_a_log_may_be_gzipped(tmp_path: Path) -> None:
    plain, packed = tmp_path / "log.swf", tmp_path / "log.swf.gz"
    plain.write_text(LOG, encoding="utf-8")
    packed.write_bytes(gzip.compress(LOG.encode()))

    assert list(read_swf(packed)) == list(read_swf(plain)) == jobs_of(LOG)


def test_jobs_of_a_user_that_come_together_are_a_batch() -> None:
    first, second, third = plans_of(jobs_of(LOG), REPLAY)

    assert (first.name, first.submitter, first.at_s, first.jobs) == ("job1", "user8", 0.0, 6)
    assert first.fpops_est == pytest.approx((4 * 3600 + 2 * 3500) / 6 * 1e9)
    assert (second.name, second.jobs, second.at_s) == ("job4", 8, 200.0)
    assert (third.name, third.at_s) == ("job5", 89900.0)
    assert [plan.qos for plan in (first, second, third)] == [QoS.AFAP, QoS.LONG_DEADLINE, QoS.AFAP]


def test_time_may_pass_faster() -> None:
    plans = plans_of(jobs_of(LOG), Replay("app", WEEK, WEEK, speed_up=10.0))

    assert [plan.at_s for plan in plans] == [0.0, 20.0, 8990.0]


@pytest.mark.parametrize(
    ("line", "facts"),
    [
        ("1 2 3", ("log.swf line 2:", "18", "'3 columns'")),
        ("1 x 0 3600 4 -1 -1 4 7200 -1 1 8 1 1 1 1 -1 -1", ("log.swf line 2, submit:", "number")),
        ("1 5 0 nan 4 -1 -1 4 7200 -1 1 8 1 1 1 1 -1 -1", ("log.swf line 2, run time:", "number")),
        ("1 5 0 60 4 -1 -1 4 7200 -1 1 who 1 1 1 1 -1 -1", ("line 2, column 12:", "number", "'who'")),
    ],
)
def test_a_wrong_line_is_named(line: str, facts: tuple[str, ...]) -> None:
    with pytest.raises(InvalidInputError) as caught:
        jobs_of(f"; comment\n{line}")

    assert not missing(str(caught.value), *facts)


def line(number: int, submitted_s: float, *, run_s: float = 3600.0, status: int = 1, processors: int = 2) -> str:
    return f"{number} {submitted_s} 0 {run_s} {processors} -1 -1 {processors} 7200 -1 {status} {number} 1 1 1 1 -1 -1"


def test_partial_executions_are_left_out() -> None:
    left_out = LeftOut()
    lines = [
        line(1, 0.0, run_s=100.0),
        line(1, 0.0, run_s=60.0, status=2),
        line(1, 0.0, run_s=40.0, status=3),
        line(2, 5.0, run_s=30.0, status=0),
        line(2, 5.0, run_s=30.0, status=4),
    ]

    assert [(job.number, job.run_s) for job in parse_swf(lines, "log", left_out)] == [(1, 100.0), (2, 30.0)]
    assert left_out == {"partial executions": 3}


def test_what_is_not_known_or_never_ran_is_left_out_and_counted() -> None:
    left_out = LeftOut()
    lines = [
        line(1, 0.0, run_s=-1, status=5),
        line(2, 1.0, run_s=50.0, status=5),  # cancelled while it ran
        line(3, 2.0, run_s=0.0),
        line(4, -1.0),
        line(5, 3.0, processors=-1),
        line(6, 4.0, status=-1),  # of a model
    ]

    assert [job.number for job in parse_swf(lines, "log", left_out)] == [2, 6]
    facts = ("cancelled", "without a run time", "at an unknown time", "unknown number of processors")
    assert [missing(why, fact) for why, fact in zip(left_out, facts, strict=True)] == [[]] * 4
    assert list(left_out.values()) == [1] * 4


def test_a_number_that_stands_twice_is_named_with_both_lines() -> None:
    with states(InvalidInputError, "log.swf line 4", "job:", "line 2 has the same", "got 7"):
        jobs_of("; comment\n" + line(7, 0.0) + "\n" + line(8, 0.0) + "\n" + line(7, 50.0))


def test_unordered_lines_keep_all_jobs_before_the_horizon() -> None:
    left_out = LeftOut()
    lines = [line(1, 500.0), line(2, 1400.0), line(3, 600.0), line(4, 300.0), line(5, 1000.0)]
    replay = Replay("app", Seconds(500.0), WEEK)

    plans = plans_of(parse_swf(lines, "log"), replay, left_out)

    assert [(plan.name, plan.at_s) for plan in plans] == [("job4", 0.0), ("job1", 200.0), ("job3", 300.0)]
    assert left_out == {"after the end": 2, "beyond the job limit": 0}


def test_the_first_jobs_are_the_first_that_were_submitted() -> None:
    left_out = LeftOut()
    lines = [line(1, 500.0), line(2, 400.0), line(3, 300.0)]

    plans = plans_of(parse_swf(lines, "log"), Replay("app", WEEK, WEEK, most_jobs=2), left_out)

    assert [plan.name for plan in plans] == ["job3", "job2"]
    assert not missing(told(plans, left_out), "batches: 2", "jobs: 4", "left out: 1")


def test_a_file_that_is_no_log_is_refused(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(LOG.encode()))
    (tmp_path / "cut.swf.gz").write_bytes(packed[:-20])
    packed[20] ^= 0xFF
    (tmp_path / "damaged.swf.gz").write_bytes(packed)
    (tmp_path / "picture.swf").write_bytes(b"\x89PNG\r\n\x1a\n\xff\xfe")

    for name in ("cut.swf.gz", "damaged.swf.gz", "missing.swf", "."):
        with pytest.raises(InvalidInputError, match="a readable log in Standard Workload Format"):
            list(read_swf(tmp_path / name))
    with pytest.raises(InvalidInputError, match=r"picture\.swf line 1: expected 18 columns"):
        list(read_swf(tmp_path / "picture.swf"))


def test_a_comment_may_be_in_any_encoding(tmp_path: Path) -> None:
    file = tmp_path / "log.swf"
    file.write_bytes("; Acknowledge: Universität\n".encode("latin-1") + LOG.encode())

    assert list(read_swf(file)) == jobs_of(LOG)


@pytest.mark.parametrize(
    ("heading", "processors"),
    [
        ("; MaxNodes: 64\n; MaxProcs: 240\n", 240),
        ("; MaxNodes: 64\n", 64),
        ("; Computer: various\n", None),
        ("; MaxProcs: many\n", None),
        ("", None),
    ],
)
def test_the_heading_says_how_many_processors_there_were(tmp_path: Path, heading: str, processors: int | None) -> None:
    file = tmp_path / "log.swf"
    file.write_text(heading + "1 0 0 1 1 -1 -1 1 1 -1 1 8 1 1 1 1 -1 -1\n; MaxProcs: 7\n")

    assert processors_of(file) == processors
