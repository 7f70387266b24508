"""Operations that run batches again, and show what failed: clones, retries, errors, and results as a table."""

from __future__ import annotations

from contextlib import aclosing
from typing import Annotated

import msgspec
import structlog
from aiohttp import hdrs, web

from administration.access.who import NotAllowedError, Person, admit_owner
from administration.batches import Batches
from administration.result_table import table_of
from administration.results import Results, sees_results
from api.batches import ID, IDEMPOTENCY, BatchParams, file_headers
from api.reading import submission_key
from api.table import REPLAYED, Ask, File, operation, reply
from domain.access import Right, Role
from domain.batches import Batch, QoS
from domain.errors import MusterError
from domain.units import BatchId
from muster_client import shapes
from store.postgres import PostgresStore

log = structlog.get_logger()


class CloneParams(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    batch_id: Annotated[int, ID]
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
        batch_id = BatchId(ask.params.batch_id)
        await self._own(ask.request, batch_id)
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
        shown_by="batch",
    )
    async def retry_batch(self, ask: Ask[BatchParams, None]) -> shapes.Retried:
        batch = await self._own(ask.request, BatchId(ask.params.batch_id))
        return await self._batches.retry(batch.batch_id)

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
        """Stream the table. An error closes the connection, so that the client notices an incomplete table."""
        batch_id, request = BatchId(ask.params.batch_id), ask.request
        batch = await self._store.views.batch(batch_id)
        if not sees_results(ask.person, batch.submitter_id):
            raise NotAllowedError(f"batch {batch_id} belongs to another submitter: {ask.person.name} may not fetch it")
        headers = {**file_headers(f"batch-{batch_id}.csv"), hdrs.CONTENT_TYPE: "text/csv; charset=utf-8"}
        response = web.StreamResponse(headers=headers)
        try:
            await response.prepare(request)
            async with aclosing(table_of(self._results, batch)) as pieces:
                async for piece in pieces:
                    await response.write(piece)
            await response.write_eof()
        except ConnectionResetError:
            pass  # the client disconnected
        except (MusterError, OSError) as error:
            log.warning("table not completed", batch=batch_id, why=str(error))
            if request.transport is not None:
                request.transport.abort()
        return response

    async def _own(self, request: web.Request, batch_id: BatchId) -> Batch:
        """Return the batch. Raises NotAllowedError if it belongs to another submitter."""
        batch = await self._store.views.batch(batch_id)
        admit_owner(request, batch.submitter_id)
        return batch
