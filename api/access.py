"""Users, tokens, sessions and the audit trail over the API."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal

import msgspec

from administration.access.authentication import Authenticator
from administration.access.sign_in import address_of
from administration.access.trail import trail_page
from administration.names import checked_text
from administration.show import shown
from api.paging import Page, cursor_of, key_of, page_of
from api.table import Ask, NoParams, operation
from api.versions import edited_part
from domain.access import ActChoice, Right, Role, Token
from domain.units import Instant, TokenId
from muster_client import shapes

RoleName = Literal["viewer", "submitter", "operator"]
ScopeName = Literal["read", "submit", "operate"]


class PersonParams(msgspec.Struct, forbid_unknown_fields=True):
    name: str


class TokenParams(msgspec.Struct, forbid_unknown_fields=True):
    token_id: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]


class NewPersonBody(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    role: RoleName = "viewer"
    submitter: str | None = None


class PersonBody(msgspec.Struct, forbid_unknown_fields=True):
    role: RoleName | None = None
    submitter: str | None = None
    active: bool | None = None


class NewTokenBody(msgspec.Struct, forbid_unknown_fields=True):
    """`scopes` None: all scopes of the user. `days` None: valid until revoked. `person` None: the caller."""

    name: str
    scopes: list[ScopeName] | None = None
    days: Annotated[int, msgspec.Meta(ge=1, le=3660)] | None = None
    person: str | None = None


LAST = 1e12  # s


class AuditParams(Page, kw_only=True):
    """Empty texts match all entries. Times in seconds since 1970."""

    who: Annotated[str, msgspec.Meta(max_length=200, description="Only changes by this user.")] = ""
    what: Annotated[str, msgspec.Meta(max_length=200, description="Only this action, such as abort_batch.")] = ""
    subject: Annotated[str, msgspec.Meta(max_length=200, description="Only this subject, such as `batch 7`.")] = ""
    since: Annotated[float, msgspec.Meta(ge=0.0, le=LAST, description="Only from this time on.")] = 0.0
    until: Annotated[float, msgspec.Meta(ge=0.0, le=LAST, description="Only before this time.")] = LAST


def token_as_json(token: Token, person: str) -> shapes.TokenShown:
    """Return a token's description, which does not include the token itself."""
    return shown(shapes.TokenShown, token, person=person, scopes=sorted(token.rights))


