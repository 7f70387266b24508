"""Tests apps, plan classes, files and versions, the catalogue, and inherited statistics."""

from __future__ import annotations

from dataclasses import replace

import pytest

from domain.apps import DEFAULT_PLAN_CLASS, NVIDIA, AppFile, PlanClass, VersionState, VersionUse
from domain.catalogue import Catalogue
from domain.errors import AlreadyExistsError, NotFoundError
from domain.havs import HavEventKind
from domain.host_lists import RecentFailures
from domain.jobs import InstanceState
from domain.settings import Settings
from domain.units import AppId, AppVersionId, later
from tests.builders import LINUX, NOW, an_app, an_app_version
from tests.stores import Store
from tests.worlds import (
    DAY_S,
    a_hav_event,
    a_registered_app,
    a_registered_host,
    a_registered_version,
    a_report,
    a_sent_instance,
    a_submitted_batch,
    read,
    report,
)

CUDA = PlanClass("cuda", ncpus=0.5, gpu_type=NVIDIA, gpu_count=0.5, min_gpu_ram_bytes=1e9, min_driver_version=53000)


async def add(store: Store, name: str, *, nbytes: int = 10, md5: str = "a" * 32, signature: str = "") -> None:
    await store.applications.add_file(name, nbytes=nbytes, md5=md5, signature=signature, now=NOW)


# ---------------------------------------------------------------- apps


async def test_an_app_gets_an_id_and_is_found_by_name(store: Store) -> None:
    added = await store.applications.add_app(an_app(app_id=AppId(77), name="e", beta=True, adaptive_copies=2))

    assert replace(added, app_id=AppId(77)) == an_app(app_id=AppId(77), name="e", beta=True, adaptive_copies=2)
    assert await store.applications.app("e") == added
    assert list(await store.applications.apps()) == [added]
    assert await store.views.app_name(added.app_id) == "e"


async def test_an_apps_name_is_taken_once(store: Store) -> None:
    await store.applications.add_app(an_app(name="e"))

    with pytest.raises(AlreadyExistsError, match="app 'e' already exists"):
        await store.applications.add_app(an_app(name="e"))


async def test_an_app_can_be_changed_but_keeps_its_name(store: Store) -> None:
    app = await store.applications.add_app(an_app(name="e"))
    changed = replace(app, user_friendly_name="Digits of e", deprecated=True, beta=True, adaptive_copies=3)

    await store.applications.set_app(replace(changed, name="f"))

    assert await store.applications.app("e") == changed


async def test_unknown_apps_are_not_found(store: Store) -> None:
    with pytest.raises(NotFoundError, match="no app e"):
        await store.applications.app("e")
    with pytest.raises(NotFoundError, match="no app 99"):
        await store.applications.set_app(an_app(app_id=AppId(99)))
    with pytest.raises(NotFoundError, match="no app 99"):
        await store.views.app_name(AppId(99))


# ---------------------------------------------------------------- plan classes


async def test_plan_classes_are_inserted_and_replaced(store: Store) -> None:
    assert await store.applications.plan_classes() == {"": DEFAULT_PLAN_CLASS}

    await store.applications.put_plan_class(CUDA)
    await store.applications.put_plan_class(replace(CUDA, ncpus=1.0, os_pattern="Linux"))

    expected = {"": DEFAULT_PLAN_CLASS, "cuda": replace(CUDA, ncpus=1.0, os_pattern="Linux")}
    assert await store.applications.plan_classes() == expected


async def test_versions_follow_a_change_of_their_plan_class(store: Store) -> None:
    await store.applications.put_plan_class(CUDA)
    version = await a_registered_version(store, plan_class=CUDA)
    await store.applications.put_plan_class(replace(CUDA, gpu_count=1.0))

    catalogue = await store.applications.load_catalogue()

    assert catalogue.versions[version.app_version_id].plan_class == replace(CUDA, gpu_count=1.0)


# ---------------------------------------------------------------- files


async def test_registering_the_same_file_again_changes_nothing(store: Store) -> None:
    await add(store, "in_1")
    await add(store, "in_1")


async def test_a_files_name_never_stands_for_other_contents(store: Store) -> None:
    await add(store, "in_1")

    with pytest.raises(AlreadyExistsError, match="file 'in_1' already exists"):
        await add(store, "in_1", md5="b" * 32)
    with pytest.raises(AlreadyExistsError, match="file 'in_1' already exists"):
        await add(store, "in_1", nbytes=11)


# ---------------------------------------------------------------- versions


async def test_version_has_its_files_in_order(store: Store) -> None:
    main = AppFile("main_1", 10, "a" * 32, "sig main", main_program=True)
    library = AppFile("lib_1", 20, "b" * 32, "sig lib", open_name="lib", copy_file=True, executable=False)

    version = await a_registered_version(store, files=(main, library), created_at=NOW)

    assert version.files == (main, library)
    assert (version.platform, version.api_version, version.created_at) == (LINUX, "7.5.0", NOW)
    assert sorted(await store.applications.app_files(), key=lambda file: file.name) == [library, main]


