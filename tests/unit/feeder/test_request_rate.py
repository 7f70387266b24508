from __future__ import annotations

from collections.abc import Sequence

import pytest

from domain.apps import CPU, NVIDIA
from domain.jobs import Ready
from domain.units import AppId, BatchId, InstanceId, JobId, Seconds
from feeder.groups import Group, turns_of
from feeder.request_rate import MIX_HALF_LIFE_S, LowWatermark, RequestMix
from tests.builders import a_batch, a_job_class, a_ready


def a_group(number: int, slots: int, *, app: int = 1, owned: Sequence[int] = range(64), urgent: bool = False) -> Group:
    batch_id = BatchId(number)
    batch = a_batch(batch_id=batch_id, app_id=AppId(app))
    group = Group(batch, a_job_class(batch_id=batch_id), urgent=urgent, turns=turns_of(owned))
    for place in range(slots):
        name = number * 1000 + place
        ready = a_ready(instance_id=InstanceId(name), job_id=JobId(place), batch_id=batch_id, retries=int(urgent))
        group.add(ready)
    return group


def take(level: LowWatermark, group: Group, count: int, *, left: int = 1) -> None:
    for ready in _first(group, count):
        level.note_taken(ready, group, left=left)


def _first(group: Group, count: int) -> list[Ready]:
    return list(group.slots()[:count])


def test_a_quarter_of_all_slots_taken_is_low() -> None:
    level = LowWatermark()
    groups = [a_group(number, 100) for number in (1, 2, 3, 4)]
    level.reset(groups, slots=400, readable=())
    for group in groups:
        take(level, group, 24)
    assert not level.low.is_set()
    for group in groups:
        take(level, group, 1)
    assert level.low.is_set()


def test_half_of_a_batch_taken_is_low_while_there_is_more_of_it() -> None:
    level = LowWatermark()
    small, large = a_group(1, 20), a_group(2, 400)
    level.reset([small, large], slots=420, readable={BatchId(1)})
    take(level, small, 9)
    assert not level.low.is_set()
    take(level, small, 1)
    assert level.low.is_set()
    level.reset([small, large], slots=420, readable={BatchId(2)})
    take(level, small, 20)
    assert not level.low.is_set()


def test_only_slots_of_own_shards_count_for_a_batch() -> None:
    level = LowWatermark()
    group, other = a_group(1, 64, owned=range(32)), a_group(2, 400)
    level.reset([group, other], slots=464, readable={BatchId(1)})
    take(level, group, 15)
    assert not level.low.is_set()
    take(level, group, 1)
    assert level.low.is_set()


def test_half_of_an_apps_slots_taken_is_low() -> None:
    level = LowWatermark()
    groups = [a_group(number, 10, app=2) for number in (1, 2, 3)]
    level.reset([*groups, a_group(9, 400)], slots=430, readable={BatchId(1), BatchId(2), BatchId(3)})
    take(level, groups[0], 10)
    take(level, groups[1], 4)
    assert not level.low.is_set()
    take(level, groups[2], 1)
    assert level.low.is_set()


def test_urgent_slots_do_not_count_for_their_batch() -> None:
    level = LowWatermark()
    group, other = a_group(1, 40, urgent=True), a_group(2, 400)
    level.reset([group, other], slots=440, readable={BatchId(1), BatchId(2)})
    take(level, group, 40)
    assert not level.low.is_set()


def test_nothing_is_low_while_there_is_nothing_to_read() -> None:
    level = LowWatermark()
    group = a_group(1, 40)
    level.reset([group], slots=100, readable={BatchId(1)})
    level.rest()
    take(level, group, 40, left=0)
    assert not level.low.is_set()
    level.reset([group], slots=100, readable={BatchId(1)})
    take(level, group, 10)
    assert level.low.is_set()


def test_what_was_taken_is_counted_per_batch() -> None:
    level = LowWatermark()
    take(level, a_group(1, 3), 3)
    take(level, a_group(2, 2), 2)
    assert dict(level.taken) == {1: 3, 2: 2}


def test_a_request_counts_half_after_the_half_life() -> None:
    mix = RequestMix()
    mix.note([CPU, NVIDIA], now_s=Seconds(5000.0))
    later_s = Seconds(5000.0 + MIX_HALF_LIFE_S)
    mix.note([CPU], now_s=later_s)
    assert mix.weights(now_s=later_s) == pytest.approx({CPU: 1.5, NVIDIA: 0.5})


def test_years_without_requests_do_no_harm() -> None:
    mix = RequestMix()
    mix.note([NVIDIA], now_s=Seconds(0.0))
    assert mix.weights(now_s=Seconds(1e9))[NVIDIA] == pytest.approx(0.0)
    mix.note([CPU], now_s=Seconds(1e9))
    assert mix.weights(now_s=Seconds(1e9)) == pytest.approx({CPU: 1.0})
