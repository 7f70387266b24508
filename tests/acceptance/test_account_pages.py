"""Pages of the console about accounts, submitters, grants and limits, on a real worker."""

from __future__ import annotations

import re
from urllib.parse import urlencode

from domain.access import ActChoice, Role
from domain.batches import TreeKind
from tests.acceptance.server import LiveServer
from tests.acceptance.test_console import Browser, a_browser, add_person
from tests.browser.scene import OPERATOR, add_operator

HOSTILE = '<b>a/b?c=1&d, "e"</b>\''
SHARES = {"shares": "1"}


def page_of(kind: str, name: str) -> str:
    return f"/accounts/{kind}?{urlencode({'name': name})}"


async def refused_at(browser: Browser, path: str, fields: dict[str, str], form: str) -> tuple[int, str]:
    """Send a form that is refused; return the status and the field with the error, "" for the whole form."""
    status, _, page = await browser.post(path, fields, form=form)
    assert 'role="alert"' in page, (fields, page)
    found = re.search(r'<(?:input|select) name="(\w+)"[^>]*aria-describedby="flaw-', page)
    return status, "" if found is None else found[1]


async def test_only_operators_change_accounts(server: LiveServer) -> None:
    await add_operator(server)
    await add_person(server, "vera", Role.VIEWER)
    await server.create("POST", "/submitters", json={"name": "sue", "account": "default", "shares": 1.0})
    pages = ("/accounts", page_of("account", "default"), page_of("submitter", "sue"), "/accounts/limits")
    forms = {
        "/accounts": {"new_name": "x", **SHARES},
        "/accounts/account": {"name": "default", "new_name": "x", **SHARES},
        "/accounts/account/delete": {"name": "default"},
        "/accounts/grant": {"name": "default", "granted_su": "1", "period_days": "1"},
        "/accounts/submitters": {"name": "default", "new_name": "x", **SHARES},
        "/accounts/submitter": {"name": "sue", "new_name": "x", **SHARES},
        "/accounts/submitter/delete": {"name": "sue"},
        "/accounts/reset": {"kind": "account", "name": "default", "why": "x"},
        "/accounts/limits": {"scope": "account", "quantity": "jobs", "hard": "1"},
    }
    before = await server.store.people.tree()
    async with a_browser(server, OPERATOR) as grace, a_browser(server, "vera") as vera:
        for path in pages:
            status, page = await vera.get(path)
            assert status == 200 and page.count("<form") == 2, path  # sign-out and the colours
            assert (await grace.get(path))[1].count("<form") > 2, path
        for path, fields in forms.items():
            assert (await vera.post(path, fields, form="/accounts"))[0] == 403, path
            assert (await grace.post(path, {**fields, "csrf": "0" * 64}, form="/accounts"))[0] == 403, path
        for path in (page_of("account", "x"), page_of("submitter", "x")):
            assert (await grace.get(path))[0] == 404
        assert (await grace.get("/accounts?after=x"))[0] == 422
        assert (await grace.post("/accounts/reset", {"kind": "app", "name": "x", "why": "y"}, form="/accounts"))[
            0
        ] == 422
    assert await server.store.people.tree() == before


async def test_accounts_are_added_moved_renamed_and_deleted(server: LiveServer) -> None:
    await add_operator(server)
    async with a_browser(server, OPERATOR) as grace:
        for fields, field in (
            ({"new_name": "", **SHARES}, "new_name"),
            ({"new_name": "default", **SHARES}, "new_name"),
            ({"new_name": "lab", "shares": "-1"}, "shares"),
            ({"new_name": "lab", "shares": ""}, "shares"),
            ({"new_name": "lab", "parent": "nowhere", **SHARES}, "parent"),
        ):
            assert (await refused_at(grace, "/accounts", fields, "/accounts"))[1] == field, fields
        status, where, page = await grace.post("/accounts", {"new_name": HOSTILE, "shares": "2"})
        assert status == 200 and where.endswith("said=saved") and "<b>a" not in page
        await grace.post("/accounts", {"new_name": "east", "parent": HOSTILE, **SHARES})
        own = page_of("account", HOSTILE)
        _, page = await grace.get(own)
        assert "east" in page and "<b>a" not in page

        moved = {"name": HOSTILE, "new_name": HOSTILE, "parent": "east", **SHARES}
        assert await refused_at(grace, "/accounts/account", moved, own) == (409, "")
        moved = {"name": HOSTILE, "new_name": "east", "parent": "", **SHARES}
        assert await refused_at(grace, "/accounts/account", moved, own) == (409, "new_name")
        moved = {"name": HOSTILE, "new_name": "west", "parent": "default", "shares": "3", "permissions": "raise"}
        assert (await grace.post("/accounts/account", moved, form=own))[0] == 200
        [west] = [one for one in await server.store.people.tree() if one.name == "west"]
        assert (west.parent, west.shares, west.permissions) == ("default", 3.0, ("raise",))
        assert await refused_at(grace, "/accounts/account/delete", {"name": "west"}, "/accounts") == (409, "")
        for name in ("east", "west"):
            _, where, _ = await grace.post("/accounts/account/delete", {"name": name}, form="/accounts")
            assert where.endswith("/accounts?said=deleted")
    acts = await server.store.access.acts(ActChoice(subject="account west"), limit=9)
    assert [(one.what, one.target) for one in acts] == [
        ("delete_account", "account west"),
        ("set_account", f"account {HOSTILE}, account west"),
    ]


