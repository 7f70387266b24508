"""Tests accounts, submitters and volunteers: unique names, changes, and unknown ones."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest

from domain.batches import TreeKind, TreeRow
from domain.errors import AlreadyExistsError, ConflictError, NotFoundError
from domain.limits import Limit, Quantity, Scope
from domain.units import AccountId, AppId, Instant, VolunteerId
from domain.volunteers import Credentials, Volunteer, VolunteerRecord
from tests.builders import NOW, a_volunteer
from tests.stores import Store
from tests.worlds import a_registered_host, a_registered_volunteer, hash_of


async def test_a_fresh_store_has_the_default_account_and_submitter(store: Store) -> None:
    [account] = await store.people.accounts()
    [submitter] = await store.people.submitters()

    assert (account.name, account.parent_id, account.shares) == ("default", None, 1.0)
    assert (submitter.name, submitter.account_id, submitter.shares) == ("default", account.account_id, 1.0)
    assert submitter.logical_at == 0.0


async def test_accounts_make_a_tree(store: Store) -> None:
    science = await store.people.add_account("science", parent=None, shares=3.0)
    physics = await store.people.add_account("physics", parent="science", shares=0.5)

    assert (science.name, science.parent_id, science.shares) == ("science", None, 3.0)
    assert (physics.parent_id, physics.shares) == (science.account_id, 0.5)
    assert list(await store.people.accounts())[1:] == [science, physics]
    assert await store.views.account_name(physics.account_id) == "physics"


async def test_account_name_is_unique_and_parent_must_exist(store: Store) -> None:
    with pytest.raises(AlreadyExistsError, match="account 'default' already exists"):
        await store.people.add_account("default", parent=None, shares=1.0)
    with pytest.raises(NotFoundError, match="no account nowhere"):
        await store.people.add_account("new", parent="nowhere", shares=1.0)
    assert len(await store.people.accounts()) == 1


async def test_shares_of_accounts_and_submitters_can_be_changed(store: Store) -> None:
    account = await store.people.set_account("default", shares=7.0)
    submitter = await store.people.set_submitter("default", shares=0.0)

    assert account.shares == 7.0
    assert list(await store.people.accounts()) == [account]
    assert submitter.shares == 0.0
    assert await store.people.submitter("default") == submitter


async def test_a_submitter_belongs_to_an_account(store: Store) -> None:
    account = await store.people.add_account("science", parent=None, shares=3.0)
    submitter = await store.people.add_submitter("marie", account="science", shares=2.0, now=NOW)

    assert (submitter.name, submitter.account_id, submitter.shares) == ("marie", account.account_id, 2.0)
    assert await store.people.submitter("marie") == submitter
    assert list(await store.people.submitters())[1:] == [submitter]
    assert await store.views.submitter_name(submitter.submitter_id) == "marie"


async def test_submitter_name_is_unique_and_account_must_exist(store: Store) -> None:
    with pytest.raises(AlreadyExistsError, match="submitter 'default' already exists"):
        await store.people.add_submitter("default", account="default", shares=1.0, now=NOW)
    with pytest.raises(NotFoundError, match="no account nowhere"):
        await store.people.add_submitter("marie", account="nowhere", shares=1.0, now=NOW)


async def test_unknown_people_are_not_found(store: Store) -> None:
    with pytest.raises(NotFoundError, match="no account stranger"):
        await store.people.set_account("stranger", shares=1.0)
    with pytest.raises(NotFoundError, match="no submitter stranger"):
        await store.people.set_submitter("stranger", shares=1.0)
    with pytest.raises(NotFoundError, match="no submitter stranger"):
        await store.people.submitter("stranger")
    with pytest.raises(NotFoundError, match="no account 99"):
        await store.views.account_name(AccountId(99))


# ---------------------------------------------------------------- volunteers


async def test_a_volunteer_is_known_by_the_e_mail_in_lower_case(store: Store) -> None:
    credentials = Credentials(b"nonce", hash_of("key"), b"salt", b"scrypt")

    volunteer_id = await store.volunteers.add_volunteer(
        "Ada@Example.org", name="Ada", credentials=credentials, cross_project_id="c" * 32, beta=True, now=NOW
    )

    email_hash = hashlib.md5(b"ada@example.org").hexdigest()
    external_cpid = hashlib.md5(("c" * 32 + "ada@example.org").encode()).hexdigest()
    volunteer = Volunteer(volunteer_id, "Ada", NOW, email_hash, "c" * 32, external_cpid=external_cpid, beta=True)
    record = VolunteerRecord(volunteer, "ada@example.org", credentials)
    assert await store.volunteers.volunteer_by_email("ADA@example.ORG") == record
    assert list(await store.volunteers.volunteers()) == [record]
    assert await store.volunteers.volunteer_by_email("eve@example.org") is None


async def test_email_is_unique_regardless_of_case(store: Store) -> None:
    await a_registered_volunteer(store, email="ada@example.org")

    with pytest.raises(AlreadyExistsError, match=r"ada@example\.org"):
        await a_registered_volunteer(store, email="Ada@Example.Org")
    assert len(await store.volunteers.volunteers()) == 1


async def test_a_volunteer_without_password_has_none(store: Store) -> None:
    await a_registered_volunteer(store, email="ada@example.org")

    record = await store.volunteers.volunteer_by_email("ada@example.org")

    assert record is not None
    assert (record.credentials.password_salt, record.credentials.password_hash) == (None, None)


async def test_volunteer_preferences_are_returned_to_host(store: Store) -> None:
    host = await a_registered_host(store)
    view = await store.ledger.read(host.key())
    assert view.volunteer is not None
    changed = replace(
        view.volunteer,
        name="Ada L.",
        beta=True,
        no_gpu=True,
        max_jobs=4,
        apps=(AppId(2), AppId(1)),
        no_cpu=True,
        max_cpus=3,
        preferred_at=Instant(7.5),
    )

    await store.volunteers.set_volunteer(replace(changed, created_at=Instant(5.0), email_hash="forged"))

    assert (await store.ledger.read(host.key())).volunteer == changed
    [record] = await store.volunteers.volunteers()
    assert record.volunteer == changed


async def test_concurrently_saved_preferences_are_kept(store: Store) -> None:
    host = await a_registered_host(store)
    read = (await store.ledger.read(host.key())).volunteer
    assert read is not None
    first = replace(read, max_jobs=1, preferred_at=Instant(10.0))

    await store.volunteers.set_volunteer(first, instead_of=read)
    with pytest.raises(ConflictError):
        await store.volunteers.set_volunteer(replace(read, max_jobs=2, preferred_at=Instant(11.0)), instead_of=read)

    assert (await store.ledger.read(host.key())).volunteer == first
    second = replace(first, max_jobs=2, preferred_at=Instant(12.0))
    await store.volunteers.set_volunteer(second, instead_of=first)
    assert (await store.ledger.read(host.key())).volunteer == second


async def test_a_volunteers_new_password_leaves_the_account_key(store: Store) -> None:
    host = await a_registered_host(store)
    [before] = await store.volunteers.volunteers()

    await store.volunteers.set_volunteer_password(host.volunteer_id, salt=b"s" * 16, password_hash=b"h" * 32)

    [after] = await store.volunteers.volunteers()
    assert after.credentials == replace(before.credentials, password_salt=b"s" * 16, password_hash=b"h" * 32)
    assert (await store.ledger.read(host.key())).volunteer == before.volunteer
    with pytest.raises(NotFoundError):
        await store.volunteers.set_volunteer_password(VolunteerId(999), salt=b"", password_hash=b"")


async def test_volunteers_are_listed_page_by_page(store: Store) -> None:
    for _ in range(3):
        await a_registered_host(store)
    everyone = list(await store.volunteers.volunteers())

    page = await store.volunteers.volunteers(limit=1, after=everyone[0].volunteer.volunteer_id)

    assert [one.volunteer.volunteer_id for one in everyone] == [1, 2, 3]
    assert list(page) == [everyone[1]]


async def test_an_unknown_volunteer_cannot_be_changed(store: Store) -> None:
    with pytest.raises(NotFoundError, match="no volunteer 99"):
        await store.volunteers.set_volunteer(a_volunteer(volunteer_id=VolunteerId(99)))


async def test_accounts_move_but_not_below_themselves(store: Store) -> None:
    people = store.people
    for name, parent in (("science", None), ("physics", "science"), ("optics", "physics")):
        await people.add_account(name, parent=parent, shares=1.0)
    for above in ("science", "physics", "optics"):
        with pytest.raises(ConflictError):
            await people.move_account("science", parent=above)
    with pytest.raises(NotFoundError):
        await people.move_account("optics", parent="nowhere")

    await people.move_account("optics", parent=None)
    await people.move_account("science", parent="optics")

    parents = {row.name: row.parent for row in await people.tree() if row.kind is TreeKind.ACCOUNT}
    assert parents == {"default": "", "optics": "", "science": "optics", "physics": "science"}


async def test_renamed_account_and_submitter_keep_their_place(store: Store) -> None:
    account = await store.people.add_account("physics", parent=None, shares=2.0)
    await store.people.add_submitter("ada", account="physics", shares=3.0, now=NOW)
    for kind, name in (("account", "physics"), ("submitter", "ada")):
        await store.ordering_rules.put_limit(Limit(Scope(kind), Quantity.JOBS, name, hard=2.0))
    await store.people.rename("account", "physics", "optics")
    await store.people.rename("submitter", "ada", "lovelace")

    submitter = await store.people.submitter("lovelace")
    assert (submitter.account_id, submitter.shares) == (account.account_id, 3.0)
    assert {limit.name for limit in await store.ordering_rules.limits()} == {"optics", "lovelace"}
    with pytest.raises(NotFoundError):
        await store.people.rename("account", "physics", "more")
    with pytest.raises(AlreadyExistsError):
        await store.people.rename("submitter", "lovelace", "default")


async def test_only_what_nothing_belongs_to_is_deleted(store: Store) -> None:
    people = store.people
    await people.add_account("physics", parent=None, shares=1.0)
    await people.add_account("optics", parent="physics", shares=1.0)
    await people.add_submitter("ada", account="optics", shares=1.0, now=NOW)
    await people.put_membership("default", account="optics", shares=1.0)
    for name in ("physics", "optics"):
        with pytest.raises(ConflictError):
            await people.drop("account", name)

    await people.drop("submitter", "ada")
    with pytest.raises(ConflictError):
        await people.drop("account", "optics")  # of another's further accounts
    with pytest.raises(NotFoundError):
        await people.drop("submitter", "ada")
    added = await people.add_submitter("eve", account="physics", shares=1.0, now=NOW)
    assert (await people.submitter("eve")).submitter_id == added.submitter_id


async def test_tree_is_loaded_as_planned(store: Store) -> None:
    people = store.people
    physics = TreeRow(TreeKind.ACCOUNT, "physics", "", 2.0, ("expedite",))
    optics = TreeRow(TreeKind.ACCOUNT, "optics", "physics", 0.5)
    ada = TreeRow(TreeKind.SUBMITTER, "ada", "optics", 1.5, ("raise",))
    more = TreeRow(TreeKind.MEMBERSHIP, "ada", "physics", 0.25)
    before = list(await people.tree())
    assert list(await people.load_tree(lambda current: [physics, optics, ada, more], now=NOW)) == [
        physics,
        optics,
        ada,
        more,
    ]
    assert {*before, physics, optics, ada, more} == set(await people.tree())

    moved = TreeRow(TreeKind.SUBMITTER, "ada", "physics", 4.0)
    await people.load_tree(lambda current: [moved] if ada in current else [], now=NOW)
    assert moved in await people.tree() and ada not in await people.tree()


async def test_usage_of_one_submitter_is_reset(store: Store) -> None:
    assert await store.ordering_rules.reset_usage(submitter="default", account=None) == 0
