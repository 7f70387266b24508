"""Signing in and out, one's password, and the switch of light and dark."""

from __future__ import annotations

from aiohttp import web

from domain.errors import InvalidInputError, MusterError
from operations.access.errors import NotSignedInError, TooManyAttemptsError, WrongPasswordError
from operations.access.who import person_of
from operations.console.desk import Desk, fields_of
from operations.console.rendering import THEME_COOKIE, THEMES, Page

YEAR_S = 365 * 86400


class EntryPages:
    """The ways in and out."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/sign-in", self.ask, name="sign_in"),
            web.post("/sign-in", self.sign_in, name="sign_in_post"),
            web.post("/sign-out", self.sign_out, name="sign_out"),
            web.get("/password", self.password, name="password"),
            web.post("/password", self.change, name="password_change"),
            web.post("/theme", self.theme, name="theme"),
        ]

    async def ask(self, request: web.Request) -> web.Response:
        if person_of(request) is not None:
            return self._desk.go("")
        return self._form(request, "", self._inside(request.query.get("next", "")), None)

    async def sign_in(self, request: web.Request) -> web.Response:
        fields = await fields_of(request)
        name, where = fields.get("name", "").strip(), self._inside(fields.get("next", ""))
        response = web.Response(status=303, headers={"Location": where})
        try:
            await self._desk.door.sign_in(request, name, fields.get("password", ""), response)
        except (WrongPasswordError, TooManyAttemptsError) as error:
            return self._form(request, name, where, error)
        return response

    async def sign_out(self, request: web.Request) -> web.Response:
        response = web.Response(status=303, headers={"Location": f"{self._desk.renderer.root}/sign-in"})
        await self._desk.door.sign_out(request, response)
        return response

    async def password(self, request: web.Request) -> web.Response:
        return self._password(request, None)

    async def change(self, request: web.Request) -> web.Response:
        fields = await fields_of(request)
        try:
            if fields.get("new") != fields.get("again"):
                raise InvalidInputError("password", "the new one twice alike", "two different ones")
            await self._desk.door.change_password(request, fields.get("old", ""), fields.get("new", ""))
        except (WrongPasswordError, TooManyAttemptsError, InvalidInputError) as error:
            return self._password(request, error)
        return self._desk.go("", "password")

    async def theme(self, request: web.Request) -> web.Response:
        """Kept by the browser for a year."""
        fields = await fields_of(request)
        theme = fields.get("theme", "")
        response = web.Response(status=303, headers={"Location": self._inside(fields.get("back", ""))})
        response.set_cookie(
            THEME_COOKIE,
            theme if theme in THEMES else THEMES[0],
            max_age=YEAR_S,
            path=self._desk.renderer.root or "/",
            samesite="Lax",
            httponly=True,
        )
        return response

    def _form(self, request: web.Request, name: str, where: str, wrong: MusterError | None) -> web.Response:
        values: dict[str, object] = {
            "name": name,
            "next": where,
            "wrong": None if wrong is None else f"{wrong}.".replace("..", "."),
            "about": "Sign in to look at the project, to submit, or to operate it.",
        }
        status = 200 if wrong is None else 429 if isinstance(wrong, TooManyAttemptsError) else 401
        return self._desk.show(request, Page("sign_in.html", "Sign in", "-", values=values, status=status))

    def _password(self, request: web.Request, wrong: MusterError | None) -> web.Response:
        person = person_of(request)
        if person is None:
            raise NotSignedInError
        values: dict[str, object] = {
            "must": person.must_change_password,
            "least": self._desk.catalogue.settings.access.min_password_length,
            "wrong": wrong,
        }
        status = 200 if wrong is None else 422
        return self._desk.show(request, Page("password.html", "Your password", "-", values=values, status=status))

    def _inside(self, where: str) -> str:
        """A page of the console; anything else, which a forged link may name, is its first page."""
        root = f"{self._desk.renderer.root}/"
        return where if where.startswith(root) and "\\" not in where and "//" not in where else root
