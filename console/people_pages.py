"""Users of the console and the API, and their tokens: add, change, disable, new one-time password, end sessions."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from urllib.parse import urlencode

from aiohttp import web

from administration.access.people import DAYS_MOST, PROJECT_NAME, Invited
from administration.access.sign_in import address_of
from administration.access.who import admit
from administration.names import checked_name, chosen
from domain.access import PersonRecord, Right, Role
from domain.errors import AlreadyExistsError, InvalidInputError, NotFoundError
from domain.units import PersonId, TokenId
from web.forms import REFUSED, FormError, form_error
from web.handlers import LARGEST_INT, Fields, Pages, PageServices, fields_of, get, id_of, post, whole_number
from web.rendering import Crumb, RenderedPage

PER_PAGE = 100
SESSIONS = 20
TOKENS = 100
PEOPLE = Crumb("people", "People")
ROLES = (
    (Role.VIEWER.value, "viewer: sees everything"),
    (Role.SUBMITTER.value, "submitter: also submits, and changes their own batches"),
    (Role.OPERATOR.value, "operator: changes everything"),
)
STATES = (("true", "active"), ("false", "disabled"))
MEANINGS = {Right.READ: "read everything", Right.SUBMIT: "submit batches", Right.OPERATE: "change everything"}


class PeoplePages(Pages[PageServices]):
    """Pages about users. Only operators may open them, as over the API."""

    def __init__(self, services: PageServices) -> None:
        super().__init__(services)
        self._access = services.authenticator.store
        self._people = services.authenticator.people

    @get("/people", "people", asks=("after",))
    async def show(self, request: web.Request) -> RenderedPage:
        return await self._list(request, None)

    @post("/people", "people_add")
    async def add(self, request: web.Request) -> RenderedPage:
        admit(request, Role.OPERATOR)
        fields = await fields_of(request)
        try:
            name, role = checked_name(fields.get("name", "").strip()), chosen(Role, fields.get("role", ""), "role")
            with suppress(NotFoundError):
                await self._access.person(name)
                raise AlreadyExistsError("person", name)  # before a submitter is added
            submitter = await self._submitter(request, fields)
            invited = await self._people.add(name, role=role, submitter=submitter)
        except REFUSED as error:
            return await self._list(request, form_error("add", fields, error))
        await self._note(request, "add_person", name, role=role.value, submitter=submitter)
        return self._invitation(invited)

    async def _list(self, request: web.Request, wrong: FormError | None) -> RenderedPage:
        admit(request, Role.OPERATOR)
        text = request.query.get("after", "")
        after = PersonId(whole_number(text, "after", 1, LARGEST_INT)) if text else None
        found = await self._access.people(limit=PER_PAGE + 1, after=after)
        values: dict[str, object] = {
            "people": found[:PER_PAGE],
            "submitters": await self._submitters(found),
            **await self._choices(),
            "roles": ROLES,
            "wrong": wrong,
            "first": after is not None,
            "next": found[PER_PAGE - 1].person_id if len(found) > PER_PAGE else None,
        }
        return RenderedPage(
            "people.html", "People", "people", values=values, status=200 if wrong is None else wrong.status
        )

    # ------------------------------------------------------------------ one user

    @get("/people/person", "person", asks=("name",))
    async def one(self, request: web.Request) -> RenderedPage:
        return await self._person(request, request.query.get("name", ""), None)

    @post("/people/person", "person_set", edits=True)
    async def change(self, request: web.Request) -> RenderedPage | web.Response:
        person, fields = admit(request, Role.OPERATOR), await fields_of(request)
        name = fields.get("name", "")
        try:
            role, active = chosen(Role, fields.get("role", ""), "role"), fields.get("active") == "true"
            submitter = await self._submitter(request, fields)
            await self._people.set(name, role=role, submitter=submitter, active=active, by=person.name)
        except REFUSED as error:
            return await self._person(request, name, form_error("set", fields, error))
        await self._note(request, "set_person", name, role=role.value, submitter=submitter, active=active)
        return self._services.go_to("people/person", "saved", name=name)

    @post("/people/password", "person_password")
    async def password(self, request: web.Request) -> RenderedPage:
        """Ask for confirmation, then show a new one-time password."""
        admit(request, Role.OPERATOR)
        fields = await fields_of(request)
        name = fields.get("name", "")
        if not fields.get("sure"):
            record = await self._access.person(name)
            sessions = await self._access.sessions(record.person_id, now=self._services.clock.now(), limit=SESSIONS)
            crumbs = (PEOPLE, Crumb(f"people/person?{urlencode({'name': name})}", name))
            values: dict[str, object] = {"record": record, "sessions": len(sessions)}
            return RenderedPage("password_new.html", "New one-time password?", "people", crumbs, values)
        invited = await self._people.invite_again(name)
        await self._note(request, "invite_again", name)
        return self._invitation(invited)

    @post("/people/sessions", "person_sessions")
    async def end_sessions(self, request: web.Request) -> web.Response:
        admit(request, Role.OPERATOR)
        name = (await fields_of(request)).get("name", "")
        ended = await self._people.end_sessions(name)
        await self._note(request, "end_sessions", name, ended=ended)
        return self._services.go_to("people/person", "sessions", name=name)

    async def _person(self, request: web.Request, name: str, wrong: FormError | None) -> RenderedPage:
        caller = admit(request, Role.OPERATOR)
        record = await self._access.person(name)
        now = self._services.clock.now()
        submitters = await self._submitters([record])
        values: dict[str, object] = {
            "record": record,
            "submitter": submitters.get(record.submitter_id, ""),
            **await self._choices(),
            "sessions": await self._access.sessions(record.person_id, now=now, limit=SESSIONS),
            "tokens": [
                one for one in await self._access.tokens(person_id=record.person_id, limit=TOKENS) if one.serves(now)
            ],
            "is_self": caller.name == name,
            "roles": ROLES,
            "states": STATES,
            "wrong": wrong,
        }
        status = 200 if wrong is None else wrong.status
        return RenderedPage("person.html", record.name, "people", (PEOPLE,), values, status=status)

    def _invitation(self, invited: Invited) -> RenderedPage:
        """Show the one-time password, which is not stored and cannot be shown again."""
        return RenderedPage("invitation.html", "One-time password", "people", (PEOPLE,), {"invited": invited})

    async def _submitters(self, people: Sequence[PersonRecord]) -> dict[object, str]:
        """Return the names of the people's submitters by id."""
        if all(one.submitter_id is None for one in people):
            return {}
        return {one.submitter_id: one.name for one in await self._services.store.people.submitters()}

    async def _choices(self) -> dict[str, object]:
        """Return what the forms offer: the submitters, and the accounts to which a new one can be added."""
        people = self._services.store.people
        accounts = sorted(one.name for one in await people.accounts())
        return {
            "known_submitters": sorted(one.name for one in await people.submitters()),
            "accounts": [("", "(an existing submitter)"), *((one, f"new, in account {one}") for one in accounts)],
        }

    async def _submitter(self, request: web.Request, fields: Fields) -> str | None:
        """Return the submitter in a form, None for an empty field; add a new one to the chosen account.

        Raises InvalidInputError, NotFoundError.
        """
        name, account = (fields.get(one, "").strip() for one in ("submitter", "account"))
        people = self._services.store.people
        if not name or name in {one.name for one in await people.submitters()}:
            return name or None
        if not account:
            raise InvalidInputError("submitter", "an existing submitter, or the account to add a new one to", name)
        now = self._services.clock.now()
        await people.add_submitter(checked_name(name, "submitter"), account=account, shares=1.0, now=now)
        await self._services.authenticator.note(
            request, "add_submitter", f"submitter {name}, account {account}", shares=1.0
        )
        return name

    async def _note(self, request: web.Request, what: str, name: str, **detail: object) -> None:
        told = {key: value for key, value in detail.items() if value is not None}
        await self._services.authenticator.note(request, what, f"person {name}", **told)


