"""Errors of a batch are grouped by outcome, exit status and the end of standard error."""

from __future__ import annotations

import pytest

from administration.batch_errors import (
    LINE_CHARS,
    LINES,
    MOST_GROUPS,
    alike,
    example_in_words,
    grouped,
    in_words,
    with_error,
)
from domain.attention import FailingVersion
from domain.jobs import InstanceState
from domain.units import AppVersionId, BatchId, HostId, InstanceId, JobId
from domain.views import FailedInstance


def one(number: int, stderr: str, *, exit_status: int = 1, platform: str = "linux", host: int = 1) -> FailedInstance:
    ids = (InstanceId(number), BatchId(1), JobId(number // 2), InstanceState.FAILED, HostId(host))
    return FailedInstance(*ids, exit_status, f"reason {number}", stderr, platform, 100, "")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("bad row 17", "bad row 4,096"),
        ("C:\\slots\\3\\in.txt: no file", "C:\\slots\\12\\in.txt: no file"),
        ("/var/lib/boinc/slots/0/x: no file", "/home/ada/slots/7/x: no file"),
        ("at 0x7ffe12ab", "at 0x1"),
        ("hash d41d8cd98f00b204", "hash 9800998ecf8427e0"),
        ("<stderr_txt>\nboom\n</stderr_txt>]]>", "boom"),
        ("a\nb\nc\nd", "x\nb\nc\nd"),
    ],
)
def test_errors_that_differ_in_details_are_alike(first: str, second: str) -> None:
    assert alike(first) == alike(second)


def test_different_errors_are_not_alike() -> None:
    assert len({alike(text) for text in ("no space left", "no such file", "bad row 1 of 2")}) == 3


def test_key_of_an_error_is_bounded() -> None:
    assert len(alike("x y\n" * 9 + "word " * 10_000)) <= LINES * (LINE_CHARS + 1)


def test_groups_count_instances_jobs_hosts_and_versions() -> None:
    failed = [one(2, "boom 1"), one(3, "boom 2", host=2), one(4, "boom 3", platform="windows"), one(5, "", host=3)]
    found = grouped(7, failed, more=False)
    [first, second] = found["groups"]
    assert (first["instances"], first["jobs"], first["hosts"], first["exit_status"]) == (3, 2, 2, 1)
    assert [(of["platform"], of["instances"]) for of in first["versions"]] == [("linux", 2), ("windows", 1)]
    assert (first["example"]["instance_id"], first["example"]["stderr"]) == (2, "boom 1")
    assert second["message"] == alike("reason 5")
    assert (first["message"], example_in_words(first), example_in_words(second)) == ("boom #", "boom 1", "reason 5")
    assert "boom 1" in in_words(found)


def test_exit_statuses_are_separate_groups() -> None:
    found = grouped(7, [one(1, "boom"), one(2, "boom", exit_status=9)], more=True)
    assert {group["exit_status"] for group in found["groups"]} == {1, 9}
    assert found["more"]


def test_number_of_groups_is_bounded() -> None:
    failed = [one(number, "boom", exit_status=number) for number in range(MOST_GROUPS + 5)]
    found = grouped(7, failed, more=False)
    assert (len(found["groups"]), found["groups_left_out"]) == (MOST_GROUPS, 5)


def test_only_failing_versions_with_the_error_are_found() -> None:
    [group] = grouped(7, [one(1, "boom"), one(2, "boom")], more=False)["groups"]
    failing = [
        FailingVersion(AppVersionId(1), "pi", name, 100, "", 30, 10, 9, BatchId(1), 30) for name in ("windows", "linux")
    ]
    assert with_error(failing, group) == failing[1:]
