"""Tests that new hosts are counted per day, under all keys or none."""

from __future__ import annotations

import asyncio

from tests.stores import Store

BOTH = {"volunteer 7": 2, "address 192.0.2.7": 3}


async def test_new_hosts_are_limited_per_day(store: Store) -> None:
    assert [await store.arrivals.arrive(20000, BOTH) for _ in range(3)] == [None, None, "volunteer 7"]
    # A refused host is not counted, so the address has one left.
    assert await store.arrivals.arrive(20000, {"volunteer 8": 2, "address 192.0.2.7": 3}) is None
    assert await store.arrivals.arrive(20000, {"volunteer 9": 2, "address 192.0.2.7": 3}) == "address 192.0.2.7"
    assert await store.arrivals.arrive(20001, BOTH) is None


async def test_who_asks_at_once_gets_no_more(store: Store) -> None:
    answers = await asyncio.gather(*(store.arrivals.arrive(20000, BOTH) for _ in range(10)))

    assert answers.count(None) == 2
