"""Work for new computers: at once, within the quotas of their account and address."""

from __future__ import annotations

import pytest

from domain.errors import UnavailableError
from domain.hosts import HostAppVersion
from domain.quotas import QuotaGrant, QuotaRequest, SharedQuota
from domain.units import AppVersionId, HostId, Seconds, VolunteerId
from scheduler.quota import Draw, draw_of, quota_refusal, within_quotas
from tests.builders import NOW
from tests.facts import missing
from tests.unit.scheduler.arrays import an_asking
from tests.unit.scheduler.project import Project, a_project, a_request, names_of
from tests.worlds import a_registered_volunteer
from wire.messages import HostInfo, SchedulerRequest

DAY = int(NOW // 86_400)


def a_computer(key: str, cpid: str, ncpus: int = 8) -> SchedulerRequest:
    """A new computer that requests an hour of work for each processor."""
    info = HostInfo(host_cpid=cpid, ncpus=ncpus, flop_per_s=1e9, ram_bytes=8e10, os_name="Linux Debian")
    return a_request(
        authenticator=key,
        host=info,
        cpu_req_s=Seconds(3600.0 * 10 * ncpus),
        cpu_req_instances=float(ncpus),
        disk_project_share_bytes=1e13,
    )


async def first_calls(project: Project, requests: list[SchedulerRequest]) -> list[int]:
    """Return how many jobs each gets at its first call."""
    given = []
    for request in requests:
        given.append(len(names_of(await project.answer(request))))
        await project.fill()
    return given


def record(n_valid: int, sent_today: int = 0) -> dict[AppVersionId, HostAppVersion]:
    hav = HostAppVersion(HostId(1), AppVersionId(1), n_valid=n_valid, day=DAY, sent_today=sent_today)
    return {AppVersionId(1): hav}


def test_a_host_draws_for_what_its_record_does_not_cover() -> None:
    new = draw_of(an_asking(), 9)
    assert new is not None
    assert (new.covered, new.request.day, new.request.idle, new.request.wanted) == (0, DAY, 2, 9)
    some = draw_of(an_asking(havs=record(n_valid=3)), 9)
    assert some is not None
    assert (some.covered, some.request.wanted) == (6, 3)
    assert draw_of(an_asking(havs=record(n_valid=3)), 6) is None
    late = draw_of(an_asking(havs=record(n_valid=100, sent_today=200)), 1)
    assert late is not None and late.covered == 0


def test_a_host_with_a_record_draws_on_its_account_alone() -> None:
    """A record is a validated result for each of its processors: two here."""
    draws = [draw_of(an_asking(havs=record(n_valid), network="192.0.2.7"), 9) for n_valid in (1, 2)]
    names = [draw.request.names if draw is not None else () for draw in draws]
    assert names == [("address 192.0.2.7", "volunteer 1"), ("volunteer 1",)]


def test_what_was_granted_and_not_given_is_unused() -> None:
    draw = draw_of(an_asking(havs=record(n_valid=3)), 16)
    assert isinstance(draw, Draw)
    assert [draw.unused(given, 10) for given in (0, 6, 8, 16)] == [10, 10, 8, 0]


def test_quotas_limit_a_request_only_where_they_allow_less() -> None:
    context = an_asking()
    assert within_quotas(context, ()) is context
    limited = within_quotas(context, (SharedQuota("volunteer 1", 0, DAY, sent=3999),))
    assert limited.quota is not None and limited.quota.jobs == 1
    assert within_quotas(context, (SharedQuota("volunteer 1", 0, DAY - 1, sent=4000),)) is context


def test_a_refusal_names_the_quota_with_both_numbers() -> None:
    said = quota_refusal(QuotaGrant(0, "address 192.0.2.7", sent=4000, quota=4000)).detail
    assert not missing(said, "this address", "4000 jobs", "quota of 4000")
    assert "192.0.2.7" not in said


async def test_a_lab_of_100_new_computers_at_one_address_all_get_work() -> None:
    project = await a_project(feeder__slots=20000)
    project.ledger.network = "192.0.2.7"
    await project.submit(4000)
    keys = [f"lab {number}" for number in range(100)]
    for key in keys:
        await a_registered_volunteer(project.store, key)
    given = await first_calls(project, [a_computer(key, f"{n:032d}") for n, key in enumerate(keys)])
    assert min(given) == 8, "a job for each processor"


async def test_an_account_with_200_new_computers_has_work_on_each() -> None:
    project = await a_project(feeder__slots=20000)
    await a_registered_volunteer(project.store, "cluster")
    batches = [await project.submit(2000) for _ in range(2)]
    given = await first_calls(project, [a_computer("cluster", f"{n:032d}") for n in range(200)])
    assert len(batches) == 2
    assert min(given) == 8, "a job for each processor"


async def test_new_computers_of_one_account_get_no_more_than_its_quota() -> None:
    project = await a_project(feeder__slots=20000)
    await project.store.settings.set_setting("scheduler.shared_quota_start", 100, now=NOW, who="ops", why="test")
    project.shelf.held = await project.store.applications.load_catalogue()
    many = await a_registered_volunteer(project.store, "many")
    await project.submit(2000)
    given = await first_calls(project, [a_computer("many", f"{n:032d}", ncpus=64) for n in range(6)])
    assert given == [64, 36, 0, 0, 0, 0]
    again = await project.answer(a_computer("many", "9" * 32, ncpus=64))
    assert again.host_id is not None
    [(code, said)] = (await project.store.volunteer_views.host(many, HostId(again.host_id))).refused
    assert code == "daily_quota"
    assert not missing(said, "of this account", "100 jobs", "quota of 100")


async def test_a_request_is_charged_for_the_jobs_it_gets() -> None:
    project = await a_project()
    await a_registered_volunteer(project.store, "few")
    await project.submit(3)
    reply = await project.answer(a_computer("few", "1" * 32))
    assert (len(names_of(reply)), reply.host_id) == (3, 1)
    assert [(one.wanted, one.names) for one in project.ledger.reserved] == [(3, ("volunteer 2",))]
    assert project.ledger.released == []


async def test_a_request_that_gets_no_job_charges_nothing() -> None:
    project = await a_project()
    await a_registered_volunteer(project.store, "few")
    assert names_of(await project.answer(a_computer("few", "1" * 32))) == []
    assert project.ledger.reserved == []


async def test_jobs_that_were_not_committed_are_not_charged() -> None:
    project = await a_project()
    await a_registered_volunteer(project.store, "few")
    await project.submit(3)
    project.ledger.down_from_write = 0
    with pytest.raises(UnavailableError):
        await project.answer(a_computer("few", "1" * 32))
    assert [unused for _, unused in project.ledger.released] == [3]


async def test_a_quota_used_up_since_the_read_takes_back_jobs() -> None:
    """Charges of other requests between the read and this charge count; the jobs stay unsent."""
    project = await a_project(feeder__slots=20000)
    await project.store.settings.set_setting("scheduler.shared_quota_start", 100, now=NOW, who="ops", why="test")
    project.shelf.held = await project.store.applications.load_catalogue()
    await a_registered_volunteer(project.store, "many")
    await project.submit(64)
    waiting = len(project.array)
    project.ledger.others_reserve.append(QuotaRequest(HostId(99), VolunteerId(2), DAY, wanted=80, idle=80))
    reply = await project.answer(a_computer("many", "1" * 32, ncpus=64))
    assert [one.wanted for one in project.ledger.reserved] == [64]
    assert len(names_of(reply)) == 20
    assert len(project.array) == waiting - 20


async def test_a_quota_wholly_used_up_since_the_read_is_the_reason() -> None:
    project = await a_project()
    many = await a_registered_volunteer(project.store, "many")
    await project.submit(3)
    project.ledger.others_reserve.append(QuotaRequest(HostId(99), VolunteerId(2), DAY, wanted=4000, idle=4000))
    reply = await project.answer(a_computer("many", "1" * 32))
    assert names_of(reply) == [] and reply.host_id is not None
    [(code, _)] = (await project.store.volunteer_views.host(many, HostId(reply.host_id))).refused
    assert code == "daily_quota"