async def test_version_is_unique_by_app_platform_number_and_class(store: Store) -> None:
    version = await a_registered_version(store, version_num=100)
    await store.applications.put_plan_class(CUDA)

    with pytest.raises(AlreadyExistsError, match="app version"):
        await store.applications.add_app_version(version)

    await store.applications.add_app_version(replace(version, plan_class=CUDA))
    await store.applications.add_app_version(replace(version, platform="windows_x86_64"))
    await store.applications.add_app_version(replace(version, version_num=101))
    assert len((await store.applications.load_catalogue()).versions) == 4


async def test_a_versions_app_plan_class_and_files_must_be_there(store: Store) -> None:
    app = await a_registered_app(store)
    version = an_app_version(app_id=app.app_id, files=())

    with pytest.raises(NotFoundError, match="no app 99"):
        await store.applications.add_app_version(replace(version, app_id=AppId(99)))
    with pytest.raises(NotFoundError, match="no plan class cuda"):
        await store.applications.add_app_version(replace(version, plan_class=CUDA))
    with pytest.raises(NotFoundError, match="no file missing"):
        await store.applications.add_app_version(replace(version, files=(AppFile("missing", 1, "a" * 32, ""),)))
    assert (await store.applications.load_catalogue()).versions == {}


async def test_file_can_be_signed_again(store: Store) -> None:
    version = await a_registered_version(store)
    [file] = version.files

    await store.applications.sign_file(file.name, "new signature")

    assert list(await store.applications.app_files()) == [replace(file, signature="new signature")]
    with pytest.raises(NotFoundError, match="no file missing"):
        await store.applications.sign_file("missing", "signature")


async def test_unsigned_file_can_be_signed_later(store: Store) -> None:
    [file] = an_app_version().files
    await store.applications.add_file(file.name, nbytes=file.nbytes, md5=file.md5, signature="", now=NOW)

    version = await a_registered_version(store)

    assert version.files == (file,)


# ---------------------------------------------------------------- the catalogue


async def test_an_empty_store_has_an_empty_catalogue(store: Store) -> None:
    assert await store.applications.load_catalogue() == Catalogue()


async def test_highest_number_per_platform_and_class_is_current(store: Store) -> None:
    app = await a_registered_app(store)
    await store.applications.put_plan_class(CUDA)
    old = await a_registered_version(store, version_num=100)
    newest = await a_registered_version(store, version_num=103)
    between = await a_registered_version(store, version_num=102)
    withdrawn = await a_registered_version(store, version_num=104, state=VersionState.DEPRECATED)
    cuda = await a_registered_version(store, version_num=90, plan_class=CUDA)
    windows = await a_registered_version(store, version_num=80, platform="windows_x86_64")
    other = await a_registered_app(store, "other")
    others = await a_registered_version(store, other.app_id, version_num=1)

    catalogue = await store.applications.load_catalogue()

    assert catalogue.apps == {app.app_id: app, other.app_id: other}
    every = (old, newest, between, withdrawn, cuda, windows, others)
    assert catalogue.versions == {version.app_version_id: version for version in every}
    assert set(catalogue.current[app.app_id]) == {newest, cuda, windows}
    assert catalogue.current[other.app_id] == (others,)
    assert catalogue.cut_points == {}


async def test_the_catalogue_holds_the_settings_of_the_moment(store: Store) -> None:
    await store.settings.set_setting("deadline.p_tight", 0.8, now=NOW, who="ops", why="")

    catalogue = await store.applications.load_catalogue()

    assert catalogue.settings == Settings.from_mapping({"deadline.p_tight": 0.8})


# ---------------------------------------------------------------- inheritance


async def test_new_version_inherits_statistics_with_small_weight(store: Store) -> None:
    host = await a_registered_host(store)
    old = await a_registered_version(store, version_num=100)
    batch = await a_submitted_batch(store, jobs=13)
    for number in range(13):
        sent = await a_sent_instance(store, batch.batch_id, host, tight=number < 2)
        event = a_hav_event(sent, ln_turnaround_ratio=0.5, speed_s_per_flop=2e-9)
        await report(store, host, a_report(sent, hav_event=event))
    before = (await read(store, host)).havs[old.app_version_id]
    assert (before.relaxed.n, before.tight.n, before.consecutive_valid) == (11.0, 2.0, 13)

    new = await a_registered_version(store, version_num=101)

    after = (await read(store, host)).havs[new.app_version_id]
    assert (after.consecutive_valid, after.quota_per_day) == (11, before.quota_per_day)
    assert (after.relaxed.n, after.relaxed.total, after.relaxed.total_sq) == pytest.approx((5.0, 2.5, 1.25))
    assert (after.tight.n, after.tight.total) == pytest.approx((2.0, 1.0))
    assert (after.speed.n, after.speed.total) == pytest.approx((5.0, 1e-8))
    assert after.relaxed.at == before.relaxed.at
    assert (after.n_valid, after.n_error, after.n_timeout, after.n_due, after.sent_today) == (0, 0, 0, 0, 0)
    assert after.inherited_from == old.app_version_id
    assert (await read(store, host)).havs[old.app_version_id] == before


