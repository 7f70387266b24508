"""Accounts and submitters: the tree with shares and usage, an account, a submitter, and limits; forms to change them.

Forms whose input is refused are shown again on their page, with the error at its field.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import urlencode

from aiohttp import web

from administration.access.who import admit
from administration.names import checked_name, checked_shares
from administration.ordering.accounts import AccountNode, account_tree
from administration.ordering.priorities import limit_as_json
from administration.ordering.rules import QUANTITIES, Rules
from administration.ordering.sharing import Sharing
from domain.access import Role
from domain.bounds import BOUNDS
from domain.errors import InvalidInputError
from domain.limits import Scope
from domain.ordered_work import Permission
from domain.units import DAY_S
from priority.charging import last_queue, queues
from web.forms import REFUSED, FormError, form_error
from web.handlers import Fields, Pages, PageServices, fields_of, get, number_of, post, reason_of, whole_number
from web.rendering import Crumb, RenderedPage

PER_PAGE = 100

ACCOUNTS = Crumb("accounts", "Accounts")
MEANINGS = {
    Permission.EXPEDITE.value: "use the service level expedite",
    Permission.RAISE.value: "set user priorities above 0",
    Permission.DEADLINE.value: "deadlines affect the order",
}
Shown = Callable[[web.Request, Fields, FormError | None], Awaitable[RenderedPage]]


class AccountTreePages(Pages[PageServices]):
    """Pages about accounts. Every user may read them; only operators may change anything."""

    def __init__(self, services: PageServices) -> None:
        super().__init__(services)
        self._people = services.store.people
        self._sharing = Sharing(services.store, services.clock)
        self._rules = Rules(services.store, services.clock)

    # ------------------------------------------------------------------ the tree

    @get("/accounts", "accounts", asks=("after",))
    async def show(self, request: web.Request) -> RenderedPage:
        return await self._tree(request, {}, None)

    @post("/accounts", "accounts_add")
    async def add(self, request: web.Request) -> RenderedPage | web.Response:
        """Add an account; the form is on the page of the tree and on that of the account above."""

        async def act(fields: Fields) -> web.Response:
            name, parent = (
                checked_name(fields.get("new_name", "").strip(), "new_name"),
                fields.get("parent", "").strip(),
            )
            shares = checked_shares(_number(fields, "shares"))
            await self._people.add_account(name, parent=parent or None, shares=shares)
            await self._note(request, "add_account", f"account {name}", parent=parent or None, shares=shares)
            return self._services.go_to("accounts/account", "saved", name=name)

        return await self._handled(request, "add", self._tree, act)

    async def _tree(self, request: web.Request, fields: Fields, wrong: FormError | None) -> RenderedPage:
        after = whole_number(request.query.get("after") or "0", "after", 0, 10**6)
        tree = await account_tree(self._services.store, self._services.clock)
        nodes = list(tree.accounts.values())
        values: dict[str, object] = {
            "parents": [("", "(none: top level)"), *((one, one) for one in tree.accounts)],
            "nodes": nodes[after : after + PER_PAGE],
            "count": len(nodes),
            "after": after,
            "next": after + PER_PAGE if len(nodes) > after + PER_PAGE else None,
            "limits": tree.limits_of,
        }
        return self._page(request, "accounts.html", "Accounts", wrong, values)

    # ------------------------------------------------------------------ one account

    @get("/accounts/account", "account", asks=("name",))
    async def account(self, request: web.Request) -> RenderedPage:
        return await self._account(request, request.query, None)

    @post("/accounts/account", "account_set", edits=True)
    async def set_account(self, request: web.Request) -> RenderedPage | web.Response:
        permissions = await _ticked(request)

        async def act(fields: Fields) -> web.Response:
            name, new_name = fields.get("name", ""), checked_name(fields.get("new_name", "").strip(), "new_name")
            parent, shares = fields.get("parent", "").strip(), checked_shares(_number(fields, "shares"))
            was = await self._sharing.former("account", name)
            await self._sharing.change_account(
                name,
                shares=shares,
                permissions=permissions,
                parent=parent,
                new_name=new_name if new_name != name else None,
            )
            subject = f"account {name}" + (f", account {new_name}" if new_name != name else "")
            changed = {"shares": shares, "parent": parent, "permissions": permissions, "was": was}
            await self._note(request, "set_account", subject, **changed)
            return self._services.go_to("accounts/account", "saved", name=new_name)

        return await self._handled(request, "set", self._account, act)

    @post("/accounts/account/delete", "account_delete", edits=True)
    async def delete_account(self, request: web.Request) -> RenderedPage | web.Response:
        async def act(fields: Fields) -> web.Response:
            await self._people.drop("account", fields.get("name", ""))
            await self._note(request, "delete_account", f"account {fields.get('name', '')}")
            return self._services.go("accounts", "deleted")

        return await self._handled(request, "delete", self._account, act)

    @post("/accounts/grant", "account_grant", edits=True)
    async def grant(self, request: web.Request) -> RenderedPage | web.Response:
        """Set or remove the account's grant."""

        async def act(fields: Fields) -> web.Response:
            name = fields.get("name", "")
            was = await self._rules.former_grant(name)
            if fields.get("do") == "drop":
                await self._rules.take_grant(name)
                await self._note(request, "take_grant", f"account {name}", was=was)
            else:
                units, days = (
                    _number(fields, "granted_su"),
                    _number(fields, "period_days", low=0.001, high=3650.0),
                )
                await self._rules.grant(name, granted_su=units, period_s=days * DAY_S)
                changed = {"granted_su": units, "period_s": days * DAY_S, "was": was}
                await self._note(request, "set_grant", f"account {name}", **changed)
            return self._services.go_to("accounts/account", "saved", name=name)

        return await self._handled(request, "grant", self._account, act)

    async def _account(self, request: web.Request, fields: Fields, wrong: FormError | None) -> RenderedPage:
        tree = await account_tree(self._services.store, self._services.clock)
        node = tree.account(fields.get("name", ""))
        name = node.row.name
        ordering = self._services.catalogue.settings.ordering
        values: dict[str, object] = {
            "node": node,
            "parents": [("", "(none: top level)"), *((one, one) for one in tree.accounts if one != name)],
            "below": [one for one in tree.accounts.values() if one.row.parent == name],
            "limits": tree.limits_of(Scope.ACCOUNT, name),
            "last_queue": last_queue(queues(ordering.queues)).name,
            "pass_s": ordering.interval_s,
            "permissions": MEANINGS,
        }
        return self._page(request, "account.html", name, wrong, values, *_crumbs(node))

    # ------------------------------------------------------------------ submitters

    @post("/accounts/submitters", "submitters_add")
    async def add_submitter(self, request: web.Request) -> RenderedPage | web.Response:
        """Add a submitter to the account whose page has the form, or let an existing one submit there, too."""

        async def act(fields: Fields) -> web.Response:
            account, shares = fields.get("name", ""), checked_shares(_number(fields, "shares"))
            name = checked_name(fields.get("new_name", "").strip(), "new_name")
            was: Mapping[str, object] = {}
            if fields.get("do") == "further":
                was = await self._sharing.former("submitter", name, account)
                await self._sharing.change_submitter(name, shares=shares, account=account)
            else:
                await self._people.add_submitter(name, account=account, shares=shares, now=self._services.clock.now())
            what = "set_submitter" if fields.get("do") == "further" else "add_submitter"
            await self._note(request, what, f"submitter {name}, account {account}", shares=shares, was=was or None)
            return self._services.go_to("accounts/submitter", "saved", name=name)

        return await self._handled(request, "submitter", self._account, act)

    @get("/accounts/submitter", "submitter", asks=("name",))
    async def submitter(self, request: web.Request) -> RenderedPage:
        return await self._submitter(request, request.query, None)

    @post("/accounts/submitter", "submitter_set", edits=True)
    async def set_submitter(self, request: web.Request) -> RenderedPage | web.Response:
        permissions = await _ticked(request)

        async def act(fields: Fields) -> web.Response:
            name, new_name = fields.get("name", ""), checked_name(fields.get("new_name", "").strip(), "new_name")
            account, shares = fields.get("account") or None, checked_shares(_number(fields, "shares"))
            renamed = new_name if new_name != name else None
            asked = None if account else permissions  # the form of one account has no permissions
            was = await self._sharing.former("submitter", name, account)
            await self._sharing.change_submitter(
                name, shares=shares, account=account, permissions=asked, new_name=renamed
            )
            subject = f"submitter {name}" + (f", submitter {renamed}" if renamed else "")
            subject += f", account {account}" if account else ""
            await self._note(request, "set_submitter", subject, shares=shares, permissions=asked, was=was or None)
            return self._services.go_to("accounts/submitter", "saved", name=new_name)

        return await self._handled(request, "set", self._submitter, act)

    @post("/accounts/submitter/delete", "submitter_delete", edits=True)
    async def delete_submitter(self, request: web.Request) -> RenderedPage | web.Response:
        async def act(fields: Fields) -> web.Response:
            await self._people.drop("submitter", fields.get("name", ""))
            await self._note(request, "delete_submitter", f"submitter {fields.get('name', '')}")
            return self._services.go("accounts", "deleted")

        return await self._handled(request, "delete", self._submitter, act)

    async def _submitter(self, request: web.Request, fields: Fields, wrong: FormError | None) -> RenderedPage:
        tree = await account_tree(self._services.store, self._services.clock)
        name = fields.get("name", "")
        [(account, own), *further] = tree.submitter(name)
        values: dict[str, object] = {
            "name": name,
            "account": account,
            "own": own,
            "places": [(account, own), *further],
            "limits": tree.limits_of(Scope.SUBMITTER, name),
            "permissions": MEANINGS,
        }
        node = tree.account(account)
        crumbs = (*_crumbs(node), _crumb(account))
        return self._page(request, "submitter.html", name, wrong, values, *crumbs)

    # ------------------------------------------------------------------ usage and limits

    @post("/accounts/reset", "usage_reset")
    async def reset(self, request: web.Request) -> RenderedPage | web.Response:
        """Reset the usage of one account or submitter, or of all, after a page that says what will happen."""
        form = await fields_of(request)
        kind, name = form.get("kind", ""), form.get("name", "")

        async def act(fields: Fields) -> RenderedPage | web.Response:
            why = reason_of(fields)
            if not fields.get("sure"):
                tree = await account_tree(self._services.store, self._services.clock)
                known: dict[str, object] = {"kind": kind, "name": name, "why": why, "accounts": tree.accounts}
                return self._page(request, "usage_reset.html", "Reset the usage?", None, known, ACCOUNTS)
            whose = {"submitter": name if kind == "submitter" else None, "account": name if kind == "account" else None}
            count = await self._sharing.reset(**whose)
            await self._note(request, "reset_usage", f"{kind} {name}" if name else "", why=why, records=count)
            return (
                self._services.go_to(f"accounts/{kind}", "usage", name=name)
                if name
                else self._services.go("accounts", "usage")
            )

        shown = {"account": self._account, "submitter": self._submitter}
        if name and kind not in shown:
            raise InvalidInputError("kind", "account or submitter", kind)
        return await self._handled(request, "reset", shown[kind] if name else self._tree, act)

    @get("/accounts/limits", "limits", asks=("scope", "name"))
    async def limits(self, request: web.Request) -> RenderedPage:
        return await self._limits(request, request.query, None)

    @post("/accounts/limits", "limits_set", edits=True)
    async def set_limit(self, request: web.Request) -> RenderedPage | web.Response:
        """Set or remove a limit; without a name, the default for names without their own."""

        async def act(fields: Fields) -> web.Response:
            scope, quantity = fields.get("scope", ""), fields.get("quantity", "")
            name = fields.get("name", "").strip() or None
            subject = f"limit {scope} {quantity}" + (f", {scope} {name}" if name else "")
            was = await self._rules.former_limit(scope, quantity, name)
            if fields.get("do") == "drop":
                await self._rules.lift(scope, quantity, name=name)
                await self._note(request, "lift_limit", subject, was=was)
            else:
                soft, hard = (number_of(fields, one, low=0.0, high=BOUNDS[one].high) for one in ("soft", "hard"))
                await self._rules.limit(scope, quantity, name=name, soft=soft, hard=hard)
                await self._note(request, "set_limit", subject, soft=soft, hard=hard, was=was)
            return self._services.go("accounts/limits", "saved")

        return await self._handled(request, "set", self._limits, act)

    async def _limits(self, request: web.Request, fields: Fields, wrong: FormError | None) -> RenderedPage:
        values: dict[str, object] = {
            "limits": [limit_as_json(one) for one in await self._rules.limits()],
            "asked": fields,
            "scopes": [(one.value, one.value) for one in Scope],
            "quantities": [(name, one.value) for name, one in QUANTITIES.items()],
        }
        return self._page(request, "limits.html", "Limits", wrong, values, ACCOUNTS)

    # ------------------------------------------------------------------ all forms

    async def _handled(
        self,
        request: web.Request,
        form: str,
        shown: Shown,
        act: Callable[[Fields], Awaitable[RenderedPage | web.Response]],
    ) -> RenderedPage | web.Response:
        """Do what an operator's form asks. If it is refused, show its page with what was entered and the error."""
        admit(request, Role.OPERATOR)
        fields = await fields_of(request)
        try:
            return await act(fields)
        except REFUSED as error:
            return await shown(request, fields, form_error(form, fields, error))

    def _page(
        self,
        request: web.Request,
        template: str,
        title: str,
        wrong: FormError | None,
        values: dict[str, object],
        *crumbs: Crumb,
    ) -> RenderedPage:
        may = admit(request, Role.VIEWER).may(Role.OPERATOR)
        values |= {"may": may, "wrong_of": lambda form: wrong if wrong is not None and wrong.form == form else None}
        status = 200 if wrong is None else wrong.status
        return RenderedPage(template, title, "accounts", crumbs, values, status=status)

    async def _note(self, request: web.Request, what: str, subject: str, **detail: object) -> None:
        told = {key: value for key, value in detail.items() if value is not None}
        await self._services.authenticator.note(request, what, subject, **told)


def _crumb(name: str) -> Crumb:
    return Crumb(f"accounts/account?{urlencode({'name': name})}", name)


def _crumbs(node: AccountNode) -> tuple[Crumb, ...]:
    """Return the way from the tree to an account."""
    return (ACCOUNTS, *(_crumb(name) for name in node.above))


def _number(fields: Fields, name: str, *, low: float = 0.0, high: float | None = None) -> float:
    """Return a required number. Raises InvalidInputError."""
    most = BOUNDS[name].high if high is None else high
    value = number_of(fields, name, low=low, high=most)
    if value is None:
        raise InvalidInputError(name, f"a number from {low:g} to {most:g}", "")
    return value


async def _ticked(request: web.Request) -> list[str]:
    return sorted({str(one) for one in (await request.post()).getall("permissions", [])})
