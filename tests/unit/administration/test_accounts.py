"""Account keys, passwords and e-mails."""

from __future__ import annotations

import hashlib

import pytest

from administration.accounts import AccountKeys, add_volunteer, authenticator_hash, checked_email, password_matches
from domain.errors import AlreadyExistsError, InvalidInputError
from domain.units import VolunteerId
from domain.volunteers import Credentials, Volunteer, VolunteerRecord
from tests.builders import NOW
from tests.facts import states
from tests.memory import MemoryStore
from tests.stores import as_postgres
from wire.attach import password_hash

KEYS = AccountKeys(b"the project's secret")
HASH = password_hash("correct horse", "ada@example.org")


def a_record(credentials: Credentials) -> VolunteerRecord:
    return VolunteerRecord(Volunteer(VolunteerId(1), "Ada", NOW), "ada@example.org", credentials)


def test_account_key_is_derived_from_the_nonce() -> None:
    key = KEYS.authenticator(b"nonce")

    assert len(key) == 32
    assert set(key) <= set("0123456789abcdef")
    assert AccountKeys(b"the project's secret").authenticator(b"nonce") == key


def test_account_keys_differ_by_nonce_and_project() -> None:
    others = {KEYS.authenticator(b"other"), AccountKeys(b"another secret").authenticator(b"nonce")}

    assert KEYS.authenticator(b"nonce") not in others
    assert len(others) == 2


def test_api_token_is_not_an_account_key() -> None:
    assert KEYS.api_token() == AccountKeys(b"the project's secret").api_token()
    assert KEYS.api_token() != AccountKeys(b"another secret").api_token()
    assert len(KEYS.api_token()) == 64


def test_credentials_store_the_hash_of_the_key() -> None:
    credentials = KEYS.new_credentials(None)

    key = KEYS.authenticator(credentials.authenticator_nonce)
    assert credentials.authenticator_hash == authenticator_hash(key) == hashlib.sha256(key.encode()).digest()


def test_volunteers_have_different_nonces_and_salts() -> None:
    made = [KEYS.new_credentials(HASH) for _ in range(2)]

    assert len({credentials.authenticator_nonce for credentials in made}) == 2
    assert len({credentials.password_salt for credentials in made}) == 2
    assert len({credentials.password_hash for credentials in made}) == 2


def test_only_the_right_password_matches() -> None:
    record = a_record(KEYS.new_credentials(HASH))

    assert password_matches(record, HASH)
    assert not password_matches(record, password_hash("wrong horse", "ada@example.org"))
    assert not password_matches(record, "")
    assert not password_matches(record, HASH.upper())


def test_stored_credentials_reveal_no_secret() -> None:
    credentials = KEYS.new_credentials(HASH)

    stored = repr(credentials)
    assert HASH not in stored
    assert KEYS.authenticator(credentials.authenticator_nonce) not in stored


@pytest.mark.parametrize("tried", ["", HASH])
def test_account_without_password_matches_none(tried: str) -> None:
    credentials = KEYS.new_credentials(None)

    assert (credentials.password_salt, credentials.password_hash) == (None, None)
    assert not password_matches(a_record(credentials), tried)


@pytest.mark.parametrize("email", ["ada@example.org", "a.b+c@x", "ж@пример.рф", "a" * 64 + "@" + "b" * 189])
def test_email_is_lower_cased(email: str) -> None:
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
def test_invalid_email_is_refused(email: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        checked_email(email)

    assert (caught.value.field, caught.value.got) == ("email", email)
    assert str(caught.value).startswith("email: ")


async def added(store: MemoryStore, email: str = "Ada@Example.org", name: str = "") -> VolunteerRecord:
    account = await add_volunteer(as_postgres(store).volunteers, KEYS, email, name=name, password_hash=HASH, now=NOW)
    record = await store.volunteers.volunteer_by_email(email)
    assert record is not None
    assert KEYS.authenticator(record.credentials.authenticator_nonce) == account.authenticator
    assert record.volunteer.volunteer_id == account.volunteer_id
    return record


async def test_new_volunteer_is_found_by_email() -> None:
    record = await added(MemoryStore(), name="Ada Lovelace")

    assert (record.email, record.volunteer.name, record.volunteer.created_at) == (
        "ada@example.org",
        "Ada Lovelace",
        NOW,
    )
    assert password_matches(record, HASH)


async def test_default_name_is_the_local_part_of_the_email() -> None:
    assert (await added(MemoryStore())).volunteer.name == "ada"


async def test_cross_project_ids_are_different_md5s() -> None:
    store = MemoryStore()

    ids = {(await added(store, email)).volunteer.cross_project_id for email in ("a@x", "b@x")}

    assert {len(one) for one in ids} == {32}
    assert len(ids) == 2


async def test_email_is_unique_regardless_of_case() -> None:
    store = MemoryStore()
    await added(store, "ada@example.org")

    with pytest.raises(AlreadyExistsError, match=r"ada@example\.org"):
        await added(store, "ADA@example.org")


@pytest.mark.parametrize("name", ["x" * 255, "a\0b", "a\nb", "\x1b[31m", "a\x7fb"])
async def test_unprintable_or_long_name_is_refused(name: str) -> None:
    store = MemoryStore()

    with states(InvalidInputError, "name:", "at most 254 characters"):
        await added(store, name=name)

    assert await store.volunteers.volunteers() == []


async def test_name_may_be_in_any_script() -> None:
    assert (await added(MemoryStore(), name="Ада 愛 🙂")).volunteer.name == "Ада 愛 🙂"
