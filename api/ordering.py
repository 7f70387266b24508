"""The order of batches over the API."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from administration.ordering.ports import OrderingStore
from administration.ordering.priorities import (
    Priorities,
    ordering_changes,
    preview_as_json,
    weights_in_force,
)
from api.batches import BatchParams
from api.settings import ValuesBody, who_of
from api.table import Ask, NoParams, operation
from domain.access import Right
from domain.clock import Clock
from domain.units import BatchId
from muster_client import shapes


class PlacesParams(msgspec.Struct, forbid_unknown_fields=True):
    limit: Annotated[int, msgspec.Meta(ge=1, le=10_000, description="The first so many.")] = 100


class PreviewBody(msgspec.Struct, forbid_unknown_fields=True):
    values: dict[str, Any]
    limit: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 50


class OrderingApi:
    TAG = "ordering"

    def __init__(self, store: OrderingStore, clock: Clock) -> None:
        self._priorities = Priorities(store, clock)

    @operation("GET", "/priority", "Batches in their order with the reasons of the last ordering.")
    async def priorities(self, ask: Ask[PlacesParams, None]) -> shapes.PrioritiesShown:
        found = await self._priorities.show(limit=ask.params.limit)
        return {"batches": list(found.records), "unordered": list(found.unordered)}

    @operation("GET", "/batches/{batch_id}/priority", "Why one batch stands where it stands.", errors=(404,))
    async def priority(self, ask: Ask[BatchParams, None]) -> shapes.PriorityShown:
        [record] = (await self._priorities.show(BatchId(ask.params.batch_id))).records
        return record

    @operation("GET", "/priority/weights", "The terms of the chosen policy with their weights.")
    async def weights(self, ask: Ask[NoParams, None]) -> shapes.WeightsShown:
        settings = await self._priorities.settings()
        return {"policy": settings.ordering.policy, "terms": weights_in_force(settings)}

    @operation("POST", "/priority/preview", "Where batches would stand with these settings; nothing is changed.")
    async def preview_ordering(self, ask: Ask[NoParams, PreviewBody]) -> shapes.OrderPreviewed:
        changes = ordering_changes(ask.body.values.items())
        return preview_as_json(await self._priorities.preview(changes, limit=ask.body.limit))

    @operation("PUT", "/priority", "Choose and weigh the policy.", right=Right.OPERATE)
    async def set_ordering(self, ask: Ask[NoParams, ValuesBody]) -> shapes.Changed:
        body = ask.body
        changes = ordering_changes(body.values.items())
        return {"changed": await self._priorities.set(changes, who=who_of(ask.person, body.by), why=body.why)}
