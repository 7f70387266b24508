"""Batch ordering, shares, permissions, grants and limits over the API."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from administration.changes import recorded
from administration.ordering.history import UsageReports
from administration.ordering.priorities import (
    Priorities,
    grant_as_json,
    limit_as_json,
    ordering_changes,
    weights_in_force,
)
from administration.ordering.rules import Rules
from administration.ordering.sharing import Sharing
from api.batches import BatchParams
from api.paging import Page, page_of_all
from api.settings import ValuesBody
from api.table import NOTED, Ask, NoParams, operation
from api.versions import edited_part
from domain.access import Right
from domain.clock import Clock
from domain.units import BatchId
from muster_client import shapes
from priority.emulate import emulate
from store.postgres import PostgresStore


class PlacesParams(msgspec.Struct, forbid_unknown_fields=True):
    limit: Annotated[int, msgspec.Meta(ge=1, le=10_000, description="The first N batches.")] = 100


class PreviewBody(msgspec.Struct, forbid_unknown_fields=True):
    values: dict[str, Any]
    limit: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 50


class AccountParams(msgspec.Struct, forbid_unknown_fields=True):
    account: str


class LimitParams(msgspec.Struct, forbid_unknown_fields=True):
    scope: str
    quantity: str
    name: Annotated[str | None, msgspec.Meta(description="Omit it for the default limit.")] = None


class UsageParams(msgspec.Struct, forbid_unknown_fields=True):
    by: Annotated[
        str, msgspec.Meta(description="account, submitter, and one of day, week and month, with commas between them.")
    ] = "account"
    first_day: Annotated[str | None, msgspec.Meta(description="UTC; default: the first of this month.")] = None
    last_day: Annotated[str | None, msgspec.Meta(description="Included; default: today.")] = None
    account: Annotated[str | None, msgspec.Meta(description="Only this account and those below it.")] = None
    submitter: Annotated[str | None, msgspec.Meta(description="Only this submitter.")] = None


class SharesBody(msgspec.Struct, forbid_unknown_fields=True):
    kind: Literal["account", "submitter"]
    name: str
    shares: float
    account: str | None = None


class ResetBody(msgspec.Struct, forbid_unknown_fields=True):
    """If both are omitted, the usage of all submitters is reset."""

    why: str
    submitter: str | None = None
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


class OrderingApi:
    TAG = "ordering"

    def __init__(self, store: PostgresStore, clock: Clock) -> None:
        self._clock = clock
        self._settings = store.settings
        self._priorities = Priorities(store, clock)
        self._sharing = Sharing(store, clock)
        self._reports = UsageReports(store, clock)
        self._rules = Rules(store, clock)

    @operation("GET", "/priority", "Batches in the order of the last ordering pass, with reasons.")
    async def priorities(self, ask: Ask[PlacesParams, None]) -> shapes.PrioritiesShown:
        found = await self._priorities.show(limit=ask.params.limit)
        return {"batches": list(found.records), "unordered": list(found.unordered)}

    @operation("GET", "/batches/{batch_id}/priority", "A batch's place in the order, with reasons.", errors=(404,))
    async def priority(self, ask: Ask[BatchParams, None]) -> shapes.PriorityShown:
        [record] = (await self._priorities.show(BatchId(ask.params.batch_id))).records
        return record

    @operation("GET", "/priority/weights", "The terms of the active policy with their weights.")
    async def weights(self, ask: Ask[NoParams, None]) -> shapes.WeightsShown:
        settings = await self._settings.in_force()
        return {"policy": settings.ordering.policy, "terms": weights_in_force(settings)}

    @operation("POST", "/priority/preview", "Preview the batch order with these settings; nothing is changed.")
    async def preview_ordering(self, ask: Ask[NoParams, PreviewBody]) -> shapes.OrderPreviewed:
        changes = ordering_changes(ask.body.values.items())
        return (await self._priorities.preview(changes, limit=ask.body.limit)).shown

    @operation("PUT", "/priority", "Set the ordering policy and its weights.", right=Right.OPERATE, shown_by="settings")
    async def set_ordering(self, ask: Ask[NoParams, ValuesBody]) -> shapes.Changed:
        body = ask.body
        changes = ordering_changes(body.values.items())
        changed = await self._priorities.set(changes, who=ask.who, why=body.why)
        ask.request[NOTED] = recorded(changed)
        return {"changed": changed}

    @operation("GET", "/fairshare", "The tree of accounts and submitters with shares and decayed usage.")
    async def fairshare(self, ask: Ask[NoParams, None]) -> shapes.SharesShown:
        return {"tree": await self._sharing.show()}

    @operation("GET", "/fairshare/windows", "Usage against target for users, groups, accounts and levels.")
    async def usage_windows(self, ask: Ask[NoParams, None]) -> shapes.WindowsShown:
        return await self._sharing.windows()

    @operation("GET", "/usage", "The history of usage: returned work by account, submitter and time.", errors=(404,))
    async def usage_report(self, ask: Ask[UsageParams, None]) -> shapes.UsageReported:
        return await self._reports.report(**msgspec.structs.asdict(ask.params))

    @operation(
        "PUT",
        "/fairshare",
        "Set the shares of an account or a submitter.",
        right=Right.OPERATE,
        errors=(404,),
        subject="{kind} {name}, account {account}",
        edits=True,
    )
    async def set_shares(self, ask: Ask[NoParams, SharesBody]) -> shapes.SharesSet:
        body = ask.body
        ask.request[NOTED] = {"was": await self._sharing.former(body.kind, body.name, body.account)}
        if body.kind == "account":
            await self._sharing.change_account(body.name, shares=body.shares)
            return {"account": body.name, "shares": body.shares}
        await self._sharing.change_submitter(body.name, shares=body.shares, account=body.account)
        return {"submitter": body.name, "account": body.account, "shares": body.shares}

    @operation(
        "POST",
        "/fairshare/reset",
        "Reset the recorded usage of all or some submitters to 0. Grants stay unchanged.",
        right=Right.OPERATE,
        errors=(404,),
        subject="submitter {submitter}, account {account}",
    )
    async def reset_usage(self, ask: Ask[NoParams, ResetBody]) -> shapes.UsageReset:
        body = ask.body
        return {"records": await self._sharing.reset(submitter=body.submitter, account=body.account)}

    @operation("POST", "/fairshare/emulate", "Compute another system's fair-share for a given tree.")
    async def emulate_fairshare(self, ask: Ask[NoParams, EmulateBody]) -> shapes.TableShown:
        table = emulate(ask.body.system, ask.body.document)
        return {"columns": list(table.columns), "rows": [list(row) for row in table.rows]}

    @operation(
        "PUT",
        "/permissions",
        "Set the permissions of an account or a submitter.",
        right=Right.OPERATE,
        errors=(404,),
        subject="{kind} {name}",
        edits=True,
    )
    async def permit(self, ask: Ask[NoParams, PermissionsBody]) -> shapes.Permitted:
        body = ask.body
        permissions = sorted(set(body.permissions))
        ask.request[NOTED] = {"was": await self._sharing.former(body.kind, body.name)}
        if body.kind == "account":
            await self._sharing.change_account(body.name, permissions=permissions)
            return {"account": body.name, "permissions": permissions}
        await self._sharing.change_submitter(body.name, permissions=permissions)
        return {"submitter": body.name, "permissions": permissions}

    @operation("GET", "/grants", "Accounts' grants of service units.")
    async def grants(self, ask: Ask[Page, None]) -> shapes.GrantPage:
        now = self._clock.now()
        found = sorted((await self._rules.grants()).items())
        return page_of_all(
            shapes.GrantPage, found, ask.params, lambda one: one[0], lambda one: grant_as_json(*one, now)
        )

    @operation(
        "GET",
        "/grants/{account}",
        "An account's grant.",
        errors=(404,),
        edited=edited_part("granted_su", "period_s"),
    )
    async def grant(self, ask: Ask[AccountParams, None]) -> shapes.GrantShown:
        account = ask.params.account
        return grant_as_json(account, await self._rules.grant_of(account), self._clock.now())

    @operation(
        "PUT",
        "/grants",
        "Grant an account service units per period.",
        right=Right.OPERATE,
        errors=(404,),
        subject="account {account}",
        shown_by="grant",
    )
    async def set_grant(self, ask: Ask[NoParams, GrantBody]) -> shapes.GrantShown:
        account = ask.body.account
        ask.request[NOTED] = {"was": await self._rules.former_grant(account)}
        await self._rules.grant(**msgspec.structs.asdict(ask.body))
        return grant_as_json(account, (await self._rules.grants())[account], self._clock.now())

    @operation(
        "DELETE",
        "/grants/{account}",
        "Remove an account's grant. An account without a grant is not limited by grants.",
        right=Right.OPERATE,
        errors=(404,),
        subject="account {account}",
        shown_by="grant",
    )
    async def take_grant(self, ask: Ask[AccountParams, None]) -> shapes.GrantTaken:
        ask.request[NOTED] = {"was": await self._rules.former_grant(ask.params.account)}
        await self._rules.take_grant(ask.params.account)
        return {"account": ask.params.account, "granted_su": None}

    @operation("GET", "/limits", "Limits of submitters, accounts, apps and queues.")
    async def limits(self, ask: Ask[Page, None]) -> shapes.LimitPage:
        found = await self._rules.limits()
        return page_of_all(
            shapes.LimitPage,
            found,
            ask.params,
            lambda one: f"{one.scope}/{one.quantity}/{one.name or ''}",
            limit_as_json,
        )

    @operation(
        "GET",
        "/limits/{scope}/{quantity}",
        "The limit of one name, or the default.",
        errors=(404,),
        edited=edited_part("soft", "hard"),
    )
    async def limit(self, ask: Ask[LimitParams, None]) -> shapes.LimitShown:
        asked = ask.params
        return limit_as_json(await self._rules.limit_of(asked.scope, asked.quantity, name=asked.name))

    @operation(
        "PUT",
        "/limits",
        "Set a limit for one name, or the default for names without their own limit.",
        right=Right.OPERATE,
        errors=(404,),
        subject="limit {scope} {quantity}, {scope} {name}",
        shown_by="limit",
    )
    async def set_limit(self, ask: Ask[NoParams, LimitBody]) -> shapes.LimitShown:
        body = ask.body
        ask.request[NOTED] = {"was": await self._rules.former_limit(body.scope, body.quantity, body.name)}
        return limit_as_json(await self._rules.limit(**msgspec.structs.asdict(body)))

    @operation(
        "DELETE",
        "/limits/{scope}/{quantity}",
        "Lift a limit.",
        right=Right.OPERATE,
        errors=(404,),
        subject="limit {scope} {quantity}, {scope} {name}",
        shown_by="limit",
    )
    async def lift_limit(self, ask: Ask[LimitParams, None]) -> shapes.LimitLifted:
        asked = ask.params
        ask.request[NOTED] = {"was": await self._rules.former_limit(asked.scope, asked.quantity, asked.name)}
        await self._rules.lift(asked.scope, asked.quantity, name=asked.name)
        return {"scope": asked.scope, "quantity": asked.quantity, "name": asked.name, "dropped": True}
