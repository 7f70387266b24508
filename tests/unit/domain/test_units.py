"""Instants, lengths of time and shards."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from domain.units import SHARDS, Instant, JobId, elapsed_s, later, shard_of

INSTANTS = st.integers(0, 2**40).map(lambda n: Instant(float(n)))


@given(INSTANTS, st.integers(-(2**40), 2**40))
def test_elapsed_undoes_later(start_at: Instant, by_s: int) -> None:
    assert elapsed_s(start_at, later(start_at, float(by_s))) == float(by_s)


def test_elapsed_is_negative_when_the_instant_lies_ahead() -> None:
    assert elapsed_s(Instant(130.0), Instant(100.0)) == -30.0


@given(st.integers(1, 2**62))
def test_every_job_has_a_shard_and_its_neighbours_have_others(job_id: int) -> None:
    shards = {shard_of(JobId(job_id + offset)) for offset in range(SHARDS)}

    assert shards == set(range(SHARDS))
