"""Volunteers' accounts, teams, news and the web RPCs on a real server, with mail through a real SMTP server."""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import unquote_plus
from xml.etree import ElementTree as ET

import aiohttp
import asyncpg

from administration.statistics import StatisticsExport
from domain.credit import credit_of
from domain.units import Flop, HostId, TeamId, VolunteerId
from tests.acceptance.host import Host
from tests.acceptance.receivers import Inbox, smtp_server
from tests.acceptance.server import LiveServer
from tests.acceptance.test_console import a_browser
from tests.browser.scene import OPERATOR, add_operator
from wire.attach import password_hash

PASSWORD = "correct horse"
ADA, BOB = "ada@example.org", "bob@example.org"


class Visitor:
    """A volunteer's browser, without scripts."""

    def __init__(self, server: LiveServer, http: aiohttp.ClientSession) -> None:
        self._root = f"{server.url}volunteers"
        self._url = server.url
        self.http = http

    async def page(self, path: str, *, status: int = 200) -> str:
        async with self.http.get(self._root + path) as response:
            assert response.status == status, await response.text()
            return await response.text()

    async def send(self, path: str, *, form: str = "", status: int = 200, **fields: str) -> str:
        """Send the form of page `form` to `path`; return the page that follows."""
        found = re.search(r'name="csrf" value="([0-9a-f]+)"', await self.page(form or path))
        token = {} if found is None else {"csrf": found[1]}
        async with self.http.post(self._root + path, data={**token, **fields}) as response:
            assert response.status == status, await response.text()
            return await response.text()

    async def xml(self, path: str, **query: str | int) -> ET.Element:
        async with self.http.get(self._url + path, params=query) as response:
            assert response.status == 200
            return ET.fromstring(await response.read())


@asynccontextmanager
async def a_visitor(server: LiveServer, email: str = "", *, name: str = "", export: str = "") -> AsyncIterator[Visitor]:
    """A new browser; with an e-mail, of a new volunteer, who consents to the statistics if `export` is given."""
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as http:
        visitor = Visitor(server, http)
        if email:
            if export:
                await visitor.send("/join", email=email, password=PASSWORD, name=name, export=export)
            else:
                await visitor.send("/join", email=email, password=PASSWORD, name=name)
        yield visitor


async def key_of(visitor: Visitor, email: str, password: str = PASSWORD) -> str:
    found = await visitor.xml("lookup_account.php", email_addr=email, passwd_hash=password_hash(password, email))
    return found.findtext("authenticator") or ""


async def a_valid_result(server: LiveServer, visitor: Visitor, email: str = ADA) -> Host:
    """Attach a computer of the volunteer, which returns one valid result."""
    await server.add_app()
    await server.submit(jobs={"count": 1})
    host = Host(server.http, f"{server.url}scheduler", await key_of(visitor, email), "attic", {})
    [task] = await host.ask()
    await host.compute(task)
    await host.call()
    await server.validate()
    return host


@asynccontextmanager
async def an_inbox(server: LiveServer) -> AsyncIterator[Inbox]:
    """Run an SMTP server, and set it in the project's settings."""
    inbox = Inbox()
    async with smtp_server(inbox) as port:
        settings = {"server": "127.0.0.1", "port": port, "tls": "none", "sender": "project@example.org"}
        for name, value in settings.items():
            await server.api("PUT", f"/settings/mail.{name}", json={"value": value, "why": "test"})
        await server.feed()
        yield inbox


async def test_forgotten_password_is_replaced_by_mail_once(server: LiveServer) -> None:
    async with an_inbox(server) as inbox, a_visitor(server, ADA) as ada, a_visitor(server) as stranger:
        key = await key_of(ada, ADA)
        await stranger.send("/forgotten", email=ADA)
        mail = await inbox.next()
        assert (mail["To"], mail["From"]) == (ADA, "project@example.org")
        link = re.search(rf"{re.escape(server.url)}volunteers(/reset\?code=\S+)", mail.get_content())
        assert link is not None
        code = link[1].partition("=")[2]

        await stranger.send("/reset", form=link[1], code=code, new="new password", again="new password")

        await stranger.send("/sign-in", email=ADA, password="new password")
        assert ADA in await stranger.page("/account")
        await stranger.send("/reset", form=link[1], status=422, code=code, new="another one", again="another one")
        assert await key_of(stranger, ADA, "new password") == key
        await ada.page("/sign-in")  # the other sessions have ended
        assert "account_post" not in await ada.page("/account")


