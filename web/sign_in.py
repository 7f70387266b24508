"""Common handlers for sign-in, sign-out, password change and theme."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from aiohttp import web

from administration.access.who import FORGED, ForgedError, NotSignedInError, TooManyAttemptsError, WrongPasswordError
from domain.errors import AlreadyExistsError, InvalidInputError, MusterError
from web.handlers import D, Pages, fields_of, get, post
from web.rendering import THEME_COOKIE, THEMES, RenderedPage

YEAR_S = 365 * 86400
REFUSED = (WrongPasswordError, TooManyAttemptsError, InvalidInputError)  # errors after which the form is shown again


@dataclass(frozen=True, slots=True)
class SignInForm:
    """A sign-in form: its template, its name field, and the function that checks the password.

    `told` formats an error; `values` returns additional template values.
    """

    template: str
    field: str
    sign_in: Callable[[web.Request, str, str, web.StreamResponse], Awaitable[object]]
    told: Callable[[MusterError | None], str | None]
    values: Callable[[], Mapping[str, object]]


class SignInPages(Pages[D]):
    """Sign-in and sign-out pages for a set of pages."""

    def __init__(self, services: D, form: SignInForm) -> None:
        super().__init__(services)
        self._renderer = services.renderer
        self._form = form

    @get("/sign-in", "sign_in", asks=("next",))
    async def ask(self, request: web.Request) -> RenderedPage | web.Response:
        style = self._renderer.style
        if style.who(request) is not None:
            return self._services.go(style.first[0])
        return self._asked("", self._renderer.inside(request.query.get("next", "")), None)

    @post("/sign-in", "sign_in_post")
    async def sign_in(self, request: web.Request) -> RenderedPage | web.Response:
        fields = await fields_of(request)
        who, where = fields.get(self._form.field, "").strip(), self._renderer.inside(fields.get("next", ""))
        response = web.Response(status=303, headers={"Location": where})
        try:
            await self._form.sign_in(request, who, fields.get("password", ""), response)
        except REFUSED as error:
            return self._asked(who, where, error)
        return response

    @post("/sign-out", "sign_out")
    async def sign_out(self, request: web.Request) -> web.Response:
        """Sign out. A form sent from another site is ignored."""
        if self._renderer.style.who(request) is None:
            raise ForgedError if request.get(FORGED) else NotSignedInError
        response = self._services.go("sign-in")
        await self._services.authenticator.sign_out(request, response)
        return response

    @post("/theme", "theme")
    async def theme(self, request: web.Request) -> web.Response:
        """Set the theme in a cookie that lasts a year."""
        fields = await fields_of(request)
        theme = fields.get("theme", "")
        where = self._renderer.inside(fields.get("back", ""))
        response = web.Response(status=303, headers={"Location": where})
        response.set_cookie(
            THEME_COOKIE,
            theme if theme in THEMES else THEMES[0],
            max_age=YEAR_S,
            path=self._renderer.home,
            samesite="Lax",
            httponly=True,
        )
        return response

    def _asked(self, who: str, where: str, wrong: MusterError | None) -> RenderedPage:
        values = {self._form.field: who, "next": where, "wrong": self._form.told(wrong), **self._form.values()}
        return RenderedPage(self._form.template, "Sign in", "-", values=values, status=status_of(wrong))


async def new_password(
    request: web.Request, change: Callable[[web.Request, str, str], Awaitable[None]]
) -> MusterError | None:
    """Change the password. Return the error, or None on success."""
    fields = await fields_of(request)
    try:
        if fields.get("new") != fields.get("again"):
            raise InvalidInputError("password", "the same new password twice", "two different passwords")
        await change(request, fields.get("old", ""), fields.get("new", ""))
    except REFUSED as error:
        return error
    return None


def status_of(wrong: MusterError | None) -> int:
    """Return the HTTP status for a form page that is shown again.

    >>> status_of(None), status_of(InvalidInputError("password", "the new one twice alike", "two different ones"))
    (200, 422)
    """
    match wrong:
        case None:
            return 200
        case TooManyAttemptsError():
            return 429
        case WrongPasswordError():
            return 401
        case AlreadyExistsError():
            return 409
        case _:
            return 422