async def test_submitters_are_added_changed_and_deleted(server: LiveServer) -> None:
    await add_operator(server)
    await server.create("POST", "/accounts", json={"name": "lab"})
    lab = page_of("account", "lab")
    async with a_browser(server, OPERATOR) as grace:
        for fields, field in (
            ({"new_name": "default", "do": "new", **SHARES}, "new_name"),
            ({"new_name": "nowhere", "do": "further", **SHARES}, "new_name"),
            ({"new_name": "sue", "do": "new", "shares": "many"}, "shares"),
        ):
            found = await refused_at(grace, "/accounts/submitters", {"name": "lab", **fields}, lab)
            assert found[1] == field, fields
        sue = {"name": "lab", "new_name": HOSTILE, "do": "new", "shares": "2"}
        _, where, page = await grace.post("/accounts/submitters", sue, form=lab)
        assert where.endswith("said=saved") and "<b>a" not in page
        own = page_of("submitter", HOSTILE)
        taken = {"name": HOSTILE, "new_name": "default", **SHARES}
        assert await refused_at(grace, "/accounts/submitter", taken, own) == (409, "new_name")
        beyond = {"name": HOSTILE, "new_name": HOSTILE, "account": "nowhere", **SHARES}
        assert await refused_at(grace, "/accounts/submitter", beyond, own) == (404, "account")
        await grace.post("/accounts/submitter", {**beyond, "account": "default", "shares": "5"}, form=own)
        changed = {"name": HOSTILE, "new_name": "sue", "shares": "4", "permissions": "expedite"}
        await grace.post("/accounts/submitter", changed, form=own)
        rows = [one for one in await server.store.people.tree() if one.name == "sue"]
        assert [(one.kind, one.parent, one.shares, one.permissions) for one in rows] == [
            (TreeKind.SUBMITTER, "lab", 4.0, ("expedite",)),
            (TreeKind.MEMBERSHIP, "default", 5.0, ()),
        ]
        _, page = await grace.get(page_of("account", "default"))
        assert "of another account" in page
        _, where, _ = await grace.post("/accounts/submitter/delete", {"name": "sue"}, form="/accounts")
        assert where.endswith("/accounts?said=deleted")
    assert not [one for one in await server.store.people.tree() if one.name == "sue"]


async def test_grants_limits_and_usage_are_changed(server: LiveServer) -> None:
    await add_operator(server)
    own, limits = page_of("account", "default"), "/accounts/limits?scope=account&name=default"
    async with a_browser(server, OPERATOR) as grace:
        for fields, field in (
            ({"granted_su": "-1", "period_days": "1"}, "granted_su"),
            ({"granted_su": "1", "period_days": "0"}, "period_days"),
        ):
            found = await refused_at(grace, "/accounts/grant", {"name": "default", **fields}, own)
            assert found == (422, field)
        await grace.post("/accounts/grant", {"name": "default", "granted_su": "50", "period_days": "30"}, form=own)
        _, page = await grace.get("/accounts")
        assert "50.0 of 50.0 <abbr" in page
        [(name, grant)] = (await grants(server)).items()
        assert (name, grant) == ("default", (50.0, 30 * 86400.0))
        await grace.post("/accounts/grant", {"name": "default", "do": "drop"}, form=own)
        assert await grants(server) == {}
        assert await refused_at(grace, "/accounts/grant", {"name": "default", "do": "drop"}, own) == (404, "")

        limit = {"scope": "account", "quantity": "jobs", "name": "default"}
        for fields, field in (
            ({}, "soft"),
            ({"soft": "2", "hard": "1"}, "soft"),
            ({"soft": "x"}, "soft"),
            ({"hard": "-1"}, "hard"),
            ({"hard": "1", "quantity": "hosts"}, "quantity"),
        ):
            found = await refused_at(grace, "/accounts/limits", {**limit, "soft": "", "hard": "", **fields}, limits)
            assert found[1] == field, fields
        await grace.post("/accounts/limits", {**limit, "soft": "1", "hard": "2"}, form=limits)
        await grace.post("/accounts/limits", {**limit, "name": "", "hard": "9"}, form=limits)
        for path in (own, limits):
            _, page = await grace.get(path)
            assert "jobs in progress" in page and 'value="drop"' in page, path
        await grace.post("/accounts/limits", {**limit, "do": "drop"}, form=limits)
        [left] = await server.store.ordering_rules.limits()
        assert (left.name, left.hard) == (None, 9.0)

        assert await refused_at(grace, "/accounts/reset", {"kind": "account", "name": "default", "why": ""}, own) == (
            422,
            "why",
        )
        for kind, name in (("account", "default"), ("submitter", "default"), ("", "")):
            form = {"kind": kind, "name": name, "why": "a new year"}
            status, _, page = await grace.post("/accounts/reset", form, form="/accounts")
            assert (status, 'name="sure"' in page, name in page) == (200, True, True)
            _, where, _ = await grace.post("/accounts/reset", {**form, "sure": "yes"}, form="/accounts")
            assert where.endswith("said=usage")
    acts = await server.store.access.acts(ActChoice(what="reset_usage"), limit=9)
    assert [one.target for one in acts] == ["", "submitter default", "account default"]
    limited = await server.store.access.acts(ActChoice(subject="limit account jobs"), limit=9)
    assert [one.what for one in limited] == ["lift_limit", "set_limit", "set_limit"]


async def grants(server: LiveServer) -> dict[str, tuple[float, float]]:
    found = await server.create("GET", "/grants")
    return {one["account"]: (one["granted_su"], one["period_s"]) for one in found["grants"]}