async def test_predecessor_is_next_lower_number_of_platform_and_class(store: Store) -> None:
    host = await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=9)
    await store.applications.put_plan_class(CUDA)
    by_number: dict[int, AppVersionId] = {}
    for number, plan_class in (
        (100, DEFAULT_PLAN_CLASS),
        (102, DEFAULT_PLAN_CLASS),
        (105, DEFAULT_PLAN_CLASS),
        (103, CUDA),
    ):
        version = await a_registered_version(store, version_num=number, plan_class=plan_class)
        by_number[number] = version.app_version_id
        if number != 102:
            await a_sent_instance(store, batch.batch_id, host, app_version_id=version.app_version_id)

    new = await a_registered_version(store, version_num=104)

    havs = (await read(store, host)).havs
    assert havs[new.app_version_id].inherited_from == by_number[102]
    assert havs[by_number[102]].inherited_from == by_number[100]
    assert havs[by_number[103]].inherited_from is None


async def test_a_first_version_inherits_nothing(store: Store) -> None:
    host = await a_registered_host(store)
    await a_registered_version(store)

    assert (await read(store, host)).havs == {}


async def test_a_host_whose_last_result_failed_inherits_no_valid_ones(store: Store) -> None:
    host = await a_registered_host(store)
    sent = await a_sent_instance(store, (await a_submitted_batch(store)).batch_id, host)
    event = a_hav_event(sent, HavEventKind.ERROR, at=later(NOW, DAY_S))
    await report(store, host, a_report(sent, hav_event=event))

    new = await a_registered_version(store, version_num=500)

    after = (await read(store, host)).havs[new.app_version_id]
    assert (after.consecutive_valid, after.quota_per_day, after.n_error) == (0, 49, 0)
    assert after.failed_last


@pytest.mark.parametrize("state", list(VersionState))
async def test_version_can_be_withdrawn_and_offered_again(store: Store, state: VersionState) -> None:
    app = await a_registered_app(store)
    version = await a_registered_version(store, version_num=200)

    await store.applications.set_version_state(version.app_version_id, state)

    catalogue = await store.applications.load_catalogue()
    assert catalogue.versions[version.app_version_id].state is state
    is_current = version.app_version_id in [one.app_version_id for one in catalogue.current.get(app.app_id, ())]
    assert is_current == (state is VersionState.OFFERED)
    with pytest.raises(NotFoundError, match="no app version 999"):
        await store.applications.set_version_state(AppVersionId(999), state)


# ---------------------------------------------------------------- use of versions


async def test_instances_in_progress_are_counted_by_version(store: Store) -> None:
    host = await a_registered_host(store)
    sent = await a_sent_instance(store, (await a_submitted_batch(store)).batch_id, host)

    assert await store.applications.in_progress_of_version(sent.app_version_id) == (1, 1)
    assert await store.applications.in_progress_of_version(AppVersionId(999)) == (0, 0)

    await report(store, host, a_report(sent))
    assert await store.applications.in_progress_of_version(sent.app_version_id) == (0, 0)


async def test_versions_are_used_by_hosts_and_fail(store: Store) -> None:
    unused = await a_registered_version(store, version_num=99)
    used, host = await a_registered_version(store, version_num=100), await a_registered_host(store)
    batch, at = await a_submitted_batch(store, jobs=2), later(NOW, 3600.0)
    for kind, state in ((HavEventKind.VALID, InstanceState.REPORTED), (HavEventKind.ERROR, InstanceState.FAILED)):
        sent = await a_sent_instance(store, batch.batch_id, host)
        reported = a_report(sent, to_state=state, hav_event=a_hav_event(sent, kind, at=at), reported_at=at)
        await report(store, host, reported)

    failures = await store.applications.failures_of_versions(since=NOW)
    use = await store.applications.use_of_versions(used.app_id, since=NOW)

    assert failures == {used.app_version_id: RecentFailures(1, 0, 0, at)}
    assert use == {used.app_version_id: VersionUse(used.app_version_id, 1, 1, 1, 1, 0)}
    assert unused.app_version_id not in use
    assert not await store.applications.failures_of_versions(since=later(NOW, DAY_S))
    assert not await store.applications.use_of_versions(AppId(used.app_id + 1), since=NOW)
