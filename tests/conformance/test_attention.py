"""Tests that late, endangered and failing batches are found, on every store."""

from __future__ import annotations

from typing import Any

from domain.attention import BatchesInNeed
from domain.batches import Batch, QoS
from domain.forecasts import Method
from domain.units import later
from tests.builders import NOW
from tests.conformance.test_forecasts import a_record
from tests.stores import Store
from tests.worlds import a_submitted_batch


async def need(store: Store, *, limit: int = 9, **changes: Any) -> BatchesInNeed:
    values: dict[str, Any] = {"now": NOW, "failed": 2, "failed_fraction": 0.5, **changes}
    return await store.attention.batches(limit=limit, **values)


async def a_dated_batch(store: Store, deadline_s: float, q90_s: float | None, method: Method = Method.WARM) -> Batch:
    batch = await a_submitted_batch(store, jobs=2, qos=QoS.SHORT_DEADLINE, deadline_at=later(NOW, deadline_s))
    if q90_s is not None:
        made = a_record(batch, q10_at=NOW, q50_at=NOW, q90_at=later(NOW, q90_s), method=method)
        assert await store.forecasts.publish(made)
    return batch


async def test_late_batches_and_those_at_risk_need_attention(store: Store) -> None:
    at_risk = await a_dated_batch(store, 100.0, 101.0)
    missed = await a_dated_batch(store, 0.0, None)
    aborted = await a_dated_batch(store, -5.0, None)
    await store.submissions.abort_batch(aborted.batch_id, now=NOW)
    await a_submitted_batch(store, jobs=1)
    for deadline_s, q90_s, method in (
        (100.0, 100.0, Method.WARM),
        (1.0, 9e9, Method.APRIORI),
        (1.0, None, Method.WARM),
    ):
        await a_dated_batch(store, deadline_s, q90_s, method)

    assert await need(store) == BatchesInNeed([missed.batch_id, at_risk.batch_id], 2)
    assert await need(store, limit=1) == BatchesInNeed([missed.batch_id], 2)
    later_need = await need(store, now=later(NOW, 1.0))
    assert (later_need.found, later_need.batch_ids[0]) == (4, missed.batch_id)


async def test_without_late_batches_none_needs_attention(store: Store) -> None:
    await a_submitted_batch(store, jobs=1)

    assert await need(store) == BatchesInNeed([], 0)
