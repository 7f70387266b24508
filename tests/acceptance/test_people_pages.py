"""Pages of the console about users, tokens and the audit trail, on a real worker."""

from __future__ import annotations

import re

import aiohttp

from domain.access import ActChoice, Role
from tests.acceptance.server import LiveServer
from tests.acceptance.test_console import Browser, a_browser, add_person
from tests.browser.scene import OPERATOR, add_operator
from tests.facts import missing

OPERATORS_ONLY = ("/people", f"/people/person?name={OPERATOR}", "/audit", "/audit?as=csv")
SECRET = re.compile(r'id="secret">([^<]+)<')
HOSTILE = '<b>a/b?c=1&d, "e"</b>\''


async def subjects(server: LiveServer, what: str) -> list[str]:
    return [one.target for one in await server.store.access.acts(ActChoice(what=what), limit=100)]


async def test_pages_check_roles_and_form_tokens(server: LiveServer) -> None:
    await add_operator(server)
    await add_person(server, "vera", Role.VIEWER)
    async with a_browser(server, OPERATOR) as grace, a_browser(server, "vera") as vera:
        for path in OPERATORS_ONLY:
            async with grace.http.get(grace.root + path) as answer:
                assert answer.status == 200, path
            status, page = await vera.get(path)
            assert status == 403 and "role operator;" in page, path
        _, menu = await vera.get("/tokens")
        assert "/console/people" not in menu and "/console/audit" not in menu and "/console/accounts" in menu
        _, menu = await grace.get("/tokens")
        assert "/console/people" in menu and "/console/audit" in menu
        forms = {
            "/people": {"name": "eve", "role": "operator"},
            "/people/person": {"name": OPERATOR, "role": "viewer", "active": "true"},
            "/people/password": {"name": OPERATOR},
            "/people/sessions": {"name": OPERATOR},
        }
        for path, fields in forms.items():
            assert (await vera.post(path, fields, form="/tokens"))[0] == 403, path
            assert (await grace.post(path, {**fields, "csrf": "0" * 64}, form="/tokens"))[0] == 403, path
        assert (await grace.post("/tokens", {"name": "x", "csrf": "0" * 64}))[0] == 403
        for path in (
            "/people?after=x",
            "/tokens?after=-1",
            "/audit?after=x",
            "/audit?first_day=1.1.2026",
            "/audit?as=xml",
        ):
            status, page = await grace.get(path)
            assert status == 422 and f"{path.partition('?')[2].partition('=')[0]}: expected" in page, path
        status, page = await grace.get("/audit?first_day=2026-02-02&last_day=2026-02-01")
        assert status == 422 and "last_day: expected" in page
    assert [one.name for one in await server.store.access.people(limit=9)] == [OPERATOR, "vera"]
    assert await subjects(server, "set_person") == []