class TokenPages(Pages[PageServices]):
    """The list of tokens, with forms to create and revoke them."""

    @get("/tokens", "tokens", asks=("after",))
    async def show(self, request: web.Request) -> RenderedPage:
        return await self._list(request, None)

    @post("/tokens", "tokens_add")
    async def add(self, request: web.Request) -> RenderedPage:
        """Create a token. Its value is on the page that this returns, and nowhere else."""
        caller, services, fields = admit(request, Role.VIEWER), self._services, await fields_of(request)
        given = [str(one) for one in (await request.post()).getall("rights", [])]
        try:
            name, days = checked_name(fields.get("name", "").strip()), fields.get("days", "").strip()
            owner, made = await services.authenticator.tokens.add_by(
                caller,
                name,
                owner=fields.get("person", "").strip() or caller.name,
                rights=[chosen(Right, one, "scopes") for one in given],
                days=whole_number(days, "days", 1, DAYS_MOST) if days else None,
            )
        except REFUSED as error:
            return await self._list(request, form_error("add", {**fields, "scopes": ""}, error), given)
        await services.authenticator.note(
            request, "add_token", f"token {made.token.token_id}, person {owner}", name=name
        )
        crumbs = (Crumb("tokens", "Tokens"),)
        return RenderedPage("token_made.html", "New token", "tokens", crumbs, {"made": made, "owner": owner})

    @post("/tokens/{id}/revoke", "tokens_revoke")
    async def revoke(self, request: web.Request) -> web.Response:
        caller = admit(request, Role.VIEWER)
        token_id, address = TokenId(id_of(request, LARGEST_INT)), address_of(request)
        await self._services.authenticator.tokens.revoke(token_id, by=caller, address=address)
        return self._services.go("tokens", "revoked")

    async def _list(
        self, request: web.Request, wrong: FormError | None, ticked: list[str] | None = None
    ) -> RenderedPage:
        caller, store = admit(request, Role.VIEWER), self._services.authenticator.store
        after, may = request.query.get("after", ""), caller.may(Role.OPERATOR)
        found = await store.tokens(
            person_id=None if may else caller.person_id,
            limit=PER_PAGE + 1,
            after=TokenId(whole_number(after, "after", 1, LARGEST_INT)) if after else None,
        )
        values: dict[str, object] = {
            "tokens": found[:PER_PAGE],
            "owners": await store.person_names(one.person_id for one in found),
            "may": may,
            "rights": [(one.value, MEANINGS[one]) for one in Right if one in caller.rights],
            "ticked": [Right.READ.value] if ticked is None else ticked,
            "most_days": DAYS_MOST,
            "token_user": PROJECT_NAME,
            "wrong": wrong,
            "first": bool(after),
            "next": found[PER_PAGE - 1].token_id if len(found) > PER_PAGE else None,
        }
        status = 200 if wrong is None else wrong.status
        return RenderedPage("tokens.html", "Tokens", "tokens", values=values, status=status)
