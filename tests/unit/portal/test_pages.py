"""Volunteers' pages over HTTP: joining, computers, results, preferences, and no access to others' data."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from administration.access.authentication import VOLUNTEER_COOKIE
from administration.access.sign_in import hash_of
from administration.accounts import AccountKeys, add_volunteer, password_matches
from administration.catalogue import CatalogueCache
from domain.dispatch import RequestWrites
from domain.jobs import InstanceState
from domain.refusals import RefusalCode
from domain.units import Instant
from domain.volunteers import Outcome, VolunteerRecord
from portal.build import PLACE, build_site
from portal.services import OUTCOME_WORDS
from runtime.compose import mounted
from tests.builders import NOW
from tests.facts import missing
from tests.stores import as_postgres
from tests.unit.administration.access.world import World, a_world
from tests.worlds import (
    RegisteredHost,
    a_registered_app,
    a_registered_host,
    a_report,
    a_sent_instance,
    a_submitted_batch,
    report,
    the_version,
)
from wire.attach import password_hash

CAPTURES = Path(__file__).parents[2] / "captures"
KEYS = AccountKeys(b"the project's secret")
ADA, PASSWORD = "ada@example.org", "correct horse"
Client = TestClient[web.Request, web.Application]


@dataclass(slots=True)
class Place:
    """The pages of a world, as seen by one browser."""

    world: World
    catalogue: CatalogueCache
    client: Client

    async def page(self, path: str, *, status: int = 200) -> str:
        async with self.client.get(PLACE + path, allow_redirects=False) as response:
            assert response.status == status, await response.text()
            return await response.text()

    async def form(self, path: str, *, status: int = 303, **fields: str | list[str]) -> str:
        """Submit a form; return the redirect's address or the returned page."""
        page = await self.page(path, status=200)
        hidden = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', page))
        async with self.client.post(PLACE + path, data={**hidden, **fields}, allow_redirects=False) as response:
            assert response.status == status, await response.text()
            return response.headers.get("Location", "") or await response.text()

    async def join(self, email: str = ADA) -> VolunteerRecord:
        await self.form("/join", email=email, password=PASSWORD, name="Ada <b>")
        return await self.record(email)

    async def record(self, email: str = ADA) -> VolunteerRecord:
        found = await self.world.store.volunteers.volunteer_by_email(email)
        assert found is not None
        return found


@asynccontextmanager
async def a_place(world: World | None = None, settings: Mapping[str, object] | None = None) -> AsyncIterator[Place]:
    world = world or a_world()
    store = world.store
    values = {"project.url": "http://127.0.0.1:18123/", **(settings or {})}
    await store.settings.set_settings(values, who="test", why="", now=NOW)
    catalogue = CatalogueCache(store.applications, world.clock, await store.applications.load_catalogue())
    site = build_site(as_postgres(store), catalogue, world.authenticator, KEYS, world.clock)
    application = mounted(site.routes(), {PLACE: site.application}, "http://127.0.0.1:18123/")
    async with TestClient(TestServer(application)) as client:
        yield Place(world, catalogue, client)


async def a_computer_of(place: Place, email: str = ADA, **changes: object) -> RegisteredHost:
    """Add a computer of a signed-up volunteer, and an application."""
    store, record = place.world.store, await place.record(email)
    await the_version(store)
    key = KEYS.authenticator(record.credentials.authenticator_nonce)
    volunteer_id = record.volunteer.volunteer_id
    host = await a_registered_host(store, account_key=key, volunteer_id=volunteer_id, **changes)
    await place.catalogue.refresh_once()
    return host


# ---------------------------------------------------------------- what is asked of them


@pytest.mark.parametrize(
    ("path", "facts"),
    [
        ("/computers?after=1", ("after:", "before")),
        ("/computers?before=x", ("before:", "whole")),
        ("/results?outcome=good", ("outcome:", "one of")),
        ("/results?computer=x", ("computer:", "whole")),
        ("/results?after=x", ("after:",)),
        ("/results?computer=1&computer=2", ("computer:", "one value")),
        ("/preferences?app=1", ("app:", "no parameters")),
        ("/account?said=nothing", ("said:", "result code")),
    ],
)
async def test_what_cannot_be_asked_of_a_page_is_named(path: str, facts: tuple[str, ...]) -> None:
    async with a_place() as place:
        await place.join()
        assert not missing(await place.page(path, status=422), *facts)


