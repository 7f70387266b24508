"""The order of batches over the API."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from administration.ordering.priorities import (
    Priorities,
    PriorityStore,
    ordering_changes,
    preview_as_json,
    weights_in_force,
)
from api.batches import BatchParams
from api.settings import ValuesBody, who_of
from api.table import Ask, NoParams, Route
from domain.access import Right
from domain.clock import Clock
from domain.units import BatchId
from muster_client import shapes

TAG = "ordering"


class PlacesParams(msgspec.Struct, forbid_unknown_fields=True):
    limit: Annotated[int, msgspec.Meta(ge=1, le=10_000, description="The first so many.")] = 100


class PreviewBody(msgspec.Struct, forbid_unknown_fields=True):
    values: dict[str, Any]
    limit: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 50


class OrderingApi:
    def __init__(self, store: PriorityStore, clock: Clock) -> None:
        self._priorities = Priorities(store, clock)

    def routes(self) -> list[Route[Any, Any]]:
        operate = Right.OPERATE
        return [
            Route(
                "GET",
                "/priority",
                "priorities",
                "Batches in their order with the reasons of the last ordering.",
                self.show,
                TAG,
                shapes.PrioritiesShown,
                PlacesParams,
            ),
            Route(
                "GET",
                "/batches/{batch_id}/priority",
                "priority",
                "Why one batch stands where it stands.",
                self.show_one,
                TAG,
                shapes.PriorityShown,
                BatchParams,
                errors=(404,),
            ),
            Route(
                "GET",
                "/priority/weights",
                "weights",
                "The terms of the chosen policy with their weights.",
                self.weights,
                TAG,
                shapes.WeightsShown,
                NoParams,
            ),
            Route(
                "POST",
                "/priority/preview",
                "preview_ordering",
                "Where batches would stand with these settings; nothing is changed.",
                self.preview,
                TAG,
                shapes.OrderPreviewed,
                NoParams,
                body=PreviewBody,
            ),
            Route(
                "PUT",
                "/priority",
                "set_ordering",
                "Choose and weigh the policy.",
                self.set,
                TAG,
                shapes.Changed,
                NoParams,
                body=ValuesBody,
                right=operate,
            ),
        ]

    async def show(self, ask: Ask[PlacesParams, None]) -> object:
        found = await self._priorities.show(limit=ask.params.limit)
        return {"batches": found.records, "unordered": found.unordered}

    async def show_one(self, ask: Ask[BatchParams, None]) -> object:
        [record] = (await self._priorities.show(BatchId(ask.params.batch_id))).records
        return record

    async def weights(self, ask: Ask[NoParams, None]) -> object:
        settings = await self._priorities.settings()
        return {"policy": settings.ordering.policy, "terms": weights_in_force(settings)}

    async def preview(self, ask: Ask[NoParams, PreviewBody]) -> object:
        changes = ordering_changes(ask.body.values.items())
        return preview_as_json(await self._priorities.preview(changes, limit=ask.body.limit))

    async def set(self, ask: Ask[NoParams, ValuesBody]) -> object:
        body = ask.body
        changes = ordering_changes(body.values.items())
        return {"changed": await self._priorities.set(changes, who=who_of(ask.person, body.by), why=body.why)}
