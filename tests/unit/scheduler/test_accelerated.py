"""The rule `accelerated`: jobs of nearly done batches are for low-turnaround hosts, and come first for them."""

from __future__ import annotations

from dataclasses import replace

from domain.acceleration import Acceleration
from domain.catalogue import Catalogue
from domain.refusals import RefusalCode
from domain.units import DAY_S, AppId, BatchId, HostId, Seconds
from scheduler.asking import Asking
from scheduler.dispatch import choose
from tests.builders import NOW
from tests.unit.scheduler.arrays import ListArray, a_catalogue, a_group, a_want, an_asking

FLAGS = Acceleration(NOW, frozenset({HostId(1)}), frozenset({AppId(1)}), frozenset({BatchId(2)}))


def catalogue(flags: Acceleration | None = FLAGS) -> Catalogue:
    return replace(a_catalogue(deadline__rule="accelerated"), acceleration=flags)


def asking(flags: Acceleration | None = FLAGS, *, jobs: int = 1) -> Asking:
    return an_asking(catalogue=catalogue(flags), wants=(a_want(req_s=Seconds(3600.0 * jobs - 1.0)),))


def batches_given(flags: Acceleration | None, *, jobs: int) -> list[int]:
    chosen = choose(asking(flags, jobs=jobs), ListArray([a_group(1, 3), a_group(2, 3)])).chosen
    return [one.batch.batch_id for one in chosen]


def test_accelerated_jobs_come_first_for_a_low_turnaround_host_without_a_cap() -> None:
    assert batches_given(FLAGS, jobs=4) == [2, 2, 2, 1]


def test_other_hosts_never_get_accelerated_jobs_and_are_told_why() -> None:
    flags = replace(FLAGS, hosts=frozenset({HostId(9)}))
    assert batches_given(flags, jobs=6) == [1, 1, 1]
    choice = choose(asking(flags), ListArray([a_group(2)]))
    [(_, _, why)] = choice.not_given
    assert why.code is RefusalCode.BELOW_GATE
    assert why.detail == "accelerated: the batch is nearly done, its jobs are for low-turnaround hosts only"


def test_jobs_of_apps_that_are_not_accelerable_go_in_order_to_all() -> None:
    assert batches_given(replace(FLAGS, apps=frozenset(), hosts=frozenset()), jobs=4) == [1, 1, 1, 2]


def test_before_anything_is_flagged_all_jobs_go_in_order() -> None:
    assert batches_given(None, jobs=4) == [1, 1, 1, 2]


def test_due_dates_are_the_delay_bounds() -> None:
    chosen = choose(asking(jobs=4), ListArray([a_group(1, 3), a_group(2, 3, delay_bound_s=2 * DAY_S)])).chosen
    assert [one.assignment.due_at - NOW for one in chosen[:3]] == [2 * DAY_S] * 3
    assert all(not one.assignment.tight and one.assignment.because.startswith("accelerated") for one in chosen[:3])
    assert chosen[3].assignment.because.startswith("fixed")
