"""Shows operators the volunteers, found by name, e-mail, address or host name, and a volunteer with hosts."""

from __future__ import annotations

from urllib.parse import urlencode

from aiohttp import web

from administration.access.who import admit
from administration.names import checked_text
from console.restrictions import restrictions_of
from domain.access import Role
from domain.errors import NotFoundError
from domain.restrictions import Restricted
from domain.units import HostId, VolunteerId
from web.handlers import LARGEST_INT, Pages, PageServices, get, id_of, whole_number
from web.rendering import Crumb, RenderedPage

PER_PAGE = 50


class VolunteerPages(Pages[PageServices]):
    """Pages about volunteers, which show e-mail addresses and therefore require operators."""

    @get("/volunteers", "volunteers", asks=("q", "before"))
    async def show(self, request: web.Request) -> RenderedPage:
        admit(request, Role.OPERATOR)
        text = checked_text(request.query.get("q", "").strip(), "q")
        before = (
            VolunteerId(whole_number(request.query["before"], "before", 1, LARGEST_INT))
            if "before" in request.query
            else None
        )
        found = await self._services.store.restrictions.volunteers(text, before=before, limit=PER_PAGE + 1)
        kept = {"q": text} if text else {}
        last = found[PER_PAGE - 1].volunteer_id if len(found) > PER_PAGE else None
        values: dict[str, object] = {
            "found": found[:PER_PAGE],
            "text": text,
            "restrictions": await restrictions_of(self._services.store),
            "first": "?" + urlencode(kept) if before else None,
            "next": None if last is None else "?" + urlencode({**kept, "before": last}),
        }
        return RenderedPage("volunteers.html", "Volunteers", "volunteers", values=values)

    @get("/volunteers/{id}", "volunteer", asks=("before",))
    async def volunteer(self, request: web.Request) -> RenderedPage:
        person = admit(request, Role.OPERATOR)
        volunteer_id, store = VolunteerId(id_of(request, LARGEST_INT)), self._services.store
        before = (
            HostId(whole_number(request.query["before"], "before", 1, LARGEST_INT))
            if "before" in request.query
            else None
        )
        found = await store.restrictions.listed([volunteer_id])
        if not found:
            raise NotFoundError("volunteer", volunteer_id)
        hosts = await store.volunteer_views.hosts(volunteer_id, before=before, limit=PER_PAGE + 1)
        restrictions = await restrictions_of(store)
        record = await store.volunteers.volunteer_by_email(found[0].email)
        last = hosts[PER_PAGE - 1].host.host_id if len(hosts) > PER_PAGE else None
        values: dict[str, object] = {
            "one": found[0],
            "totals": await store.volunteer_views.totals(volunteer_id),
            "preferences": None if record is None else record.volunteer,
            "apps": self._services.catalogue.apps,
            "hosts": hosts[:PER_PAGE],
            "restrictions": restrictions,
            "restricted": restrictions.get((Restricted.VOLUNTEER, str(volunteer_id))),
            "may": person.may(Role.OPERATOR),
            "next": None if last is None else f"?before={last}",
            "first": "?" if before else None,
        }
        title = found[0].name or f"Volunteer {volunteer_id}"
        return RenderedPage("volunteer.html", title, "volunteers", (Crumb("volunteers", "Volunteers"),), values)
