"""Outputs that are whole on disk are remembered."""

from __future__ import annotations

from domain.dispatch import Assignment, Upload
from domain.units import InstanceId, later
from tests.builders import NOW
from tests.stores import Store
from tests.worlds import (
    a_registered_host,
    a_report,
    a_sent_instance,
    a_submitted_batch,
    report,
)


async def under_way(store: Store) -> Assignment:
    batch = await a_submitted_batch(store, jobs=1)
    return await a_sent_instance(store, batch.batch_id, await a_registered_host(store))


async def uploads_of(store: Store, sent: Assignment) -> tuple[Upload, ...]:
    return (await store.views.job(sent.job_id)).instances[0].uploads


async def test_an_upload_is_remembered_and_repeating_it_changes_nothing(store: Store) -> None:
    sent = await under_way(store)

    for at in (5.0, 6.0):
        assert await store.uploads.record_upload(
            sent.instance_id, name="out", nbytes=7, md5="c" * 32, completed_at=later(NOW, at)
        )

    assert await uploads_of(store, sent) == (Upload("out", 7, "c" * 32),)


async def test_a_newer_upload_of_the_same_name_takes_its_place(store: Store) -> None:
    sent = await under_way(store)
    for md5 in ("c" * 32, "d" * 32):
        await store.uploads.record_upload(sent.instance_id, name="out", nbytes=7, md5=md5, completed_at=NOW)

    assert await uploads_of(store, sent) == (Upload("out", 7, "d" * 32),)


async def test_recorded_bytes_are_those_of_the_record(store: Store) -> None:
    sent = await under_way(store)
    assert await store.uploads.recorded_bytes(sent.instance_id, "out") is None

    await store.uploads.record_upload(sent.instance_id, name="out", nbytes=7, md5="c" * 32, completed_at=NOW)

    assert await store.uploads.recorded_bytes(sent.instance_id, "out") == 7
    assert await store.uploads.recorded_bytes(sent.instance_id, "other") is None
    assert await store.uploads.recorded_bytes(InstanceId(999), "out") is None


async def test_a_file_of_no_instance_is_nobodys(store: Store) -> None:
    recorded = await store.uploads.record_upload(InstanceId(999), name="out", nbytes=7, md5="c" * 32, completed_at=NOW)

    assert not recorded


async def test_files_that_are_not_recorded_and_of_nothing_under_way_are_needed_by_nobody(store: Store) -> None:
    host = await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=2)
    over, sent = [await a_sent_instance(store, batch.batch_id, host) for _ in range(2)]
    for one in (over, sent):
        await store.uploads.record_upload(
            one.instance_id, name=f"out {one.instance_id}", nbytes=7, md5="c" * 32, completed_at=NOW
        )
    await report(store, host, a_report(over))
    files = [(f"{kind} {one.instance_id}", one.instance_id) for kind in ("out", "part") for one in (over, sent)]

    assert list(await store.uploads.unneeded([*files, ("gone", InstanceId(999))])) == [
        "gone",
        f"part {over.instance_id}",
    ]