# ---------------------------------------------------------------- the front page


async def test_front_page_names_the_scheduler_like_the_capture() -> None:
    forms = (r'<link rel="boinc_scheduler" href="([^"]*)">', r"<scheduler>([^<]*)</scheduler>")
    [captured] = CAPTURES.glob("06-*.reply.xml")
    async with a_place() as place, place.client.get("/") as response:
        page = await response.text()

    assert (response.status, response.content_type) == (200, "text/html")
    assert "script-src 'self'" in response.headers["Content-Security-Policy"]
    for form in forms:
        assert re.findall(form, page) == ["http://127.0.0.1:18123/scheduler"]
        assert len(re.findall(form, captured.read_text())) == 1
    assert max(len(line) for line in page.splitlines()) <= 255


async def test_front_page_shows_address_and_applications() -> None:
    world = a_world()
    await the_version(world.store)
    async with a_place(world) as place, place.client.get("/") as response:
        page = await response.text()

    assert ">http://127.0.0.1:18123/</code>" in page
    assert "<li>Digits of pi" in page
    assert f'href="{PLACE}/join"' in page


# ---------------------------------------------------------------- joining, in and out


async def test_joining_signs_in_and_allows_attaching() -> None:
    async with a_place() as place:
        assert (
            await place.form("/join", email="Ada@Example.org", password=PASSWORD, name="")
            == f"{PLACE}/account?said=joined"
        )

        assert "Signed in as" in await place.page("/account?said=joined")
        record = await place.record()
        assert password_matches(record, password_hash(PASSWORD, ADA))
        await place.page("/sign-in", status=303)


@pytest.mark.parametrize(
    ("fields", "part", "status"),
    [
        pytest.param({"email": "no-address", "password": PASSWORD}, "E-mail: an e-mail address", 422, id="no e-mail"),
        pytest.param({"email": ADA, "password": "short"}, "Password: 6 to 200 characters", 422, id="short"),
        pytest.param({"email": ADA, "password": ADA}, "harder to guess", 422, id="the e-mail"),
        pytest.param(
            {"email": "bob@example.org", "password": PASSWORD}, "An account with this e-mail", 409, id="taken"
        ),
    ],
)
async def test_join_errors_are_shown_and_fields_kept(fields: dict[str, str], part: str, status: int) -> None:
    async with a_place() as place:
        await add_volunteer(
            as_postgres(place.world.store).volunteers, KEYS, "bob@example.org", name="", password_hash=None, now=NOW
        )
        page = await place.form("/join", status=status, **fields, name="<i>")

        assert part in page
        assert f'value="{fields["email"]}"' in page and 'value="&lt;i&gt;"' in page


async def test_a_project_that_makes_no_accounts_says_so() -> None:
    async with a_place(settings={"project.account_creation": False}) as place:
        assert "Account creation is closed" in await place.page("/join")
        async with place.client.post(f"{PLACE}/join", data={"email": ADA, "password": PASSWORD}) as response:
            assert response.status == 422
        assert await place.world.store.volunteers.volunteers() == []


async def test_join_attempts_are_limited_per_network() -> None:
    async with a_place() as place:

        async def tried() -> int:
            async with place.client.post(f"{PLACE}/join", data={"email": ADA, "password": "short"}) as response:
                return response.status

        assert {await tried() for _ in range(60)} == {422}
        assert await tried() == 429
        place.world.clock.forward(60.0)
        assert [await tried(), await tried()] == [422, 429]


async def test_sign_in_takes_password_or_account_key() -> None:
    async with a_place() as place:
        record = await place.join()
        key = KEYS.authenticator(record.credentials.authenticator_nonce)
        for secret in (PASSWORD, key):
            csrf = re.search(r'name="csrf" value="(\w+)"', await place.page("/account"))
            assert csrf is not None
            async with place.client.post(f"{PLACE}/sign-out", data={"csrf": csrf[1]}, allow_redirects=False) as out:
                assert out.status == 303
            await place.page("/results?outcome=valid", status=303)
            place.world.clock.forward(3600.0)
            where = f"{PLACE}/results?outcome=valid"
            async with place.client.post(
                f"{PLACE}/sign-in", data={"email": ADA, "password": secret, "next": where}, allow_redirects=False
            ) as response:
                assert (response.status, response.headers["Location"]) == (303, where)