async def test_unknown_address_gets_no_mail_and_the_same_answer(server: LiveServer) -> None:
    async with an_inbox(server) as inbox, a_visitor(server, ADA), a_visitor(server) as stranger:
        unknown = await stranger.send("/forgotten", email="stranger@example.org")
        known = await stranger.send("/forgotten", email=ADA)

        await inbox.next()
        clock = re.compile(r"data-now=\"[0-9.]+\"|>[^<]*</time>")
        assert clock.sub("", unknown) == clock.sub("", known)
        assert [mail["To"] for mail in inbox.mails] == [ADA]


async def test_changed_address_keeps_the_account_and_tells_the_old_one(server: LiveServer) -> None:
    async with an_inbox(server) as inbox, a_visitor(server, ADA) as ada, a_visitor(server, BOB):
        key, new = await key_of(ada, ADA), "lovelace@example.org"
        await ada.send("/account/email", form="/account", status=401, email=new, password="wrong")
        await ada.send("/account/email", form="/account", status=409, email=BOB, password=PASSWORD)
        await ada.send("/account/email", form="/account", status=422, email=new, password=key)

        link = await verifying_link(server, ada, inbox, new)
        assert await key_of(ada, ADA) == key
        assert await key_of(ada, new) == ""
        await ada.page(link)  # by a program that checks links
        code = link.partition("=")[2]
        assert await codes_like_an_old_node(server, code) == 0
        await ada.send("/reset", form=f"/reset?code={code}", status=422, code=code, new="another", again="another")
        await ada.send("/verify", form=link, code=code)

        assert await key_of(ada, new) == key
        assert (await ada.xml("lookup_account.php", email_addr=ADA, passwd_hash="0" * 32)).tag == "error"
        assert (await inbox.next())["To"] == ADA
        await ada.send("/verify", form=link, status=422, code=code)


async def codes_like_an_old_node(server: LiveServer, code: str) -> int:
    """Count the codes that a node would accept for a new password if it does not know codes for addresses."""
    connection = await asyncpg.connect(server.store.ledger.writes.dsn)
    hashed = hashlib.sha256(code.encode()).digest()
    known = await connection.fetchval("SELECT count(*) FROM mail_code")
    found = await connection.fetchval("SELECT count(*) FROM mail_code WHERE code_hash = $1", hashed)
    await connection.close()
    assert known == 1
    return int(found)


async def test_changed_password_ends_the_link_to_a_new_address(server: LiveServer) -> None:
    async with an_inbox(server) as inbox, a_visitor(server, ADA) as ada:
        link = await verifying_link(server, ada, inbox, "lovelace@example.org")
        await ada.send("/account", old=PASSWORD, new="new password", again="new password")

        await ada.send("/verify", form=link, status=422, code=link.partition("=")[2])

        assert await key_of(ada, ADA, "new password")


async def test_manager_changes_an_address_after_its_verification(server: LiveServer) -> None:
    async with an_inbox(server) as inbox, a_visitor(server, ADA) as ada:
        key, new = await key_of(ada, ADA), "lovelace@example.org"
        changes = {"email_addr": new, "password_hash": password_hash("new password", new)}
        assert (await ada.xml("am_set_info.php", account_key=key, **changes)).find("success") is not None
        assert await key_of(ada, ADA) == key
        link = re.search(r"volunteers(/verify\?code=\S+)", (await inbox.next()).get_content())
        assert link is not None

        await ada.send("/verify", form=link[1], code=link[1].partition("=")[2])

        assert await key_of(ada, new, "new password") == key


async def verifying_link(server: LiveServer, ada: Visitor, inbox: Inbox, new: str) -> str:
    """Change the address; return the path of the link sent to the new one."""
    await ada.send("/account/email", form="/account", email=new, password=PASSWORD)
    mail = await inbox.next()
    assert mail["To"] == new
    link = re.search(rf"{re.escape(server.url)}volunteers(/verify\?code=\S+)", mail.get_content())
    assert link is not None
    return link[1]


