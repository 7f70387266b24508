from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from domain.jobs import Ready
from domain.units import BatchId, InstanceId, JobId, Seconds
from feeder.cursors import PROBE_S, Cursors
from tests.builders import a_ready

BATCH = BatchId(1)
T0 = Seconds(100.0)


def in_shard(shard: int, number: int) -> Ready:
    return a_ready(instance_id=InstanceId(number), job_id=JobId(64 + shard))


def test_reading_goes_on_behind_the_last_instance_dealt_with() -> None:
    cursors = Cursors()
    cursors.advance(in_shard(3, 17))
    assert (cursors.after(BATCH, 3), cursors.after(BATCH, 4)) == (17, 0)


def test_letting_go_of_an_instance_moves_the_cursor_before_it() -> None:
    cursors = Cursors()
    cursors.advance(in_shard(3, 17))
    cursors.rewind(in_shard(3, 9))
    cursors.rewind(in_shard(3, 12))
    assert cursors.after(BATCH, 3) == 8


def test_fully_read_range_pauses_and_restarts_after_the_others() -> None:
    cursors = Cursors()
    cursors.advance(in_shard(0, 17))
    cursors.advance(in_shard(1, 18))
    cursors.found_end(BATCH, 0, now_s=T0)
    assert cursors.open_shards(BATCH, (0, 1), now_s=T0) == [1]
    assert cursors.open_shards(BATCH, (0, 1), now_s=Seconds(T0 + PROBE_S)) == [1, 0]
    assert cursors.after(BATCH, 0) == 0


def test_the_least_advanced_shards_come_first_after_every_move() -> None:
    cursors = Cursors()
    for shard, number in ((2, 30), (0, 20), (1, 10)):
        cursors.advance(in_shard(shard, number))
    assert cursors.open_shards(BATCH, (0, 1, 2), now_s=T0) == [1, 0, 2]
    cursors.advance(in_shard(1, 40))
    assert cursors.open_shards(BATCH, (0, 1, 2), now_s=T0) == [0, 2, 1]
    cursors.rewind(in_shard(2, 5))
    assert cursors.open_shards(BATCH, (2, 1), now_s=T0) == [2, 1]


def test_a_batch_is_open_while_any_of_its_shards_is() -> None:
    cursors = Cursors()
    cursors.found_end(BATCH, 0, now_s=T0)
    assert cursors.is_open(BATCH, (0, 1), now_s=T0)
    cursors.found_end(BATCH, 1, now_s=T0)
    assert not cursors.is_open(BATCH, (0, 1), now_s=T0)
    assert not cursors.is_open(BatchId(2), (), now_s=T0)


def test_letting_go_opens_a_range_again() -> None:
    cursors = Cursors()
    cursors.found_end(BATCH, 0, now_s=T0)
    cursors.found_dry(BATCH, now_s=T0)
    cursors.rewind(in_shard(0, 5))
    assert cursors.open_shards(BATCH, (0,), now_s=T0) == [0]
    assert not cursors.is_dry(BATCH, now_s=T0)


def test_shards_gained_or_lost_start_over_and_others_do_not() -> None:
    cursors = Cursors()
    cursors.own(frozenset({1, 2}))
    for shard in (1, 2, 3):
        cursors.advance(in_shard(shard, 10 + shard))
    cursors.own(frozenset({2, 3}))
    assert [cursors.after(BATCH, shard) for shard in (1, 2, 3)] == [0, 12, 0]


def test_cursors_of_batches_without_work_are_forgotten() -> None:
    cursors = Cursors()
    cursors.advance(in_shard(3, 17))
    cursors.found_dry(BATCH, now_s=T0)
    cursors.keep_batches([BatchId(2)])
    assert cursors.after(BATCH, 3) == 0
    assert not cursors.is_dry(BATCH, now_s=T0)


WHAT = st.sampled_from(["read", "end", "rewind"])
STEPS = st.tuples(WHAT, st.integers(0, 63), st.integers(1, 1000), st.integers(0, 20))


@given(
    st.lists(STEPS),
    st.frozensets(st.integers(0, 63)),
    st.integers(0, 64),
)
def test_least_advanced_shards_are_read_first(
    steps: list[tuple[str, int, int, int]], shards: frozenset[int], most: int
) -> None:
    cursors, after, closed = Cursors(), dict.fromkeys(range(64), 0), dict[int, float]()
    for step, shard, number, second in steps:
        cursors.open_shards(BATCH, shards, now_s=T0)
        if step == "read":
            cursors.advance(in_shard(shard, number))
            after[shard] = max(after[shard], number)
        elif step == "end":
            cursors.found_end(BATCH, shard, now_s=Seconds(T0 + second))
            after[shard], closed[shard] = 0, T0 + second + PROBE_S
        else:
            cursors.rewind(in_shard(shard, number))
            after[shard] = min(after[shard], number - 1)
            closed.pop(shard, None)
    now_s = Seconds(T0 + 12)
    still_open = [shard for shard in shards if closed.get(shard, now_s) <= now_s]
    expected = sorted(still_open, key=lambda shard: (closed.get(shard, 0.0), after[shard], shard))
    assert cursors.open_shards(BATCH, shards, now_s=now_s) == expected
    assert cursors.open_shards(BATCH, shards, now_s=now_s, most=most) == expected[:most]
