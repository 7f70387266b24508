"""Handles the forms for batches: submit, abort, change importance and deadline, of one batch or of selected ones."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import msgspec
from aiohttp import web

from administration.access.who import NotAllowedError, Person, admit, admit_owner, is_operator
from administration.apps import hosts_of, lost_versions
from administration.attention.service import AttentionViews
from administration.batches import DEFAULT_SUBMITTER, Batches
from administration.forecasts.words import preview_parts
from administration.names import checked_text
from administration.ordering.importance import ImportanceBody, choices_for, queue_choices
from administration.ordering.places import sent_first
from administration.ordering.priorities import Priorities
from administration.stopped import stopped_of
from console.batch_list import BatchListPage, kept_of
from console.batch_page import BatchPages, may_change
from console.places import first_now, moves, standings
from domain.access import Role
from domain.batches import Batch, BatchState, QoS
from domain.bounds import BOUNDS, FURTHEST_S
from domain.catalogue import Catalogue
from domain.errors import ConflictError, InvalidInputError, MusterError
from domain.submission import SubmissionKey
from domain.units import DAY_S, HOUR_S, AppId, BatchId, Instant
from jobs.requirements import DEFAULT_NEEDS
from jobs.spec import HIGHEST_PRIORITY, LOWEST_PRIORITY
from web.handlers import LARGEST_ID, Fields, Pages, PageServices, fields_of, get, id_of, number_of, post, whole_number
from web.moments import plural, stamp
from web.rendering import Crumb, RenderedPage

MOST_JOBS = 1_000_000
GIGA, MEGA = 1e9, 1e6
BATCHES = Crumb("batches", "Batches")
MOST = 200  # batches per form; a page of the list has 50
END, CHANGE, RETRY = "end", "change", "retry"
ACTS = {END: "abort_batch", CHANGE: "set_importance", RETRY: "retry_batch"}  # in the audit trail
SAID = {END: "ended", RETRY: "retried"}  # of forms that lead back to the list, so that a reload repeats nothing


class BatchForms(Pages[PageServices]):
    """Handles batch forms. Each POST checks the session's CSRF value and the user's role, and is recorded for audit."""

    def __init__(self, services: PageServices, batches: Batches, pages: BatchPages, attention: AttentionViews) -> None:
        super().__init__(services)
        self._attention = attention
        self._batches = batches
        self._pages = pages

    # ------------------------------------------------------------------ submit

    @get("/batches/new", "batch_new")
    async def new(self, request: web.Request) -> RenderedPage:
        admit(request, Role.SUBMITTER)
        return await self._form(request, {}, None, None)

    @post("/batches/new", "batch_submit")
    async def submit(self, request: web.Request) -> RenderedPage | web.Response:
        """Submit the batch, or preview its completion. Errors are shown next to the fields, with the values entered."""
        person = admit(request, Role.SUBMITTER)
        fields = await fields_of(request)
        try:
            values = {
                **batch_of(fields, self._services.clock.now()),
                "submitter": await submitter_of(self._services, person, fields),
            }
            if fields.get("what") == "preview":
                forecast = await self._batches.preview(values, by_operator=is_operator(request))
                return await self._form(request, fields, None, forecast)
            done, is_new = await self._batches.submit_and_preview(
                values, key=key_of(person, fields, "new"), by_operator=is_operator(request)
            )
        except NotAllowedError:
            raise
        except MusterError as error:
            return await self._form(request, fields, error, None)
        if is_new:
            subject = f"batch {done['batch_id']}"
            told = await self._batches.submitted(BatchId(done["batch_id"]))
            await self._services.authenticator.note(request, "submit_batch", subject, **told)
        return self._services.go(f"batches/{done['batch_id']}", "submitted")

    async def _form(
        self, request: web.Request, fields: Fields, wrong: MusterError | None, forecast: Mapping[str, object] | None
    ) -> RenderedPage:
        person = admit(request, Role.SUBMITTER)
        values: dict[str, object] = {
            "fields": fields,
            "key": shown_key(fields, wrong),
            "wrong": wrong,
            "suggested": suggested_needs(),
            "forecast": forecast,
            "texts": preview_parts(forecast) if forecast else {},
            **await apps_shown(self._services, self._attention),
            **await importance_shown(self._services, person),
        }
        status = 422 if wrong is not None else 200
        return RenderedPage("batch_new.html", "Submit a batch", "batches", (BATCHES,), values, status=status)

    # ------------------------------------------------------------------ change

    @get("/batches/{id}/abort", "batch_ask_abort")
    async def ask_abort(self, request: web.Request) -> RenderedPage:
        """Ask for confirmation, showing what would be lost."""
        batch, _ = await self._own(request)
        crumbs = (BATCHES, Crumb(f"batches/{batch.batch_id}", batch.name or f"Batch {batch.batch_id}"))
        return RenderedPage("batch_abort.html", "End this batch?", "batches", crumbs, {"batch": batch})

    @post("/batches/{id}/abort", "batch_abort", edits=True)
    async def abort(self, request: web.Request) -> web.Response:
        batch, _ = await self._own(request)
        await self._batches.abort(batch.batch_id)
        await self._services.authenticator.note(request, "abort_batch", f"batch {batch.batch_id}")
        return self._services.go(f"batches/{batch.batch_id}", "aborted")

    @post("/batches/{id}/importance", "batch_importance", form="page", edits=True)
    async def importance(self, request: web.Request) -> web.Response:
        batch, _ = await self._own(request)
        fields = await fields_of(request)
        given = fields.get("user_priority", "0").strip()
        priority = whole_number(given, "user_priority", LOWEST_PRIORITY, HIGHEST_PRIORITY)
        changes = ImportanceBody(priority, fields.get("level"), fields.get("queue"), why=fields.get("why")).differing(
            batch
        )
        address = f"batches/{batch.batch_id}"
        if not changes.given():
            return self._services.go(address, "unchanged")
        await self._batches.change(batch.batch_id, changes, by_operator=is_operator(request))
        subject = f"batch {batch.batch_id}"
        await self._services.authenticator.note(request, "set_importance", subject, **changes.noted(batch))
        return self._services.go(address, "importance")

    @post("/batches/{id}/deadline", "batch_deadline", form="page", edits=True)
    async def deadline(self, request: web.Request) -> web.Response:
        batch, _ = await self._own(request)
        fields = await fields_of(request)
        now = self._services.clock.now()
        at, first = deadline_of(fields, now), await first_now(self._services)
        changes = ImportanceBody(deadline_at=at, why=fields.get("why"))
        await self._batches.change(batch.batch_id, changes, by_operator=is_operator(request))
        subject = f"batch {batch.batch_id}"
        await self._services.authenticator.note(request, "set_deadline", subject, **changes.noted(batch))
        return self._services.go(f"batches/{batch.batch_id}", "not_first" if batch.batch_id in first else "deadline")

    async def page(self, request: web.Request) -> RenderedPage:
        """Return the page with the forms that change a batch."""
        return await self._pages.show(request)

    async def _own(self, request: web.Request) -> tuple[Batch, Person]:
        """Return the active batch named in the URL, if the user may change it."""
        batch = await self._services.store.views.batch(BatchId(id_of(request)))
        person = admit_owner(request, batch.submitter_id)
        if batch.state is not BatchState.ACTIVE:
            raise MusterError(f"batch {batch.batch_id} is {batch.state} and can no longer be changed")
        return batch, person


async def apps_shown(services: PageServices, attention: AttentionViews) -> dict[str, object]:
    """Return the names of the apps that accept batches, and the others, whose batches are refused, with the reason and
    what operators can do.

    The first app is the default of a form. `warned`, by app: a version of it fails, or no active host has a platform of
    its versions; these come last.
    """
    catalogue = services.catalogue
    lost = await lost_versions(services.store.access, catalogue, catalogue.apps)
    left_out = {one.app: f"{one.words} (operators can {one.remedy})" for one in lost.values()}
    platforms, failing = await attention.platforms(), await attention.failing_apps()
    current = {one.name: catalogue.current.get(app_id, ()) for app_id, one in catalogue.apps.items()}
    useless = {one for one, versions in current.items() if platforms and not hosts_of(versions, platforms)}
    warned = {**dict.fromkeys(failing, "a version fails"), **dict.fromkeys(useless, "no host has its platform")}
    names = sorted(current.keys() - left_out.keys(), key=lambda one: (one in useless, one in failing, one))
    return {"apps": names, "warned": warned, "left_out": left_out}


def promises_of(catalogue: Catalogue) -> dict[str, tuple[str, str]]:
    """Return, by quality of service, its name and when to choose it. Forms preset the first, which delays no batch.

    >>> [about for _, about in promises_of(Catalogue()).values()][2]
    'You need the whole batch, and every hour counts. It is sent before other batches.'
    """
    first, deadline = "", ""
    if catalogue.sent_first_from(AppId(0), QoS.AFAP, None, unpaid=False) < 0.0:
        first = " It is sent before other batches."
        deadline = " It is sent before other batches once that is near." * (
            catalogue.settings.deadline.first_factor > 0
        )
    return {
        QoS.THROUGHPUT: ("throughput", "Each job is useful by itself, and the end of the batch does not matter."),
        QoS.LONG_DEADLINE: ("long deadline", "You need the whole batch, but not urgently."),
        QoS.AFAP: ("AFAP: as fast as possible", f"You need the whole batch, and every hour counts.{first}"),
        QoS.SHORT_DEADLINE: ("short deadline", f"You need the batch by the time below.{deadline}"),
    }


async def importance_shown(services: PageServices, person: Person) -> dict[str, object]:
    """Return what a form for a new batch offers the user: services, levels and priorities, queues, and operators
    submitters. `submitter` is that of the user, or the default one for operators without their own; "" without one.
    """
    ordering = services.catalogue.settings.ordering
    submitters = await services.store.people.submitters() if person.may(Role.OPERATOR) else []
    first = await first_now(services)
    return {
        "promises": promises_of(services.catalogue),
        "choices": await choices_for(services.store, person, ordering, sent_first=len(first)),
        "queues": queue_choices(ordering),
        "submitters": sorted(one.name for one in submitters),
        "submitter": await submitter_of(services, person, {}) if submitters or person.submitter_id is not None else "",
    }


async def retry_facts(services: PageServices, attention: AttentionViews, batches: Sequence[Batch]) -> dict[str, object]:
    """Return by app why retried or cloned jobs would not be sent (`lost`), and which of its versions fail (`fails`)."""
    catalogue, failing = services.catalogue, await attention.failing_apps()
    return {
        "lost": await lost_versions(services.store.access, catalogue, {one.app_id for one in batches}),
        "fails": {app_id: failing[one.name] for app_id, one in catalogue.apps.items() if one.name in failing},
    }


def shown_key(fields: Fields, wrong: MusterError | None) -> str:
    """Return the key for a form: the one it had, or a new one for a new form or after a conflict with another batch."""
    kept = "" if isinstance(wrong, ConflictError) else fields.get("key", "")
    return kept or secrets.token_urlsafe(16)


def key_of(person: Person, fields: Fields, form: str) -> SubmissionKey | None:
    """Return the submission key of a form: a second click or a reload leads to the same batch.

    Raises InvalidInputError.
    """
    if not fields.get("key"):
        return None
    content = {name: value for name, value in fields.items() if name not in ("csrf", "key", "what")}
    said = hashlib.sha256(msgspec.json.encode([form, content], order="sorted")).digest()
    return SubmissionKey(person.name, checked_text(fields["key"], "key"), said)


async def submitter_of(services: PageServices, person: Person, given: Mapping[str, object]) -> str:
    """Return the user's own submitter. Operators may choose another one. Raises NotAllowedError."""
    chosen = given.get("submitter")
    if person.may(Role.OPERATOR) and chosen:
        return str(chosen)
    if person.submitter_id is None:
        if person.may(Role.OPERATOR):
            return DEFAULT_SUBMITTER
        raise NotAllowedError(f"{person.name} has no submitter: ask an operator to assign one")
    own = await services.store.views.submitter_name(person.submitter_id)
    if chosen and chosen != own:
        raise NotAllowedError(f"{person.name} submits as {own}")
    return own


