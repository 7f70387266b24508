"""Samples of figures are the same in every store."""

from __future__ import annotations

from domain.units import Instant, later
from tests.builders import NOW
from tests.stores import Store
from tests.worlds import a_registered_host


async def test_samples_are_listed_by_step_and_time(store: Store) -> None:
    for after_s in (20.0, 0.0, 10.0):
        await store.samples.write(10, later(NOW, after_s), {"requests": after_s})
    await store.samples.write(60, NOW, {"requests": 1.0})
    await store.samples.write(10, NOW, {"requests": 0.5, "refused.disk": 2.0})

    found = await store.samples.between(10, NOW, later(NOW, 20.0))

    assert [(one.at, one.figures) for one in found] == [
        (NOW, {"requests": 0.5, "refused.disk": 2.0}),
        (later(NOW, 10.0), {"requests": 10.0}),
    ]


async def test_last_sample_is_the_latest_until_an_instant(store: Store) -> None:
    assert await store.samples.last(10, NOW) is None
    for after_s in (0.0, 10.0, 20.0):
        await store.samples.write(10, later(NOW, after_s), {})

    assert await store.samples.last(10, later(NOW, 19.0)) == later(NOW, 10.0)
    assert await store.samples.last(60, later(NOW, 19.0)) is None


async def test_samples_outside_a_period_are_deleted(store: Store) -> None:
    for after_s in (0.0, 10.0, 20.0, 30.0):
        await store.samples.write(10, later(NOW, after_s), {})
    await store.samples.write(60, NOW, {})

    await store.samples.delete(10, before=later(NOW, 10.0), after=later(NOW, 20.0))

    left = [one.at for one in await store.samples.between(10, Instant(0.0), later(NOW, 1e6))]
    assert left == [later(NOW, 10.0), later(NOW, 20.0)]
    assert await store.samples.last(60, NOW) == NOW


async def test_hosts_count_if_they_called_recently(store: Store) -> None:
    for _ in range(3):
        host = (await a_registered_host(store)).host

    assert await store.samples.active_hosts(host.last_rpc_at) == 3
    assert await store.samples.active_hosts(later(host.last_rpc_at, 1.0)) == 0
