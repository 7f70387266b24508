"""Event streams: one query for all listeners, no repeated events, an end, and a limit on their number."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import pytest

from api.events import ProgressHub
from domain.batches import Batch, BatchCounts
from domain.errors import NotFoundError, UnavailableError
from domain.units import BatchId, Instant
from domain.views import ActiveTotal
from tests.builders import a_batch
from tests.unit.administration.clocks import HastyClock, StillClock
from web.problems import BusyError


class Counted:
    """A store of batches that counts its calls."""

    def __init__(self, *batches: Batch) -> None:
        self.batches = {one.batch_id: one for one in batches}
        self.asked: list[list[int]] = []
        self.failing = False

    async def batch(self, batch_id: BatchId) -> Batch:
        return self.batches[batch_id]

    async def batches_with(self, ids: Sequence[BatchId]) -> Sequence[Batch]:
        self.asked.append(list(ids))
        if self.failing:
            self.failing = False
            raise UnavailableError
        return [self.batches[one] for one in ids if one in self.batches]

    async def totals(self) -> Sequence[ActiveTotal]:
        return []


def a_hub(views: Counted, clock: Any = None, most: int = 10) -> ProgressHub:
    store = cast(Any, views)  # stands for both parts of the store
    return ProgressHub(store, store, clock or StillClock(), lambda: most)


def batch(number: int, **counts: int) -> Batch:
    return a_batch(batch_id=BatchId(number), counts=BatchCounts(**counts))


async def test_listener_gets_the_present_state_first() -> None:
    hub = a_hub(Counted(batch(7, jobs_total=4, unsent=3)))

    async with hub.listen(BatchId(7)) as listener:
        assert listener.changed.is_set()
        assert listener.latest is not None
        assert (listener.latest["batch_id"], listener.latest["unsent"]) == (7, 3)
        assert hub.listening == 1
    assert hub.listening == 0


async def test_one_query_serves_all_listeners_and_sends_changes() -> None:
    views = Counted(batch(7, unsent=3), batch(8, unsent=1))
    clock = HastyClock(rounds=2)
    hub = a_hub(views, clock)

    async with hub.listen(BatchId(7)) as one, hub.listen(BatchId(8)) as two, hub.listen(BatchId(7)) as three:
        for listener in (one, two, three):
            listener.changed.clear()
        views.asked.clear()
        views.batches[BatchId(7)] = batch(7, unsent=2)
        await clock.done.wait()

        assert views.asked == [[7, 8], [7, 8]]
        assert [listener.changed.is_set() for listener in (one, two, three)] == [True, False, True]


async def test_database_outage_ends_no_stream() -> None:
    views = Counted(batch(7, unsent=3))
    clock = HastyClock(rounds=2)

    async with a_hub(views, clock).listen(BatchId(7)) as listener:
        listener.changed.clear()
        views.failing = True
        views.batches[BatchId(7)] = replace(batch(7), ended_at=Instant(5.0))
        await clock.done.wait()

        assert listener.latest is not None
        assert listener.latest["ended_at"] == 5.0


async def test_unknown_batch_and_too_many_streams_are_refused() -> None:
    hub = a_hub(Counted(batch(7)), most=1)

    with pytest.raises(NotFoundError, match="no batch 9"):
        async with hub.listen(BatchId(9)):
            raise AssertionError
    async with hub.listen(None) as listener:
        assert listener.latest == {
            "active_batches": 0,
            **dict.fromkeys(
                ("jobs_total", "jobs_validated", "jobs_failed", "unsent", "in_progress", "sent", "deadlines_missed"), 0
            ),
            "parts": [],
        }
        with pytest.raises(BusyError, match="already serves 1 streams"):
            async with hub.listen(BatchId(7)):
                raise AssertionError


async def test_closing_ends_every_stream() -> None:
    hub = a_hub(Counted(batch(7)))

    async with hub.listen(BatchId(7)) as listener:
        listener.changed.clear()
        await hub.close()

        assert listener.closed
        await asyncio.wait_for(listener.changed.wait(), 60)
    with pytest.raises(BusyError):
        async with hub.listen(BatchId(7)):
            raise AssertionError
