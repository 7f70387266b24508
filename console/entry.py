"""The console's doorway, and one's own password."""

from __future__ import annotations

from aiohttp import web

from administration.access.who import NotSignedInError, person_of
from domain.errors import MusterError
from web.desk import Desk
from web.doorway import Doorway, SignInForm, new_password, status_of
from web.rendering import Page


class EntryPages:
    """The ways in and out."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._doorway = Doorway(desk, SignInForm("sign_in.html", "name", desk.door.sign_in, _told, dict))

    def routes(self) -> list[web.RouteDef]:
        return [
            *self._doorway.routes(),
            web.get("/password", self.password, name="password"),
            web.post("/password", self.change, name="password_change"),
        ]

    async def password(self, request: web.Request) -> web.Response:
        return self._password(request, None)

    async def change(self, request: web.Request) -> web.Response:
        wrong = await new_password(request, self._desk.door.change_password)
        return self._desk.go("", "password") if wrong is None else self._password(request, wrong)

    def _password(self, request: web.Request, wrong: MusterError | None) -> web.Response:
        person = person_of(request)
        if person is None:
            raise NotSignedInError
        values: dict[str, object] = {
            "must": person.must_change_password,
            "least": self._desk.catalogue.settings.access.min_password_length,
            "wrong": wrong,
        }
        page = Page("password.html", "Your password", "-", values=values, status=status_of(wrong))
        return self._desk.show(request, page)


def _told(wrong: MusterError | None) -> str | None:
    return None if wrong is None else f"{str(wrong).rstrip('.')}."
