"""Shows bans, limits and pauses, and the forms that set and lift them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from urllib.parse import quote

from aiohttp import web

from administration.access.who import Person, admit
from administration.changes import write_changes
from administration.names import checked_text
from administration.restrictions import (
    MOST_JOBS,
    admit_restrictor,
    key_of,
    lift,
    listed,
    restrict,
    resumable,
)
from domain.access import Role
from domain.catalogue import Catalogue
from domain.errors import ConflictError, InvalidInputError, NotFoundError
from domain.hosts import host_in_words
from domain.restrictions import Restricted, Restriction, Restrictions, name_of
from domain.units import BatchId, HostId, VolunteerId
from priority.charging import queues
from store.postgres import PostgresStore
from web.forms import FormError, form_error
from web.handlers import Fields, Pages, PageServices, fields_of, get, post, reason_of, whole_number
from web.rendering import Crumb, RenderedPage

PROJECT = "project"
PAGES = {"host": "hosts", "volunteer": "volunteers", "app": "apps", "batch": "batches"}  # kind -> section of its page


@dataclass(frozen=True, slots=True)
class PauseShown:
    """A pause of an app, a queue or a batch on the overview. `batches`: those that it stops; None for a batch."""

    label: str
    address: str
    batches: int | None
    pause: Restriction


async def pauses_shown(store: PostgresStore, catalogue: Catalogue, *, most: int) -> tuple[list[PauseShown], int]:
    """Return the latest pauses of apps, queues and batches, at most `most`, and the number of further ones."""
    every = [one for one in await store.restrictions.restrictions() if one.kind.is_work]
    pauses = every[:most]
    batches = [BatchId(int(one.name)) for one in pauses if one.kind is Restricted.BATCH]
    names = await store.listings.names(batches) if batches else {}
    found: list[PauseShown] = []
    for one in pauses:
        if one.kind is Restricted.BATCH:
            label = names.get(BatchId(int(one.name))) or one.name
            found.append(PauseShown(f"batch {label}", f"batches/{one.name}", None, one))
            continue
        stopped = await store.restrictions.batches_stopped(one.kind, one.name)
        name = name_of(one, catalogue.apps)
        address = f"apps/{quote(name, safe='')}" if one.kind is Restricted.APP else "restrictions"
        found.append(PauseShown(f"{one.kind} {name}", address, stopped, one))
    return found, len(every) - len(pauses)


async def restrictions_of(store: PostgresStore) -> Restrictions:
    """Return the restrictions as stored, so that a page shows a change at once; workers load it within seconds."""
    return {(one.kind, one.name): one for one in await store.restrictions.restrictions()}


def refused(fields: Fields, error: InvalidInputError | NotFoundError | ConflictError) -> FormError:
    """Return the error in its form on the list; an error about the object is one of the field that names it.

    >>> found = refused({"kind": "host", "name": "99"}, NotFoundError("host", 99))
    >>> found.form, found.field
    ('ban', 'name')
    """
    kind = fields.get("kind", "")
    form, no_field = ("ban", "effect") if kind in (Restricted.HOST, Restricted.VOLUNTEER) else ("pause", "max_jobs")
    found = form_error(form, {key: value for key, value in fields.items() if key != no_field}, error)
    is_name = not isinstance(error, InvalidInputError) or error.field in (kind, "kind")
    return replace(found, field="name" if found.form == "ban" else "target") if is_name else found


class RestrictionPages(Pages[PageServices]):
    """The list of restrictions, with forms; pages of hosts, volunteers, apps and batches have the same forms."""

    @get("/restrictions", "restrictions")
    async def show(self, request: web.Request) -> RenderedPage:
        return await self._page(request, None)

    @post("/restrictions", "restrict", edits=True)
    async def restrict(self, request: web.Request) -> RenderedPage | web.Response:
        person, fields = admit(request, Role.SUBMITTER), await fields_of(request)
        if "target" in fields:  # of the list of work to pause: app:pi, or empty
            fields = {**fields, **dict(zip(("kind", "name"), fields["target"].split(":", 1), strict=False))}
        kind, name = fields.get("kind", ""), fields.get("name", "").strip()
        try:
            if not (kind or fields.get("target", "-")):
                raise InvalidInputError("target", "the project, an app or a queue", "", choose=True)
            await self._admit(request, kind, name)
            why = reason_of(fields)
            if kind == PROJECT and not fields.get("sure"):
                return await self._pause_asked({**fields, "why": why})
            if kind == PROJECT:
                await self._set_down(person.name, why, down=True)
                await self._note(request, "pause_project", why=why)
                return self._services.go_back(fields, "restrictions", "paused")
            chosen = _kind_of(kind)
            most = _limit_of(fields, chosen)
            if not (most or chosen.is_work or fields.get("sure")):
                return await self._ban_asked(chosen, name, {**fields, "why": why})
            now = self._services.clock.now()
            made = await restrict(
                self._services.store,
                chosen,
                name,
                max_jobs=most,
                why=why,
                by=person.name,
                now=now,
                abort="abort" in fields,
            )
        except (InvalidInputError, NotFoundError, ConflictError) as error:
            if not person.may(Role.OPERATOR):  # the page shows its forms only to operators
                raise
            return await self._page(request, refused(fields, error))
        await self._note(request, "restrict", f"{kind} {made['name']}", max_jobs=most, why=why, abort=made["abort"])
        return self._services.go_back(fields, "restrictions", "paused" if chosen.is_work else "restricted")

    @post("/restrictions/lift", "lift_restriction", edits=True)
    async def lift(self, request: web.Request) -> web.Response:
        person, fields = admit(request, Role.SUBMITTER), await fields_of(request)
        kind, name = fields.get("kind", ""), fields.get("name", "")
        await self._admit(request, kind, name)
        told = {"why": why} if (why := checked_text(fields.get("why", "").strip(), "why")) else {}
        if kind == PROJECT:
            await self._set_down(person.name, why or "resumed", down=False)
            await self._note(request, "resume_project", **told)
        else:
            lifted = await lift(self._services.store, _kind_of(kind), name, now=self._services.clock.now())
            await self._note(request, "lift_restriction", f"{kind} {lifted}", **told)
        said = "project_resumed" if kind == PROJECT else "resumed" if _kind_of(kind).is_work else "lifted"
        return self._services.go_back(fields, "restrictions", said)

    async def _pause_asked(self, fields: Fields) -> RenderedPage:
        """Show what a pause of the project stops, with the form that sets it."""
        totals = await self._services.store.listings.totals()
        values: dict[str, object] = {
            "fields": {**{one: fields.get(one, "") for one in ("why", "back")}, "kind": PROJECT, "name": ""},
            "batches": sum(one.batches for one in totals),
            "unsent": sum(one.unsent for one in totals),
            "in_progress": sum(one.in_progress for one in totals),
        }
        crumbs = (Crumb("restrictions", "Pauses and bans"),)
        return RenderedPage("ban_asked.html", "Pause the project?", "restrictions", crumbs, values)

    async def _ban_asked(self, kind: Restricted, name: str, fields: Fields) -> RenderedPage:
        """Show what a ban ends, with the form that sets it. Raises InvalidInputError, NotFoundError."""
        store, key = self._services.store, await key_of(self._services.store, kind, name)
        if kind is Restricted.HOST:
            host_id = HostId(int(key))
            found = (await store.host_lists.listed([host_id]))[host_id]
            hosts, in_progress = 1, found.in_progress
            title = f"host {host_in_words(host_id, found.host.domain_name)}"
        else:
            totals = await store.volunteer_views.totals(VolunteerId(int(key)))
            hosts, in_progress = totals.hosts, totals.in_progress
            title = f"volunteer {name}"
        values: dict[str, object] = {
            "fields": {**{one: fields.get(one, "") for one in ("abort", "why", "back")}, "kind": kind, "name": key},
            "hosts": hosts,
            "in_progress": in_progress,
        }
        crumbs = (Crumb("restrictions", "Pauses and bans"),)
        return RenderedPage("ban_asked.html", f"Ban {title}?", "restrictions", crumbs, values)

    async def _admit(self, request: web.Request, kind: str, name: str) -> None:
        """Raises NotAllowedError, InvalidInputError, NotFoundError."""
        if kind == PROJECT:
            admit(request, Role.OPERATOR)
        else:
            await admit_restrictor(request, self._services.store, _kind_of(kind), name)

    async def _set_down(self, who: str, why: str, *, down: bool) -> None:
        store, changes = self._services.store.settings, {"project.down": down}
        await write_changes(store, changes, check=lambda _: None, clock=self._services.clock, who=who, why=why)

    async def _note(self, request: web.Request, what: str, target: str = "", **detail: object) -> None:
        await self._services.authenticator.note(request, what, target, **detail)

    async def _page(self, request: web.Request, wrong: FormError | None) -> RenderedPage:
        catalogue, found = self._services.catalogue, await listed(self._services.store)
        person, pause = admit(request, Role.VIEWER), await self._services.store.settings.project_pause()
        hosts = [HostId(int(one["name"])) for one in found if one["kind"] == Restricted.HOST]
        batches = [BatchId(int(one["name"])) for one in found if one["kind"] == Restricted.BATCH]
        values: dict[str, object] = {
            "found": found,
            "pause": pause,
            "names": await self._services.store.listings.names(batches) if batches else {},
            "pages": PAGES,
            "work": [kind.value for kind in Restricted if kind.is_work],
            "wrong_of": lambda form: wrong if wrong is not None and wrong.form == form else None,
            "apps": sorted(app.name for app in catalogue.apps.values()),
            "queues": sorted(queues(catalogue.settings.ordering.queues)),
            "may": person.may(Role.OPERATOR),
            "resumable": await self._resumable(person),
        }
        status = 200 if wrong is None else wrong.status
        return RenderedPage(
            "restrictions.html",
            "Pauses and bans",
            "restrictions",
            values=values,
            status=status,
            hosts=await self._services.host_names(hosts),
        )

    async def _resumable(self, person: Person) -> set[str]:
        """Return the ids of the paused batches that a user who is no operator may resume."""
        store = self._services.store
        pauses = {
            BatchId(int(name)): one
            for (kind, name), one in (await restrictions_of(store)).items()
            if kind == Restricted.BATCH
        }
        if person.may(Role.OPERATOR) or not pauses:
            return set()
        batches = await store.views.batches_with(sorted(pauses))
        return {str(one) for one in await resumable(store, person, batches, pauses)}


def _limit_of(fields: Fields, kind: Restricted) -> int:
    """Return the limit of a form, 0 for a ban or a pause. Raises InvalidInputError.

    >>> form = {"effect": "ban", "max_jobs": "3"}
    >>> [_limit_of({**form, "effect": one}, Restricted.HOST) for one in ("ban", "limit")], _limit_of({}, Restricted.APP)
    ([0, 3], 0)
    """
    given, effect = fields.get("max_jobs", "").strip(), fields.get("effect", "")
    if kind.is_work:
        return whole_number(given or "0", "max_jobs", 0, MOST_JOBS)
    if effect not in ("ban", "limit"):
        raise InvalidInputError("effect", "ban or limit", effect)
    return 0 if effect == "ban" else whole_number(given, "max_jobs", 1, MOST_JOBS)


def _kind_of(text: str) -> Restricted:
    """Parse the kind in a form. Raises InvalidInputError."""
    if text not in list(Restricted):
        raise InvalidInputError("kind", f"one of {', '.join(Restricted)}", text)
    return Restricted(text)
