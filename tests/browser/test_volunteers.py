"""A volunteer's tasks on the project's pages, from joining to choosing work, and what the client gets."""

from __future__ import annotations

from urllib.parse import urlencode
from xml.etree import ElementTree as ET

from playwright.async_api import Browser, expect

from domain.refusals import RefusalCode
from tests.acceptance.host import Host
from tests.acceptance.server import LiveServer
from tests.browser.conftest import new_tab
from tests.browser.routes import pages_left_out
from tests.browser.test_looks import LOOKS, walked
from wire.attach import password_hash

EMAIL, PASSWORD = "ada@example.org", "correct horse"


async def attached(server: LiveServer, name: str) -> Host:
    """Attach a computer like a client: with the e-mail and password of the account."""
    query = urlencode({"email_addr": EMAIL, "passwd_hash": password_hash(PASSWORD, EMAIL)})
    async with server.http.get(f"{server.url}lookup_account.php?{query}") as response:
        key = ET.fromstring(await response.read()).findtext("authenticator")
    assert key is not None
    return Host(server.http, f"{server.url}scheduler", key, name, {"cpu_model": "Fast Processor 9000"})


async def two_apps(server: LiveServer) -> None:
    await server.add_app("climate", user_friendly_name="Climate of small islands")
    await server.add_app("folding", user_friendly_name="Folding of large proteins")
    await server.feed()


async def test_a_volunteer_joins_lends_a_computer_and_chooses_its_work(server: LiveServer, chromium: Browser) -> None:
    await two_apps(server)
    context, tab = await new_tab(chromium, server, **LOOKS["light"])
    tab.root, page = server.url.rstrip("/"), tab.page

    # Join.
    await tab.open("/")
    await expect(page.get_by_text("Climate of small islands")).to_be_visible()
    await page.get_by_role("link", name="Create an account").click()
    await page.get_by_label("E-mail").fill(EMAIL)
    await page.locator("input[name=password]").fill(PASSWORD)
    await page.get_by_label("Name (optional)").fill("Ada")
    await page.get_by_role("button", name="Create account").click()
    await expect(page.get_by_text("Your account is ready.")).to_be_visible()
    await page.get_by_role("link", name="My computers").click()
    await expect(page.get_by_text("No computer has joined yet")).to_be_visible()
    await tab.picture("volunteer-no-computer")

    # Attach a computer; it completes some jobs and fails one.
    attic = await attached(server, "attic")
    await attic.call()
    await server.submit(app="climate", jobs={"count": 3})
    await server.submit(app="folding", jobs={"count": 2})
    tasks = await attic.ask(2)
    assert len(tasks) == 2
    await attic.compute(tasks[0])
    await server.forward(300.0)
    attic.end(tasks[1], 3, 195)
    await attic.call()
    await server.validate()
    await attic.ask(1)
    await server.forward(60.0)

    # Select one application and a limit of jobs.
    await page.get_by_role("link", name="Preferences").click()
    await page.get_by_label("Only the selected applications:").check()
    await page.get_by_label("Climate of small islands").uncheck()
    await page.get_by_label("Use GPUs").uncheck()
    await page.get_by_label("Maximum jobs in progress per computer").fill("9")
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_text("Saved.")).to_be_visible()

    # The client gets the preferences with its next request, and only matching work.
    await server.submit(app="climate", jobs={"count": 50})
    await server.feed()
    reply = await attic.call(cpu_req_s=8.0, cpu_req_instances=8.0)
    assert reply.preferences is not None
    assert (reply.preferences.app_ids, reply.preferences.no_gpu, reply.preferences.max_jobs) == ((2,), True, 9)
    given = [one.app_name for one in reply.workunits]
    assert set(given) == {"folding"}
    reply = await attic.call(cpu_req_s=8.0, cpu_req_instances=8.0)
    assert not reply.workunits
    assert any(RefusalCode.APP_NOT_SELECTED.traits.meaning in one.text for one in reply.messages)

    # Refusals and the dry run.
    await page.get_by_role("link", name="My computers").click()
    await page.get_by_role("link", name="attic").click()
    await expect(page.get_by_text("applications you have not selected")).to_be_visible()
    await page.get_by_role("link", name="Would it get work now?").click()
    await expect(page.get_by_role("heading", name="It would get no work")).to_be_visible()
    await page.get_by_role("link", name="My results").click()
    await expect(page.get_by_role("cell", name="failed")).to_be_visible()
    assert not tab.complaints

    # Found a team, and publish the statistics.
    await page.get_by_role("link", name="Teams").click()
    await page.get_by_label("Name", exact=True).fill("Night owls")
    await page.get_by_label("Description (optional)").fill("We compute while the city sleeps.")
    await page.get_by_role("button", name="Found the team").click()
    await expect(page.get_by_text("You have founded a team")).to_be_visible()
    await page.get_by_role("link", name="Account").click()
    await page.get_by_label("Publish my name").check()
    await page.get_by_role("button", name="Save").first.click()
    await expect(page.get_by_text("The next daily export")).to_be_visible()
    await server.api("PUT", "/settings/mail.server", json={"value": "127.0.0.1", "why": "test"})
    await server.api("PUT", "/settings/mail.sender", json={"value": "project@example.org", "why": "test"})
    await server.feed()
    await context.storage_state(path=(state := server.project.data_dir / "state.json"))
    await context.close()

    # Every page, in every theme.
    strangers = {
        "front": "/",
        "join": "/volunteers/join",
        "enter": "/volunteers/sign-in",
        "forgotten": "/volunteers/forgotten",
        "reset": "/volunteers/reset?code=x",
        "verify": "/volunteers/verify?code=x",
        "user": "/show_user.php?userid=1",
        "status": "/server_status.php",
    }
    own = {
        "own-front": "/",
        "computers": "/volunteers/computers",
        "computer": "/volunteers/computers/1",
        "computer-why": "/volunteers/computers/1/why",
        "results": "/volunteers/results",
        "results-none": "/volunteers/results?outcome=late",
        "teams": "/volunteers/teams",
        "team": "/volunteers/teams/1",
        "preferences": "/volunteers/preferences",
        "account": "/volunteers/account",
        "error": "/volunteers/computers/99",
    }
    assert pages_left_out(server, "/volunteers", [*strangers.values(), *own.values()]) == ["/volunteers/"]  # redirects
    issues: list[str] = []
    for look, options in LOOKS.items():
        for known, paths in ((None, strangers), (state, own)):
            context, tab = await new_tab(chromium, server, **options, storage_state=known)
            tab.root = server.url.rstrip("/")
            issues += await walked(tab, look, {f"volunteer-{name}": path for name, path in paths.items()})
            await context.close()
    assert issues == []