async def test_operator_adds_changes_and_disables_a_user(server: LiveServer) -> None:
    await add_operator(server)
    await server.create("POST", "/submitters", json={"name": "lab", "account": "default", "shares": 1.0})
    async with a_browser(server, OPERATOR) as grace:
        for fields, field in (
            ({"name": "", "role": "viewer"}, "name"),
            ({"name": OPERATOR, "role": "viewer"}, "name"),
            ({"name": "ada", "role": "chief"}, "role"),
            ({"name": "ada", "role": "submitter", "submitter": ""}, "submitter"),
            ({"name": "ada", "role": "submitter", "submitter": "nowhere"}, "submitter"),
        ):
            status, _, page = await grace.post("/people", fields)
            assert status in (404, 409, 422), (fields, status)
            wrong = re.search(r'<(?:input|select) name="(\w+)"[^>]*aria-describedby="flaw-', page)
            assert wrong is not None and wrong[1] == field, (fields, page)
            assert f'value="{fields["name"]}"' in page  # what was entered is kept
        rosa = {"name": "rosa", "role": "submitter", "submitter": "rosa", "account": "default"}
        assert (await grace.post("/people", {**rosa, "name": OPERATOR}))[0] == 409
        assert [one.name for one in await server.store.people.submitters()] == ["default", "lab"]
        status, _, page = await grace.post("/people", rosa)
        assert (status, SECRET.search(page) is not None) == (200, True)
        record, submitter = await server.store.access.person("rosa"), await server.store.people.submitter("rosa")
        assert record.submitter_id == submitter.submitter_id
        assert await subjects(server, "add_submitter") == [
            "submitter rosa, account default",
            "submitter lab, account default",
        ]
        _, page = await grace.get("/people")
        assert '<option value="rosa">' in page and '<option value="default">' in page
        new = {"name": HOSTILE, "role": "submitter", "submitter": "lab"}
        status, _, page = await grace.post("/people", new)
        found = SECRET.search(page)
        assert status == 200 and found is not None and "<b>a" not in page
        record = await server.store.access.person(HOSTILE)
        assert record.role is Role.SUBMITTER and record.one_time_until is not None
        async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as http:
            invited = Browser(http, f"{server.url}console")
            _, there, asked = await invited.post("/sign-in", {"name": HOSTILE, "password": found[1]})
            assert there.endswith("/password") and not missing(asked, 'name="again"', "new password first")
            assert missing(asked, "Sections") == ["Sections"]  # a link of the menu would lead back without a word

        where = "/people/person?" + re.findall(r'people/person\?([^"]+)"', page)[0].replace("&amp;", "&")
        status, page = await grace.get(where)
        assert status == 200 and "lab" in page and "<b>a" not in page
        changed = {"name": HOSTILE, "role": "viewer", "submitter": "", "active": "false"}
        status, there, page = await grace.post("/people/person", changed, form=where)
        assert status == 200 and there.endswith("said=saved") and "disabled" in page
        record = await server.store.access.person(HOSTILE)
        assert (record.role, record.active) == (Role.VIEWER, False)
        status, _, page = await grace.post("/people/password", {"name": HOSTILE}, form=where)
        assert SECRET.search(page) is None and 'name="sure"' in page
        status, _, page = await grace.post("/people/password", {"name": HOSTILE, "sure": "yes"}, form=where)
        again = SECRET.search(page)
        assert again is not None and again[1] != found[1]

        own = {"name": OPERATOR, "role": "viewer", "active": "true"}
        status, _, page = await grace.post("/people/person", own, form=where)
        assert status == 403 and 'id="wrong"' in page
        assert (await server.store.access.person(OPERATOR)).role is Role.OPERATOR
        assert (await grace.post("/people/person", {**changed, "name": "eve"}, form=where))[0] == 404
        for what in ("add_person", "set_person", "invite_again"):
            assert (await subjects(server, what))[:1] == [f"person {HOSTILE}"]
        status, page = await grace.get(
            "/audit?" + re.findall(r'/audit\?(subject=[^"]+)"', (await grace.get(where))[1])[0]
        )
        assert (
            all(what in page for what in ("add person", "set person", "new one-time password")) and "<b>a" not in page
        )

        async with a_browser(server, OPERATOR) as elsewhere:
            status, there, _ = await grace.post("/people/sessions", {"name": OPERATOR}, form=where)
            assert there.startswith("/console/sign-in")  # her own session has ended, too
            assert 'name="password"' in (await elsewhere.get("/"))[1]