def deadline_of(fields: Fields, now: Instant) -> Instant:
    """Parse the field of a deadline, in UTC. Raises InvalidInputError unless it is in the future.

    >>> deadline_of({"deadline": "2027-01-15T08:00"}, Instant(0.0))
    1800000000.0
    """
    text = fields.get("deadline", "")
    try:
        at = Instant(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())
    except (ValueError, OverflowError):
        raise InvalidInputError("deadline", "a date and time, such as 2027-01-15T08:00", text) from None
    if not now < at <= now + FURTHEST_S:
        most = f"at most {FURTHEST_S / DAY_S / 365:.0f} years away; now it is {stamp(now)}"
        raise InvalidInputError("deadline", f"a time in the future, {most}", text.replace("T", " "))
    return at


NEEDS = {  # of a job: its field in forms, and the unit there
    "fpops_est": ("gflop", GIGA),
    "memory_bytes": ("memory_mb", MEGA),
    "disk_bytes": ("disk_mb", MEGA),
    "delay_bound_s": ("delay_bound_h", HOUR_S),
}


def suggested_needs() -> dict[str, str]:
    """Return what the form suggests: the needs of jobs in a batch file that does not state them.

    >>> suggested_needs()
    {'memory_mb': '500', 'disk_mb': '1000', 'delay_bound_h': '168'}
    """
    return {NEEDS[key][0]: f"{value / NEEDS[key][1]:g}" for key, value in DEFAULT_NEEDS.items()}


