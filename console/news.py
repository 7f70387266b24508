"""News for volunteers: operators write and delete them; clients show them as notices."""

from __future__ import annotations

from aiohttp import web

from administration.access.who import admit
from administration.names import checked_text
from domain.access import Role
from domain.errors import InvalidInputError
from web.handlers import LARGEST_INT, Fields, Pages, PageServices, fields_of, get, id_of, post
from web.rendering import RenderedPage
from web.sign_in import status_of

SHOWN = 100
MOST_TITLE, MOST_BODY = 200, 10_000  # characters


class NewsPages(Pages[PageServices]):
    """The list of news, with the form to add news."""

    @get("/news", "news")
    async def news(self, request: web.Request) -> RenderedPage:
        return await self._news(request, {}, None)

    @post("/news", "news_post")
    async def publish(self, request: web.Request) -> RenderedPage | web.Response:
        person, services, fields = admit(request, Role.OPERATOR), self._services, await fields_of(request)
        try:
            title = checked_text(fields.get("title", "").strip(), "title")
            body = fields.get("body", "").replace("\r\n", "\n").strip()
            if not 1 <= len(title) <= MOST_TITLE:
                raise InvalidInputError("title", f"1 to {MOST_TITLE} characters", f"{len(title)}")
            if not 1 <= len(body) <= MOST_BODY or "\x00" in body:
                raise InvalidInputError("body", f"1 to {MOST_BODY} characters", f"{len(body)}")
        except InvalidInputError as error:
            return await self._news(request, fields, error)
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

    async def _news(self, request: web.Request, fields: Fields, wrong: InvalidInputError | None) -> RenderedPage:
        values: dict[str, object] = {
            "news": await self._services.store.participation.news(limit=SHOWN),
            "fields": fields,
            "wrong": wrong,
            "may": admit(request, Role.VIEWER).may(Role.OPERATOR),
        }
        return RenderedPage("news.html", "News", "news", values=values, status=status_of(wrong))
