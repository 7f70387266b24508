"""The gain of lying clients: each test measures it on the real services and bounds it."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from domain.dispatch import ReportedFile
from domain.hosts import HostAppVersion
from domain.jobs import InstanceState, JobState
from domain.ranking import samples
from domain.units import DAY_S, AppVersionId, BatchId, HostId, Seconds, later
from jobs.build import JobsPorts, JobsServices, build
from lifecycle.settle import copies_for
from scheduler.context import BELIEVED_AT_FIRST
from simulator.services import NoFiles
from tests.builders import NOW
from tests.unit.scheduler.project import MD5, Project, a_project, a_request, a_success, names_of
from tests.worlds import a_registered_volunteer
from wire.messages import CoprocRequest, HostInfo, SchedulerReply, SchedulerRequest

WRONG = "f" * 32  # the output digest of colluders


def background(project: Project) -> JobsServices:
    store = project.store
    ports = JobsPorts(store.unsettled, NoFiles(), store.overdue, store.outages, store.history, store.tails, store.notes)
    return build(ports, project.shelf.catalogue, project.clock)


async def volunteers_of(project: Project, count: int) -> list[str]:
    keys = [f"key of {number}" for number in range(count)]
    for key in keys:
        await a_registered_volunteer(project.store, key)
    return keys


def a_call(key: str, host_id: int, seqno: int, **changes: object) -> SchedulerRequest:
    info = HostInfo(host_cpid=f"{key:>32}"[-32:], ncpus=2, flop_per_s=1e9, ram_bytes=8e9, os_name="Linux Debian")
    return replace(a_request(authenticator=key, host_id=host_id, rpc_seqno=seqno, host=info), **changes)  # type: ignore[arg-type]


async def bring(
    project: Project, key: str, host_id: int, seqno: int, names: list[str], md5s: list[str]
) -> SchedulerReply:
    """Report these as done, with outputs of these digests, and request more."""
    for name, md5 in zip(names, md5s, strict=True):
        await project.upload(name, md5=md5)
    done = tuple(
        a_success(name, files=(ReportedFile(f"{name}_r0", 30.0, md5),)) for name, md5 in zip(names, md5s, strict=True)
    )
    await project.fill()
    return await project.answer(a_call(key, host_id, seqno, results=done))


async def hav_of(project: Project, host_id: int) -> HostAppVersion:
    _, havs = await project.store.views.host(HostId(host_id))
    return next(iter(havs), HostAppVersion(HostId(host_id), AppVersionId(1)))


# ---------------------------------------------------------------- garbage, fast


async def test_host_returning_garbage_gets_one_job_a_day_no_percentile() -> None:
    """It gets 5 jobs per processor and day until its results can be compared with others, then one."""
    project = await a_project()
    await project.store.settings.set_setting("scheduler.daily_quota_start", 5, now=NOW, who="test", why="a small one")
    project.shelf.held = await project.store.applications.load_catalogue()
    [cheater] = await volunteers_of(project, 1)
    honest = [f"honest {number}" for number in range(3)]
    for key in honest:
        await a_registered_volunteer(project.store, key)
    await project.submit(60, quorum=2)
    services = background(project)
    given_by_day: list[int] = []
    hosts: dict[str, int] = {}
    seqno = 0
    for _ in range(4):
        given = 0
        for key in (cheater, *honest):
            held: list[str] = []
            for _ in range(4):  # requests
                seqno += 1
                md5s = [f"{seqno:016x}{n:016x}" if key == cheater else MD5 for n in range(len(held))]
                reply = await bring(project, key, hosts.get(key, 0), seqno, held, md5s)
                hosts[key] = reply.host_id or hosts[key]
                held = names_of(reply)
                given += len(held) if key == cheater else 0
                project.clock.at = later(project.clock.at, 60.0)
                while (await services.validator.run_once()).more:
                    pass
        given_by_day.append(given)
        project.clock.at = later(project.clock.at, DAY_S)
    row = await hav_of(project, hosts[cheater])
    assert given_by_day[0] <= 2 * 5
    assert max(given_by_day[2:]) <= 2, given_by_day
    assert (row.n_valid, row.consecutive_valid, row.quota_per_day) == (0, 0, 1)
    assert samples(row, project.clock.at) == 0.0  # no sample for a percentile
    assert row.speed.n == 0.0
    jobs = [await project.store.views.job(one.job_id) for one in await project.store.views.jobs(BatchId(1), limit=200)]
    garbage = {row.instance_id for job in jobs for row in job.instances if row.host_id == hosts[cheater]}
    assert all(job.canonical_instance_id not in garbage for job in jobs if job.state is JobState.VALID)


# ---------------------------------------------------------------- absurd claims


@pytest.mark.parametrize("claim", ["cpus", "gpus", "speed"])
async def test_absurd_claims_get_as_much_as_64_processors_and_no_more(claim: str) -> None:
    project = await a_project(feeder__slots=20000)
    await project.submit(2000)
    info = HostInfo(host_cpid="2" * 32, ncpus=1, flop_per_s=1e9, ram_bytes=1e15, os_name="Linux Debian")
    coprocs: tuple[CoprocRequest, ...] = ()
    if claim == "cpus":
        info = replace(info, ncpus=10**9)
    if claim == "gpus":
        coprocs = (CoprocRequest("NVIDIA", 10**9, 1e30, 1e15, 99999, req_s=Seconds(1e12), req_instances=1e9),)
    if claim == "speed":
        info = replace(info, flop_per_s=1e300)
    most = project.shelf.catalogue().settings.scheduler.jobs_per_request
    request = a_request(host=info, coprocs=coprocs, cpu_req_s=Seconds(1e12), cpu_req_instances=1e9)
    reply = await project.answer(request)
    assert 0 < len(names_of(reply)) <= most * (BELIEVED_AT_FIRST if claim == "cpus" else 1)


async def test_a_big_computer_is_believed_once_it_has_shown_results() -> None:
    project = await a_project(scheduler__jobs_per_request=1, feeder__slots=20000)
    await project.submit(400)
    info = HostInfo(host_cpid="2" * 32, ncpus=200, flop_per_s=1e9, ram_bytes=1e15, os_name="Linux Debian")
    wish = {"cpu_req_s": Seconds(1e9), "cpu_req_instances": 200.0, "host": info}
    first = names_of(await project.answer(a_request(**wish)))
    assert len(first) == BELIEVED_AT_FIRST
    for name in first:
        await project.upload(name)
    results = tuple(a_success(name) for name in first)
    second = names_of(await project.answer(a_request(host_id=1, rpc_seqno=1, results=results, **wish)))
    await background(project).validator.run_once()
    for name in second:
        await project.upload(name)
    results = tuple(a_success(name) for name in second)
    await project.answer(a_request(host_id=1, rpc_seqno=2, results=results, cpu_req_s=Seconds(0.0), host=info))
    await background(project).validator.run_once()
    third = names_of(await project.answer(a_request(host_id=1, rpc_seqno=3, **wish)))
    assert len(third) == 2 * BELIEVED_AT_FIRST


# ---------------------------------------------------------------- copies, floods, collusion


async def test_volunteer_never_validates_own_results_on_many_hosts() -> None:
    """The second instance goes to another volunteer, so copying between own computers proves nothing."""
    project = await a_project()
    [key] = await volunteers_of(project, 1)
    await project.submit(4, quorum=2)
    jobs_given: list[str] = []
    for number in range(12):
        info = HostInfo(host_cpid=f"{number + 1:032x}", ncpus=2, flop_per_s=1e9, ram_bytes=8e9, os_name="Linux Debian")
        reply = await project.answer(a_call(key, 0, 0, host=info))
        jobs_given += [name.rpartition("_")[0] for name in names_of(reply)]
    assert sorted(jobs_given) == sorted(set(jobs_given))
    assert len(jobs_given) == 4


def test_adaptive_copies_check_each_job_of_every_new_host() -> None:
    draw = random.Random(1)
    assert all(copies_for(valid, 2, rng=draw) == 2 for valid in range(11) for _ in range(100))
    trusted = sum(copies_for(11, 2, rng=draw) == 0 for _ in range(1000))
    assert 850 < trusted < 960  # 1 - 1/11 of them: trusted hosts are still checked


async def test_colluders_win_only_jobs_with_their_whole_quorum() -> None:
    """4 of 24 volunteers agree on wrong answers: at a quorum of 2 they get about (4/24)^2 of the jobs, not 4/24."""
    project = await a_project(scheduler__jobs_per_request=1, scheduler__in_progress_per_cpu=100)
    keys = await volunteers_of(project, 24)
    colluders = set(keys[:4])
    await project.submit(120, quorum=2)
    services, draw = background(project), random.Random(5)
    hosts: dict[str, int] = {}
    held: dict[str, list[str]] = {key: [] for key in keys}
    holders: dict[int, set[str]] = {}
    for seqno in range(1, 40):
        for key in draw.sample(keys, len(keys)):
            mine = held[key]
            digest = WRONG if key in colluders else MD5
            reply = await bring(project, key, hosts.get(key, 0), seqno, mine, [digest] * len(mine))
            hosts[key] = reply.host_id or hosts[key]
            held[key] = names_of(reply)
            for name in held[key]:
                holders.setdefault(int(name.split("_")[-2]), set()).add(key)
            project.clock.at = later(project.clock.at, 10.0)
        await services.validator.run_once()
    jobs = [await project.store.views.job(one.job_id) for one in await project.store.views.jobs(BatchId(1), limit=200)]
    ended = [job for job in jobs if job.state is JobState.VALID]
    wrong = [
        job
        for job in ended
        for row in job.instances
        if row.instance_id == job.canonical_instance_id and row.uploads[0].md5 == WRONG
    ]
    assert len(ended) >= 100
    assert all(len(holders[job.job_id] & colluders) >= 2 for job in wrong)
    assert len(wrong) / len(ended) < 0.5 * 4 / 24
    assert all(InstanceState.VALID in [row.state for row in job.instances] for job in ended)


# ---------------------------------------------------------------- losing everything


def a_loser(key: str, cpid: str = "") -> SchedulerRequest:
    """A client of 64 CPUs without host id and results, so that all jobs of its host are lost."""
    info = HostInfo(
        host_cpid=cpid or f"{key:>32}"[-32:], ncpus=64, flop_per_s=1e9, ram_bytes=8e10, os_name="Linux Debian"
    )
    return a_request(
        authenticator=key, host=info, cpu_req_s=Seconds(1e9), cpu_req_instances=64.0, disk_project_share_bytes=1e13
    )


async def lose_everything(project: Project, keys: list[str], *, calls: int) -> int:
    """Let each account call every 10 min and lose its jobs; return how many jobs were sent."""
    services, sent = background(project), 0
    for _ in range(calls):
        for key in keys:
            await project.fill()
            sent += len(names_of(await project.answer(a_loser(key))))
            while (await services.validator.run_once()).more:
                pass
        project.clock.at = later(project.clock.at, 600.0)
    return sent


async def failed_jobs(project: Project, jobs: int) -> int:
    found = await project.store.views.jobs(BatchId(1), limit=jobs)
    return sum(one.state is JobState.FAILED for one in found)


async def test_ten_accounts_that_lose_everything_fail_no_job() -> None:
    project = await a_project(feeder__slots=20000)
    keys = await volunteers_of(project, 10)
    await project.submit(300)
    await lose_everything(project, keys, calls=12)
    assert await failed_jobs(project, 300) == 0


async def test_a_host_that_loses_everything_uses_up_its_quota() -> None:
    project = await a_project(feeder__slots=20000)
    await project.submit(3000)
    keys = await volunteers_of(project, 1)
    await lose_everything(project, keys, calls=2)
    row = await hav_of(project, 1)
    assert row.quota_per_day == 1
    assert await lose_everything(project, keys, calls=6) == 0


async def test_new_computers_in_a_loop_of_detaching_get_no_new_quota() -> None:
    """One account with a new CPID at each call: its losses are bounded per account and address."""
    project = await a_project(feeder__slots=20000)
    [key] = await volunteers_of(project, 1)
    project.ledger.network = "192.0.2.7"
    await project.submit(3000)
    services, sent = background(project), 0
    for turn in range(40):
        await project.fill()
        cpid = f"{turn // 2:032d}"  # each computer calls twice, and loses at the second call the jobs of the first
        sent += len(names_of(await project.answer(a_loser(key, cpid))))
        await services.validator.run_once()
        project.clock.at = later(project.clock.at, 60.0)
    assert sent < 1100
    assert (await project.answer(a_loser(key, "f" * 32))).results == ()


async def test_a_bad_host_does_not_starve_its_address() -> None:
    """One computer at a university's address loses all its jobs; 20 new ones of other accounts there still get work."""
    project = await a_project(feeder__slots=20000)
    bad, *good = await volunteers_of(project, 21)
    project.ledger.network = "192.0.2.7"
    await project.submit(3000)
    assert await lose_everything(project, [bad], calls=12) > 400  # the whole quota of its account
    given = []
    for key in good:
        info = HostInfo(host_cpid=f"{key:>32}"[-32:], ncpus=8, flop_per_s=1e9, ram_bytes=8e10, os_name="Linux Debian")
        wish = {"cpu_req_s": Seconds(36000.0 * 8), "cpu_req_instances": 8.0, "disk_project_share_bytes": 1e13}
        given.append(len(names_of(await project.answer(a_request(authenticator=key, host=info, **wish)))))
        await project.fill()
    assert min(given) >= 8, given
