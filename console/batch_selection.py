"""Ends, changes or retries the batches selected in the list. Each batch gets its own audit entry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aiohttp import web

from administration.access.who import admit, admit_owner
from administration.batches import Batches
from administration.ordering.importance import set_importance
from domain.access import Role
from domain.batches import Batch
from domain.errors import InvalidInputError, MusterError
from domain.units import BatchId
from jobs.spec import HIGHEST_PRIORITY, LOWEST_PRIORITY
from web.handlers import LARGEST_ID, Pages, PageServices, fields_of, post, whole_number
from web.rendering import Crumb, RenderedPage

MOST = 200  # batches per form; a page of the list has 50
END, CHANGE, RETRY = "end", "change", "retry"
ACTS = {END: "abort_batch", CHANGE: "set_importance", RETRY: "retry_batch"}  # in the audit trail
SAID = {END: "ended", CHANGE: "importance", RETRY: "retried"}


class SelectedBatches(Pages[PageServices]):
    """Handles the form around the list of batches."""

    def __init__(self, services: PageServices, batches: Batches) -> None:
        super().__init__(services)
        self._batches = batches

    @post("/batches/selected", "batches_selected", edits=True)
    async def change(self, request: web.Request) -> RenderedPage | web.Response:
        """Change each selected batch on its own. The page lists the batches that could not be changed, with reasons."""
        admit(request, Role.SUBMITTER)
        fields = await fields_of(request)
        if (what := fields.get("what", "")) not in ACTS:
            raise InvalidInputError("what", "one of " + ", ".join(ACTS), what)
        batches = await self._selected(request, ended=what == RETRY)
        if what == END and not fields.get("sure"):
            return _page("End these batches?", batches, {})
        changes = _changes(fields) if what == CHANGE else {}
        failed: dict[BatchId, str] = {}
        for batch in batches:
            try:
                await self._one(request, what, batch.batch_id, changes)
            except MusterError as error:
                failed[batch.batch_id] = str(error)
        if failed:
            left = [batch for batch in batches if batch.batch_id in failed]
            return _page(f"{len(batches) - len(left)} of {len(batches)} batches changed", left, failed)
        return self._services.go("batches", SAID[what])

    async def _one(self, request: web.Request, what: str, batch_id: BatchId, changes: Mapping[str, int | str]) -> None:
        """Change, end or retry one batch, and record that."""
        told: Mapping[str, object] = changes
        if what == CHANGE:
            await set_importance(self._services.store, batch_id, **changes)  # type: ignore[arg-type]  # by _changes
        elif what == RETRY:
            told = {"jobs_retried": (await self._batches.retry(batch_id))["jobs_retried"]}
        else:
            await self._batches.abort(batch_id)
        await self._services.authenticator.note(request, ACTS[what], f"batch {batch_id}", **told)

    async def _selected(self, request: web.Request, *, ended: bool) -> Sequence[Batch]:
        """Return the selected batches, only active ones unless `ended`. Raises InvalidInputError, NotAllowedError."""
        given = [str(one) for one in (await request.post()).getall("batch", [])]
        if not 1 <= len(given) <= MOST:
            raise InvalidInputError("batch", f"1 to {MOST} selected batches", len(given))
        ids = sorted({BatchId(whole_number(one, "batch", 1, LARGEST_ID)) for one in given})
        found = await self._services.store.views.batches_with(ids)
        for batch in found:
            admit_owner(request, batch.submitter_id)
        return [batch for batch in found if ended or batch.ended_at is None]


def _changes(fields: Mapping[str, str]) -> dict[str, int | str]:
    """Return the filled fields. Raises InvalidInputError if there are none.

    >>> _changes({"user_priority": "-5", "level": "", "queue": "normal"})
    {'user_priority': -5, 'queue': 'normal'}
    """
    changes: dict[str, int | str] = {name: fields[name] for name in ("level", "queue") if fields.get(name)}
    if priority := fields.get("user_priority", "").strip():
        changes = {
            "user_priority": whole_number(priority, "user_priority", LOWEST_PRIORITY, HIGHEST_PRIORITY),
            **changes,
        }
    if not changes:
        raise InvalidInputError("batch", "a user priority, a level or a queue to change", "none of them")
    return changes


def _page(title: str, batches: Sequence[Batch], failed: Mapping[BatchId, str]) -> RenderedPage:
    values: dict[str, object] = {"batches": batches, "failed": failed}
    crumbs = (Crumb("batches", "Batches"),)
    return RenderedPage("batches_selected.html", title, "batches", crumbs, values, status=409 if failed else 200)
