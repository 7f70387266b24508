"""Apps without a version for new work: what their pages, forms and explanations say and offer, per role."""

from __future__ import annotations

import re

import pytest

from domain.access import ActChoice, Role
from domain.apps import OnePerVolunteer
from domain.units import BatchId
from tests.acceptance.server import LiveServer
from tests.acceptance.test_console import a_browser, add_person
from tests.acceptance.test_console_forms import flaws_of
from tests.browser.scene import OPERATOR, add_operator, tell
from tests.facts import missing

VERSION = "/apps/pi/versions/1"
SETTINGS = {"user_friendly_name": "Pi", "adaptive_copies": "2", "one_per_volunteer": "always", "beta": "1"}
LOADED = {
    "was.user_friendly_name": "",
    "was.adaptive_copies": "0",
    "was.one_per_volunteer": "quorum",
    "was.one_per_host": "1",
}
PAGES = ("/restrictions", "/settings", "/news", "/apps/pi", VERSION, "/accounts", "/accounts/limits", "/batches/1")


@pytest.fixture
async def lost_server(server: LiveServer) -> LiveServer:
    """A project whose only app has lost its version, with jobs in progress and a batch with a deadline."""
    await add_operator(server)
    await server.create("POST", "/submitters", json={"name": "lab", "account": "default", "shares": 1.0})
    await add_person(server, "sue", Role.SUBMITTER, "lab")
    await server.add_app()
    host = await server.add_host()
    await server.submit(name="due", submitter="lab", qos="short_deadline", deadline_s=90_000.0, jobs={"count": 6})
    await host.ask(1)
    async with a_browser(server, OPERATOR) as grace:
        await grace.post(VERSION, {"state": "aborted", "why": "wrong results", "sure": "yes"})
    await tell(server)
    return server


async def test_lost_app_is_shown_with_its_reason(lost_server: LiveServer) -> None:
    async with a_browser(lost_server, OPERATOR) as grace, a_browser(lost_server, "sue") as sue:
        for browser, offers in ((grace, True), (sue, False)):
            for path in ("/batches/1", "/batches/1/why", "/unschedulable", "/apps/pi"):
                _, page = await browser.get(path)
                assert ("Ask an operator: offer" in page, '">Offer pi 1.00' in page) == (not offers, offers), path
            _, page = await browser.get("/batches/new")
            assert not missing(page, OPERATOR, "1.00", "wrong results") and "No application yet" not in page
            status, page = await browser.get("/batches/1/why")
            assert status == 200
            verdict = page.partition('verdict"')[2].partition("</p>")[0]
            assert not missing(verdict, OPERATOR, "1.00", "wrong results")
        assert f'/console{VERSION}"' in (await grace.get("/apps/pi"))[1]
        assert "<code>muster" in (await grace.get("/batches/new"))[1]
        assert "<code>muster" not in (await sue.get("/batches/new"))[1].partition('class="empty"')[2]
    await lost_server.add_app("tau")
    await tell(lost_server)
    async with a_browser(lost_server, "sue") as sue:
        for path in ("/batches/new", "/batches/upload"):
            _, page = await sue.get(path)
            assert "<option>tau" in page and "<option disabled>pi" in page, path


async def test_withdrawal_says_what_waits_and_what_hosts_drop(lost_server: LiveServer) -> None:
    async with a_browser(lost_server, OPERATOR) as grace:
        _, page = await grace.get("/apps/pi")
        note = page.partition("<main")[2].partition('role="alert"')[2].partition('aria-labelledby="h-versions"')[0]
        assert not missing(note, OPERATOR, "wrong results", "5 unsent instances", "1 batch", 'batches/1">due<')
        assert not missing(note, "1 instance in progress", "instances aborted") and f'{VERSION}">Offer pi 1.00' in note
        assert not missing((await grace.get("/apps"))[1], "no version of pi", "wrong results")
        _, page = await grace.get(VERSION)
        offer = page.partition('id="h-state"')[2].partition("</form>")[0]
        assert not missing(offer, "1 instance", "1 host") and 'class="note warn"' not in offer  # no result yet
        _, where, page = await grace.post(VERSION, {"state": "offered", "why": "fixed"})
        assert where.endswith(f"{VERSION}?said=version_offered")
        assert 'role="alert"' not in page
        _, page = await grace.get(VERSION)
        assert not missing(page, "5 unsent instances", 'batches/1">due<')
        assert "pi 1.00" in page.partition('<h2 id="h-state">')[2].partition("</h2>")[0]
        assert not missing(page.partition('class="note warn"')[2].partition("</div>")[0], "1 active host", "only")


