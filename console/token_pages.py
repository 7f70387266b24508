"""Tokens of the API: a user's own, all of them for operators; created with a value that is shown once, and revoked."""

from __future__ import annotations

from aiohttp import web

from administration.access.people import DAYS_MOST
from administration.access.who import admit
from administration.names import checked_name, chosen
from domain.access import Right, Role
from domain.units import TokenId
from web.forms import REFUSED, FormError, form_error
from web.handlers import LARGEST_INT, Pages, PageServices, fields_of, get, id_of, post, whole_number
from web.rendering import Crumb, RenderedPage

PER_PAGE = 100
MEANINGS = {Right.READ: "read everything", Right.SUBMIT: "submit batches", Right.OPERATE: "change everything"}


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
        await self._services.authenticator.tokens.revoke(TokenId(id_of(request, LARGEST_INT)), by=caller)
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
            "wrong": wrong,
            "first": bool(after),
            "next": found[PER_PAGE - 1].token_id if len(found) > PER_PAGE else None,
        }
        status = 200 if wrong is None else wrong.status
        return RenderedPage("tokens.html", "Tokens", "tokens", values=values, status=status)
