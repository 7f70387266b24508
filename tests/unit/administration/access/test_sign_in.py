"""Sign-in: names, passwords, rate limits, volunteers and tokens."""

from __future__ import annotations

import pytest

from administration.access.sign_in import (
    Cost,
    checked_password,
    is_of,
    matches,
    network_of,
    one_time_password,
    stretched,
)
from administration.access.who import (
    NotAllowedError,
    NotSignedInError,
    TooManyAttemptsError,
    WrongPasswordError,
    person_with,
)
from administration.accounts import AccountKeys, add_volunteer
from domain.access import Right, Role
from domain.errors import InvalidInputError, NotFoundError
from domain.units import SubmitterId
from tests.facts import missing, states
from tests.stores import as_postgres
from tests.unit.administration.access.world import CHEAP, PASSWORD, PROJECT_TOKEN, World, a_world
from tests.worlds import PROJECT
from wire.attach import password_hash


async def sign_in(world: World, name: str = "ada", password: str = PASSWORD, address: str = "192.0.2.7") -> str:
    return (
        await world.authenticator.signing.person(name, password, address=address, agent="Browser\x07/1")
    ).session.agent


async def test_sign_in_creates_a_session_and_an_audit_entry() -> None:
    world = a_world()
    await world.person()

    assert await sign_in(world) == "Browser?/1"
    [act] = await world.store.access.acts(limit=5)
    assert (act.who, act.what, act.address) == ("ada", "sign_in", "192.0.2.7")


@pytest.mark.parametrize(
    ("name", "password"), [("ada", "wrong"), ("ada", ""), ("eve", PASSWORD), ("a\x00", PASSWORD), ("ada", "x" * 10_000)]
)
async def test_wrong_name_and_password_give_the_same_error(name: str, password: str) -> None:
    world = a_world()
    await world.person()

    with pytest.raises(WrongPasswordError, match="Wrong name or password"):
        await sign_in(world, name, password)


async def test_inactive_person_and_expired_password_are_refused() -> None:
    world = a_world()
    ada, _ = await world.person(), await world.person("new", one_time=True)
    await world.store.access.set_person(ada.person_id, role=ada.role, submitter_id=None, active=False)
    world.clock.forward(100)

    for name in ("ada", "new"):
        with pytest.raises(WrongPasswordError):
            await sign_in(world, name)


async def test_guessing_is_limited_until_a_success() -> None:
    world = a_world()
    await world.person()
    await world.person("bob")
    for _ in range(6):
        with pytest.raises(WrongPasswordError):
            await sign_in(world, password="guess")

    with pytest.raises(TooManyAttemptsError, match="try again in 1 s"):
        await sign_in(world)  # even with the right password
    await sign_in(world, "bob")  # the same address
    await sign_in(world, address="192.0.2.8")  # the same name
    world.clock.forward(1)
    await sign_in(world)
    with pytest.raises(WrongPasswordError):
        await sign_in(world, password="guess")


async def test_own_account_does_not_reset_address_failures() -> None:
    world = a_world()
    await world.person()
    await world.person("mallory")
    for number in range(20):
        with pytest.raises(WrongPasswordError):
            await sign_in(world, f"victim {number}", "guess")
        await sign_in(world, "mallory")

    with pytest.raises(WrongPasswordError):
        await sign_in(world, "victim 20", "guess")
    with pytest.raises(TooManyAttemptsError):
        await sign_in(world, "victim 21", "guess")


async def test_password_with_old_cost_is_hashed_again() -> None:
    world = a_world()
    ada = await world.person()
    await world.store.access.set_password(ada.person_id, stretched(PASSWORD, Cost(4, 8, 1)), one_time_until=None)

    await sign_in(world)

    assert is_of((await world.store.access.person("ada")).password, CHEAP)


