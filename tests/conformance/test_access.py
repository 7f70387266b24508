"""Tests people who sign in, their sessions and tokens, and the audit trail."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest

from administration.access.trail import trail_page
from domain.access import (
    KNOWN_FOR_S,
    AccessSettings,
    Act,
    ActChoice,
    Guess,
    PersonRecord,
    Right,
    Role,
    Session,
    Stretched,
)
from domain.errors import AlreadyExistsError, NotFoundError
from domain.units import Instant, PersonId, SubmitterId, TokenId, VolunteerId, later
from store.people import PostgresAccess
from tests.builders import NOW
from tests.stores import Store
from tests.worlds import a_registered_host

KEPT = Stretched(b"h" * 32, b"s" * 16, 2, 8, 1)
SETTINGS = AccessSettings()


async def add(store: Store, name: str = "ada", role: Role = Role.OPERATOR) -> PersonRecord:
    return await store.access.add_person(
        name, role=role, submitter_id=None, password=KEPT, one_time_until=None, now=NOW
    )


def a_session(number: int = 1, *, of: PersonId | None = None, volunteer: VolunteerId | None = None) -> Session:
    new = Session(bytes([number]) * 32, NOW, NOW, NOW, "192.0.2.7", "Browser/1", of, volunteer)
    return new.renewed(NOW, SETTINGS)


async def test_people_are_kept_as_they_were_added(store: Store) -> None:
    ada = await store.access.add_person(
        "ada",
        role=Role.SUBMITTER,
        submitter_id=SubmitterId(1),
        password=KEPT,
        one_time_until=later(NOW, 60),
        now=NOW,
    )
    bob = await add(store, "bob")

    assert ada == PersonRecord(ada.person_id, "ada", Role.SUBMITTER, KEPT, NOW, SubmitterId(1), later(NOW, 60))
    assert await store.access.person("ada") == ada
    assert list(await store.access.people(limit=10)) == [ada, bob]
    assert list(await store.access.people(limit=10, after=ada.person_id)) == [bob]
    assert list(await store.access.people_named([bob.name, ada.name, "stranger"])) == [ada, bob]
    assert list(await store.access.people_named([bob.name])) == [bob]
    with pytest.raises(AlreadyExistsError, match="person 'ada' already exists"):
        await add(store, "ada")
    with pytest.raises(NotFoundError, match="no person eve"):
        await store.access.person("eve")


async def test_people_are_changed(store: Store) -> None:
    ada = await add(store)

    changed = await store.access.set_person(ada.person_id, role=Role.VIEWER, submitter_id=SubmitterId(1), active=False)
    await store.access.set_password(ada.person_id, replace(KEPT, n=4), one_time_until=later(NOW, 5))

    assert changed == replace(ada, role=Role.VIEWER, submitter_id=SubmitterId(1), active=False)
    found = await store.access.person("ada")
    assert found == replace(changed, password=replace(KEPT, n=4), one_time_until=later(NOW, 5))
    for act in (
        store.access.set_person(PersonId(99), role=Role.VIEWER, submitter_id=None, active=True),
        store.access.set_password(PersonId(99), KEPT, one_time_until=None),
    ):
        with pytest.raises(NotFoundError, match="no person 99"):
            await act


async def test_a_session_tells_whose_it_is_until_it_ends(store: Store) -> None:
    ada = await add(store)
    session = a_session(of=ada.person_id)
    await store.access.add_session(session)

    found = await store.access.session_of_person(session.session_hash, now=NOW)
    assert found is not None
    assert (found.session, found.person, found.volunteer) == (session, ada, None)
    assert await store.access.session_of_volunteer(session.session_hash, now=NOW) is None
    assert await store.access.session_of_person(b"x" * 32, now=NOW) is None
    assert await store.access.session_of_person(session.session_hash, now=session.expires_at) is None

    await store.access.renew_session(session.renewed(later(NOW, 100), SETTINGS))
    found = await store.access.session_of_person(session.session_hash, now=session.expires_at)
    assert found is not None
    assert (found.session.seen_at, found.session.created_at) == (later(NOW, 100), NOW)

    await store.access.end_session(session.session_hash)
    assert await store.access.session_of_person(session.session_hash, now=NOW) is None


async def test_blocked_person_has_no_session(store: Store) -> None:
    ada = await add(store)
    session = a_session(of=ada.person_id)
    await store.access.add_session(session)

    await store.access.set_person(ada.person_id, role=ada.role, submitter_id=None, active=False)

    assert await store.access.session_of_person(session.session_hash, now=NOW) is None


async def test_sessions_of_a_person_are_listed_and_ended_together(store: Store) -> None:
    ada, bob = await add(store), await add(store, "bob")
    first, second, other = (
        a_session(1, of=ada.person_id),
        a_session(2, of=ada.person_id),
        a_session(3, of=bob.person_id),
    )
    for one in (first, second, other):
        await store.access.add_session(one)
    used = first.renewed(later(NOW, 9), SETTINGS)
    await store.access.renew_session(used)

    assert list(await store.access.sessions(ada.person_id, now=NOW, limit=5)) == [used, second]
    assert await store.access.end_sessions_of_person(ada.person_id, but=first.session_hash) == 1
    assert list(await store.access.sessions(ada.person_id, now=NOW, limit=5)) == [used]
    assert await store.access.end_sessions_of_person(ada.person_id) == 1
    assert len(await store.access.sessions(bob.person_id, now=NOW, limit=5)) == 1


async def test_a_volunteers_session_tells_who_it_is(store: Store) -> None:
    await a_registered_host(store)
    [ada] = await store.volunteers.volunteers()
    session = a_session(volunteer=ada.volunteer.volunteer_id)
    await store.access.add_session(session)

    found = await store.access.session_of_volunteer(session.session_hash, now=NOW)
    assert found is not None
    assert (found.session, found.person, found.volunteer) == (session, None, ada)
    assert await store.access.session_of_person(session.session_hash, now=NOW) is None
    assert await store.access.end_sessions_of_volunteer(ada.volunteer.volunteer_id) == 1
    assert await store.access.session_of_volunteer(session.session_hash, now=NOW) is None


async def test_tokens_are_found_by_their_hash_noted_and_revoked(store: Store) -> None:
    ada = await add(store)
    made = await store.access.add_token(
        b"t" * 32,
        name="ci",
        person_id=ada.person_id,
        rights=frozenset({Right.READ, Right.SUBMIT}),
        expires_at=later(NOW, 60),
        now=NOW,
    )

    assert await store.access.token(b"t" * 32) == (made, ada)
    assert await store.access.token(b"u" * 32) is None
    assert (made.rights, made.serves(NOW)) == (frozenset({Right.READ, Right.SUBMIT}), True)
    assert not made.serves(later(NOW, 60))
    await store.access.note_token_use(made.token_id, now=later(NOW, 5))
    revoked = await store.access.revoke_token(made.token_id, now=later(NOW, 6))
    again = await store.access.revoke_token(made.token_id, now=later(NOW, 7))

    assert revoked == again == replace(made, last_used_at=later(NOW, 5), revoked_at=later(NOW, 6))
    assert not revoked.serves(NOW)
    with pytest.raises(NotFoundError, match="no token 99"):
        await store.access.revoke_token(TokenId(99), now=NOW)
    await store.access.set_person(ada.person_id, role=ada.role, submitter_id=None, active=False)
    assert await store.access.token(b"t" * 32) is None


async def test_tokens_are_listed_by_owner_and_page(store: Store) -> None:
    ada, bob = await add(store), await add(store, "bob")
    made = [
        await store.access.add_token(
            bytes([number]) * 32, name=f"t{number}", person_id=owner, rights=frozenset(Right), expires_at=None, now=NOW
        )
        for number, owner in enumerate((ada.person_id, bob.person_id, ada.person_id))
    ]

    assert list(await store.access.tokens(limit=2)) == made[:2]
    assert list(await store.access.tokens(limit=2, after=made[1].token_id)) == made[2:]
    assert list(await store.access.tokens(person_id=ada.person_id, limit=9)) == [made[0], made[2]]


async def test_failures_wait_ever_longer_and_are_forgotten(store: Store) -> None:
    async def attempt(at_s: float, who: str = "ada", network: str = "1") -> float:
        return await store.access.begin_attempt(Guess(who, network), now=later(NOW, at_s))

    assert [await attempt(0) for _ in range(7)] == [0, 0, 0, 0, 0, 0, 1]
    assert await attempt(0, "bob") == 0
    assert await attempt(0, network="2") == 0
    assert [await attempt(1), await attempt(1), await attempt(3), await attempt(3)] == [0, 2, 0, 4]
    await store.access.end_attempt(Guess("ada", "1"), now=later(NOW, 3))
    assert await attempt(3) == 0
    assert [await attempt(3) for _ in range(6)][-1] == 1
    assert await attempt(4000) == 0


async def test_failures_count_per_address_and_per_name(store: Store) -> None:
    async def attempt(who: str, network: str) -> float:
        return await store.access.begin_attempt(Guess(who, network), now=NOW)

    assert [await attempt(f"name {number}", "1") for number in range(22)] == [0] * 21 + [1]
    assert [await attempt("ada", f"address {number}") for number in range(22)] == [0] * 21 + [1]
    assert await attempt("bob", "2") == 0


async def test_guesses_from_elsewhere_do_not_lock_an_owner_out(store: Store) -> None:
    home = Guess("ada", "home")
    assert not await store.access.begin_attempt(home, now=NOW)
    await store.access.end_attempt(home, now=NOW)
    for number in range(40):
        await store.access.begin_attempt(Guess("ada", f"bot {number}"), now=NOW)

    assert not await store.access.begin_attempt(home, now=NOW)
    assert await store.access.begin_attempt(Guess("ada", "new place"), now=NOW) > 0
    much_later = later(NOW, KNOWN_FOR_S + 10.0)
    for number in range(40):
        await store.access.begin_attempt(Guess("ada", f"bot {number}"), now=much_later)
    assert await store.access.begin_attempt(home, now=much_later) > 0


async def test_audit_trail_is_newest_first(store: Store) -> None:
    for number in range(3):
        act = Act(
            later(NOW, number), "ada", "abort_batch", f"batch {number}", {"why": "wrong", "n": number}, "192.0.2.7"
        )
        await store.access.note_act(act)

    acts = list(await store.access.acts(limit=2))

    assert [act.target for act in acts] == ["batch 2", "batch 1"]
    assert acts[0].detail == {"why": "wrong", "n": 2}
    assert (acts[0].who, acts[0].what, acts[0].acted_at, acts[0].address) == (
        "ada",
        "abort_batch",
        Instant(NOW + 2),
        "192.0.2.7",
    )
    assert [act.target for act in await store.access.acts(limit=9, before=acts[1].act_id)] == ["batch 0"]


async def test_acts_are_chosen_by_who_what_subject_and_time(store: Store) -> None:
    for number in range(12):
        target = f"batch {number % 4}" if number % 2 else f"setting a, setting {number % 3}"
        await store.access.note_act(
            Act(later(NOW, 10.0 * number), ("ada", "bob")[number % 2], ("abort", "set")[number % 3 == 0], target)
        )
    for old in ("batch_id 3", "app_version_id 7"):
        await store.access.note_act(Act(later(NOW, 500.0), "ada", "abort", old))

    async def found(choice: ActChoice, **more: int) -> list[int]:
        first = (await store.access.act_range(ActChoice()))[0]
        return [one.act_id - first for one in await store.access.acts(choice, limit=99, **more)]

    assert await found(ActChoice(who="bob", what="set")) == [9, 3]
    assert await found(ActChoice(subject="setting a")) == [10, 8, 6, 4, 2, 0]
    assert await found(ActChoice(subject="setting 2")) == [8, 2]
    assert await found(ActChoice(subject="batch 3")) == [12, 11, 7, 3]
    assert await found(ActChoice(subject="app version 7")) == [13]
    assert await found(ActChoice(subject="batch")) == []
    for since, until, numbers in ((0, 20, (0, 2)), (15, 41, (2, 5)), (200, 400, (12, 12)), (600, 700, (14, 14))):
        asked = ActChoice(since=later(NOW, since), until=later(NOW, until))
        first, end = await store.access.act_range(asked)
        assert (first - (await store.access.act_range(ActChoice()))[0], end - first) == (
            numbers[0],
            numbers[1] - numbers[0],
        )
        shown = [one.acted_at for one in await store.access.acts(asked, limit=99, before=end, first=first)]
        assert all(asked.since <= at < asked.until for at in shown) and len(shown) == end - first
    assert await store.access.person_names([PersonId(99)]) == {}


async def test_acts_are_chosen_by_the_kind_of_restriction(store: Store) -> None:
    for what, target, detail in (
        ("restrict", "host 1", {"max_jobs": 0}),
        ("restrict", "volunteer 2", {"max_jobs": 3}),
        ("restrict", "app pi", {"why": "slow"}),
        ("lift_restriction", "host 1", {}),
        ("lift_restriction", "queue bonus", {}),
        ("restrict", "host 4", {"why": "wrong"}),
    ):
        await store.access.note_act(Act(NOW, "ada", what, target, detail))
    for action, targets in {
        "ban": ["host 4", "host 1"],
        "limit": ["volunteer 2"],
        "pause": ["app pi"],
        "lift": ["host 1"],
        "resume": ["queue bonus"],
        "lift_restriction": ["queue bonus", "host 1"],
    }.items():
        for who in ("", "ada"):
            found = await store.access.acts(ActChoice(who=who, what=action), limit=9)
            assert [one.target for one in found] == targets
            assert all(action in (one.what, one.action) for one in found)


async def test_the_trail_of_a_user_is_searched_by_its_own_entries(store: Store) -> None:
    for number in range(30):
        act = Act(NOW, "ada" if number % 10 == 0 else "bob", "abort" if number else "submit", f"batch {number}")
        await store.access.note_act(act)
    assert [await store.access.latest_actions(among) for among in (30, 29)] == [["abort", "submit"], ["abort"]]
    first, end = await store.access.act_range(ActChoice())

    assert await store.access.first_act("ada", before=end, among=2) == first + 10
    assert await store.access.first_act("ada", before=first + 20, among=2) == first
    assert await store.access.first_act("ada", before=end, among=4) == 0
    access = cast(PostgresAccess, store.access)
    page = await trail_page(access, ActChoice(who="ada"), before=None, limit=2)
    assert ([one.target for one in page.acts], page.next_before) == (["batch 20", "batch 10"], first + 10)


async def test_empty_trail_has_an_empty_range(store: Store) -> None:
    first, end = await store.access.act_range(ActChoice())
    assert first == end
    assert list(await store.access.acts(limit=9, before=end, first=first)) == []
    await store.access.note_act(Act(NOW, "ada", "abort_batch"))
    assert list(await store.access.acts(limit=9, before=0)) == []