async def test_deleted_account_leaves_no_personal_data(server: LiveServer) -> None:
    async with a_visitor(server, ADA, name="Ada", export="on") as ada:
        host = await a_valid_result(server, ada)
        await ada.send("/teams", name="Night owls", url="", description="")
        await ada.send("/account/delete", form="/account", status=401, password="wrong")

        await ada.send("/account/delete", form="/account", password=PASSWORD)

        reply = await host.call()
        assert reply.messages
        assert not reply.user_name
        assert (await ada.xml("lookup_account.php", email_addr=ADA, passwd_hash="0" * 32)).tag == "error"
        [record] = await server.store.volunteers.volunteers()
        assert (record.volunteer.name, record.volunteer.cross_project_id) == ("", "")
        stored, _ = await server.store.views.host(HostId(host.host_id))
        assert (stored.domain_name, stored.host_cpid) == ("", "")
        now = server.clock.now()
        assert await server.store.participation.teams("", now=now, limit=9) == []
        folder = server.project.statistics_dir
        await StatisticsExport(server.store.participation, server.store.applications, folder, server.clock).export()
    gone = ET.fromstring(gzip.decompress((folder / "user_deleted.gz").read_bytes()))
    assert [one.findtext("id") for one in gone] == ["1"]
    assert list(ET.fromstring(gzip.decompress((folder / "user.gz").read_bytes()))) == []


async def test_idle_computer_is_removed_and_a_busy_one_stays(server: LiveServer) -> None:
    async with a_visitor(server, ADA) as ada, a_visitor(server, BOB) as bob:
        host = await a_valid_result(server, ada)
        total = (await server.store.volunteer_views.totals(VolunteerId(1))).credit
        await server.submit(jobs={"count": 1})
        [task] = await host.ask()
        path = f"/computers/{host.host_id}/remove"
        await ada.send(path, form="/account", status=409)
        await host.compute(task)
        await host.call()
        await server.validate()
        await bob.send(path, form="/account", status=404)

        await ada.send(path, form=f"/computers/{host.host_id}")

        assert "attic" not in await ada.page("/computers")
        assert (await server.store.volunteer_views.totals(VolunteerId(1))).credit.total == 2 * total.total
        before = host.host_id
        await host.call()
        assert host.host_id != before


async def test_teams_are_founded_joined_left_and_handed_over(server: LiveServer) -> None:
    async with a_visitor(server, ADA, name="Ada") as ada, a_visitor(server, BOB, name="Bob") as bob:
        await ada.send("/teams", name="Night owls", url="https://owls.example.org/", description="At night.")
        await bob.send("/teams", status=409, name="NIGHT OWLS", url="", description="")
        await bob.send("/teams", status=422, name="Larks", url="javascript:alert(1)", description="")
        await bob.send("/teams/1/join", form="/teams/1")
        await ada.send("/teams/1/leave", form="/teams/1", status=409)  # its founder
        await bob.send("/teams/1", form="/account", status=404, name="Bob's", url="", description="")

        await ada.send("/teams/1/founder", form="/teams/1", member="2")
        await ada.send("/teams/1/leave", form="/teams/1")
        await bob.send("/teams/1", form="/teams/1", name="Larks", url="", description="")

        team = await server.store.participation.team(TeamId(1))
        assert (team.name, team.founder_id, team.members) == ("Larks", 2, 1)
        await bob.send("/teams/1/delete", form="/teams/1")
        await bob.page("/teams/1", status=404)


async def test_team_earns_the_credit_of_its_members(server: LiveServer) -> None:
    async with a_visitor(server, ADA, name="Ada", export="on") as ada:
        await ada.send("/teams", name="Night owls", url="", description="")
        host = await a_valid_result(server, ada)

        reply = await host.call()

        assert (reply.team_id, reply.team_name, reply.user_id) == (1, "Night owls", 1)
        assert reply.user_credit[0] > 0
        [one] = await server.store.participation.teams("owl", now=server.clock.now(), limit=9)
        assert f"{one.credit.total:.6f}" == f"{reply.user_credit[0]:.6f}"
        await ada.send("/teams/1/delete", form="/teams/1")
        await host.call()
        assert (await server.store.volunteer_views.totals(VolunteerId(1))).credit.total == one.credit.total


