"""Pages about volunteers: who they are, with their hosts, and the news that operators write for them."""

from __future__ import annotations

from urllib.parse import urlencode

from aiohttp import web

from administration.access.who import admit
from administration.names import checked_text
from console.restrictions import restrictions_of
from domain.access import Role
from domain.errors import InvalidInputError, NotFoundError
from domain.restrictions import Restricted
from domain.units import HostId, VolunteerId
from web.handlers import LARGEST_INT, Pages, PageServices, fields_of, get, id_of, post, whole_number
from web.rendering import Crumb, RenderedPage

PER_PAGE = 50
SHOWN = 100
MOST_TITLE, MOST_BODY = 200, 10_000  # characters


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


class NewsPages(Pages[PageServices]):
    """The list of news, with the form to add news. Clients show news as notices."""

    @get("/news", "news")
    async def news(self, request: web.Request) -> RenderedPage:
        values: dict[str, object] = {
            "news": await self._services.store.participation.news(limit=SHOWN),
            "may": admit(request, Role.VIEWER).may(Role.OPERATOR),
        }
        return RenderedPage("news.html", "News", "news", values=values)

    @post("/news", "news_post", form="news")
    async def publish(self, request: web.Request) -> web.Response:
        person, services, fields = admit(request, Role.OPERATOR), self._services, await fields_of(request)
        title = checked_text(fields.get("title", "").strip(), "title")
        body = fields.get("body", "").replace("\r\n", "\n").strip()
        if not 1 <= len(title) <= MOST_TITLE:
            raise InvalidInputError("title", f"1 to {MOST_TITLE} characters", f"{len(title)}")
        if not 1 <= len(body) <= MOST_BODY or "\x00" in body:
            raise InvalidInputError("body", f"1 to {MOST_BODY} characters", f"{len(body)}")
        number = await services.store.participation.add_news(title, body, by=person.name, now=services.clock.now())
        await services.authenticator.note(request, "publish_news", f"news {number}", title=title)
        return services.go("news", "published")

    @post("/news/{id}/delete", "news_delete")
    async def delete(self, request: web.Request) -> web.Response:
        admit(request, Role.OPERATOR)
        number = id_of(request, LARGEST_INT)
        title = await self._services.store.participation.drop_news(number)
        await self._services.authenticator.note(request, "delete_news", f"news {number}", title=title)
        return self._services.go("news", "withdrawn")