def needs_of(fields: Fields) -> dict[str, object]:
    """Return those needs of jobs that the form has. Raises InvalidInputError, in the units of the form.

    >>> needs_of({"memory_mb": "64000", "delay_bound_h": ""})
    {'memory_bytes': 64000000000.0}
    """
    needs: dict[str, object] = {}
    for key, (name, unit) in NEEDS.items():
        value = number_of(fields, name, low=BOUNDS[key].low / unit, high=BOUNDS[key].high / unit)
        if value is not None:
            needs[key] = BOUNDS[key].nearest(value * unit)  # a bound may be rounded
    return needs


def batch_of(fields: Fields, now: Instant, *, counted: bool = True) -> dict[str, object]:
    """Return the form's content as the table of a batch file; without `counted`, a table has the jobs.

    Raises InvalidInputError.

    >>> form = {"app": "pi", "qos": "afap", "count": "3", "gflop": "2", "command_line": "--part {i}"}
    >>> batch_of(form, Instant(0.0))["jobs"]
    {'command_line': '--part {i}', 'count': 3, 'fpops_est': 2000000000.0}
    """
    jobs: dict[str, object] = {"command_line": fields.get("command_line", "")}
    if counted:
        jobs["count"] = whole_number(fields.get("count", ""), "count", 1, MOST_JOBS)
    jobs |= needs_of(fields)
    if fields.get("quorum", "").strip():
        jobs["quorum"] = whole_number(fields["quorum"], "quorum", 1, 20)
    if fields.get("output", "").strip():
        most = number_of(fields, "output_mb", low=0.0) or 1.0
        jobs["outputs"] = [{"name": fields["output"].strip(), "max_bytes": int(most * MEGA)}]
    values: dict[str, object] = {
        "app": fields.get("app", ""),
        "name": fields.get("name", "").strip(),
        "qos": fields.get("qos", ""),
        **ordered_by(fields),
        "jobs": jobs,
    }
    return values | due_of(fields, now)


