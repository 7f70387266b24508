"""Joining the project over HTTP: the stock client's requests, and replies it has accepted."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast
from xml.etree import ElementTree as ET

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from administration.access.sign_in import Cost, SignIn
from administration.accounts import AccountKeys, authenticator_hash
from administration.catalogue import CatalogueCache
from domain.catalogue import Catalogue
from domain.errors import UnavailableError
from domain.settings import Settings
from domain.units import AppId, Instant, VolunteerId
from domain.volunteers import Credentials, Volunteer, VolunteerRecord
from portal.attach import AttachFlow
from store.people import PostgresVolunteers
from tests.builders import LINUX, an_app_version
from tests.facts import missing
from tests.memory import MemoryStore
from tests.people_ports import Volunteers
from tests.stores import as_postgres
from tests.unit.administration.clocks import StillClock
from wire.attach import password_hash

CAPTURES = Path(__file__).parents[2] / "captures"
KEYS = AccountKeys(b"the project's secret")
KEY = re.compile(r"[0-9a-f]{32}")
EMAIL, PASSWORD = "me@example.com", "secret"
HASH = password_hash(PASSWORD, EMAIL)
SETTINGS = Settings.from_mapping({"project.name": "Fake Project", "project.url": "http://127.0.0.1:18123/proj/"})
CATALOGUE = Catalogue(settings=SETTINGS, current={AppId(1): (an_app_version(), an_app_version(version_num=101))})
Client = TestClient[web.Request, web.Application]
Call = Callable[..., Awaitable[ET.Element]]


@asynccontextmanager
async def a_site(volunteers: Volunteers | None = None, catalogue: Catalogue = CATALOGUE) -> AsyncIterator[Client]:
    store, clock = MemoryStore(), StillClock()
    known = cast(PostgresVolunteers, volunteers or store.volunteers)
    signing = SignIn(as_postgres(store).access, known, lambda: Settings().access, clock, cost=Cost(2, 8, 1))
    cache = CatalogueCache(store.applications, clock, catalogue)
    app = web.Application()
    app.add_routes(AttachFlow(known, signing, KEYS, cache, clock).routes())
    async with TestClient(TestServer(app)) as client:
        yield client


async def xml_of(client: Client, path: str, **query: str) -> ET.Element:
    """Return the root of a web RPC's XML reply; its HTTP status is always 200."""
    response = await client.get(path, params=query)
    assert (response.status, response.content_type) == (200, "text/xml")
    return ET.fromstring(await response.read())


async def create(client: Client, email: str = EMAIL, *, hashed: str = HASH, name: str = "Me") -> ET.Element:
    return await xml_of(client, "/create_account.php", email_addr=email, passwd_hash=hashed, user_name=name)


async def lookup(client: Client, email: str = EMAIL, hashed: str = HASH) -> ET.Element:
    return await xml_of(client, "/lookup_account.php", email_addr=email, passwd_hash=hashed)


def captured(number: int) -> ET.Element:
    [path] = CAPTURES.glob(f"{number:02d}-*.reply.xml")
    return ET.fromstring(path.read_bytes())


def captured_path(number: int) -> str:
    """Return the path and query of a captured request, below the master URL."""
    [path] = CAPTURES.glob(f"{number:02d}-*.request.headers")
    return "/" + path.read_text().split()[1].removeprefix("/proj/")


def shape_of(element: ET.Element) -> object:
    """Return tags and nesting without texts."""
    return element.tag, [shape_of(child) for child in element]


def text_of(element: ET.Element, tag: str) -> str:
    found = element.findtext(tag)
    assert found is not None
    return found


def error_of(element: ET.Element) -> int:
    assert element.tag == "error"
    assert text_of(element, "error_msg")
    return int(text_of(element, "error_num"))


async def test_the_project_config_is_the_captured_one() -> None:
    async with a_site() as client:
        found = await xml_of(client, captured_path(1))

        assert ET.canonicalize(ET.tostring(found)) == ET.canonicalize(ET.tostring(captured(1)))


async def test_each_platform_is_named_once_in_order() -> None:
    other = an_app_version(platform="aarch64-unknown-linux-gnu")
    catalogue = Catalogue(settings=SETTINGS, current={AppId(1): (an_app_version(), other), AppId(2): (other,)})

    async with a_site(catalogue=catalogue) as client:
        found = await xml_of(client, "/get_project_config.php")

        assert [e.text for e in found.iter("platform_name")] == ["aarch64-unknown-linux-gnu", LINUX]


async def test_a_new_account_is_answered_like_the_captured_one() -> None:
    async with a_site() as client:
        response = await client.get(captured_path(5))
        account = ET.fromstring(await response.read())

        assert shape_of(account) == shape_of(captured(5))
        assert KEY.fullmatch(text_of(account, "authenticator"))


async def test_an_account_is_looked_up_with_the_captured_request() -> None:
    store = MemoryStore()
    hashed = re.findall(r"passwd_hash=([0-9a-f]{32})", captured_path(2))[0]

    async with a_site(store.volunteers) as client:
        created = await create(client, hashed=hashed)
        found = ET.fromstring(await (await client.get(captured_path(2))).read())

        assert shape_of(found) == shape_of(captured(2))
        assert text_of(found, "authenticator") == text_of(created, "authenticator")
    [record] = await store.volunteers.volunteers()
    assert record.credentials.authenticator_hash == authenticator_hash(text_of(found, "authenticator"))
    assert (record.email, record.volunteer.name) == (EMAIL, "Me")


