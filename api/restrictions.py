"""Bans and limits of volunteers and hosts, and pauses of apps, queues and batches over the API."""

from __future__ import annotations

from typing import Annotated

import msgspec

from administration.restrictions import MOST_JOBS, admit_restrictor, lift, listed, restrict, restriction
from api.paging import Page, page_of_all
from api.table import SUBJECT, Ask, operation
from api.versions import edited_part
from domain.access import Right
from domain.clock import Clock
from domain.restrictions import Restricted
from muster_client import shapes
from store.postgres import PostgresStore


class RestrictionParams(msgspec.Struct, forbid_unknown_fields=True):
    """`name`: the id of a host or batch, the id or e-mail address of a volunteer, or the name of an app or queue."""

    kind: Restricted
    name: str


class RestrictionBody(msgspec.Struct, forbid_unknown_fields=True):
    """`max_jobs`: maximum jobs in progress per host; 0 is a ban. Work can only be paused: 0.

    `abort`: the ban also ends the jobs in progress.
    """

    why: str
    max_jobs: Annotated[int, msgspec.Meta(ge=0, le=MOST_JOBS)] = 0
    abort: bool = False


class RestrictionsApi:
    TAG = "restrictions"

    def __init__(self, store: PostgresStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    @operation("GET", "/restrictions", "Bans and limits of volunteers and hosts, and paused work, by kind and name.")
    async def restrictions(self, ask: Ask[Page, None]) -> shapes.RestrictionPage:
        found = await listed(self._store)
        return page_of_all(
            shapes.RestrictionPage, found, ask.params, lambda one: f"{one['kind']} {one['name']}", lambda one: one
        )

    @operation(
        "GET",
        "/restrictions/{kind}/{name}",
        "The ban or limit of a volunteer or host, or the pause of an app, a queue or a batch.",
        errors=(404,),
        edited=edited_part("max_jobs", "why", "abort"),
    )
    async def restriction(self, ask: Ask[RestrictionParams, None]) -> shapes.RestrictionShown:
        return await restriction(self._store, ask.params.kind, ask.params.name)

    @operation(
        "PUT",
        "/restrictions/{kind}/{name}",
        "Ban or limit a volunteer or a host, or pause an app, a queue or a batch. Running services apply it within "
        "seconds. Results are still accepted, and jobs in progress continue. `abort`: a ban ends them at once. "
        "Submitters may pause their own batches; all else requires the scope operate.",
        right=Right.SUBMIT,
        errors=(404, 409),
        shown_by="restriction",
    )
    async def restrict(self, ask: Ask[RestrictionParams, RestrictionBody]) -> shapes.RestrictionShown:
        asked, body = ask.params, ask.body
        person = await admit_restrictor(ask.request, self._store, asked.kind, asked.name)
        made = await restrict(
            self._store,
            asked.kind,
            asked.name,
            max_jobs=body.max_jobs,
            why=body.why,
            by=person.name,
            now=self._clock.now(),
            abort=body.abort,
        )
        ask.request[SUBJECT] = f"{asked.kind} {made['name']}"  # an e-mail address would hide it from the filter
        return made

    @operation(
        "DELETE",
        "/restrictions/{kind}/{name}",
        "Lift a ban or limit, or resume work. Running services apply it within seconds. Submitters may resume their "
        "own batches, unless an operator paused them.",
        right=Right.SUBMIT,
        errors=(404,),
        shown_by="restriction",
    )
    async def lift_restriction(self, ask: Ask[RestrictionParams, None]) -> shapes.RestrictionLifted:
        await admit_restrictor(ask.request, self._store, ask.params.kind, ask.params.name)
        lifted = await lift(self._store, ask.params.kind, ask.params.name, now=self._clock.now())
        ask.request[SUBJECT] = f"{ask.params.kind} {lifted}"
        return {"kind": ask.params.kind.value, "name": ask.params.name, "lifted": True}
