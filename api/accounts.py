"""Lists, creates and changes accounts, submitters and volunteers over the API."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Annotated, Literal

import msgspec

from administration.accounts import AccountKeys, add_volunteer, checked_email
from administration.names import checked_name, checked_shares, checked_text
from administration.ordering.accounts import load_tree
from administration.ordering.sharing import Sharing
from administration.show import account_as_json, shown, submitter_as_json
from administration.volunteers import VolunteerBody, change_volunteer, volunteer_as_json
from api.paging import Page, key_of, page_of, page_of_all
from api.table import NOTED, Ask, NoParams, operation
from api.versions import edited_part
from domain.access import Right
from domain.batches import Account, TreeKind, TreeRow
from domain.clock import Clock
from domain.errors import NotFoundError
from muster_client import shapes
from store.postgres import PostgresStore
from wire.attach import password_hash

MOST_PASSWORD = 200


class NewAccountBody(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    parent: str | None = None
    shares: float = 1.0


class NewSubmitterBody(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    account: str = "default"
    shares: float = 1.0


class NewVolunteerBody(msgspec.Struct, forbid_unknown_fields=True):
    email: str
    name: str = ""
    password: Annotated[str, msgspec.Meta(max_length=MOST_PASSWORD)] | None = None


class NameParams(msgspec.Struct, forbid_unknown_fields=True):
    name: str


class EmailParams(msgspec.Struct, forbid_unknown_fields=True):
    email: str


class AccountBody(msgspec.Struct, forbid_unknown_fields=True):
    """Omitted fields keep their values. `permissions` replaces the whole list; an empty `parent` is the top level."""

    shares: float | None = None
    permissions: list[str] | None = None
    parent: str | None = None
    name: str | None = None


class SubmitterBody(msgspec.Struct, forbid_unknown_fields=True):
    """Omitted fields keep their values. `account` gives the submitter access to that account, where `shares` apply."""

    shares: float | None = None
    account: str | None = None
    permissions: list[str] | None = None
    name: str | None = None


class TreeRowBody(msgspec.Struct, forbid_unknown_fields=True):
    """`parent` is the account above this account, the submitter's account, or the membership's account."""

    kind: Literal["account", "submitter", "membership"]
    name: str
    parent: str = ""
    shares: float = 1.0
    permissions: list[str] = []


class TreeBody(msgspec.Struct, forbid_unknown_fields=True):
    rows: list[TreeRowBody]
    dry_run: bool = False


class FoundParams(Page, forbid_unknown_fields=True, kw_only=True):
    q: Annotated[str, msgspec.Meta(max_length=200, description="The text; default: all volunteers.")] = ""


def names_of(accounts: Iterable[Account]) -> dict[int, str]:
    return {one.account_id: one.name for one in accounts}


class AccountsApi:
    TAG = "people"

    def __init__(self, store: PostgresStore, keys: AccountKeys, clock: Clock) -> None:
        self._store = store
        self._people = store.people
        self._keys = keys
        self._clock = clock
        self._sharing = Sharing(store, clock)

    @operation("GET", "/account-tree", "Accounts, submitters and their additional accounts, as rows to save and load.")
    async def account_tree(self, ask: Ask[NoParams, None]) -> shapes.TreeShown:
        return {"rows": [shown(shapes.TreeRowShown, one) for one in await self._people.tree()]}

    @operation(
        "PUT",
        "/account-tree",
        "Add and change accounts and submitters, all rows or none; deletes nothing. Returns the rows that changed.",
        right=Right.OPERATE,
        edits=True,
    )
    async def load_account_tree(self, ask: Ask[NoParams, TreeBody]) -> shapes.TreeShown:
        rows = [
            TreeRow(TreeKind(one.kind), one.name, one.parent, one.shares, tuple(sorted(set(one.permissions))))
            for one in ask.body.rows
        ]
        changed = await load_tree(self._people, rows, dry_run=ask.body.dry_run, now=self._clock.now())
        return {"rows": [shown(shapes.TreeRowShown, one) for one in changed]}

    @operation("GET", "/accounts", "Accounts, by id.")
    async def list_accounts(self, ask: Ask[Page, None]) -> shapes.AccountPage:
        accounts = await self._people.accounts()
        show = partial(account_as_json, names=names_of(accounts))
        return page_of_all(shapes.AccountPage, accounts, ask.params, lambda one: one.account_id, show)

    @operation(
        "POST",
        "/accounts",
        "Add an account.",
        right=Right.OPERATE,
        status=201,
        errors=(404, 409),
        subject="account {name}",
    )
    async def add_account(self, ask: Ask[NoParams, NewAccountBody]) -> shapes.NewAccount:
        body = ask.body
        account = await self._people.add_account(
            checked_name(body.name),
            parent=checked_name(body.parent, "parent") if body.parent is not None else None,
            shares=checked_shares(body.shares),
        )
        return shown(shapes.NewAccount, account)

    @operation("GET", "/submitters", "Submitters, by id.")
    async def list_submitters(self, ask: Ask[Page, None]) -> shapes.SubmitterPage:
        found = await self._people.submitters()
        show = partial(submitter_as_json, accounts=names_of(await self._people.accounts()))
        return page_of_all(shapes.SubmitterPage, found, ask.params, lambda one: one.submitter_id, show)

    @operation(
        "POST",
        "/submitters",
        "Add a submitter.",
        right=Right.OPERATE,
        status=201,
        errors=(404, 409),
        subject="submitter {name}, account {account}",
    )
    async def add_submitter(self, ask: Ask[NoParams, NewSubmitterBody]) -> shapes.NewSubmitter:
        body = ask.body
        submitter = await self._people.add_submitter(
            checked_name(body.name),
            account=checked_name(body.account, "account"),
            shares=checked_shares(body.shares),
            now=self._clock.now(),
        )
        return shown(shapes.NewSubmitter, submitter)

    @operation("GET", "/volunteers", "Volunteers, by id.", right=Right.OPERATE)
    async def list_volunteers(self, ask: Ask[Page, None]) -> shapes.VolunteerPage:
        after = key_of(ask.params.cursor, "volunteers", int)
        records = await self._store.volunteers.volunteers(limit=ask.params.limit + 1, after=after)
        apps = await self._store.applications.apps()
        show = partial(volunteer_as_json, apps=apps)
        return page_of(shapes.VolunteerPage, records, ask.params, lambda one: one.volunteer.volunteer_id, show)

    @operation(
        "GET",
        "/volunteers/found",
        "Volunteers, newest first, with a text in their name, e-mail or a host's name, or with a host at this address.",
        right=Right.OPERATE,
    )
    async def find_volunteers(self, ask: Ask[FoundParams, None]) -> shapes.FoundVolunteerPage:
        before, text = key_of(ask.params.cursor, "volunteers", int), checked_text(ask.params.q, "q")
        found = await self._store.restrictions.volunteers(text, before=before, limit=ask.params.limit + 1)
        show = partial(shown, shapes.FoundVolunteer)
        return page_of(shapes.FoundVolunteerPage, found, ask.params, lambda one: one.volunteer_id, show)

    @operation(
        "POST",
        "/volunteers",
        "Add a volunteer. The account key is shown only once.",
        right=Right.OPERATE,
        status=201,
        errors=(409,),
    )
    async def add_volunteer(self, ask: Ask[NoParams, NewVolunteerBody]) -> shapes.NewVolunteer:
        body = ask.body
        hashed = password_hash(body.password, body.email) if body.password is not None else None
        volunteers, now = self._store.volunteers, self._clock.now()
        added = await add_volunteer(volunteers, self._keys, body.email, name=body.name, password_hash=hashed, now=now)
        return shown(shapes.NewVolunteer, added)

    @operation(
        "GET",
        "/accounts/{name}",
        "An account.",
        errors=(404,),
        edited=edited_part("name", "parent", "shares", "permissions"),
    )
    async def account(self, ask: Ask[NameParams, None]) -> shapes.AccountShown:
        accounts = await self._people.accounts()
        found = next((one for one in accounts if one.name == ask.params.name), None)
        if found is None:
            raise NotFoundError("account", ask.params.name)
        return account_as_json(found, names_of(accounts))

    @operation(
        "PATCH",
        "/accounts/{name}",
        "Change an account's shares, parent or name, and the permissions of all submitters in or below it.",
        right=Right.OPERATE,
        errors=(404, 409),
        shown_by="account",
        subject="account {name}, account {new_name}",
    )
    async def set_account(self, ask: Ask[NameParams, AccountBody]) -> shapes.AccountStanding:
        body, name = ask.body, ask.params.name
        new_name = None if body.name is None else checked_name(body.name)
        ask.request[NOTED] = {"was": await self._sharing.former("account", name)}
        return await self._sharing.change_account(
            name, shares=body.shares, permissions=body.permissions, parent=body.parent, new_name=new_name
        )

    @operation(
        "DELETE",
        "/accounts/{name}",
        "Delete an account that contains no accounts, submitters or batches.",
        right=Right.OPERATE,
        errors=(404, 409),
        shown_by="account",
    )
    async def delete_account(self, ask: Ask[NameParams, None]) -> shapes.Deleted:
        await self._people.drop("account", ask.params.name)
        return {"deleted": ask.params.name}

    @operation(
        "GET",
        "/submitters/{name}",
        "A submitter.",
        errors=(404,),
        edited=edited_part("name", "account", "shares", "permissions"),
    )
    async def submitter(self, ask: Ask[NameParams, None]) -> shapes.SubmitterShown:
        names = names_of(await self._people.accounts())
        return submitter_as_json(await self._people.submitter(ask.params.name), names)

    @operation(
        "PATCH",
        "/submitters/{name}",
        "Change a submitter's shares, accounts, permissions or name.",
        right=Right.OPERATE,
        errors=(404, 409),
        shown_by="submitter",
        subject="submitter {name}, submitter {new_name}, account {account}",
    )
    async def set_submitter(self, ask: Ask[NameParams, SubmitterBody]) -> shapes.SubmitterStanding:
        body, name = ask.body, ask.params.name
        new_name = None if body.name is None else checked_name(body.name)
        ask.request[NOTED] = {"was": await self._sharing.former("submitter", name, body.account)}
        return await self._sharing.change_submitter(
            name, shares=body.shares, account=body.account, permissions=body.permissions, new_name=new_name
        )

    @operation(
        "DELETE",
        "/submitters/{name}",
        "Delete a submitter that has no batches.",
        right=Right.OPERATE,
        errors=(404, 409),
        shown_by="submitter",
    )
    async def delete_submitter(self, ask: Ask[NameParams, None]) -> shapes.Deleted:
        await self._people.drop("submitter", ask.params.name)
        return {"deleted": ask.params.name}

    @operation(
        "GET",
        "/volunteers/{email}",
        "A volunteer with the preferences.",
        right=Right.OPERATE,
        errors=(404,),
        edited=edited_part("beta", "no_cpu", "no_gpu", "max_jobs", "max_cpus", "apps"),
    )
    async def volunteer(self, ask: Ask[EmailParams, None]) -> shapes.VolunteerShown:
        record = await self._store.volunteers.volunteer_by_email(checked_email(ask.params.email))
        if record is None:
            raise NotFoundError("volunteer", ask.params.email)
        return volunteer_as_json(record, await self._store.applications.apps())

    @operation(
        "PATCH",
        "/volunteers/{email}",
        "Change a volunteer's preferences: which apps, and how much work.",
        right=Right.OPERATE,
        errors=(404, 409),
        shown_by="volunteer",
    )
    async def set_volunteer(self, ask: Ask[EmailParams, VolunteerBody]) -> shapes.VolunteerShown:
        volunteers, applications, now = self._store.volunteers, self._store.applications, self._clock.now()
        return await change_volunteer(volunteers, applications, ask.params.email, ask.body, now=now)