async def test_tokens_are_created_once_and_revoked(server: LiveServer) -> None:
    await add_operator(server)
    await add_person(server, "vera", Role.VIEWER)
    async with a_browser(server, OPERATOR) as grace, a_browser(server, "vera") as vera:
        for fields, field in (
            ({"name": "", "rights": "read"}, "name"),
            ({"name": "ci", "rights": "read", "days": "0"}, "days"),
            ({"name": "ci", "rights": "read", "person": "eve"}, "person"),
        ):
            status, _, page = await grace.post("/tokens", fields)
            wrong = re.search(r'<input name="(\w+)"[^>]*aria-describedby="flaw-', page)
            assert status in (404, 422) and wrong is not None and wrong[1] == field, fields
        status, _, page = await grace.post("/tokens", {"name": "ci"})
        assert status == 422 and 'fieldset aria-describedby="flaw-scopes"' in page  # no rights
        assert (await vera.post("/tokens", {"name": "ci", "rights": "operate"}))[0] == 403
        assert (await vera.post("/tokens", {"name": "ci", "rights": "read", "person": OPERATOR}))[0] == 403
        assert await server.store.access.tokens(limit=9) == []

        _, _, page = await vera.post("/tokens", {"name": "<i>mine</i>", "rights": "read", "days": "3"})
        secret = SECRET.search(page)
        assert secret is not None and "<i>" not in page
        async with vera.http.get(f"{server.url}api/v1/me", headers={"Authorization": f"Bearer {secret[1]}"}) as answer:
            assert (answer.status, (await answer.json())["name"]) == (200, "vera")
        await grace.post("/tokens", {"name": "hers", "rights": "operate", "days": ""})
        [mine, hers] = await server.store.access.tokens(limit=9)
        _, page = await vera.get("/tokens")
        assert "&lt;i&gt;mine" in page and "hers" not in page and secret[1] not in page
        _, page = await grace.get("/tokens")
        assert "&lt;i&gt;mine" in page and "hers" in page
        assert (await vera.post(f"/tokens/{hers.token_id}/revoke", {}, form="/tokens"))[0] == 403
        _, where, _ = await vera.post(f"/tokens/{mine.token_id}/revoke", {}, form="/tokens")
        assert where.endswith("said=revoked")
        assert (await grace.post("/tokens/99/revoke", {}, form="/tokens"))[0] == 404
        async with vera.http.get(f"{server.url}api/v1/me", headers={"Authorization": f"Bearer {secret[1]}"}) as answer:
            assert answer.status == 401
    assert await subjects(server, "revoke_token") == [f"token {mine.token_id}"]
    assert await subjects(server, "add_token") == [
        f"token {hers.token_id}, person {OPERATOR}",
        f"token {mine.token_id}, person vera",
    ]


async def test_trail_has_the_same_subjects_from_pages_and_api(server: LiveServer) -> None:
    await add_operator(server)
    await server.add_app()
    await server.create("POST", "/accounts", json={"name": "lab, east"})
    batch_id = await server.submit(name="a", jobs={"count": 1})
    async with a_browser(server, OPERATOR) as grace:
        await grace.post("/settings/feeder.slots", {"value": "500", "why": "=small"})
        await server.create("PUT", "/settings/feeder.slots", json={"value": 600, "why": "more"})
        await server.create("PUT", "/thresholds", json={"values": {"p_tight": 0.8}, "why": "late"})
        await server.create("PUT", "/grants", json={"account": "lab, east", "granted_su": 5.0, "period_s": 1e6})
        await server.create("POST", f"/batches/{batch_id}/abort")
        assert (await subjects(server, "set_setting")) == ["setting feeder.slots"] * 2
        assert await subjects(server, "set_thresholds") == ["setting deadline.p_tight"]
        _, page = await grace.get("/audit?subject=setting+feeder.slots")
        assert page.count("set setting</a>") == 2 and "set thresholds</a>" not in page
        for named in ("feeder.SLOTS", "slots"):
            assert (await grace.get(f"/audit?subject={named}"))[1].count("set setting</a>") == 2
        for subject in ("account+lab%2C+east", "lab%2C+east", f"batch+{batch_id}"):
            _, page = await grace.get(f"/audit?subject={subject}")
            assert page.count("<tr>") == 3, page  # the heading and two entries
        _, page = await grace.get(f"/audit?who={OPERATOR}&what=set_setting&first_day=2000-01-01&last_day=2100-01-01")
        assert page.count("set setting</a>") == 1
        _, page = await grace.get("/audit?last_day=2000-01-01")
        assert "No matching entries" in page
        asked = {"what": "set_setting", "subject": "setting feeder.slots", "since": 0, "until": 9e9}
        found = await server.create("GET", "/audit", params={**asked, "limit": 1})
        rest = await server.create("GET", "/audit", params={**asked, "cursor": found["next_cursor"]})
        assert [one["who"] for one in (*found["acts"], *rest["acts"])] == ["api", OPERATOR]
        assert (await server.create("GET", "/audit", params={"until": 1.0}))["acts"] == []
        async with grace.http.get(f"{grace.root}/audit?what=set_setting&as=csv") as answer:
            lines = (await answer.text()).splitlines()
            assert answer.content_type == "text/csv" and "Content-Security-Policy" in answer.headers
        assert lines[0].startswith("act_id,") and len(lines) == 3
        assert OPERATOR in lines[2] and "setting feeder.slots" in lines[2]