class AccessApi:
    TAG = "access"

    def __init__(self, authenticator: Authenticator) -> None:
        self._authenticator = authenticator

    @operation("GET", "/me", "The caller and its scopes.")
    async def me(self, ask: Ask[NoParams, None]) -> shapes.WhoShown:
        person = ask.person
        signed_in_with = "token" if person.session is None else "session"
        return shown(shapes.WhoShown, person, scopes=sorted(person.rights), signed_in_with=signed_in_with)

    @operation("GET", "/people", "Operator, submitter and viewer accounts, by id.", right=Right.OPERATE)
    async def list_people(self, ask: Ask[Page, None]) -> shapes.PersonPage:
        after = key_of(ask.params.cursor, "people", int)
        rows = await self._authenticator.store.people(limit=ask.params.limit + 1, after=after)
        return page_of(
            shapes.PersonPage, rows, ask.params, lambda one: one.person_id, partial(shown, shapes.PersonShown)
        )

    @operation(
        "POST",
        "/people",
        "Add an operator, submitter or viewer account. The one-time password is shown only once.",
        right=Right.OPERATE,
        subject="person {name}",
        status=201,
        errors=(404, 409),
    )
    async def add_person(self, ask: Ask[NoParams, NewPersonBody]) -> shapes.InvitedShown:
        body = ask.body
        invited = await self._authenticator.people.add(body.name, role=Role(body.role), submitter=body.submitter)
        return shown(shapes.InvitedShown, invited)

    @operation(
        "GET",
        "/people/{name}",
        "An operator, submitter or viewer account.",
        right=Right.OPERATE,
        errors=(404,),
        edited=edited_part("role", "submitter_id", "active"),
    )
    async def person(self, ask: Ask[PersonParams, None]) -> shapes.PersonShown:
        return shown(shapes.PersonShown, await self._authenticator.store.person(ask.params.name))

    @operation(
        "PATCH",
        "/people/{name}",
        "Change a role, or disable the account.",
        right=Right.OPERATE,
        errors=(404,),
        shown_by="person",
    )
    async def set_person(self, ask: Ask[PersonParams, PersonBody]) -> shapes.PersonShown:
        body, name = ask.body, ask.params.name
        role = None if body.role is None else Role(body.role)
        changed = await self._authenticator.people.set(
            name, role=role, submitter=body.submitter, active=body.active, by=ask.person.name
        )
        return shown(shapes.PersonShown, changed)

    @operation(
        "POST",
        "/people/{name}/password",
        "Issue a new one-time password, for a person who has forgotten theirs.",
        right=Right.OPERATE,
        errors=(404,),
    )
    async def invite_again(self, ask: Ask[PersonParams, None]) -> shapes.InvitedShown:
        return shown(shapes.InvitedShown, await self._authenticator.people.invite_again(ask.params.name))

    @operation("DELETE", "/people/{name}/sessions", "End all sessions of a person.", right=Right.OPERATE, errors=(404,))
    async def end_sessions(self, ask: Ask[PersonParams, None]) -> shapes.SessionsEnded:
        return {"ended": await self._authenticator.people.end_sessions(ask.params.name)}

    @operation("GET", "/tokens", "The caller's tokens; for operators, all tokens.")
    async def list_tokens(self, ask: Ask[Page, None]) -> shapes.TokenPage:
        after = key_of(ask.params.cursor, "tokens", int)
        owner = None if ask.person.may(Role.OPERATOR) else ask.person.person_id
        rows = await self._authenticator.store.tokens(person_id=owner, limit=ask.params.limit + 1, after=after)
        names = await self._authenticator.store.person_names(one.person_id for one in rows)
        return page_of(
            shapes.TokenPage,
            rows,
            ask.params,
            lambda one: one.token_id,
            lambda one: token_as_json(one, names[one.person_id]),
        )

    @operation("POST", "/tokens", "Create a token. Its value is shown only once.", status=201, errors=(404,))
    async def add_token(self, ask: Ask[NoParams, NewTokenBody]) -> shapes.NewTokenShown:
        """Create a token with at most the scopes of the token that authenticates this request."""
        body = ask.body
        rights = None if body.scopes is None else [Right(one) for one in body.scopes]
        owner, made = await self._authenticator.tokens.add_by(
            ask.person, body.name, owner=body.person, rights=rights, days=body.days
        )
        await self._authenticator.note(
            ask.request, "add_token", f"token {made.token.token_id}, person {owner}", name=body.name
        )
        return shown(shapes.NewTokenShown, made, token=token_as_json(made.token, owner))

    @operation("DELETE", "/tokens/{token_id}", "Revoke a token.", errors=(404,))
    async def revoke_token(self, ask: Ask[TokenParams, None]) -> shapes.TokenShown:
        token_id, address = TokenId(ask.params.token_id), address_of(ask.request)
        revoked = await self._authenticator.tokens.revoke(token_id, by=ask.person, address=address)
        names = await self._authenticator.store.person_names([revoked.person_id])
        return token_as_json(revoked, names[revoked.person_id])

    @operation(
        "GET",
        "/audit",
        "The audit trail, newest first. A page of chosen entries may be short or empty: follow `next_cursor`.",
        right=Right.OPERATE,
    )
    async def audit(self, ask: Ask[AuditParams, None]) -> shapes.ActPage:
        asked = ask.params
        choice = ActChoice(
            checked_text(asked.who, "who"),
            checked_text(asked.what, "what"),
            checked_text(asked.subject, "subject"),
            Instant(asked.since),
            Instant(asked.until),
        )
        before = key_of(asked.cursor, "acts", int)
        found = await trail_page(self._authenticator.store, choice, before=before, limit=asked.limit)
        after = None if found.next_before is None else cursor_of("acts", found.next_before)
        acts = [shown(shapes.ActShown, one, detail=dict(one.detail)) for one in found.acts]
        return {"acts": acts, "next_cursor": after}