@pytest.mark.parametrize("where", ["https://evil.example/", "//evil.example", f"{PLACE}x", f"{PLACE}/a\\b", ""])
async def test_signing_in_leads_nowhere_else(where: str) -> None:
    async with a_place() as place:
        await place.join()
        place.client.session.cookie_jar.clear()
        fields = {"email": ADA, "password": PASSWORD, "next": where}
        async with place.client.post(f"{PLACE}/sign-in", data=fields, allow_redirects=False) as response:
            assert response.headers["Location"] == f"{PLACE}/computers"


async def test_guessing_at_a_volunteers_password_is_slowed_down() -> None:
    async with a_place() as place:
        await place.join()
        place.client.session.cookie_jar.clear()
        statuses = []
        for _ in range(12):
            async with place.client.post(f"{PLACE}/sign-in", data={"email": ADA, "password": "guess"}) as response:
                statuses.append(response.status)
        assert statuses[0] == 401 and statuses[-1] == 429


async def test_a_new_password_attaches_clients_and_ends_other_sessions() -> None:
    async with a_place() as place:
        old = (await place.join()).credentials
        other = await place.world.authenticator.signing.volunteer(ADA, PASSWORD, address="192.0.2.1", agent="")
        two = await place.form("/account", status=422, old=PASSWORD, new="abcdefg", again="abcdefh")
        assert "the same new password twice" in two
        wrong = await place.form("/account", status=401, old="a guess", new="battery staple", again="battery staple")
        assert "neither your current password" in wrong

        assert await place.form("/account", old=PASSWORD, new="battery staple", again="battery staple")

        new = await place.record()
        assert new.credentials.authenticator_hash == old.authenticator_hash
        assert password_matches(new, password_hash("battery staple", ADA))
        assert not password_matches(new, password_hash(PASSWORD, ADA))
        assert await place.world.store.access.session_of_volunteer(other.session.session_hash, now=NOW) is None
        assert "Signed in as" in await place.page("/account")


# ---------------------------------------------------------------- who may see what


@pytest.mark.parametrize(
    "path", ["/computers", "/computers/1", "/computers/1/why", "/results", "/preferences", "/account"]
)
async def test_without_an_account_redirects_to_sign_in(path: str) -> None:
    async with a_place() as place, place.client.get(PLACE + path, allow_redirects=False) as response:
        assert response.status == 303
        assert response.headers["Location"].startswith(f"{PLACE}/sign-in?next=")


async def test_nothing_of_others_is_shown() -> None:
    async with a_place() as place:
        await place.join("bob@example.org")
        theirs = await a_computer_of(place, "bob@example.org", domain_name="bobs-computer")
        batch = await a_submitted_batch(place.world.store, jobs=2)
        await a_sent_instance(place.world.store, batch.batch_id, theirs)
        place.client.session.cookie_jar.clear()
        await place.join()

        for path in (f"/computers/{theirs.host_id}", f"/computers/{theirs.host_id}/why", "/computers/999"):
            page = await place.page(path, status=404)
            assert "There is no computer" in page and "bobs-computer" not in page
        for path in ("/computers", "/results", f"/results?computer={theirs.host_id}"):
            assert "bobs-computer" not in await place.page(path)
        assert "Nothing in progress" in await place.page(f"/results?computer={theirs.host_id}")


async def test_a_volunteers_session_is_no_operators() -> None:
    async with a_place() as place:
        await place.join()
        cookies = {cookie.key: cookie.value for cookie in place.client.session.cookie_jar}
        assert set(cookies) == {VOLUNTEER_COOKIE}
        session_hash = hash_of(cookies[VOLUNTEER_COOKIE])
        assert await place.world.store.access.session_of_person(session_hash, now=NOW) is None


@pytest.mark.parametrize("path", ["/preferences", "/account", "/sign-out"])
async def test_what_another_sites_page_sends_changes_nothing(path: str) -> None:
    async with a_place() as place:
        before = await place.join()
        fields = {
            "csrf": "f" * 64,
            "which": "all",
            "known_at": "never",
            "old": PASSWORD,
            "new": "n" * 9,
            "again": "n" * 9,
        }
        async with place.client.post(PLACE + path, data=fields, allow_redirects=False) as response:
            assert response.status == 403
        assert await place.record() == before
        assert "Signed in as" in await place.page("/account")


