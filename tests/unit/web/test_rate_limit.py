"""A limited caller waits until its bucket has a token; other callers are not affected."""

from __future__ import annotations

import pytest

from domain.settings import Settings
from runtime.rate_limits.hosts import HostLimit
from tests.unit.administration.access.world import ForwardClock
from web.rate_limit import Buckets


def test_a_burst_is_granted_and_then_the_rate() -> None:
    clock = ForwardClock()
    buckets = Buckets(clock)

    granted = [buckets.wait_s("a", per_s=2.0, burst=3) for _ in range(4)]

    assert granted == [0.0, 0.0, 0.0, 0.5]
    clock.forward(0.5)
    assert buckets.wait_s("a", per_s=2.0, burst=3) == 0.0
    assert buckets.wait_s("a", per_s=2.0, burst=3) == pytest.approx(0.5)


def test_a_bucket_tells_its_tokens_and_when_it_is_full() -> None:
    clock = ForwardClock()
    buckets = Buckets(clock)
    told = [buckets.left("a", per_s=2.0, burst=3)]
    for _ in range(4):
        buckets.wait_s("a", per_s=2.0, burst=3)
        told.append(buckets.left("a", per_s=2.0, burst=3))

    assert told == [(3, 0.0), (2, 0.5), (1, 1.0), (0, 1.5), (0, 1.5)]
    clock.forward(0.75)
    assert buckets.left("a", per_s=2.0, burst=3) == (1, 0.75)


def test_refused_requests_do_not_extend_the_wait() -> None:
    buckets = Buckets(ForwardClock())
    buckets.wait_s("a", per_s=1.0, burst=1)

    assert [buckets.wait_s("a", per_s=1.0, burst=1) for _ in range(1000)] == [1.0] * 1000


def test_buckets_are_per_key_and_zero_rate_is_unlimited() -> None:
    buckets = Buckets(ForwardClock())

    assert [buckets.wait_s(key, per_s=1.0, burst=1) for key in ("a", "b", "a")] == [0.0, 0.0, 1.0]
    assert [buckets.wait_s("c", per_s=0, burst=1) for _ in range(3)] == [0.0, 0.0, 0.0]


def test_bucket_memory_is_bounded() -> None:
    buckets = Buckets(ForwardClock(), most_keys=10)

    for key in range(100):
        buckets.wait_s(key, per_s=1.0, burst=1)

    assert len(buckets) == 10
    assert buckets.wait_s(99, per_s=1.0, burst=1) == 1.0
    assert buckets.wait_s(0, per_s=1.0, burst=1) == 0.0


def test_host_limit_needs_the_host_s_key() -> None:
    settings = Settings().changed("server.host_burst", 2).changed("server.host_requests_per_s", 0.1)
    limit = HostLimit(Buckets(ForwardClock()), lambda: settings.server)

    stranger = [limit.wait_s("f" * 32, 7) for _ in range(5)]

    assert stranger == [0.0, 0.0, 10.0, 10.0, 10.0]
    assert limit.wait_s("0" * 32, 7) == 0.0