async def test_volunteer_signs_in_with_the_account_password() -> None:
    world = a_world()
    hashed = password_hash("secret", "ada@example.org")
    keys, volunteers = AccountKeys(b"secret"), as_postgres(world.store).volunteers
    await add_volunteer(
        as_postgres(world.store).volunteers,
        keys,
        "ada@example.org",
        name="",
        password_hash=hashed,
        now=world.clock.now(),
    )
    await add_volunteer(volunteers, keys, "bob@example.org", name="", password_hash=None, now=world.clock.now())

    async def attempt(email: str, password: str) -> object:
        new = await world.authenticator.signing.volunteer(email, password, address="192.0.2.7", agent="")
        found = await world.store.access.session_of_volunteer(new.session.session_hash, now=world.clock.now())
        assert found is not None
        assert found.volunteer is not None
        return found.volunteer.email

    assert await attempt("Ada@Example.org", "secret") == "ada@example.org"
    for email, password in (
        ("ada@example.org", "wrong"),
        ("bob@example.org", ""),
        ("eve@example.org", "secret"),
        ("a\x00", ""),
    ):
        with pytest.raises(WrongPasswordError):
            await attempt(email, password)


def test_passwords_are_salted_and_checked() -> None:
    one, other = stretched("same", CHEAP), stretched("same", CHEAP)

    assert one.hash != other.hash
    assert matches(one, "same")
    assert not matches(one, "Same")
    assert "hash" not in repr(one)
    assert len({one_time_password() for _ in range(50)}) == 50
    for bad in ("short", "aaaaaaaaaaaaaaaa", "x" * 201, "ADA"):
        with pytest.raises(InvalidInputError, match=r"^password: expected"):
            checked_password(bad, least=3 if bad == "ADA" else 10, name="ada")


@pytest.mark.parametrize(("address", "network"), [("10.1.2.3", "10.1.2.3"), ("2001:db8::1", "2001:db8::/64"), ("", "")])
def test_ipv6_network_counts_as_one_address(address: str, network: str) -> None:
    assert network_of(address) == network


async def test_people_are_invited_changed_and_deactivated() -> None:
    world = a_world()
    people = world.authenticator.people
    invited = await people.add("sue", role=Role.SUBMITTER, submitter="default")

    assert invited.person.submitter_id == SubmitterId(1)
    await sign_in(world, "sue", invited.password)
    again = await people.invite_again("sue")
    with pytest.raises(WrongPasswordError):
        await sign_in(world, "sue", invited.password)
    await sign_in(world, "sue", again.password)
    assert (await people.set("sue", role=Role.VIEWER)).submitter_id == SubmitterId(1)
    assert await people.end_sessions("sue") == 0  # ended when she lost rights
    assert not (await people.set("sue", active=False)).active
    with states(InvalidInputError, "submitter:"):
        await people.add("tom", role=Role.SUBMITTER)
    with pytest.raises(NotFoundError, match="no submitter lab"):
        await people.add("tom", role=Role.SUBMITTER, submitter="lab")


async def test_tokens_have_at_most_their_owners_rights() -> None:
    world = a_world()
    tokens = world.authenticator.tokens
    vic, sue = await world.person("vic", Role.VIEWER), await world.person("sue", Role.SUBMITTER)
    made = await tokens.add("sue", "ci", rights=[Right.SUBMIT], days=1)

    assert (await tokens.person_of(made.value)).rights == {Right.SUBMIT}
    assert (await tokens.person_of(PROJECT_TOKEN)).rights == Role.OPERATOR.rights
    await world.store.access.set_person(sue.person_id, role=Role.VIEWER, submitter_id=None, active=True)
    assert (await tokens.person_of(made.value)).rights == frozenset()
    [listed] = await world.store.access.tokens(limit=5)
    assert listed.last_used_at == world.clock.now()
    with states(InvalidInputError, "scopes:", "any of read", "'operate'"):
        await tokens.add("vic", "more", rights=[Right.OPERATE])
    with pytest.raises(NotAllowedError):
        await tokens.revoke(made.token.token_id, by=person_with(vic))
    world.clock.forward(86400)
    with pytest.raises(NotSignedInError):
        await tokens.person_of(made.value)
    fresh = await tokens.add("vic", "look")
    assert fresh.waits_because is None
    await tokens.revoke(fresh.token.token_id, by=PROJECT)
    with pytest.raises(NotSignedInError):
        await tokens.person_of(fresh.value)


async def test_token_waits_for_the_first_sign_in() -> None:
    world = a_world()
    await world.authenticator.people.add("sue", role=Role.VIEWER)

    made = await world.authenticator.tokens.add("sue", "ci")

    assert not missing(made.waits_because or "", 403, "sue", "console")
    assert (await world.authenticator.tokens.person_of(made.value)).must_change_password
