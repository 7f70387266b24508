"""Sessions: sign-in, cookies, forms of other sites, renewal and end."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from administration.access.authentication import PERSON_COOKIE
from administration.access.sign_in import hash_of
from administration.access.who import csrf_of_cookie
from domain.access import Role
from tests.builders import NOW
from tests.unit.administration.access.world import PASSWORD, PROJECT_TOKEN, Client, World, a_world, served


async def sign_in(client: Client, name: str = "ada", password: str = PASSWORD, **headers: str) -> int:
    response = await client.post("/sign-in", data={"name": name, "password": password}, headers=headers)
    return response.status


async def who(client: Client, path: str = "/who", **headers: str) -> tuple[int, str]:
    response = await client.get(path, headers=headers)
    answer = await response.json(content_type=None)
    return response.status, answer.get("name") or answer["title"]


def value_of(client: Client) -> str:
    [value] = [one.value for one in client.session.cookie_jar if one.key == PERSON_COOKIE]
    return value


async def test_session_lasts_until_sign_out() -> None:
    world = a_world()
    await world.person()
    async with served(world) as client:
        assert await who(client) == (200, "anonymous")
        assert await sign_in(client) == 200
        assert await who(client) == (200, "ada")

        out = await client.post("/sign-out", data={"csrf": csrf_of_cookie(value_of(client))})

        assert out.status == 200
        assert await who(client) == (200, "anonymous")


async def test_cookie_is_http_only_and_stored_as_hash() -> None:
    world = a_world()
    await world.person()
    async with served(world) as client:
        response = await client.post("/sign-in", data={"name": "ada", "password": PASSWORD})

        cookie = response.headers["Set-Cookie"]
        value = value_of(client)

    assert all(part in cookie for part in ("HttpOnly", "SameSite=Lax", "Path=/", "Max-Age=2592000"))
    assert "Secure" not in cookie  # the master URL is http
    assert len(value) == 43
    [session] = await world.store.access.sessions((await world.store.access.person("ada")).person_id, now=NOW, limit=2)
    assert session.session_hash == hash_of(value)


@pytest.mark.parametrize(
    ("url", "headers"),
    [("https://muster.example.org/", {}), ("http://muster.example.org/", {"X-Forwarded-Proto": "https"})],
    ids=["https in project.url", "TLS proxy"],
)
async def test_cookie_is_secure_behind_tls(url: str, headers: dict[str, str]) -> None:
    world = a_world({"project.url": url})
    await world.person()
    async with served(world) as client:
        response = await client.post("/sign-in", data={"name": "ada", "password": PASSWORD}, headers=headers)

    assert response.status == 200
    assert "Secure" in response.headers["Set-Cookie"]


async def test_changes_need_the_csrf_value() -> None:
    world = a_world()
    await world.person()
    async with served(world) as client:
        await sign_in(client)
        secret = csrf_of_cookie(value_of(client))
        sent: list[tuple[Mapping[str, str], Mapping[str, str]]] = [
            ({}, {}),
            ({"csrf": secret[::-1]}, {}),
            ({}, {"X-CSRF-Token": "wrong"}),
            ({"csrf": secret}, {"Origin": "https://elsewhere.example"}),
            ({"csrf": secret}, {"Sec-Fetch-Site": "cross-site"}),
            ({"csrf": secret}, {}),
            ({}, {"X-CSRF-Token": secret}),
        ]

        statuses = [(await client.post("/operator", data=form, headers=headers)).status for form, headers in sent]

    assert statuses == [403, 403, 403, 403, 403, 200, 200]


async def test_form_of_another_site_cannot_sign_in() -> None:
    world = a_world()
    await world.person()
    async with served(world) as client:
        assert await sign_in(client, Origin="https://elsewhere.example") == 403
        assert await who(client) == (200, "anonymous")


async def test_session_is_renewed_up_to_its_maximum() -> None:
    world = a_world()
    await world.person()
    async with served(world) as client:
        await sign_in(client)
        for _ in range(59):
            world.clock.forward(11.9 * 3600)
            assert await who(client) == (200, "ada")
        world.clock.forward(20 * 3600)
        assert await who(client) == (200, "anonymous")

        await sign_in(client)
        world.clock.forward(12 * 3600)
        assert await who(client) == (200, "anonymous")


async def test_roles_and_one_time_passwords_limit_access() -> None:
    world = a_world()
    await world.person("vic", Role.VIEWER)
    await world.person("new", Role.OPERATOR, one_time=True)
    async with served(world) as client:
        assert await who(client, "/viewer") == (401, "not signed in")
        await sign_in(client, "vic")
        assert await who(client, "/viewer") == (200, "vic")
        assert await who(client, "/operator") == (403, "not allowed")

        await sign_in(client, "new")
        assert await who(client, "/operator") == (403, "not allowed")
        form = {"old": PASSWORD, "new": "battery staple", "csrf": csrf_of_cookie(value_of(client))}
        assert (await client.post("/password", data=form)).status == 200
        assert await who(client, "/operator") == (200, "new")
        assert await sign_in(client, "new", PASSWORD) == 403
        assert await sign_in(client, "new", "battery staple") == 200


async def test_new_password_is_checked_and_ends_other_sessions() -> None:
    world = a_world()
    await world.person()
    async with served(world) as one, served(world) as other:
        await sign_in(one)
        await sign_in(other)
        secret = csrf_of_cookie(value_of(one))
        short = await one.post("/password", data={"old": PASSWORD, "new": "short", "csrf": secret})
        wrong = await one.post("/password", data={"old": "guess", "new": "battery staple", "csrf": secret})
        good = await one.post("/password", data={"old": PASSWORD, "new": "battery staple", "csrf": secret})

        assert (short.status, wrong.status, good.status) == (422, 403, 200)
        assert "short" not in (await short.json(content_type=None))["got"]
        assert await who(one) == (200, "ada")
        assert await who(other) == (200, "anonymous")


@pytest.mark.parametrize("value", ["", "x" * 43, "x" * 5000, "é"])
async def test_unknown_cookie_is_anonymous(value: str) -> None:
    async with served(a_world()) as client:
        assert await who(client, Cookie=f"{PERSON_COOKIE}={value}") == (200, "anonymous")


async def test_token_identifies_without_csrf() -> None:
    world: World = a_world()
    async with served(world) as client:
        signed = {"Authorization": f"Bearer {PROJECT_TOKEN}"}
        assert await who(client, "/operator", **signed) == (200, "api")
        assert (await client.post("/who", headers=signed)).status == 200
        assert await who(client, Authorization="Bearer wrong") == (401, "not signed in")
        assert await who(client, Authorization=PROJECT_TOKEN) == (401, "not signed in")