# ---------------------------------------------------------------- computers and results


async def test_a_computer_tells_why_it_had_no_work_in_its_owners_words() -> None:
    async with a_place() as place:
        await place.join()
        host = await a_computer_of(place, domain_name="attic", os_name="Linux Debian")
        why = ((RefusalCode.MEMORY.value, "job needs 9 bytes of RAM, host offers 8"),)
        await place.world.store.ledger.write(RequestWrites(host.host, refused=why))

        overview, page = await place.page("/computers"), await place.page(f"/computers/{host.host_id}")

        assert "attic" in overview and RefusalCode.MEMORY.traits.meaning in overview
        assert RefusalCode.MEMORY.traits.remedy in page and "job needs 9 bytes of RAM" in page


async def test_dry_runs_are_limited_per_volunteer() -> None:
    async with a_place() as place:
        await place.join()
        host = await a_computer_of(place)
        path = f"/computers/{host.host_id}/why"
        assert "It would get no work" in await place.page(path)
        await a_submitted_batch(place.world.store, jobs=3)

        assert "It would get" in await place.page(path) and '<td data-label="Due">' in await place.page(path)
        for _ in range(7):
            await place.page(path)
        assert "try again in" in await place.page(path, status=429)
        place.world.clock.forward(10.0)
        await place.page(path)


async def test_results_are_filtered() -> None:
    async with a_place() as place:
        await place.join()
        host = await a_computer_of(place, domain_name="attic")
        store = place.world.store
        batch = await a_submitted_batch(store, jobs=3)
        sent = [await a_sent_instance(store, batch.batch_id, host) for _ in range(3)]
        failed = {"to_state": InstanceState.FAILED, "reason": "exit status 9"}
        await report(store, host, a_report(sent[0]), a_report(sent[1], **failed))

        page = await place.page("/results")
        assert f"{OUTCOME_WORDS[Outcome.WAITING][0]}</span>" in page and "exit status 9" in page
        assert page.count("<tr>") == 2 + 3  # the head, and one row
        chosen = await place.page("/results?outcome=failed")
        assert "exit status 9" in chosen and chosen.count("<tr>") == 2
        assert "No matching results" in await place.page(f"/results?outcome=valid&computer={host.host_id}")
        assert "one of waiting, valid" in await place.page("/results?outcome=nonsense", status=422)
        await place.page("/results?after=12", status=422)


async def test_results_go_on_page_by_page() -> None:
    async with a_place() as place:
        await place.join()
        host = await a_computer_of(place)
        store = place.world.store
        batch = await a_submitted_batch(store, jobs=60)
        sent = [await a_sent_instance(store, batch.batch_id, host) for _ in range(60)]
        await report(store, host, *map(a_report, sent))
        seen: list[str] = []
        path = "/results"
        while path:
            page = await place.page(path)
            seen += re.findall(r'<th scope="row" data-value="(\d+)">', page)
            [path] = re.findall(r'rel="next" href="[^"]*(/results[^"]*)"', page) or [""]
            path = path.replace("&amp;", "&")
        assert sorted(map(int, seen)) == [one.instance_id for one in sent] and len(seen) == 60


async def test_empty_pages_say_what_to_do_next() -> None:
    async with a_place() as place:
        await place.join()
        assert "No computer has joined yet" in await place.page("/computers")
        assert "add one" in await place.page("/results")
        assert "Defaults apply" in await place.page("/preferences")


# ---------------------------------------------------------------- preferences


async def test_preferences_are_kept_with_the_instant_of_the_change() -> None:
    async with a_place() as place:
        await place.join()
        app = await a_registered_app(place.world.store, "other")
        await a_computer_of(place)

        where = await place.form(
            "/preferences", which="some", app=["2", str(app.app_id)], gpu="on", beta="on", max_jobs="3", max_cpus="2"
        )

        assert where == f"{PLACE}/preferences?said=preferences"
        volunteer = (await place.record()).volunteer
        assert (volunteer.no_cpu, volunteer.no_gpu, volunteer.beta) == (True, False, True)
        assert (volunteer.max_jobs, volunteer.max_cpus, volunteer.preferred_at) == (3, 2, NOW)
        page = await place.page("/preferences")
        assert 'name="max_jobs" type="number" min="0" max="1000000" step="1" value="3"' in page


