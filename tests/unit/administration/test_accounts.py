"""Account keys, passwords and e-mails."""

from __future__ import annotations

import hashlib

import pytest

from administration.accounts import AccountKeys, add_volunteer, authenticator_hash, checked_email, password_matches
from domain.errors import AlreadyExistsError, InvalidInputError
from domain.units import VolunteerId
from domain.volunteers import Credentials, Volunteer, VolunteerRecord
from tests.builders import NOW
from tests.memory import MemoryStore
from wire.attach import password_hash

KEYS = AccountKeys(b"the project's secret")
HASH = password_hash("correct horse", "ada@example.org")


def a_record(credentials: Credentials) -> VolunteerRecord:
    return VolunteerRecord(Volunteer(VolunteerId(1), "Ada", NOW), "ada@example.org", credentials)


def test_an_account_key_is_thirty_two_digits_that_follow_from_the_nonce() -> None:
    key = KEYS.authenticator(b"nonce")

    assert len(key) == 32
    assert set(key) <= set("0123456789abcdef")
    assert AccountKeys(b"the project's secret").authenticator(b"nonce") == key


def test_another_nonce_or_another_project_has_another_key() -> None:
    others = {KEYS.authenticator(b"other"), AccountKeys(b"another secret").authenticator(b"nonce")}

    assert KEYS.authenticator(b"nonce") not in others
    assert len(others) == 2


def test_the_operators_token_is_no_account_key() -> None:
    assert KEYS.api_token() == AccountKeys(b"the project's secret").api_token()
    assert KEYS.api_token() != AccountKeys(b"another secret").api_token()
    assert len(KEYS.api_token()) == 64


def test_credentials_hold_the_hash_of_the_key_that_their_nonce_gives() -> None:
    credentials = KEYS.new_credentials(None)

    key = KEYS.authenticator(credentials.authenticator_nonce)
    assert credentials.authenticator_hash == authenticator_hash(key) == hashlib.sha256(key.encode()).digest()


def test_no_two_volunteers_share_nonce_or_salt() -> None:
    made = [KEYS.new_credentials(HASH) for _ in range(2)]

    assert len({credentials.authenticator_nonce for credentials in made}) == 2
    assert len({credentials.password_salt for credentials in made}) == 2
    assert len({credentials.password_hash for credentials in made}) == 2


def test_the_right_password_matches_and_a_wrong_one_does_not() -> None:
    record = a_record(KEYS.new_credentials(HASH))

    assert password_matches(record, HASH)
    assert not password_matches(record, password_hash("wrong horse", "ada@example.org"))
    assert not password_matches(record, "")
    assert not password_matches(record, HASH.upper())


def test_nothing_stored_shows_the_password_or_the_key() -> None:
    credentials = KEYS.new_credentials(HASH)

    stored = repr(credentials)
    assert HASH not in stored
    assert KEYS.authenticator(credentials.authenticator_nonce) not in stored


@pytest.mark.parametrize("tried", ["", HASH])
def test_an_account_without_a_password_cannot_be_opened_with_one(tried: str) -> None:
    credentials = KEYS.new_credentials(None)

    assert (credentials.password_salt, credentials.password_hash) == (None, None)
    assert not password_matches(a_record(credentials), tried)


@pytest.mark.parametrize("email", ["ada@example.org", "a.b+c@x", "ж@пример.рф", "a" * 64 + "@" + "b" * 189])
def test_an_email_is_taken_in_lower_case(email: str) -> None:
    assert checked_email(email) == email
    assert checked_email(email.upper()) == email.upper().lower()


@pytest.mark.parametrize(
    "email",
    [
        "",
        "ada",
        "@example.org",
        "ada@",
        "ada@@example.org",
        "a da@example.org",
        "ada@example.org ",
        "ada@exa\nmple.org",
        "ada@example.org\n",
        "ada\0@example.org",
        "a" * 65 + "@example.org",
        "ada@" + "b" * 190,
    ],
)
def test_what_is_no_email_is_named_in_the_refusal(email: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        checked_email(email)

    assert (caught.value.field, caught.value.got) == ("email", email)
    assert str(caught.value).startswith("email: expected an e-mail address, got ")


async def added(store: MemoryStore, email: str = "Ada@Example.org", name: str = "") -> VolunteerRecord:
    account = await add_volunteer(store.volunteers, KEYS, email, name=name, password_hash=HASH, now=NOW)
    record = await store.volunteers.volunteer_by_email(email)
    assert record is not None
    assert KEYS.authenticator(record.credentials.authenticator_nonce) == account.authenticator
    assert record.volunteer.volunteer_id == account.volunteer_id
    return record


async def test_a_new_volunteer_is_found_by_email_with_the_key_that_was_shown() -> None:
    record = await added(MemoryStore(), name="Ada Lovelace")

    assert (record.email, record.volunteer.name, record.volunteer.created_at) == (
        "ada@example.org",
        "Ada Lovelace",
        NOW,
    )
    assert password_matches(record, HASH)


async def test_a_volunteer_without_a_name_is_called_by_the_front_of_the_email() -> None:
    assert (await added(MemoryStore())).volunteer.name == "ada"


async def test_the_cross_project_id_is_an_md5_that_differs_between_volunteers() -> None:
    store = MemoryStore()

    ids = {(await added(store, email)).volunteer.cross_project_id for email in ("a@x", "b@x")}

    assert {len(one) for one in ids} == {32}
    assert len(ids) == 2


async def test_an_email_is_given_one_account_whatever_its_case() -> None:
    store = MemoryStore()
    await added(store, "ada@example.org")

    with pytest.raises(AlreadyExistsError, match=r"ada@example\.org"):
        await added(store, "ADA@example.org")


@pytest.mark.parametrize("name", ["x" * 255, "a\0b", "a\nb", "\x1b[31m", "a\x7fb"])
async def test_a_name_that_cannot_be_stored_or_shown_is_refused(name: str) -> None:
    store = MemoryStore()

    with pytest.raises(InvalidInputError, match=r"^name: expected at most 254 characters"):
        await added(store, name=name)

    assert await store.volunteers.volunteers() == []


async def test_a_name_of_any_script_is_kept() -> None:
    assert (await added(MemoryStore(), name="Ада 愛 🙂")).volunteer.name == "Ада 愛 🙂"