async def test_account_managers_set_preferences_for_the_project(server: LiveServer) -> None:
    await server.add_app("pi")
    await server.add_app("rho")
    await server.feed()  # loads the catalogue
    async with a_visitor(server, ADA) as ada:
        key = await key_of(ada, ADA)
        shown = "<project_preferences><mod_time>1</mod_time><no_cuda>1</no_cuda>{}</project_preferences>"
        wanted = shown.format(
            "<no_ati>1</no_ati><no_intel_gpu>1</no_intel_gpu><project_specific><max_jobs>3</max_jobs>"
            "<apps_selected><app_id>2</app_id></apps_selected></project_specific>"
        )
        posted = {"account_key": key, "project_prefs": f"<project_prefs>{wanted}</project_prefs>"}
        async with ada.http.post(f"{server.url}am_set_info.php", data=posted) as response:
            assert "<success/>" in await response.text()

        host = Host(server.http, f"{server.url}scheduler", key, "attic")
        sent = (await host.call()).preferences
        assert sent is not None
        assert (sent.no_gpu, sent.no_cpu, sent.max_jobs, sent.app_ids) == (True, False, 3, (2,))
        told = await ada.xml("am_get_info.php", account_key=key)
        again = ET.tostring(told.find("project_prefs/project_preferences") or ET.Element("none"), "unicode")
        assert (await ada.xml("am_set_info.php", account_key=key, project_prefs=again)).find("success") is not None
        assert (await host.call()).preferences == sent  # unchanged, also in time

        for wrong in ("<venue>home</venue>", shown.format("<max_jobs>many</max_jobs>"), wanted + " " * 65_536):
            posted["project_prefs"] = wrong
            async with ada.http.post(f"{server.url}am_set_info.php", data=posted) as response:
                assert "<error_num>-1</error_num>" in await response.text(), wrong[:40]
        for refused in ("<app_id>99</app_id>", "<max_jobs>-1</max_jobs>", "<no_cpu>1</no_cpu><no_ati/><no_intel_gpu/>"):
            text = shown.format(refused)
            reply = await ada.xml("am_set_info.php", account_key=key, project_prefs=text)
            assert reply.findtext("error_num") == "-1", text
        assert (await host.call()).preferences == sent


async def test_account_managers_read_and_change_an_account(server: LiveServer) -> None:
    async with a_visitor(server, ADA, name="Ada & Co") as ada, a_visitor(server, BOB) as bob:
        await bob.send("/teams", name="Larks", url="", description="")
        key = await key_of(ada, ADA)
        told = await ada.xml("am_get_info.php", account_key=key)
        assert told.find("success") is not None
        assert (told.findtext("id"), unquote_plus(told.findtext("name") or "")) == ("1", "Ada & Co")
        assert told.findtext("teamid") == "0"

        new = "lovelace@example.org"
        changes: dict[str, str | int] = {"name": "Lovelace", "teamid": 1, "email_addr": new}
        refused = await ada.xml("am_set_info.php", account_key=key, **changes)
        assert refused.findtext("error_num") == "-1"
        changes["password_hash"] = password_hash("new password", new)
        assert (await ada.xml("am_set_info.php", account_key=key, **changes)).find("success") is not None

        told = await ada.xml("am_get_info.php", account_key=key)
        assert (told.findtext("name"), told.findtext("teamid")) == ("Lovelace", "1")
        assert await key_of(ada, new, "new password") == key
        assert (await ada.xml("am_set_info.php", account_key=key, teamid=0)).find("success") is not None
        assert (await ada.xml("am_get_info.php", account_key=key)).findtext("teamid") == "0"
        posted = {"account_key": key, "name": "Countess"}
        async with ada.http.post(f"{server.url}am_set_info.php", data=posted) as response:
            assert b"<success/>" in await response.read()
        assert (await ada.xml("am_get_info.php", account_key=key)).findtext("name") == "Countess"
        assert (await ada.xml("am_get_info.php", account_key="0" * 32)).findtext("error_num") == "-136"
        assert (await ada.xml("am_set_info.php", account_key=key, teamid=99)).findtext("error_num") == "-136"


async def test_teams_are_looked_up_by_name_and_number(server: LiveServer) -> None:
    async with a_visitor(server, ADA, name="Ada", export="on") as ada, a_visitor(server, BOB) as bob:
        await ada.send("/teams", name="Night owls", url="", description="At <night>.")
        await bob.send("/teams", name="Larks", url="", description="")

        [found] = await ada.xml("team_lookup.php", team_name="OWL", format="xml")
        one = await ada.xml("team_lookup.php", team_id=2)

        assert (found.findtext("name"), found.findtext("description")) == ("Night owls", "At <night>.")
        assert (found.findtext("userid"), found.findtext("founder_name")) == ("1", "Ada")
        assert (one.findtext("name"), one.findtext("userid"), one.findtext("founder_name")) == ("Larks", "0", None)
        assert (await ada.xml("team_lookup.php", team_id=9)).findtext("error_num") == "-136"
        assert (await ada.xml("team_lookup.php", team_name="")).findtext("error_num") == "-1"


