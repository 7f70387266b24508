"""Tests records of complete outputs."""

from __future__ import annotations

from domain.dispatch import Assignment, ExpectedOutput, Upload
from domain.jobs import InstanceState
from domain.units import InstanceId, later
from tests.builders import NOW
from tests.stores import Store
from tests.worlds import a_registered_host, a_report, a_sent_instance, a_submitted_batch, report


async def under_way(store: Store) -> Assignment:
    batch = await a_submitted_batch(store, jobs=1)
    return await a_sent_instance(store, batch.batch_id, await a_registered_host(store))


async def uploads_of(store: Store, sent: Assignment) -> tuple[Upload, ...]:
    return (await store.views.job(sent.job_id)).instances[0].uploads


async def test_recording_an_upload_is_idempotent(store: Store) -> None:
    sent = await under_way(store)

    for at in (5.0, 6.0):
        assert await store.uploads.record_upload(
            sent.instance_id, name="out", nbytes=7, md5="c" * 32, completed_at=later(NOW, at)
        )

    assert await uploads_of(store, sent) == (Upload("out", 7, "c" * 32),)


async def test_other_content_replaces_only_with_replace(store: Store) -> None:
    sent = await under_way(store)
    for md5, replace, recorded in (("c", False, True), ("d", False, False), ("e", True, True)):
        assert recorded is await store.uploads.record_upload(
            sent.instance_id, name="out", nbytes=7, md5=md5 * 32, completed_at=NOW, replace=replace
        )

    assert await uploads_of(store, sent) == (Upload("out", 7, "e" * 32),)


async def test_uploads_of_unsent_and_reported_instances_are_refused(store: Store) -> None:
    """An output recorded before the report may be recorded again."""
    batch = await a_submitted_batch(store, jobs=2)
    host = await a_registered_host(store)
    sent = await a_sent_instance(store, batch.batch_id, host)
    unsent = InstanceId(sent.instance_id + 1)

    async def brings(instance_id: InstanceId, md5: str, *, replace: bool = False) -> bool:
        return await store.uploads.record_upload(
            instance_id, name="out", nbytes=7, md5=md5 * 32, completed_at=NOW, replace=replace
        )

    assert await brings(sent.instance_id, "c")
    await report(store, host, a_report(sent))

    assert await brings(sent.instance_id, "c")
    assert not await brings(sent.instance_id, "d", replace=True)
    assert not await brings(unsent, "c", replace=True)
    assert await store.uploads.expected(unsent, "out") == ExpectedOutput(accepted=False, recorded=None)
    recorded = Upload("out", 7, "c" * 32)
    assert await store.uploads.expected(sent.instance_id, "out") == ExpectedOutput(accepted=False, recorded=recorded)


async def test_an_instance_in_progress_accepts_outputs(store: Store) -> None:
    sent = await under_way(store)

    assert await store.uploads.expected(sent.instance_id, "out") == ExpectedOutput(accepted=True, recorded=None)
    assert await store.uploads.expected(InstanceId(999), "out") is None


async def test_a_failed_instance_accepts_outputs(store: Store) -> None:
    """Its host may still report a success."""
    batch = await a_submitted_batch(store, jobs=1)
    host = await a_registered_host(store)
    sent = await a_sent_instance(store, batch.batch_id, host)
    await report(store, host, a_report(sent, exit_status=1, to_state=InstanceState.FAILED))

    assert await store.uploads.expected(sent.instance_id, "out") == ExpectedOutput(accepted=True, recorded=None)


async def test_a_file_of_no_instance_is_nobodys(store: Store) -> None:
    recorded = await store.uploads.record_upload(InstanceId(999), name="out", nbytes=7, md5="c" * 32, completed_at=NOW)

    assert not recorded


async def test_unrecorded_files_of_no_running_instance_are_unneeded(store: Store) -> None:
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
