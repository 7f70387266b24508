"""Shows the errors of a batch, and handles the forms that run it again: clone, and retry of failed jobs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from aiohttp import web

from administration.access.who import NotAllowedError, Person, admit_owner, is_operator, person_of, present
from administration.attention.item import Item
from administration.attention.items import failing_alike
from administration.attention.service import AttentionViews
from administration.batch_errors import example_in_words, fail_alike, version_in_words, with_error
from administration.batches import CLONED_NEEDS, Batches
from administration.forecasts.words import preview_parts
from administration.ordering.importance import choices_of
from console.batch_forms import (
    BATCHES,
    due_of,
    importance_shown,
    key_of,
    needs_of,
    ordered_by,
    retry_facts,
    shown_key,
)
from console.batch_page import quorums_of
from console.places import first_now
from console.restrictions import restrictions_of
from domain.access import Role
from domain.batches import Batch
from domain.errors import MusterError
from domain.ordered_work import Permission
from domain.ordering import ServiceLevel
from domain.restrictions import pause_of
from domain.units import BatchId, HostId
from jobs.spec import MAX_NAME_CHARS
from muster_client import shapes
from web.handlers import Fields, Pages, PageServices, fields_of, get, id_of, post
from web.moments import iso
from web.rendering import Crumb, RenderedPage

NUMBERED = re.compile(r"(.*) \((\d{1,6})\)", re.DOTALL)


def next_name(name: str) -> str:
    """Return the name that the form proposes for a clone.

    >>> next_name("scan"), next_name("scan (2)"), next_name("")
    ('scan (2)', 'scan (3)', '')
    """
    found = NUMBERED.fullmatch(name)
    base, number = (found[1], int(found[2]) + 1) if found else (name, 2)
    end = f" ({number})"
    return f"{base[: MAX_NAME_CHARS - len(end)]}{end}" if name else ""


class RepeatingPages(Pages[PageServices]):
    """Pages that show what failed in a batch and run it again."""

    def __init__(self, services: PageServices, batches: Batches, attention: AttentionViews) -> None:
        super().__init__(services)
        self._attention = attention
        self._batches = batches

    # ------------------------------------------------------------------ clone

    @get("/batches/{id}/clone", "batch_clone")
    async def ask_clone(self, request: web.Request) -> RenderedPage:
        """Show the form, filled in from the batch."""
        batch, _ = await self._own(request)
        values = await self._batches.values_of(batch.batch_id, {})
        form = {key: str(value) for key, value in values.items()} | {"name": next_name(batch.name)}
        if "deadline_s" in values:
            form["deadline"] = iso(self._services.clock.now() + float(str(values["deadline_s"])))[:16]
        return await self._form(request, batch, form, None, None)

    @post("/batches/{id}/clone", "batch_clone_post")
    async def clone(self, request: web.Request) -> RenderedPage | web.Response:
        batch, person = await self._own(request)
        fields = await fields_of(request)
        try:
            values = await self._values(batch, person, fields)
            if fields.get("what") == "preview":
                forecast = await self._batches.preview(values, copy_of=batch.batch_id, by_operator=is_operator(request))
                return await self._form(request, batch, fields, None, forecast)
            key = key_of(person, fields, f"clone {batch.batch_id}")
            done, is_new = await self._batches.submit_and_preview(
                values, key=key, copy_of=batch.batch_id, by_operator=is_operator(request)
            )
        except NotAllowedError:
            raise
        except MusterError as error:
            return await self._form(request, batch, fields, error, None)
        if is_new:
            told = {
                "clone_of": batch.batch_id,
                **_needs(fields),
                **await self._batches.submitted(BatchId(done["batch_id"])),
            }
            await self._services.authenticator.note(request, "clone_batch", f"batch {done['batch_id']}", **told)
        return self._services.go(f"batches/{done['batch_id']}", "submitted")

    async def _values(self, batch: Batch, person: Person, fields: Fields) -> dict[str, object]:
        """Return the clone's table. Raises InvalidInputError."""
        changes: dict[str, object] = {name: fields.get(name) for name in ("name", "qos")}
        changes |= _needs(fields) | ordered_by(fields)
        if person.may(Role.OPERATOR):
            changes["submitter"] = fields.get("submitter")
        changes |= due_of(fields, self._services.clock.now())
        return await self._batches.values_of(batch.batch_id, changes)

    async def _form(
        self,
        request: web.Request,
        batch: Batch,
        form: Fields,
        wrong: MusterError | None,
        forecast: Mapping[str, object] | None,
    ) -> RenderedPage:
        store, ordering = self._services.store, self._services.catalogue.settings.ordering
        first = len(await first_now(self._services))
        choices = await choices_of(store, batch, ordering, by_operator=is_operator(request), sent_first=first)
        if Permission.EXPEDITE in choices.missing:  # the batch may have it, a new one may not
            choices = replace(choices, levels=[one for one in choices.levels if one != ServiceLevel.EXPEDITE])
        values: dict[str, object] = {
            "batch": batch,
            "whose": (await store.views.whose([batch.batch_id]))[batch.batch_id],
            "form": form,
            "key": shown_key(form, wrong),
            "wrong": wrong,
            "forecast": forecast,
            "texts": preview_parts(forecast) if forecast else {},
            "classes": await store.views.classes_of_batch(batch.batch_id),
            **await importance_shown(self._services, present(request)),
            **await retry_facts(self._services, self._attention, [batch]),
            "choices": choices,
        }
        status = 422 if wrong is not None else 200
        return RenderedPage("batch_clone.html", "Clone a batch", "batches", _above(batch), values, status=status)

    # ------------------------------------------------------------------ errors and retries

    @get("/batches/{id}/errors", "batch_errors")
    async def errors(self, request: web.Request) -> RenderedPage:
        batch = await self._services.store.views.batch(BatchId(id_of(request)))
        person = person_of(request)
        shown = await self._batches.errors(batch.batch_id)
        values = {
            "batch": batch,
            "shown": shown,
            "item": await self._alike(batch, shown["groups"][0]) if fail_alike(batch.counts, shown) else None,
            "may": person is not None and person.may(Role.SUBMITTER) and person.owns(batch.submitter_id),
            "version_in_words": version_in_words,
            "example_in_words": example_in_words,
        }
        hosts = await self._services.host_names(HostId(one["example"]["host_id"]) for one in shown["groups"])
        return RenderedPage("batch_errors.html", "Errors", "batches", _above(batch), values, hosts=hosts)

    async def _alike(self, batch: Batch, group: shapes.ErrorGroup) -> Item:
        """Return what helps a batch whose jobs fail with one error, that of the group."""
        app, failing = self._services.catalogue.apps.get(batch.app_id), await self._attention.failing_apps()
        pause = pause_of(await restrictions_of(self._services.store), batch)
        of_app = failing.get(app.name) if app else None
        versions = with_error(of_app.versions if of_app else (), group)
        return failing_alike(batch, is_paused=pause is not None, failing=versions)

    @get("/batches/{id}/retry", "batch_ask_retry")
    async def ask_retry(self, request: web.Request) -> RenderedPage:
        batch, _ = await self._own(request)
        classes = await self._services.store.views.classes_of_batch(batch.batch_id)
        facts = await retry_facts(self._services, self._attention, [batch])
        values = {"batch": batch, "quorums": quorums_of(classes), **facts}
        return RenderedPage("batch_retry.html", "Retry failed jobs?", "batches", _above(batch), values)

    @post("/batches/{id}/retry", "batch_retry", edits=True)
    async def retry(self, request: web.Request) -> web.Response:
        batch, _ = await self._own(request)
        retried, address = (await self._batches.retry(batch.batch_id))["jobs_retried"], f"batches/{batch.batch_id}"
        if not retried:
            return self._services.go(address, "unchanged")
        subject = f"batch {batch.batch_id}"
        await self._services.authenticator.note(request, "retry_batch", subject, jobs_retried=retried)
        return self._services.go(f"{address}?retried={retried}", "retried")

    async def _own(self, request: web.Request) -> tuple[Batch, Person]:
        """Return the batch named in the URL, if the user may run it again."""
        batch = await self._services.store.views.batch(BatchId(id_of(request)))
        return batch, admit_owner(request, batch.submitter_id)


def _needs(fields: Fields) -> dict[str, object]:
    """Return the needs that the clone changes. Raises InvalidInputError."""
    return {key: value for key, value in needs_of(fields).items() if key in CLONED_NEEDS}


def _above(batch: Batch) -> tuple[Crumb, ...]:
    return BATCHES, Crumb(f"batches/{batch.batch_id}", batch.name or f"Batch {batch.batch_id}")
