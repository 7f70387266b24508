"""The order of batches, shares, grants and limits over the API."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from aiohttp import web

from domain.clock import Clock
from domain.units import BatchId
from operations.api.bodies import ThresholdsBody, batch_id_of, limit_of, read_body
from operations.api.replies import reply
from operations.ordering.importance import set_importance
from operations.ordering.knobs import ordering_changes, weights_in_force
from operations.ordering.priorities import Priorities
from operations.ordering.rules import Rules
from operations.ordering.sharing import Sharing
from operations.ordering.shown import grant_as_json, limit_as_json, preview_as_json
from priority.emulate import emulate
from store.postgres import PostgresStore


class SharesBody(msgspec.Struct, forbid_unknown_fields=True):
    kind: Literal["account", "submitter"]
    name: str
    shares: float
    account: str | None = None


class PermissionsBody(msgspec.Struct, forbid_unknown_fields=True):
    kind: Literal["account", "submitter"]
    name: str
    permissions: list[str]


class GrantBody(msgspec.Struct, forbid_unknown_fields=True):
    account: str
    granted_su: float
    period_s: float


class LimitBody(msgspec.Struct, forbid_unknown_fields=True):
    scope: str
    quantity: str
    name: str | None = None
    soft: float | None = None
    hard: float | None = None


class BatchBody(msgspec.Struct, forbid_unknown_fields=True):
    user_priority: int | None = None
    level: str | None = None
    queue: str | None = None


class EmulateBody(msgspec.Struct, forbid_unknown_fields=True):
    system: str
    document: object


class PreviewBody(msgspec.Struct, forbid_unknown_fields=True):
    values: dict[str, object]
    limit: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 50


class OrderingApi:
    """The handlers under /priority, /fairshare, /permissions, /grants and /limits."""

    def __init__(self, store: PostgresStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._priorities = Priorities(store, clock)
        self._sharing = Sharing(store, clock)
        self._rules = Rules(store, clock)

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/priority", self.show),
            web.get("/batches/{batch_id}/priority", self.show_one),
            web.patch("/batches/{batch_id}", self.set_batch),
            web.get("/priority/weights", self.weights),
            web.post("/priority/preview", self.preview),
            web.put("/priority", self.set),
            web.get("/fairshare", self.shares),
            web.put("/fairshare", self.set_shares),
            web.post("/fairshare/emulate", self.emulate),
            web.put("/permissions", self.permit),
            web.get("/grants", self.grants),
            web.put("/grants", self.put_grant),
            web.delete("/grants/{account}", self.drop_grant),
            web.get("/limits", self.limits),
            web.put("/limits", self.put_limit),
            web.delete("/limits/{scope}/{quantity}", self.drop_limit),
        ]

    # ------------------------------------------------------------------ priorities

    async def show(self, request: web.Request) -> web.Response:
        found = await self._priorities.show(limit=limit_of(request))
        return reply({"batches": found.records, "unordered": found.unordered})

    async def show_one(self, request: web.Request) -> web.Response:
        [record] = (await self._priorities.show(batch_id_of(request))).records
        return reply(record)

    async def set_batch(self, request: web.Request) -> web.Response:
        """PATCH /batches/{batch_id} with `user_priority`, `level`, `queue`: from the next ordering on."""
        batch_id: BatchId = batch_id_of(request)
        body = await read_body(request, BatchBody)
        await set_importance(
            self._store, batch_id, user_priority=body.user_priority, level=body.level, queue=body.queue
        )
        batch = await self._store.views.batch(batch_id)
        shown = {"user_priority": batch.user_priority, "level": batch.level.value, "queue": batch.queue}
        return reply({"batch_id": batch_id, **shown})

    async def weights(self, request: web.Request) -> web.Response:
        settings = await self._priorities.settings()
        return reply({"policy": settings.ordering.policy, "terms": weights_in_force(settings)})

    async def preview(self, request: web.Request) -> web.Response:
        """POST /priority/preview with `values`: where batches would stand. Nothing is changed."""
        body = await read_body(request, PreviewBody)
        changes = ordering_changes(body.values.items())
        return reply(preview_as_json(await self._priorities.preview(changes, limit=body.limit)))

    async def set(self, request: web.Request) -> web.Response:
        """PUT /priority with `values`, `why` and, unless the API is to be named, `by`."""
        body = await read_body(request, ThresholdsBody)
        changed = await self._priorities.set(ordering_changes(body.values.items()), who=body.by, why=body.why)
        return reply({"changed": changed})

    # ------------------------------------------------------------------ shares

    async def shares(self, request: web.Request) -> web.Response:
        return reply({"tree": [row.as_json() for row in await self._sharing.show()]})

    async def set_shares(self, request: web.Request) -> web.Response:
        body = await read_body(request, SharesBody)
        if body.kind == "account":
            await self._sharing.set_account(body.name, body.shares)
        else:
            await self._sharing.set_submitter(body.name, body.shares, body.account)
        return reply({body.kind: body.name, "account": body.account, "shares": body.shares})

    async def emulate(self, request: web.Request) -> web.Response:
        """POST /fairshare/emulate with `system` and `document`: the other system's table, as printed."""
        body = await read_body(request, EmulateBody)
        table = emulate(body.system, body.document)
        return reply({"columns": table.columns, "rows": table.rows})

    async def permit(self, request: web.Request) -> web.Response:
        body = await read_body(request, PermissionsBody)
        if body.kind == "account":
            await self._rules.permit(body.permissions, account=body.name)
        else:
            await self._rules.permit(body.permissions, submitter=body.name)
        return reply({body.kind: body.name, "permissions": sorted(set(body.permissions))})

    # ------------------------------------------------------------------ grants and limits

    async def grants(self, request: web.Request) -> web.Response:
        now = self._clock.now()
        found = await self._rules.grants()
        return reply({"grants": [grant_as_json(name, one, now) for name, one in found.items()]})

    async def put_grant(self, request: web.Request) -> web.Response:
        body = await read_body(request, GrantBody)
        await self._rules.grant(body.account, granted_su=body.granted_su, period_s=body.period_s)
        made = (await self._rules.grants())[body.account]
        return reply(grant_as_json(body.account, made, self._clock.now()))

    async def drop_grant(self, request: web.Request) -> web.Response:
        account = request.match_info["account"]
        await self._rules.take_grant(account)
        return reply({"account": account, "granted_su": None})

    async def limits(self, request: web.Request) -> web.Response:
        return reply({"limits": [limit_as_json(one) for one in await self._rules.limits()]})

    async def put_limit(self, request: web.Request) -> web.Response:
        body = await read_body(request, LimitBody)
        made = await self._rules.limit(body.scope, body.quantity, name=body.name, soft=body.soft, hard=body.hard)
        return reply(limit_as_json(made))

    async def drop_limit(self, request: web.Request) -> web.Response:
        """DELETE /limits/{scope}/{quantity}, with ?name= for one of its own."""
        scope, quantity = request.match_info["scope"], request.match_info["quantity"]
        name = request.query.get("name")
        await self._rules.lift(scope, quantity, name=name)
        return reply({"scope": scope, "quantity": quantity, "name": name, "dropped": True})
