"""A submitter's script, typed from the batch to the last key of the reply.

The type checker checks it like all other code; `assert_type` states the expected types.
"""

from __future__ import annotations

from typing import assert_type

from muster_client import Client, SyncClient, shapes


def report(url: str, token: str, batch_id: int) -> list[str]:
    """Format what a batch waits for, a line each."""
    with SyncClient(url, token) as client:
        batch = client.batch(batch_id)
        explained = client.explain("batch", batch_id)
        hosts = client.explain("host", 1)["host"]["in_progress"]
        place = client.priority(batch_id)["place"]
        forecasts = client.forecasts(batch_id, limit=1)["forecasts"]
        tight = [one["value"] for one in client.thresholds() if one["key"] == "deadline.p_tight"]
    assert_type(batch["completion_at"], float | None)
    assert_type(explained["order"]["batches_ahead"], int)
    assert_type(place, int | None)
    return [
        f"{batch['name']}: {batch['jobs_validated']} of {batch['jobs_total']} jobs, place {place}",
        f"{explained['order']['unsent_ahead']} jobs before it, {explained['slots']} of it in the job array",
        *(f"instance {one['instance_id']} is due at {one['due_at']:.0f}" for one in hosts),
        *(f"forecast by {one['method']}: {one['because']}" for one in forecasts),
        f"p_tight {tight[0]}",
    ]


async def follow(url: str, token: str, batch_id: int) -> list[shapes.ProgressShown]:
    """Return a batch's progress at each change until it has ended."""
    seen: list[shapes.ProgressShown] = []
    async with Client(url, token) as client:
        async for event in client.watch(batch_id):
            assert_type(event, shapes.ProgressShown)
            seen.append(event)
            if event["unsent"] > 0:
                ended = await client.abort(batch_id)
                assert_type(ended["ended_at"], float | None)
        explained = await client.explain("batch", batch_id)
        assert_type(explained, shapes.BatchExplained)
        ranked = await client.ranking()
        assert_type(ranked, shapes.RankingRunShown | None)
    return seen