async def test_offered_version_is_sent_after_its_abort(lost_server: LiveServer) -> None:
    async with a_browser(lost_server, OPERATOR) as grace:
        await grace.post(VERSION, {"state": "offered", "why": "fixed"})
        await tell(lost_server)
        status, page = await grace.get("/batches/1/why")
    assert status == 200 and "wrong results" not in page
    found = await lost_server.batch(BatchId(1))
    assert found["state"] == "active"


async def test_app_settings_are_changed_by_operators_only(lost_server: LiveServer) -> None:
    async with a_browser(lost_server, OPERATOR) as grace, a_browser(lost_server, "sue") as sue:
        assert (await sue.post("/apps/pi/settings", SETTINGS, form="/tokens"))[0] == 403
        wrong = {**SETTINGS, **LOADED, "adaptive_copies": "99"}
        status, _, page = await grace.post("/apps/pi/settings", wrong, form="/apps/pi")
        assert (status, flaws_of(page)) == (422, (["adaptive_copies"], ["adaptive_copies"]))
        _, where, _ = await grace.post("/apps/pi/settings", {**SETTINGS, **LOADED}, form="/apps/pi")
        assert where.endswith("/apps/pi?said=version")
        _, where, _ = await grace.post("/apps/pi/settings", {**SETTINGS, **LOADED}, form="/apps/pi")
        assert where.endswith("/apps/pi?said=unchanged")
        assert "/apps/pi/settings" not in (await sue.get("/apps/pi"))[1]
    app = await lost_server.store.applications.app("pi")
    assert (app.user_friendly_name, app.adaptive_copies, app.beta) == ("Pi", 2, True)
    assert (app.one_per_volunteer, app.one_per_host) == (OnePerVolunteer.ALWAYS, False)
    [act] = await lost_server.store.access.acts(ActChoice(what="set_app"), limit=9)
    was = {"user_friendly_name": "", "adaptive_copies": 0, "one_per_volunteer": "quorum", "one_per_host": True}
    assert (act.target, act.detail["was"], act.detail["adaptive_copies"]) == ("app pi", {**was, "beta": False}, 2)


async def test_app_form_keeps_changes_by_other_users(lost_server: LiveServer) -> None:
    async with a_browser(lost_server, OPERATOR) as grace:
        page = (await grace.get("/apps/pi"))[1]
        loaded = dict(re.findall(r'type="hidden" name="(was[^"]+)" value="([^"]*)"', page))
        assert loaded == LOADED
        await lost_server.create("PATCH", "/apps/pi", json={"adaptive_copies": 3, "deprecated": True})
        stale = {name.removeprefix("was."): value for name, value in loaded.items()}

        _, where, _ = await grace.post("/apps/pi/settings", {**loaded, **stale, "beta": "1"}, form="/apps/pi")
        conflict = {**loaded, **stale, "adaptive_copies": "5"}
        status, _, page = await grace.post("/apps/pi/settings", conflict, form="/apps/pi")

    assert where.endswith("/apps/pi?said=version")
    assert status == 409 and not missing(page, "adaptive_copies", "from 0 to 3")
    app = await lost_server.store.applications.app("pi")
    assert (app.adaptive_copies, app.deprecated, app.beta) == (3, True, True)
    by_form, by_api = await lost_server.store.access.acts(ActChoice(what="set_app"), limit=9)
    assert by_form.detail == {"beta": True, "was": {"beta": False}}
    assert by_api.detail["was"] == {"adaptive_copies": 0, "deprecated": False}


async def test_deprecated_app_is_the_reason_on_every_page(server: LiveServer) -> None:
    await add_operator(server)
    await server.add_app()
    await server.submit(name="due", qos="short_deadline", deadline_s=90_000.0, jobs={"count": 6})
    await server.create("PATCH", "/apps/pi", json={"deprecated": True})
    await tell(server)

    async with a_browser(server, OPERATOR) as grace:
        for path in ("/batches/1", "/batches/1/why", "/batches/new"):
            _, page = await grace.get(path)
            assert not missing(page, "pi was deprecated by"), path
        assert 'apps/pi#h-settings"' in (await grace.get("/batches/1"))[1]
        assert not missing((await grace.get("/"))[1], "pi was deprecated by")
        assert not missing((await grace.get("/batches"))[1], "no host can run its jobs")


async def test_pages_without_a_form_say_who_may_change_them(lost_server: LiveServer) -> None:
    await add_person(lost_server, "vera", Role.VIEWER)
    async with a_browser(lost_server, "vera") as vera:
        for path in PAGES:
            status, page = await vera.get(path)
            assert status == 200 and "perators" in page.partition("<main")[2], path