async def test_a_form_loaded_before_another_change_does_not_undo_it() -> None:
    async with a_place() as place:
        old = (await place.join()).volunteer
        newer = replace(old, max_jobs=9, preferred_at=Instant(NOW + 1.0))
        page = await place.page("/preferences")
        csrf = re.search(r'name="csrf" value="(\w+)"', page)
        assert csrf is not None
        await place.world.store.volunteers.set_volunteer(newer)

        fields = {"csrf": csrf[1], "known_at": "never", "which": "all", "cpu": "on", "gpu": "on", "max_jobs": "1"}
        async with place.client.post(f"{PLACE}/preferences", data=fields) as response:
            page = await response.text()

        assert response.status == 409 and "changed elsewhere" in page and 'value="9"' in page
        assert (await place.record()).volunteer == newer


@pytest.mark.parametrize(
    ("fields", "part"),
    [
        pytest.param({"which": "all"}, "the CPU, GPUs, or both", id="no processor"),
        pytest.param({"which": "some", "cpu": "on"}, "at least one application", id="no application"),
        pytest.param({"which": "some", "app": "77", "cpu": "on"}, "applications of this project", id="another"),
        pytest.param({"which": "all", "cpu": "on", "max_jobs": "-1"}, "in progress per computer: ", id="negative"),
        pytest.param({"which": "all", "cpu": "on", "max_jobs": "1.5"}, "a whole number", id="a fraction"),
        pytest.param({"which": "all", "cpu": "on", "max_cpus": "many"}, "Maximum CPUs per job: ", id="no number"),
        pytest.param({"which": "all", "cpu": "on", "known_at": "x"}, "Known_at", id="not the form's"),
    ],
)
async def test_preferences_that_cannot_be_are_refused_by_name(fields: dict[str, str], part: str) -> None:
    async with a_place() as place:
        await place.join()
        before = await place.record()
        assert part in await place.form("/preferences", status=422, **fields)
        assert await place.record() == before


async def test_all_applications_ticked_are_all_also_those_to_come() -> None:
    async with a_place() as place:
        await place.join()
        await a_computer_of(place)
        await place.form("/preferences", which="some", app="1", cpu="on", max_jobs="2")
        assert (await place.record()).volunteer.apps == ()


@pytest.mark.parametrize("number", [2**31 - 1, 2**31, 2**62])
async def test_ids_above_those_of_the_database_are_refused(number: int) -> None:
    """The tables have ids up to 2^31 - 1, which no row has."""
    async with a_place() as place:
        await place.join()
        refused = 200 if number == 2**31 - 1 else 422
        await place.page(f"/computers/{number}", status=404)
        await place.page(f"/computers?before={number}", status=refused)
        await place.page(f"/results?computer={number}", status=refused)
        fields = {"which": "some", "app": str(number), "cpu": "on"}
        told = await place.form("/preferences", status=422, **fields)
        assert ("applications of this project" in told) == (refused == 200)


def test_every_outcome_has_words_for_volunteers() -> None:
    assert set(OUTCOME_WORDS) == set(Outcome)


async def test_volunteer_consents_to_statistics_and_withdraws() -> None:
    async with a_place() as place:
        volunteer_id = (await place.join()).volunteer.volunteer_id
        participation = place.world.store.participation
        assert (await participation.participation(volunteer_id)).export_consent_at is None

        async def send(**fields: str) -> None:
            csrf = re.search(r'name="csrf" value="(\w+)"', await place.page("/account"))
            assert csrf is not None
            sent = {"csrf": csrf[1], **fields}
            async with place.client.post(f"{PLACE}/account/statistics", data=sent, allow_redirects=False) as response:
                assert response.status == 303

        await send(export="on")
        assert (await participation.participation(volunteer_id)).export_consent_at == NOW
        await send()
        assert (await participation.participation(volunteer_id)).export_consent_at is None


async def test_joining_with_consent_stores_it() -> None:
    async with a_place() as place:
        await place.form("/join", email=ADA, password=PASSWORD, name="Ada", export="on")

        volunteer_id = (await place.record()).volunteer.volunteer_id
        assert (await place.world.store.participation.participation(volunteer_id)).export_consent_at == NOW