def due_of(fields: Fields, now: Instant) -> dict[str, object]:
    """Return a new batch's deadline. Forms show its field only for a short deadline, so other services have none.

    Raises InvalidInputError.

    >>> due = {"deadline": "1970-01-01T01:00"}
    >>> due_of({"qos": "afap", **due}, Instant(0.0)), due_of({"qos": "short_deadline", **due}, Instant(0.0))
    ({}, {'deadline_s': 3600.0})
    """
    return {"deadline_s": deadline_of(fields, now) - now} if fields.get("qos") == QoS.SHORT_DEADLINE else {}


def ordered_by(fields: Fields) -> dict[str, object]:
    """Return the given fields about a batch's place in the order. Raises InvalidInputError.

    >>> ordered_by({"level": "standby", "user_priority": "-5", "app": "pi"})
    {'level': 'standby', 'user_priority': -5}
    """
    values: dict[str, object] = {name: fields[name] for name in ("level", "queue") if fields.get(name)}
    if priority := fields.get("user_priority", "").strip():
        values["user_priority"] = whole_number(priority, "user_priority", LOWEST_PRIORITY, HIGHEST_PRIORITY)
    return values


class SelectedBatches(Pages[PageServices]):
    """Handles the form around the list of batches, whose filters it keeps. Each batch gets its own audit entry."""

    def __init__(
        self, services: PageServices, batches: Batches, pages: BatchListPage, attention: AttentionViews
    ) -> None:
        super().__init__(services)
        self._attention = attention
        self._batches = batches
        self._pages = pages
        self._priorities = Priorities(services.store, services.clock)

    async def page(self, request: web.Request) -> RenderedPage | web.StreamResponse:
        """Return the list."""
        return await self._pages.show(request)

    @post("/batches/selected", "batches_selected", form="page", edits=True)
    async def change(self, request: web.Request) -> RenderedPage | web.Response:
        """Change each selected batch on its own. The page lists the batches that could not be changed, with reasons."""
        admit(request, Role.SUBMITTER)
        fields = await fields_of(request)
        if (what := fields.get("what", "")) not in ACTS:
            raise InvalidInputError("what", "one of " + ", ".join(ACTS), what)
        batches = await self._selected(request, ended=what == RETRY)
        if what != CHANGE and not fields.get("sure"):
            return await self._ask(request, what, batches)
        changes = _changes(fields) if what == CHANGE else ImportanceBody()
        open_ = [one for one in batches if one.state is BatchState.ACTIVE and may_change(request, one)]
        same = [one for one in open_ if what == CHANGE and not changes.differing(one).given()]
        done: dict[BatchId, int] = {}
        failed: dict[BatchId, str] = {}
        for batch in [one for one in batches if one not in same]:
            try:
                done[batch.batch_id] = await self._one(request, what, batch, changes)
            except MusterError as error:
                failed[batch.batch_id] = str(error)
        if what in SAID and not failed:
            return self._services.go(f"batches{kept_of(request.query)}".removesuffix("?"), SAID[what])
        words = dict.fromkeys(done, "ended")
        title = f"{len(done)} of {len(batches)} batches changed"
        if what == CHANGE:
            wanted = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in changes.given().items())
            title += f": {wanted}"
            words = await self._moves([batch for batch in batches if batch.batch_id in done])
            if changes.level is not None:
                was = {one.batch_id: one.level for one in batches if one.level.value != changes.level}
                words = {one: f"level was {was[one]}; {said}" if one in was else said for one, said in words.items()}
            words |= {one.batch_id: f"{wanted} already" for one in same}
        elif what == RETRY:
            words = {one: f"{plural(count, 'failed job')} opened again" for one, count in done.items()}
            title = (
                f"Opened again: {plural(sum(done.values()), 'failed job')} of {plural(len(done), 'batch', 'batches')}"
            )
        values: dict[str, object] = {"what": what, "failed": failed, "done": words}
        return _page(request, title, batches, values, status=409 if failed else 200)

    async def _ask(self, request: web.Request, what: str, batches: Sequence[Batch]) -> RenderedPage:
        """Ask for confirmation, showing what would be lost, or which failed jobs would be retried."""
        if what == END:
            return _page(request, "End these batches?", batches, {"what": what})
        batches = [batch for batch in batches if batch.state is not BatchState.ABORTED]
        facts = await retry_facts(self._services, self._attention, batches)
        return _page(request, "Retry failed jobs?", batches, {"what": what, **facts})

    async def _moves(self, batches: Sequence[Batch]) -> dict[BatchId, str]:
        """Return the positions of changed batches, now and after the next ordering, in words."""
        batches = await self._services.store.views.batches_with([one.batch_id for one in batches])  # as changed
        sent = {one.batch_id: "all sent" for one in batches if not one.counts.unsent}
        by_id = {one.batch_id: one for one in batches if one.batch_id not in sent}
        store, catalogue, now = self._services.store, self._services.catalogue, self._services.clock.now()
        stopped = await stopped_of(store, self._services.clock)
        urgent = await sent_first(store, catalogue, now, stopped.unrunnable)
        found = await standings(store, batches, urgent, catalogue.sent_apps(), stopped)
        every_s, first = catalogue.settings.ordering.interval_s, len(urgent)
        stops = {one.batch_id: stopped.stop_of(one)[0] for one in batches}
        then = await self._priorities.foreseen(moving) if (moving := [one for one in by_id if not stops[one]]) else {}
        return sent | {
            one: moves(
                found[one].at,
                then.get(one),
                every_s,
                pending=found[one].is_pending(batch),
                first=first,
                stop=stops[one],
            )
            for one, batch in by_id.items()
        }

    async def _one(self, request: web.Request, what: str, batch: Batch, changes: ImportanceBody) -> int:
        """Change, end or retry one batch, and record that. Return the number of jobs opened again."""
        batch_id, retried = batch.batch_id, 0
        told: dict[str, object] = {}
        if what == CHANGE:
            await self._batches.change(batch_id, changes, by_operator=is_operator(request))
            told = changes.noted(batch)
        elif what == RETRY:
            retried = (await self._batches.retry(batch_id))["jobs_retried"]
            told = {"jobs_retried": retried}
            if not retried:
                return 0
        else:
            await self._batches.abort(batch_id)
        await self._services.authenticator.note(request, ACTS[what], f"batch {batch_id}", **told)
        return retried

    async def _selected(self, request: web.Request, *, ended: bool) -> Sequence[Batch]:
        """Return the selected batches, only active ones unless `ended`. Raises InvalidInputError, NotAllowedError."""
        given = [str(one) for one in (await request.post()).getall("batch", [])]
        if not 1 <= len(given) <= MOST:
            most = f"at most {MOST} batches" if given else "at least one batch"
            expected = f"{most} with the boxes at the left of the list"
            raise InvalidInputError("batch", expected, len(given) or "", choose=not given)
        ids = sorted({BatchId(whole_number(one, "batch", 1, LARGEST_ID)) for one in given})
        found = await self._services.store.views.batches_with(ids)
        for batch in found:
            admit_owner(request, batch.submitter_id)
        return [batch for batch in found if ended or batch.ended_at is None]


def _changes(fields: Fields) -> ImportanceBody:
    """Return the filled fields. Raises InvalidInputError if there are none.

    >>> _changes({"user_priority": "-5", "level": "", "queue": "normal"}).given()
    {'user_priority': -5, 'queue': 'normal'}
    """
    changes = msgspec.convert({**ordered_by(fields), "why": fields.get("why")}, ImportanceBody)
    if not changes.given():
        raise InvalidInputError("change", "a level or another value for the selected batches", "", choose=True)
    return changes


def _page(
    request: web.Request, title: str, batches: Sequence[Batch], values: Mapping[str, object], *, status: int = 200
) -> RenderedPage:
    shown = {"failed": {}, "done": {}, **values, "batches": batches, "kept": kept_of(request.query).removesuffix("?")}
    return RenderedPage("batches_selected.html", title, "batches", (BATCHES,), shown, status=status)
