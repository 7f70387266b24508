"""Tests the statistics export: the format that sites read, consent, teams, and no e-mail address."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from administration.statistics import StatisticsExport
from domain.clock import SystemClock
from domain.credit import credit_of
from domain.units import BatchId, later
from lifecycle.settle import settle
from store.postgres import PostgresStore
from tests.builders import NOW
from tests.conformance.to_settle import a_reported_job
from tests.pg import opened_store
from tests.unit.jobs.projects import HandClock
from tests.worlds import RegisteredHost, a_registered_host, a_registered_volunteer

pytestmark = pytest.mark.database


async def a_credited_host(store: PostgresStore, *, consents: bool = True) -> RegisteredHost:
    host = await a_registered_host(store, cpu_model="Xeon & Co", domain_name="secret-name")
    facts = await a_reported_job(store, host)
    await store.unsettled.settle([settle(facts, {facts.instances[0].instance_id: 0}, now=NOW, max_lost=9)])
    if consents:
        await store.participation.set_export_consent(host.volunteer_id, NOW)
    return host


def records(folder: Path, name: str) -> list[dict[str, str]]:
    """Return the records of a file, as any XML parser reads it."""
    content = gzip.decompress((folder / f"{name}.gz").read_bytes())
    return [{field.tag: field.text or "" for field in one} for one in ET.fromstring(content)]


async def exported(store: PostgresStore, folder: Path) -> StatisticsExport:
    made = StatisticsExport(store.participation, store.applications, folder, HandClock(NOW))
    await made.export()
    return made


async def test_consenting_volunteers_and_hosts_are_exported(tmp_path: Path) -> None:
    async with opened_store() as store:
        host = await a_credited_host(store)
        await a_credited_host(store, consents=False)

        await exported(store, tmp_path)

        [record] = await store.volunteers.volunteers(limit=1)
        credit = f"{credit_of((await store.views.classes_of_batch(BatchId(1)))[0].fpops_est_flop):.6f}"
    [user], [computer] = records(tmp_path, "user"), records(tmp_path, "host")
    assert (user["id"], user["name"], user["total_credit"]) == (str(host.volunteer_id), "Volunteer 1", credit)
    plain = f"{record.volunteer.cross_project_id}{record.email}".encode()
    assert user["cpid"] == record.volunteer.external_cpid == hashlib.md5(plain, usedforsecurity=False).hexdigest()
    assert (computer["id"], computer["userid"]) == (str(host.host_id), str(host.volunteer_id))
    assert (computer["total_credit"], computer["p_model"]) == (credit, "Xeon & Co")
    assert computer["host_cpid"] not in ("", host.host.host_cpid)
    tables = ET.parse(tmp_path / "tables.xml").getroot()
    counts = {one.tag: one.text for one in tables}
    assert (counts["nusers_total"], counts["nhosts_total"], counts["nteams_total"]) == ("2", "2", "0")
    assert float(counts["total_credit"] or 0) == pytest.approx(2 * float(credit), abs=1e-5)
    assert [one.text for one in tables.iter("name")] == ["Digits of pi"]


async def test_no_file_has_an_email_address_or_a_host_name(tmp_path: Path) -> None:
    async with opened_store() as store:
        await a_credited_host(store)
        await exported(store, tmp_path)

    for path in tmp_path.iterdir():
        raw = path.read_bytes()
        content = gzip.decompress(raw) if path.suffix == ".gz" else raw
        assert b"example.org" not in content
        assert b"secret-name" not in content


async def test_withdrawn_consent_ends_the_export(tmp_path: Path) -> None:
    async with opened_store() as store:
        host = await a_credited_host(store)
        await store.participation.set_export_consent(host.volunteer_id, None)

        await exported(store, tmp_path)

    assert (records(tmp_path, "user"), records(tmp_path, "host")) == ([], [])


async def test_consent_keeps_its_first_time() -> None:
    async with opened_store() as store:
        host = await a_credited_host(store)
        await store.participation.set_export_consent(host.volunteer_id, later(NOW, 99.0))

        assert (await store.participation.participation(host.volunteer_id)).export_consent_at == NOW


async def test_a_fresh_export_is_not_repeated(tmp_path: Path) -> None:
    async with opened_store() as store:
        clock = SystemClock()
        export = StatisticsExport(store.participation, store.applications, tmp_path, clock)

        first, second = await export.run_once(), await export.run_once()

    assert set(first.files) == {"tables.xml", *(f"{one}.gz" for one in ("user", "team", "host"))} | {
        "user_deleted.gz",
        "host_deleted.gz",
    }
    assert second.files == {}
    assert {path.name for path in tmp_path.iterdir()} == set(first.files)


async def test_deletions_are_listed_for_60_days(tmp_path: Path) -> None:
    async with opened_store() as store:
        host = await a_credited_host(store)
        await store.participation.forget_volunteer(host.volunteer_id, b"\0" * 32, now=NOW)

        await exported(store, tmp_path)
        listed = records(tmp_path, "user_deleted"), records(tmp_path, "host_deleted")
        late = HandClock(later(NOW, 61 * 86400.0))
        await StatisticsExport(store.participation, store.applications, tmp_path, late).export()

    assert [[one["id"] for one in kind] for kind in listed] == [[str(host.volunteer_id)], [str(host.host_id)]]
    assert (records(tmp_path, "user_deleted"), records(tmp_path, "host_deleted")) == ([], [])


async def test_founder_who_leaves_is_followed_by_the_oldest_member() -> None:
    async with opened_store() as store:
        ada, bob, eve = [await a_registered_volunteer(store) for _ in range(3)]
        teams = store.participation
        team_id = await teams.add_team("Night owls", ada, url="", description="", now=NOW)
        for place, member in enumerate((eve, bob), 1):
            await teams.join_team(member, team_id, now=later(NOW, place))

        await teams.forget_volunteer(ada, b"\0" * 32, now=NOW)

        assert (await teams.team(team_id)).founder_id == eve
        assert [one.volunteer_id for one in await teams.members(team_id, limit=9)] == [bob, eve]