async def test_only_consenting_volunteers_are_shown(server: LiveServer) -> None:
    async with a_visitor(server, ADA, name="Ada <b>", export="on") as ada, a_visitor(server, BOB) as bob:
        host = await a_valid_result(server, ada)
        shown = await ada.xml("show_user.php", userid=1, format="xml")
        assert (shown.findtext("id"), shown.findtext("name")) == ("1", "Ada <b>")
        assert float(shown.findtext("total_credit") or 0) > 0
        assert shown.find("host") is None
        assert (await ada.xml("show_user.php", userid=2, format="xml")).findtext("error_num") == "-136"
        own = await ada.xml("show_user.php", auth=await key_of(bob, BOB), format="xml")
        assert own.findtext("id") == "2"
        own = await ada.xml("show_user.php", auth=await key_of(ada, ADA), format="xml")
        assert own.findtext("host/id") == str(host.host_id)
        for path, status in (("?userid=1", 200), ("?userid=2", 404), ("?userid=x", 404)):
            async with ada.http.get(f"{server.url}show_user.php{path}") as response:
                assert response.status == status
                assert ADA not in await response.text()


async def test_server_status_counts_work_and_names_no_node(server: LiveServer) -> None:
    async with a_visitor(server, ADA) as ada:
        await a_valid_result(server, ada)
        await server.submit(jobs={"count": 3})

        found = await ada.xml("server_status.php", xml=1)

        states = found.find("database_file_states")
        assert states is not None
        assert states.findtext("results_ready_to_send") == "3"
        assert states.findtext("users_with_credit") == "1"
        assert states.findtext("tasks_by_app/app/unsent") == "3"
        async with ada.http.get(f"{server.url}server_status.php") as response:
            assert response.status == 200


async def test_news_reach_the_feed_and_the_audit_trail(server: LiveServer) -> None:
    await add_operator(server)
    async with a_browser(server, OPERATOR) as grace, a_visitor(server, ADA) as ada:
        status, where, _ = await grace.post("/news", {"title": "New work <soon>", "body": "Next week.\nBig jobs."})
        assert (status, where.endswith("said=published")) == (200, True)

        feed = await ada.xml("notices.php", userid=1, auth="1_x")

        [item] = feed.findall("channel/item")
        assert (item.findtext("title"), item.findtext("description")) == ("New work <soon>", "Next week.\nBig jobs.")
        status, _, _ = await grace.post("/news", {"title": "", "body": "x"})
        assert status == 422
        await grace.post("/news/1/delete", {}, form="/news")
        assert (await ada.xml("notices.php")).findall("channel/item") == []
        acts = await server.store.access.acts(limit=9)
        assert [one.what for one in acts if "news" in one.what] == ["delete_news", "publish_news"]


async def test_replies_name_links_and_the_feed(server: LiveServer) -> None:
    async with a_visitor(server, ADA) as ada:
        host = await a_valid_result(server, ada)

        reply = await host.call()

    assert {one.url for one in reply.gui_urls} >= {f"{server.url}volunteers/account", f"{server.url}server_status.php"}
    assert reply.feed_url == f"{server.url}notices.php"
    assert credit_of(Flop(4.32e11)) == 1.0


async def test_statistics_are_served_whole(server: LiveServer) -> None:
    async with a_visitor(server, ADA, name="Ada", export="on") as ada:
        await a_valid_result(server, ada)
        folder = server.project.statistics_dir
        await StatisticsExport(server.store.participation, server.store.applications, folder, server.clock).export()

        async with ada.http.get(f"{server.url}stats/user.gz", headers={"Accept-Encoding": "gzip"}) as response:
            assert "Content-Encoding" not in response.headers
            [user] = ET.fromstring(gzip.decompress(await response.read()))
        assert user.findtext("name") == "Ada"
        async with ada.http.get(f"{server.url}stats/") as response:
            assert "host.gz" in await response.text()
        async with ada.http.get(f"{server.url}stats/../../project.toml") as response:
            assert response.status == 404
