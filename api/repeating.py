"""Operations that run batches again, and show what failed: clones, retries, errors, and results as a table."""

from __future__ import annotations

from typing import Annotated

import msgspec
from aiohttp import web

from administration.access.who import NotAllowedError, Person
from administration.batches import Batches
from administration.results import Results, table_of
from api.batches import IDEMPOTENCY, BatchParams, check_results, own_batch, streamed
from api.reading import submission_key
from api.table import REPLAYED, Ask, File, operation, reply
from domain.access import Right, Role
from domain.batches import QoS
from domain.units import BatchId
from muster_client import shapes
from store.postgres import PostgresStore


class CloneParams(BatchParams, forbid_unknown_fields=True, kw_only=True):
    preview: Annotated[bool, msgspec.Meta(description="Only forecast the completion; do not submit.")] = False


class CloneBody(msgspec.Struct, forbid_unknown_fields=True):
    """What differs from the batch that is cloned. None: nothing."""

    name: str | None = None
    qos: QoS | None = None
    deadline_s: float | None = None
    submitter: str | None = None
    account: str | None = None
    queue: str | None = None
    level: str | None = None
    user_priority: int | None = None


class RepeatingApi:
    TAG = "batches"

    def __init__(self, store: PostgresStore, batches: Batches, results: Results) -> None:
        self._store = store
        self._batches = batches
        self._results = results

    @operation(
        "POST",
        "/batches/{batch_id}/clone",
        "Submit the jobs of a batch again, in a new batch. With ?preview=true, only forecast it (status 200).",
        right=Right.SUBMIT,
        status=201,
        errors=(404, 409),
        headers=(IDEMPOTENCY,),
        leads_to="batch",
    )
    async def clone_batch(self, ask: Ask[CloneParams, CloneBody]) -> shapes.Submitted | web.Response:
        batch_id = await own_batch(self._store, ask.request, ask.params)
        values = await self._batches.values_of(batch_id, msgspec.structs.asdict(ask.body))
        await self._check_submitter(ask.person, values)
        if ask.params.preview:
            return reply({"forecast": await self._batches.preview(values, copy_of=batch_id)})
        key = submission_key(ask.request, ask.person, {**values, "clone_of": batch_id})
        answer, is_new = await self._batches.submit_and_preview(values, key=key, copy_of=batch_id)
        ask.request[REPLAYED] = not is_new
        return answer

    async def _check_submitter(self, person: Person, values: dict[str, object]) -> None:
        """Raise NotAllowedError for another submitter, except for operators."""
        if person.may(Role.OPERATOR):
            return
        assert person.submitter_id is not None  # the caller owns the batch
        own = await self._store.views.submitter_name(person.submitter_id)
        if values["submitter"] != own:
            raise NotAllowedError(f"{person.name} submits as {own}")

    @operation(
        "POST",
        "/batches/{batch_id}/retry",
        "Open the failed jobs of a batch again, with new instances. A complete batch becomes active again.",
        right=Right.SUBMIT,
        errors=(404, 409),
    )
    async def retry_batch(self, ask: Ask[BatchParams, None]) -> shapes.Retried:
        return await self._batches.retry(await own_batch(self._store, ask.request, ask.params))

    @operation(
        "GET",
        "/batches/{batch_id}/errors",
        "The errors of a batch, grouped by exit status and the end of standard error.",
        errors=(404,),
    )
    async def batch_errors(self, ask: Ask[BatchParams, None]) -> shapes.BatchErrors:
        return await self._batches.errors(BatchId(ask.params.batch_id))

    @operation(
        "GET",
        "/batches/{batch_id}/results.csv",
        "The jobs of a batch with their parameters, host, run times and outputs, as a table.",
        reply=File("A CSV table with a heading, one row per job.", "text/csv"),
        errors=(404,),
    )
    async def results_table(self, ask: Ask[BatchParams, None]) -> web.StreamResponse:
        batch = await check_results(self._store, ask.person, BatchId(ask.params.batch_id))
        name, pieces = f"batch-{batch.batch_id}.csv", table_of(self._results, batch)
        return await streamed(ask.request, name, "text/csv; charset=utf-8", pieces)