@pytest.mark.parametrize(("number", "error_num"), [(3, -206), (4, -136)])
async def test_a_lookup_that_fails_is_answered_like_the_captured_one(number: int, error_num: int) -> None:
    async with a_site() as client:
        await create(client)
        found = ET.fromstring(await (await client.get(captured_path(number))).read())

        assert shape_of(found) == shape_of(captured(number))
        assert error_of(found) == int(text_of(captured(number), "error_num")) == error_num


@pytest.mark.parametrize("call", [lookup, create], ids=["lookup_account", "create_account"])
async def test_guesses_while_attaching_are_limited(call: Call) -> None:
    """The right password is also refused while the limiter of password checks requires a wait."""
    async with a_site() as client:
        await create(client)
        wrong = [error_of(await call(client, hashed=password_hash(f"guess {number}", EMAIL))) for number in range(7)]
        right = await call(client)

    assert wrong == [wrong[0]] * 6 + [-183]
    assert error_of(right) == -183
    assert not missing(text_of(right, "error_msg"), "too often:", "1 s")


async def test_lookups_of_many_names_are_limited_by_address() -> None:
    async with a_site() as client:
        errors = [error_of(await lookup(client, f"guess{number}@example.com")) for number in range(22)]

    assert errors == [-136] * 21 + [-183]


async def test_an_email_is_the_same_in_any_case() -> None:
    async with a_site() as client:
        created = await create(client, "Me@Example.com")

        assert text_of(await lookup(client, "ME@EXAMPLE.COM"), "authenticator") == text_of(created, "authenticator")


async def test_a_hash_is_the_same_in_any_case() -> None:
    async with a_site() as client:
        created = await create(client, hashed=HASH.upper())

        for hashed in (HASH, HASH.upper()):
            assert text_of(await lookup(client, hashed=hashed), "authenticator") == text_of(created, "authenticator")


@pytest.mark.parametrize("query", [{}, {"email_addr": ""}, {"email_addr": "\0"}, {"email_addr": "no address"}])
async def test_a_lookup_without_a_known_email_finds_no_account(query: dict[str, str]) -> None:
    async with a_site(OnlyText(MemoryStore().volunteers)) as client:
        assert error_of(await xml_of(client, "/lookup_account.php", **query)) == -136


async def test_a_lookup_without_a_password_is_a_bad_password() -> None:
    async with a_site() as client:
        await create(client)

        assert error_of(await xml_of(client, "/lookup_account.php", email_addr=EMAIL)) == -206


async def test_creating_again_returns_the_same_account() -> None:
    async with a_site() as client:
        first, second = await create(client), await create(client, "ME@example.com")

        assert text_of(first, "authenticator") == text_of(second, "authenticator")


async def test_creating_again_with_another_password_is_refused() -> None:
    async with a_site() as client:
        await create(client)

        assert error_of(await create(client, hashed=password_hash("guess", EMAIL))) == -137


@pytest.mark.parametrize("email", ["", "me", "me@", "me@example.com\n", "a b@example.com", "m\0e@example.com"])
async def test_what_is_no_email_gets_no_account(email: str) -> None:
    store = MemoryStore()

    async with a_site(store.volunteers) as client:
        refused = await create(client, email)

    assert error_of(refused) == -205
    assert text_of(refused, "error_msg").startswith("email: ")
    assert await store.volunteers.volunteers() == []


@pytest.mark.parametrize("hashed", ["", "secret", HASH[:-1], HASH + "0", "g" * 32])
async def test_what_is_no_password_hash_gets_no_account(hashed: str) -> None:
    async with a_site() as client:
        assert error_of(await create(client, hashed=hashed)) == -206
        assert error_of(await lookup(client)) == -136


async def test_a_name_with_markup_stays_a_name() -> None:
    store = MemoryStore()

    async with a_site(store.volunteers) as client:
        await create(client, name="<b>&amp; Ада")

    [record] = await store.volunteers.volunteers()
    assert record.volunteer.name == "<b>&amp; Ада"


class OnlyText:
    """Volunteers in a database that rejects NUL in texts, like PostgreSQL."""

    def __init__(self, volunteers: Volunteers) -> None:
        self._volunteers = volunteers

    async def volunteer_by_email(self, email: str) -> VolunteerRecord | None:
        assert "\0" not in email
        return await self._volunteers.volunteer_by_email(email)

    async def add_volunteer(
        self, email: str, *, name: str, credentials: Credentials, cross_project_id: str, beta: bool, now: Instant
    ) -> VolunteerId:
        assert "\0" not in email + name
        return await self._volunteers.add_volunteer(
            email, name=name, credentials=credentials, cross_project_id=cross_project_id, beta=beta, now=now
        )

    async def volunteers(
        self, *, limit: int | None = None, after: VolunteerId | None = None
    ) -> Sequence[VolunteerRecord]:
        return await self._volunteers.volunteers(limit=limit, after=after)

    async def set_volunteer(self, volunteer: Volunteer, *, instead_of: Volunteer | None = None) -> None:
        await self._volunteers.set_volunteer(volunteer, instead_of=instead_of)

    async def set_volunteer_password(self, volunteer_id: VolunteerId, *, salt: bytes, password_hash: bytes) -> None:
        await self._volunteers.set_volunteer_password(volunteer_id, salt=salt, password_hash=password_hash)


class Away(OnlyText):
    """Volunteers in an unavailable database."""

    async def volunteer_by_email(self, email: str) -> VolunteerRecord | None:
        raise UnavailableError

    async def add_volunteer(
        self, email: str, *, name: str, credentials: Credentials, cross_project_id: str, beta: bool, now: Instant
    ) -> VolunteerId:
        raise UnavailableError


async def test_while_the_database_is_away_the_project_is_down() -> None:
    async with a_site(Away(MemoryStore().volunteers)) as client:
        assert error_of(await lookup(client)) == -183
        assert error_of(await create(client)) == -183
