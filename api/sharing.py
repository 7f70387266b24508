"""Shares, permissions, grants and limits over the API."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Protocol

import msgspec

from administration.ordering.priorities import grant_as_json, limit_as_json
from administration.ordering.rules import Rules, RuleStore
from administration.ordering.sharing import Sharing, SharingStore
from api.paging import Page, page_of_all
from api.table import Ask, NoParams, Route
from domain.access import Right
from domain.clock import Clock
from muster_client import shapes
from priority.emulate import emulate

TAG = "ordering"


class SharesStore(SharingStore, RuleStore, Protocol):
    """What is read and written of the database."""


class AccountParams(msgspec.Struct, forbid_unknown_fields=True):
    account: str


class LimitParams(msgspec.Struct, forbid_unknown_fields=True):
    scope: str
    quantity: str
    name: Annotated[str | None, msgspec.Meta(description="Whose; none: everybody's.")] = None


class SharesBody(msgspec.Struct, forbid_unknown_fields=True):
    kind: Literal["account", "submitter"]
    name: str
    shares: float
    account: str | None = None


class PermissionsBody(msgspec.Struct, forbid_unknown_fields=True):
    kind: Literal["account", "submitter"]
    name: str
    permissions: list[str]


class GrantBody(msgspec.Struct, forbid_unknown_fields=True):
    account: str
    granted_su: float
    period_s: float


class LimitBody(msgspec.Struct, forbid_unknown_fields=True):
    scope: str
    quantity: str
    name: str | None = None
    soft: float | None = None
    hard: float | None = None


class EmulateBody(msgspec.Struct, forbid_unknown_fields=True):
    system: str
    document: Any


class SharingApi:
    def __init__(self, store: SharesStore, clock: Clock) -> None:
        self._clock = clock
        self._sharing = Sharing(store, clock)
        self._rules = Rules(store, clock)

    def routes(self) -> list[Route[Any, Any]]:
        operate = Right.OPERATE
        return [
            Route(
                "GET",
                "/fairshare",
                "fairshare",
                "The tree of accounts and submitters with shares and decayed usage.",
                self.shares,
                TAG,
                shapes.SharesShown,
                NoParams,
            ),
            Route(
                "POST",
                "/fairshare/emulate",
                "emulate_fairshare",
                "What another system's fair-share says of a tree.",
                self.emulate,
                TAG,
                shapes.TableShown,
                NoParams,
                body=EmulateBody,
            ),
            Route("GET", "/grants", "grants", "Service units of accounts.", self.grants, TAG, shapes.GrantPage, Page),
            Route("GET", "/limits", "limits", "How much one may have.", self.limits, TAG, shapes.LimitPage, Page),
            Route(
                "PUT",
                "/fairshare",
                "set_shares",
                "The shares of an account or a submitter.",
                self.set_shares,
                TAG,
                shapes.SharesSet,
                NoParams,
                body=SharesBody,
                right=operate,
                errors=(404,),
            ),
            Route(
                "PUT",
                "/permissions",
                "permit",
                "What all in an account, or a submitter, may do.",
                self.permit,
                TAG,
                shapes.Permitted,
                NoParams,
                body=PermissionsBody,
                right=operate,
                errors=(404,),
            ),
            Route(
                "PUT",
                "/grants",
                "set_grant",
                "Grant an account service units per period.",
                self.put_grant,
                TAG,
                shapes.GrantShown,
                NoParams,
                body=GrantBody,
                right=operate,
                errors=(404,),
            ),
            Route(
                "DELETE",
                "/grants/{account}",
                "take_grant",
                "An account without a grant is not limited by one.",
                self.drop_grant,
                TAG,
                shapes.GrantTaken,
                AccountParams,
                right=operate,
                errors=(404,),
            ),
            Route(
                "PUT",
                "/limits",
                "set_limit",
                "Limit one by name, or everybody who has no limit of its own.",
                self.put_limit,
                TAG,
                shapes.LimitShown,
                NoParams,
                body=LimitBody,
                right=operate,
                errors=(404,),
            ),
            Route(
                "DELETE",
                "/limits/{scope}/{quantity}",
                "lift_limit",
                "Lift a limit.",
                self.drop_limit,
                TAG,
                shapes.LimitLifted,
                LimitParams,
                right=operate,
                errors=(404,),
            ),
        ]

    async def shares(self, ask: Ask[NoParams, None]) -> object:
        return {"tree": [row.as_json() for row in await self._sharing.show()]}

    async def set_shares(self, ask: Ask[NoParams, SharesBody]) -> object:
        body = ask.body
        if body.kind == "account":
            await self._sharing.set_account(body.name, body.shares)
            return {"account": body.name, "shares": body.shares}
        await self._sharing.set_submitter(body.name, body.shares, body.account)
        return {"submitter": body.name, "account": body.account, "shares": body.shares}

    async def emulate(self, ask: Ask[NoParams, EmulateBody]) -> object:
        table = emulate(ask.body.system, ask.body.document)
        return {"columns": table.columns, "rows": table.rows}

    async def permit(self, ask: Ask[NoParams, PermissionsBody]) -> object:
        body = ask.body
        if body.kind == "account":
            await self._rules.permit(body.permissions, account=body.name)
        else:
            await self._rules.permit(body.permissions, submitter=body.name)
        return {body.kind: body.name, "permissions": sorted(set(body.permissions))}

    async def grants(self, ask: Ask[Page, None]) -> object:
        now = self._clock.now()
        found = sorted((await self._rules.grants()).items())
        return page_of_all(found, ask.params, "grants", lambda one: one[0], lambda one: grant_as_json(*one, now))

    async def put_grant(self, ask: Ask[NoParams, GrantBody]) -> object:
        body = ask.body
        await self._rules.grant(body.account, granted_su=body.granted_su, period_s=body.period_s)
        made = (await self._rules.grants())[body.account]
        return grant_as_json(body.account, made, self._clock.now())

    async def drop_grant(self, ask: Ask[AccountParams, None]) -> object:
        await self._rules.take_grant(ask.params.account)
        return {"account": ask.params.account, "granted_su": None}

    async def limits(self, ask: Ask[Page, None]) -> object:
        found = await self._rules.limits()
        return page_of_all(
            found, ask.params, "limits", lambda one: f"{one.scope}/{one.quantity}/{one.name or ''}", limit_as_json
        )

    async def put_limit(self, ask: Ask[NoParams, LimitBody]) -> object:
        body = ask.body
        return limit_as_json(
            await self._rules.limit(body.scope, body.quantity, name=body.name, soft=body.soft, hard=body.hard)
        )

    async def drop_limit(self, ask: Ask[LimitParams, None]) -> object:
        asked = ask.params
        await self._rules.lift(asked.scope, asked.quantity, name=asked.name)
        return {"scope": asked.scope, "quantity": asked.quantity, "name": asked.name, "dropped": True}
