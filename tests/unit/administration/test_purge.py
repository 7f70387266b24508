"""Purges delete files of old months, then their rows, and can be repeated."""

from __future__ import annotations

from pathlib import Path

import pytest

from administration.purge import Purged, months_before, purge_months
from domain.history import START, FinishedMonth
from domain.jobs import InstanceState
from domain.settlement import JobSettlement
from domain.units import later
from tests.builders import NOW
from tests.memory import MemoryStore
from tests.stores import as_postgres
from tests.unit.jobs.projects import HandClock
from tests.worlds import a_registered_host, a_report, a_sent_instance, a_submitted_batch, report
from transfer.project_files import ProjectFiles
from transfer.upload_folder import UploadFolder

LONG_AFTER = later(NOW, 90 * 86400.0)


async def a_history(folder: Path) -> MemoryStore:
    """Return aborted batches of January to March 2027, each with a job and an output on disk."""
    store = MemoryStore()
    for number, days in enumerate((0, 30, 60)):
        ended_at = later(NOW, days * 86400.0)
        batch = await a_submitted_batch(store, jobs=1)
        host = await a_registered_host(store)
        instance = await a_sent_instance(store, batch.batch_id, host)
        name = f"pi_{number}_r0"
        path = UploadFolder(folder / "upload").path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"3.14")
        await store.uploads.record_upload(
            instance.instance_id, name=name, nbytes=4, md5="0" * 32, completed_at=ended_at
        )
        await report(store, host, a_report(instance, to_state=InstanceState.FAILED))
        await store.submissions.abort_batch(batch.batch_id, now=ended_at)
        settled = [
            JobSettlement(facts.job_id, facts.serial, facts.state, ended_at)
            for facts in await store.unsettled.unsettled(9, now=NOW)
        ]
        assert await store.unsettled.settle(settled) == 1
    await store.overdue.count_due(now=LONG_AFTER)
    after = START
    while (step := await store.history.move_ended(before=LONG_AFTER, after=after, limit=9)).more:
        after = step.after
    return store


def files_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


async def test_months_before_lists_months_with_data(tmp_path: Path) -> None:
    store = await a_history(tmp_path)
    await store.history.purge_month("2027-01", now=LONG_AFTER)

    found = await months_before(as_postgres(store).history, "2027-03")

    assert list(found) == [FinishedMonth("2027-02", jobs=1, instances=1, files=1, file_bytes=4)]


async def test_purge_deletes_only_its_months(tmp_path: Path) -> None:
    store = await a_history(tmp_path)
    purged: list[str] = []
    months = await months_before(as_postgres(store).history, "2027-03")

    await purge_months(
        as_postgres(store).history,
        ProjectFiles(tmp_path),
        months,
        clock=HandClock(LONG_AFTER),
        progress=lambda month: purged.append(month.month),
    )

    assert purged == ["2027-01", "2027-02"]
    assert files_in(tmp_path) == ["pi_2_r0"]
    assert [(one.month, one.jobs, one.purged_at) for one in await store.history.months()] == [
        ("2027-01", 0, LONG_AFTER),
        ("2027-02", 0, LONG_AFTER),
        ("2027-03", 1, None),
    ]


async def test_interrupted_purge_can_be_repeated(tmp_path: Path) -> None:
    store = await a_history(tmp_path)
    months = await months_before(as_postgres(store).history, "2027-02")
    UploadFolder(tmp_path / "upload").drop_whole("pi_0_r0")  # as if interrupted here

    await purge_months(
        as_postgres(store).history,
        ProjectFiles(tmp_path),
        months,
        clock=HandClock(LONG_AFTER),
        progress=lambda month: None,
    )

    assert files_in(tmp_path) == ["pi_1_r0", "pi_2_r0"]
    assert list(await months_before(as_postgres(store).history, "2027-02")) == []


@pytest.mark.parametrize("months", [(), (FinishedMonth("2026-01", 2, 3, 4, 5, 6), FinishedMonth("2026-02", 1))])
def test_purge_totals_are_sums_over_months(months: tuple[FinishedMonth, ...]) -> None:
    shown = Purged(months).as_json()

    assert shown.pop("months") == Purged(months).rows()
    totals = [(one.jobs, one.instances, one.files, one.file_bytes, one.table_bytes) for one in months]
    assert tuple(shown.values()) == tuple(sum(column) for column in zip((0,) * 5, *totals, strict=True))
