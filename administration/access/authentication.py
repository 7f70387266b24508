"""Authenticates requests to the API, the console and the volunteer pages; signs users and volunteers in and out."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from urllib.parse import urlsplit

import structlog
from aiohttp import BodyPartReader, MultipartReader, web
from aiohttp.typedefs import Handler, Middleware

from administration.access.people import PROJECT_NAME, PeopleAdmin, TokenAdmin
from administration.access.sign_in import NewSession, SignIn, address_of, from_elsewhere, hash_of
from administration.access.who import (
    COOKIE_VALUE,
    FORGED,
    PERSON,
    VOLUNTEER,
    ForgedError,
    NotSignedInError,
    csrf_of_cookie,
    person_of,
    person_with,
    volunteer_of,
)
from domain.access import Act, SignedIn
from domain.clock import Clock
from domain.settings import Settings
from store.people import PostgresAccess, PostgresPeople, PostgresVolunteers

PERSON_COOKIE = "muster_session"
VOLUNTEER_COOKIE = "muster_volunteer"
RENEWED_EVERY_S = 60.0
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"
MOST_CSRF_BYTES = 200
PARTS = web.RequestKey("parts", MultipartReader)  # the rest of a multipart form
MOST_COOKIE_CHARS = 200

log = structlog.get_logger()


class Authenticator:
    """Authenticates requests. `middleware` must run before `person_of` is called, `volunteers` before `volunteer_of`.

    One instance per worker. The project's own token gives all rights, under the name `user`. An invalid token raises
    NotSignedInError. A form sent by another site's page counts as not signed in: `admit` raises ForgedError, but
    signing in works.
    """

    def __init__(
        self,
        store: PostgresAccess,
        volunteers: PostgresVolunteers,
        submitters: PostgresPeople,
        settings: Callable[[], Settings],
        clock: Clock,
        *,
        project_token: str,
        signing: SignIn | None = None,
        user: str = PROJECT_NAME,
    ) -> None:
        self.store = store
        self._settings = settings
        self._clock = clock
        self.signing = signing or SignIn(store, volunteers, lambda: settings().access, clock)
        self.people = PeopleAdmin(store, submitters, lambda: settings().access, clock)
        self.tokens = TokenAdmin(store, clock, project_token=project_token, user=user)

    # ------------------------------------------------------------------ identification

    @property
    def middleware(self) -> Middleware:
        """Identify the user by token or session. A changing request in a session must send the form's `csrf` value."""

        @web.middleware
        async def identify(request: web.Request, handler: Handler) -> web.StreamResponse:
            if "Authorization" in request.headers:
                request[PERSON] = await self.tokens.person_of(_bearer(request))
            elif value := _cookie(request, PERSON_COOKIE):
                found = await self.store.session_of_person(hash_of(value), now=self._clock.now())
                if found is not None and found.person is not None:
                    await self._renew(found)
                    if await self._is_own_form(request, value):
                        request[COOKIE_VALUE] = value
                        request[PERSON] = person_with(found.person, session=found.session)
            return await handler(request)

        return identify

    @property
    def volunteers(self) -> Middleware:
        """Identify the volunteer by session, with the same `csrf` check."""

        @web.middleware
        async def identify(request: web.Request, handler: Handler) -> web.StreamResponse:
            if value := _cookie(request, VOLUNTEER_COOKIE):
                found = await self.store.session_of_volunteer(hash_of(value), now=self._clock.now())
                if found is not None and found.volunteer is not None:
                    await self._renew(found)
                    if await self._is_own_form(request, value):
                        request[COOKIE_VALUE] = value
                        request[VOLUNTEER] = found.volunteer
            return await handler(request)

        return identify

    async def _renew(self, found: SignedIn) -> None:
        now, session = self._clock.now(), found.session
        if now - session.seen_at >= RENEWED_EVERY_S:
            await self.store.renew_session(session.renewed(now, self._settings().access))

    async def _is_own_form(self, request: web.Request, value: str) -> bool:
        """Return whether a changing request comes from one of our pages. If not, handlers see no user."""
        if request.method in SAFE:
            return True
        given = request.headers.get("X-CSRF-Token")
        if given is None and request.content_type == FORM:
            field = (await request.post()).get("csrf")
            given = field if isinstance(field, str) else None
        elif given is None and request.content_type == MULTIPART:
            given = await _first_part(request)
        known = given is not None and hmac.compare_digest(
            given.encode("utf-8", "replace"), csrf_of_cookie(value).encode()
        )
        if known and not from_elsewhere(request, self._settings().project.url):
            return True
        request[FORGED] = True
        return False

    # ------------------------------------------------------------------ signing in and out

    async def sign_in(self, request: web.Request, name: str, password: str, response: web.StreamResponse) -> NewSession:
        """Sign a user in and set the cookie. Raises WrongPasswordError, TooManyAttemptsError, ForgedError."""
        self._refuse_elsewhere(request)
        new = await self.signing.person(name, password, address=address_of(request), agent=_agent(request))
        self._set_cookie(request, response, PERSON_COOKIE, new.value)
        return new

    async def sign_in_volunteer(
        self, request: web.Request, email: str, password: str, response: web.StreamResponse
    ) -> NewSession:
        """Sign a volunteer in by e-mail address and account password."""
        self._refuse_elsewhere(request)
        new = await self.signing.volunteer(email, password, address=address_of(request), agent=_agent(request))
        self._set_cookie(request, response, VOLUNTEER_COOKIE, new.value)
        return new

    async def sign_out(self, request: web.Request, response: web.StreamResponse) -> None:
        """End this browser's session."""
        person, volunteer = person_of(request), volunteer_of(request)
        if person is not None and person.session is not None:
            await self.store.end_session(person.session.session_hash)
            response.del_cookie(PERSON_COOKIE, path=self._path())
        if volunteer is not None:
            await self.store.end_session(hash_of(request[COOKIE_VALUE]))
            response.del_cookie(VOLUNTEER_COOKIE, path=self._path())

    async def change_password(self, request: web.Request, old: str, new: str) -> None:
        """Change the signed-in user's password and end all other sessions of the user.

        Raises WrongPasswordError, TooManyAttemptsError, InvalidInputError.
        """
        person = person_of(request)
        if person is None or person.session is None:
            raise NotSignedInError
        address = address_of(request)
        record = await self.signing.check_password(person.name, old, address=address)
        await self.signing.change_password(record, new, but=person.session.session_hash, address=address)

    async def change_volunteer_password(self, request: web.Request, old: str, new: str) -> None:
        """Change the signed-in volunteer's password (`old` may be the account key) and end all other sessions."""
        volunteer = volunteer_of(request)
        if volunteer is None:
            raise NotSignedInError
        record = await self.signing.check_volunteer(volunteer.email, old, address=address_of(request))
        least = self._settings().project.min_password_length
        await self.signing.change_volunteer_password(record, new, least=least, but=hash_of(request[COOKIE_VALUE]))

    async def note(self, request: web.Request, what: str, target: str = "", **detail: object) -> None:
        """Record an action in the audit trail, with the user and the client's address."""
        person = person_of(request)
        who = "anonymous" if person is None else person.name
        await self.store.note_act(Act(self._clock.now(), who, what, target, detail, address_of(request)))

    def _refuse_elsewhere(self, request: web.Request) -> None:
        if from_elsewhere(request, self._settings().project.url):
            raise ForgedError

    def _set_cookie(self, request: web.Request, response: web.StreamResponse, name: str, value: str) -> None:
        settings = self._settings()
        is_https = request.secure or settings.project.url.startswith("https:")
        if not is_https and request.headers.get("X-Forwarded-Proto", "").lower() == "https":
            is_https = True
            log.warning("a proxy uses TLS but project.url is http: set it to the https URL", url=settings.project.url)
        response.set_cookie(
            name,
            value,
            path=self._path(),
            max_age=int(settings.access.session_most_s),
            httponly=True,
            samesite="Lax",
            secure=is_https,
        )

    def _path(self) -> str:
        return urlsplit(self._settings().project.url).path or "/"


async def _first_part(request: web.Request) -> str | None:
    """Return the value of `csrf`, which must be the first field; the handler continues to read in PARTS."""
    try:
        reader = request[PARTS] = await request.multipart()
        part = await reader.next()
        if isinstance(part, BodyPartReader) and part.name == "csrf":
            return (await part.read_chunk(MOST_CSRF_BYTES)).decode("ascii", "replace")
    except (ValueError, LookupError):  # malformed
        pass
    return None


def _bearer(request: web.Request) -> str:
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not given:
        raise NotSignedInError
    return given


def _cookie(request: web.Request, name: str) -> str | None:
    value = request.cookies.get(name)
    return value if value and len(value) <= MOST_COOKIE_CHARS else None


def _agent(request: web.Request) -> str:
    return request.headers.get("User-Agent", "")
