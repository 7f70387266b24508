"""Sessions from the first form to the last: cookies, forms of other sites, renewals and ends."""

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


async def test_who_signs_in_is_known_until_signing_out() -> None:
    world = a_world()
    await world.person()
    async with served(world) as client:
        assert await who(client) == (200, "nobody")
        assert await sign_in(client) == 200
        assert await who(client) == (200, "ada")

        out = await client.post("/sign-out", data={"csrf": csrf_of_cookie(value_of(client))})

        assert out.status == 200
        assert await who(client) == (200, "nobody")


async def test_the_cookie_is_for_the_server_alone_and_its_value_is_not_kept() -> None:
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
    ids=["https in project.url", "a proxy that speaks TLS"],
)
async def test_the_cookie_is_secure_behind_tls(url: str, headers: dict[str, str]) -> None:
    world = a_world({"project.url": url})
    await world.person()
    async with served(world) as client:
        response = await client.post("/sign-in", data={"name": "ada", "password": PASSWORD}, headers=headers)

    assert response.status == 200
    assert "Secure" in response.headers["Set-Cookie"]


async def test_a_change_needs_what_only_the_sites_own_pages_know() -> None:
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


async def test_another_sites_page_signs_nobody_in() -> None:
    world = a_world()
    await world.person()
    async with served(world) as client:
        assert await sign_in(client, Origin="https://elsewhere.example") == 403
        assert await who(client) == (200, "nobody")


async def test_a_session_lasts_while_it_is_used_but_not_for_ever() -> None:
    world = a_world()
    await world.person()
    async with served(world) as client:
        await sign_in(client)
        for _ in range(59):
            world.clock.forward(11.9 * 3600)
            assert await who(client) == (200, "ada")
        world.clock.forward(20 * 3600)
        assert await who(client) == (200, "nobody")

        await sign_in(client)
        world.clock.forward(12 * 3600)
        assert await who(client) == (200, "nobody")


async def test_roles_are_kept_apart_and_a_one_time_password_opens_nothing_else() -> None:
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


async def test_a_new_password_must_be_worth_its_name_and_ends_other_sessions() -> None:
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
        assert await who(other) == (200, "nobody")


@pytest.mark.parametrize("value", ["", "x" * 43, "x" * 5000, "é"])
async def test_a_cookie_nobody_gave_out_is_nobody(value: str) -> None:
    async with served(a_world()) as client:
        assert await who(client, Cookie=f"{PERSON_COOKIE}={value}") == (200, "nobody")


async def test_a_token_says_who_it_is_without_a_form() -> None:
    world: World = a_world()
    async with served(world) as client:
        signed = {"Authorization": f"Bearer {PROJECT_TOKEN}"}
        assert await who(client, "/operator", **signed) == (200, "api")
        assert (await client.post("/who", headers=signed)).status == 200
        assert await who(client, Authorization="Bearer wrong") == (401, "not signed in")
        assert await who(client, Authorization=PROJECT_TOKEN) == (401, "not signed in")
