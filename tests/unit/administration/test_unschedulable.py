"""Unschedulable work over all workers: slots and hosts are counted once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from administration.heartbeats import taken_as_json, unrunnable_as_json
from administration.unschedulable import RefusedByAll, all_refused_of, refused_as_json, refused_of
from domain.refusals import RefusalCode
from domain.units import BatchId, HostId, Instant, JobClassId, later
from domain.views import ProcessReport
from feeder.unschedulable import Unrunnable
from tests.builders import NOW

COOL_OFF_S = 300.0
BEGAN_AT = later(NOW, -3600.0)


def refusing(slots: dict[int, int], refused_by: dict[int, RefusalCode], **changes: Any) -> Unrunnable:
    """Return slots of one class of batch 7, by shard, and the hosts that refused them."""
    values: dict[str, Any] = {
        "urgent": False,
        "since_at": BEGAN_AT,
        "rotated_out": False,
        "refused_by": {HostId(host_id): code for host_id, code in refused_by.items()},
    }
    return Unrunnable(BatchId(7), JobClassId(1), slots=slots, **(values | changes))


def a_worker(*rows: Unrunnable, taken_at: Instant | None = None) -> ProcessReport:
    """Return a worker's report; `taken_at`: a host took such a slot from it at this time."""
    taken = {} if taken_at is None else {(BatchId(7), JobClassId(1), False): taken_at}
    report = {
        "cool_off_s": COOL_OFF_S,
        "unrunnable": unrunnable_as_json(rows),
        "taken": taken_as_json(taken),
    }
    return ProcessReport("a worker", "worker", NOW, report)


def only(*workers: ProcessReport) -> RefusedByAll:
    [found] = refused_of(workers, now=NOW)
    return found


MEMORY, DISK, PLATFORM, QUEUE = RefusalCode.MEMORY, RefusalCode.DISK, RefusalCode.PLATFORM, RefusalCode.QUEUE


def test_slots_of_different_shards_add_up() -> None:
    assert only(a_worker(refusing({0: 3, 1: 4}, {1: MEMORY})), a_worker(refusing({32: 5}, {1: MEMORY}))).waiting == 12


def test_slots_that_every_worker_has_are_counted_once() -> None:
    whole, part = refusing({0: 2, 1: 2}, {1: MEMORY}), refusing({1: 1}, {1: MEMORY})

    assert only(a_worker(whole), a_worker(whole), a_worker(part)).waiting == 4


def test_host_that_called_several_workers_counts_once() -> None:
    found = only(a_worker(refusing({0: 1}, {1: MEMORY, 2: MEMORY})), a_worker(refusing({0: 1}, {2: MEMORY, 3: DISK})))

    assert (found.hosts, found.codes) == (3, (("memory", 2), ("disk", 1)))
    assert replace(found, active_hosts=3).advice == RefusalCode.MEMORY.traits.advice != found.advice


def test_only_a_verdict_about_the_fleet_makes_work_unschedulable() -> None:
    """The worker's report is due, but ordinary hosts may not have looked at the work."""
    worker = a_worker(refusing({0: 5}, {1: MEMORY, 2: MEMORY}, rotated_out=True))
    judged = replace(only(worker), hosts=40, codes=(("memory", 40),), active_hosts=40)
    verdict = {"unschedulable": [refused_as_json(judged)], "able": []}
    could = {"unschedulable": [], "able": [list(judged.key)]}

    def told(judging: dict[str, Any] | None) -> list[tuple[bool, int]]:
        background = ProcessReport("b", "background", NOW, {} if judging is None else {"judged": judging})
        return [(one.is_certain, one.hosts) for one in all_refused_of([worker, background], now=NOW)]

    assert only(worker).is_due and not only(worker).is_certain
    assert (told(None), told(verdict), told(could)) == ([(False, 2)], [(True, 40)], [])


def test_advice_names_the_condition_of_the_queue() -> None:
    refused = only(a_worker(refusing({0: 1}, {1: PLATFORM, 2: QUEUE})))
    judged = replace(refused, active_hosts=2, queue_needs="label = lab")

    assert judged.codes == (("queue", 1), ("platform", 1))
    assert replace(refused, active_hosts=2).advice == QUEUE.traits.advice and "label = lab" in judged.advice


def test_host_with_two_reasons_counts_for_both() -> None:
    found = only(a_worker(refusing({0: 1}, {1: MEMORY})), a_worker(refusing({1: 1}, {1: DISK})))

    assert (found.hosts, found.codes) == (1, (("disk", 1), ("memory", 1)))


def test_work_taken_from_another_worker_is_schedulable() -> None:
    refused = a_worker(refusing({0: 1}, {1: MEMORY}, rotated_out=True))

    assert refused_of([refused, a_worker(taken_at=later(NOW, 1.0 - COOL_OFF_S))], now=NOW) == []
    assert only(refused, a_worker(taken_at=later(NOW, -COOL_OFF_S))).since_at == later(NOW, -COOL_OFF_S)


def test_since_at_is_the_earliest_of_all_workers() -> None:
    late = refusing({1: 1}, {1: MEMORY}, since_at=later(NOW, -400.0), rotated_out=True)

    found = only(a_worker(refusing({0: 1}, {2: MEMORY})), a_worker(late), a_worker(taken_at=later(BEGAN_AT, -9.0)))

    assert (found.since_at, found.rotated_out) == (BEGAN_AT, True)


def test_counts_of_an_older_worker_are_lower_bounds() -> None:
    [row] = unrunnable_as_json([refusing({0: 9}, {1: MEMORY, 2: MEMORY, 3: MEMORY})])
    old = ProcessReport(
        "old", "worker", NOW, {"unrunnable": [{k: row[k] for k in row if k not in ("slots", "refused_by")}]}
    )

    found = only(old, a_worker(refusing({0: 2}, {9: MEMORY, 8: DISK})))

    assert (found.waiting, found.hosts, found.codes) == (9, 3, (("memory", 3), ("disk", 1)))


def test_truncated_host_names_make_counts_lower_bounds() -> None:
    first, second = refusing({0: 1}, {1: MEMORY, 2: MEMORY}), refusing({0: 1}, {2: MEMORY, 3: DISK, 4: DISK})
    cut = [ProcessReport(n, "worker", NOW, {"unrunnable": unrunnable_as_json([second], most_hosts=2)}) for n in "ab"]

    alone, both = only(cut[0]), only(a_worker(first), cut[1])

    assert (alone.hosts, alone.codes, alone.at_least) == (3, (("disk", 2), ("memory", 1)), False)
    assert (both.hosts, both.codes, both.at_least) == (3, (("disk", 2), ("memory", 2)), True)
    assert not only(a_worker(first), a_worker(second)).at_least
