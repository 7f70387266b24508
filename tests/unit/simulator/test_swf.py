from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest

from domain.batches import QoS
from domain.errors import InvalidInputError
from domain.units import Seconds
from simulator.swf import LoggedJob, Replay, parse_swf, plans_of, processors_of, read_swf

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


def test_a_log_is_read_as_far_as_it_is_needed() -> None:
    def lines() -> Iterator[str]:
        yield from LOG.splitlines()
        raise AssertionError("read on behind the horizon")

    jobs = parse_swf(lines(), "log.swf")
    plans = plans_of(jobs, Replay("app", Seconds(3600.0), WEEK))

    assert [plan.name for plan in plans] == ["job1", "job4"]


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
    ("line", "says"),
    [
        ("1 2 3", "log.swf line 2: expected 18 columns, got '3 columns'"),
        ("1 x 0 3600 4 -1 -1 4 7200 -1 1 8 1 1 1 1 -1 -1", "log.swf line 2, submit: expected a number of at least 0"),
        (
            "1 -5 0 60 4 -1 -1 4 7200 -1 1 8 1 1 1 1 -1 -1",
            "line 2, submit: expected a number of at least 0, got '-5'",
        ),
        ("1 5 0 nan 4 -1 -1 4 7200 -1 1 8 1 1 1 1 -1 -1", "log.swf line 2, run time: expected a number"),
        ("1 5 0 60 4 -1 -1 4 7200 -1 1 who 1 1 1 1 -1 -1", "line 2, column 12: expected a number, got 'who'"),
    ],
)
def test_a_wrong_line_is_named(line: str, says: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        jobs_of(f"; comment\n{line}")

    assert says in str(caught.value)


def test_a_log_out_of_order_is_refused() -> None:
    lines = [line for line in LOG.splitlines() if line.startswith(("5", "1"))]

    with pytest.raises(InvalidInputError, match="job 1: expected jobs in the order of their submission"):
        plans_of(parse_swf(reversed(lines), "log.swf"), REPLAY)


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
