"""Unschedulable work: the same verdict by the API, the commands, the console and the metrics, judged by the fleet."""

from __future__ import annotations

import re

import pytest

from administration.explain.fleet import KEPT_S, MOST_GROUPS, MOST_KEPT, FleetJudge
from administration.unschedulable import MOST_LOST
from domain.apps import VersionState
from domain.settings import FeederSettings
from domain.units import AppId, AppVersionId
from runtime.metrics import catalogue as metric
from tests.acceptance.faces import command, json_of
from tests.acceptance.host import Host
from tests.acceptance.server import LiveServer, a_batch
from tests.acceptance.test_console import a_browser
from tests.acceptance.test_ordering_acts import given
from tests.acceptance.test_ordering_faces import order
from tests.browser.scene import OPERATOR, add_operator
from tests.facts import missing
from tests.worlds import a_submitted_batch

COOL_OFF_S = FeederSettings().cool_off_s
SMALL = {"ram_bytes": 60e6}
SLOW = {"flop_per_s": 1e6}


@pytest.fixture
async def pi(server: LiveServer) -> LiveServer:
    await server.add_app()
    return server


async def called(pi: LiveServer, name: str, **description: float) -> Host:
    """Return a host that has called, while no work waited."""
    host = await pi.add_host(name, **description)
    assert await given(pi, host) is None
    return host


async def refuse(pi: LiveServer, *hosts: Host) -> None:
    """Let these hosts refuse all work for the length of a back-off, and the background judge it."""
    for host in hosts:
        assert await given(pi, host) is None
    await pi.forward(COOL_OFF_S + 1.0)
    for host in hosts:
        assert await given(pi, host) is None
    await judge(pi)


async def judge(pi: LiveServer) -> None:
    for worker in pi.workers:
        await worker.parts.heartbeat.write_once()
    await pi._do("unschedulable work")
    assert pi.background is not None
    await pi.background.heartbeat.write_once()


async def told(pi: LiveServer) -> dict[int, dict[str, int]]:
    """Return the unschedulable batches with their refusal codes; all faces must agree."""
    assert pi.background is not None
    rows = {one["batch_id"]: one for one in (await json_of(pi, "unschedulable"))["refused"] if one["is_certain"]}
    found = await pi.create("GET", "/attention")
    items = {one["batch_id"] for one in found["items"] if one["kind"] == "unschedulable"}
    batches = (await pi.create("GET", "/batches"))["batches"]
    await pi.background.cluster.ask_once()
    counted = [
        sum(one.value)
        for one in pi.background.cluster.samples()
        if one.metric == metric.ATTENTION and one.labels == ("unschedulable",)
    ]
    assert items == set(rows) == {one["batch_id"] for one in batches if one["waits_for"] is not None}
    assert items == {one["batch_id"] for one in batches if one["forecast_state"] == "unschedulable"}
    assert counted == [len(rows)]
    return {batch_id: row["codes"] for batch_id, row in rows.items()}


async def test_work_of_busy_ordinary_hosts_is_schedulable(pi: LiveServer) -> None:
    """Only hosts that nothing fits ever look at the batch: the ordinary ones are busy with others."""
    for number in range(3):
        await called(pi, f"ordinary{number}")
    small = [await called(pi, f"small{number}", **SMALL) for number in range(2)]
    await pi.submit(jobs={"count": 5})
    await order(pi)
    await pi.feed()

    await refuse(pi, *small)

    assert await told(pi) == {}


async def test_all_unsent_instances_count_not_those_in_the_array(pi: LiveServer) -> None:
    host = await called(pi, "ordinary")
    count = FeederSettings().slots + 200
    await pi.submit(jobs={"count": count, "disk_bytes": 1e13}, name="huge")
    await order(pi)
    await pi.feed()

    await refuse(pi, host)

    [row] = (await json_of(pi, "unschedulable"))["refused"]
    assert (row["waiting"], row["is_certain"]) == (count, True)


async def test_instances_of_each_class_are_counted(pi: LiveServer) -> None:
    """More than the judge reads of a batch, but all are in the job array."""
    host = await called(pi, "ordinary")
    counts = [150, 100, 500]
    asked = a_batch(job=[{"disk_bytes": 1e13 + kind} for kind, count in enumerate(counts) for _ in range(count)])
    del asked["jobs"]["count"]  # type: ignore[attr-defined]  # JSON
    await pi.create("POST", "/batches", json=asked)
    await order(pi)
    await pi.feed()

    await refuse(pi, host)

    rows = (await json_of(pi, "unschedulable"))["refused"]
    assert [row["waiting"] for row in sorted(rows, key=lambda row: row["job_class_id"])] == counts


async def test_work_that_no_host_can_run_is_unschedulable(pi: LiveServer) -> None:
    hosts = [await called(pi, f"ordinary{number}") for number in range(3)]
    batch_id = await pi.submit(jobs={"count": 5, "disk_bytes": 1e13}, name="huge")
    await order(pi)
    await pi.feed()

    await refuse(pi, hosts[0])

    assert await told(pi) == {batch_id: {"disk": 3}}
    [row] = (await json_of(pi, "unschedulable"))["refused"]
    assert (row["hosts"], row["active_hosts"], row["waiting"]) == (3, 3, 5)
    await add_operator(pi)
    async with a_browser(pi, OPERATOR) as browser:
        pages = {
            place: (await browser.get(place))[1]
            for place in ("/", "/attention", "/unschedulable", "/batches", "/batches?state=attention", "/batches/1")
        }
    assert all(not missing(page, "unschedulable", "disk space") for page in pages.values())
    assert re.findall(r'id="(t-(?:unschedulable|not-judged))"', pages["/unschedulable"]) == ["t-unschedulable"]


async def test_time_until_a_judgement_is_in_whole_seconds(pi: LiveServer) -> None:
    await add_operator(pi)
    hosts = [await called(pi, name) for name in ("ada", "eve")]
    await pi.submit(jobs={"count": 5, "disk_bytes": 1e13})
    await pi.feed()
    assert [await given(pi, host) for host in hosts] == [None, None]
    pages = []
    for wait_s in (COOL_OFF_S - 7.4, 7.0):
        pi.clock.forward(wait_s)
        await pi.workers[0].parts.heartbeat.write_once()
        async with a_browser(pi, OPERATOR) as browser:
            _, page = await browser.get("/unschedulable")
            pages.append(page.partition("They are judged ")[2].partition(".")[0])
            assert re.findall(r'id="(t-(?:unschedulable|not-judged))"', page) == ["t-not-judged"]

    assert re.search(r" \d+\ss$", pages[0]) and not missing(pages[0], "refusals")
    assert pages[1] == "now"


async def test_hosts_at_a_limit_do_not_hide_unschedulable_work(pi: LiveServer) -> None:
    hosts = [await called(pi, name, ncpus=1) for name in ("quota", "busy")]
    await pi.create("PUT", "/settings/scheduler.daily_quota_start", json={"value": 1, "why": "a test"})
    await pi.submit(jobs={"count": 2})
    await order(pi)
    await pi.feed()
    got = [await given(pi, host) for host in hosts]
    batch_id = await pi.submit(jobs={"count": 5, "disk_bytes": 1e13}, name="huge")
    await order(pi)
    await pi.feed()

    await pi.forward(COOL_OFF_S + 1.0)
    await judge(pi)

    assert all(got)
    assert await told(pi) == {batch_id: {"disk": 2}}
    why = await pi.create("GET", f"/explain/batch/{batch_id}")
    assert why["forecast_state"] == "unschedulable" and not missing(why["verdict"], "None of 2 hosts", "disk")
    assert [one["code"] for one in why["sample"]["held_back"]] == ["disk"]


async def test_ban_is_in_the_next_verdict(pi: LiveServer) -> None:
    hosts = [await called(pi, f"ordinary{number}") for number in range(3)]
    batch_id = await pi.submit(jobs={"count": 5, "disk_bytes": 1e13}, name="huge")
    await order(pi)
    await pi.feed()
    await refuse(pi, hosts[0])
    [before] = (await json_of(pi, "unschedulable"))["refused"]

    await pi.create("PUT", f"/restrictions/host/{hosts[1].host_id}", json={"why": "errors"})
    await judge(pi)

    assert await told(pi) == {batch_id: {"disk": 2, "banned": 1}}
    [after] = (await json_of(pi, "unschedulable"))["refused"]
    assert pi.clock.now() >= after["judged_at"] > before["judged_at"]


@pytest.mark.parametrize("paused", ["settings/project.down", "restrictions/batch/1", "restrictions/app/pi"])
async def test_verdict_survives_a_pause(pi: LiveServer, paused: str) -> None:
    """A pause does not change which hosts could run the work."""
    host = await called(pi, "ordinary")
    batch_id = await pi.submit(jobs={"count": 5, "disk_bytes": 1e13}, name="huge")
    await order(pi)
    await pi.feed()
    await refuse(pi, host)

    value = {"value": True} if paused.startswith("settings") else {}
    await pi.create("PUT", f"/{paused}", json={"why": "a full disk", **value})
    for _ in range(2):
        await pi.feed()
        await pi.forward(KEPT_S + 1.0)
        await judge(pi)

    assert await told(pi) == {batch_id: {"disk": 1}}
    why = await pi.create("GET", f"/explain/batch/{batch_id}")
    [condition] = why["sample"]["held_back"]
    assert (why["forecast_state"], condition["code"]) == ("unschedulable", "disk")
    assert condition["suggestion"] and "paused" in why["order"]["hold"]


@pytest.mark.parametrize("paused", ["batch/1", "app/pi", "queue/normal"])
async def test_paused_batch_is_judged_after_a_restart(pi: LiveServer, paused: str) -> None:
    """Workers no longer report refusals of its second class, and an instance of its first is in progress."""
    host = await called(pi, "ordinary")
    asked = a_batch(job=[{"disk_bytes": 1e6}, {"disk_bytes": 1e13}])
    del asked["jobs"]["count"]  # type: ignore[attr-defined]  # JSON
    batch_id = (await pi.create("POST", "/batches", json=asked))["batch_id"]
    await pi.submit(jobs={"count": 1}, name="fits")
    await order(pi)
    await pi.feed()
    assert await given(pi, host) == batch_id
    await pi.forward(2 * COOL_OFF_S)
    await pi.create("PUT", f"/restrictions/{paused}", json={"why": "a full disk"})
    judged = FleetJudge(pi.store, pi.clock)

    for _ in range(2):
        await judged.run_once()
        await pi.forward(KEPT_S + 1.0)

    assert [one["batch_id"] for one in judged.report()["unschedulable"]] == [batch_id]  # type: ignore[attr-defined]  # JSON


async def test_app_without_version_is_unschedulable_at_once(pi: LiveServer) -> None:
    """The catalogue shows it: no host has called, and no background process has judged anything."""
    sent = await pi.submit(jobs={"count": 1})
    await pi.feed()
    assert await given(pi, await pi.add_host("ordinary")) == sent
    batch_id = await pi.submit(jobs={"count": 5}, name="lost")

    await pi.store.applications.set_version_state(AppVersionId(1), VersionState.DEPRECATED)

    assert await told(pi) == {batch_id: {}}
    [item] = [one for one in (await pi.create("GET", "/attention"))["items"] if one["kind"] == "unschedulable"]
    assert not missing(item["sentence"], "5 unsent", "1.00", "deprecated")
    await add_operator(pi)
    async with a_browser(pi, OPERATOR) as browser:
        assert "is deprecated" in (await browser.get("/ordering"))[1].partition("<main")[2]
        for place in ("/unschedulable", "/batches?state=active", "/batches?state=attention", f"/batches/{batch_id}"):
            _, page = await browser.get(place)
            assert not missing(page.partition("<main")[2], "unschedulable", "is deprecated"), place
        page = (await browser.get(f"/batches/{batch_id}/why"))[1]
        assert "not sent" in page.partition("h-place")[2]

    await pi.store.applications.set_version_state(AppVersionId(1), VersionState.OFFERED)
    assert await told(pi) == {}


async def test_more_batches_without_version_than_are_listed(pi: LiveServer) -> None:
    """Each batch is unschedulable, also those that the lists leave out."""
    ids = [(await a_submitted_batch(pi.store, jobs=1, app_id=AppId(1))).batch_id for _ in range(MOST_LOST + 1)]
    await pi.store.applications.set_version_state(AppVersionId(1), VersionState.DEPRECATED)

    last = await pi.create("GET", f"/batches/{ids[-1]}")
    listed = await json_of(pi, "unschedulable")
    assert not missing((await command(pi, "unschedulable")).stdout, "1 further")
    attention = await pi.create("GET", "/attention")

    assert (last["forecast_state"], bool(last["waits_because"])) == ("unschedulable", True)
    assert ([one["batch_id"] for one in listed["refused"]], listed["left_out"]) == (ids[:-1], 1)
    assert (attention["counts"]["unschedulable"], attention["left_out"]) == (MOST_LOST, 1)
    await add_operator(pi)
    async with a_browser(pi, OPERATOR) as browser:
        assert "unschedulable" in (await browser.get(f"/batches/{ids[-1]}"))[1].partition("<main")[2]
        page = (await browser.get("/unschedulable"))[1]
        assert not missing(page, f"{MOST_LOST + 1} batches", f"first {MOST_LOST}")


async def test_verdict_ends_once_a_host_fits(pi: LiveServer) -> None:
    host = await called(pi, "ordinary")
    await pi.submit(jobs={"count": 5, "memory_bytes": 1e13})
    await order(pi)
    await pi.feed()
    await refuse(pi, host)
    assert len(await told(pi)) == 1

    await given(pi, await pi.add_host("large", ram_bytes=1e14))
    await judge(pi)

    assert await told(pi) == {}


@pytest.mark.parametrize("hosts", [1, 3])
async def test_small_project_has_a_verdict(pi: LiveServer, hosts: int) -> None:
    fleet = [await called(pi, f"host{number}") for number in range(hosts)]
    large = await pi.submit(jobs={"count": 5, "memory_bytes": 1e13})
    await order(pi)
    await pi.feed()
    await refuse(pi, *fleet)
    assert await told(pi) == {large: {"memory": hosts}}

    runs = await pi.submit(jobs={"count": 50})
    await order(pi)
    await pi.feed()
    assert await given(pi, fleet[0]) == runs
    await judge(pi)

    assert await told(pi) == {large: {"memory": hosts}}


async def test_rounds_are_bounded_and_a_fitting_host_decides(pi: LiveServer) -> None:
    """Five hosts, two per round. The last batch asks for more than any but one of them has."""
    hosts = [await called(pi, f"host{number}") for number in range(4)]
    await called(pi, "large", ram_bytes=1e12)
    never = await pi.submit(jobs={"count": 5, "memory_bytes": 1e13})
    rarely = await pi.submit(jobs={"count": 5, "memory_bytes": 5e11})
    await order(pi)
    await pi.feed()
    await refuse(pi, hosts[0])
    judged = FleetJudge(pi.store, pi.clock, hosts_a_round=2)

    rounds = []
    for _ in range(3):
        await judged.run_once()
        report = judged.report()
        rounds.append([one["batch_id"] for one in report["unschedulable"]])  # type: ignore[attr-defined]  # JSON

    assert rounds == [[], [], [never]]
    assert [key[0] for key in report["able"]] == [rarely]  # type: ignore[attr-defined]  # JSON
    assert set(await told(pi)) == {never}


async def test_new_batch_is_judged_beside_many_older_ones(pi: LiveServer) -> None:
    """As many older batches as a round judges wait, which some host could run: they do not keep their places."""
    await called(pi, "ordinary")
    for _ in range(MOST_GROUPS):
        await pi.submit(jobs={"count": 1})
    huge = await pi.submit(jobs={"count": 1, "disk_bytes": 1e13})
    await order(pi)
    await pi.forward(2 * COOL_OFF_S)
    judged = FleetJudge(pi.store, pi.clock)

    for _ in range(3):
        await judged.run_once()

    assert [one["batch_id"] for one in judged.report()["unschedulable"]] == [huge]  # type: ignore[attr-defined]  # JSON


async def test_classes_take_turns_and_few_are_kept(pi: LiveServer) -> None:
    """A batch has more classes than a round judges. Some host could run all of them except the last."""
    await called(pi, "ordinary")
    asked = a_batch(job=[*({"disk_bytes": 1e6 + number} for number in range(MOST_GROUPS)), {"disk_bytes": 1e13}])
    del asked["jobs"]["count"]  # type: ignore[attr-defined]  # JSON
    await pi.create("POST", "/batches", json=asked)
    await pi.feed()
    await order(pi)
    await pi.forward(2 * COOL_OFF_S)
    judged = FleetJudge(pi.store, pi.clock)

    found = []
    for _ in range(2):
        await judged.run_once()
        found.append(judged.report())
        await pi.forward(KEPT_S + 1.0)

    assert [len(one["unschedulable"]) for one in found] == [0, 1]  # type: ignore[arg-type]  # JSON
    assert [one["able"] for one in found] == [[], []]


async def test_report_of_many_classes_that_none_can_run_is_bounded(pi: LiveServer) -> None:
    await called(pi, "ordinary")
    asked = a_batch(job=[{"disk_bytes": 1e13 + number} for number in range(MOST_KEPT + 1)])
    del asked["jobs"]["count"]  # type: ignore[attr-defined]  # JSON
    await pi.create("POST", "/batches", json=asked)
    await pi.feed()
    await order(pi)
    await pi.forward(2 * COOL_OFF_S)
    judged = FleetJudge(pi.store, pi.clock)

    for _ in range(5 * MOST_KEPT // MOST_GROUPS):
        await judged.run_once()
        await pi.forward(KEPT_S + 1.0)

    assert len(judged.report()["unschedulable"]) == len(judged._verdicts) == MOST_KEPT  # type: ignore[arg-type]  # JSON


async def test_host_is_told_of_work_in_back_off(pi: LiveServer) -> None:
    """Three small hosts refuse the only batch. The page of a large host says so, also once it is judged."""
    await pi.create("PUT", "/settings/feeder.refusals_to_rotate", json={"value": 3, "why": "a test"})
    large = await called(pi, "large", ram_bytes=1e14)
    small = [await called(pi, f"small{number}") for number in range(3)]
    batch_id = await pi.submit(jobs={"count": 5, "memory_bytes": 1e13})
    await order(pi)
    await pi.feed()
    for host in small:
        assert await given(pi, host) is None
    await pi.feed()
    await judge(pi)

    shown = await pi.create("GET", f"/explain/host/{large.host_id}")

    assert (await told(pi), shown["groups_total"]) == ({}, 0)
    [out] = shown["left_out"]
    assert (out["batch_id"], missing(out["why"], "3 hosts", "5 min", "feeder.cool_off_s")) == (batch_id, [])


async def test_work_that_only_slow_hosts_refused_is_schedulable(pi: LiveServer) -> None:
    for number in range(2):
        await called(pi, f"fast{number}")
    slow = [await called(pi, f"slow{number}", **SLOW) for number in range(4)]
    await pi.submit(jobs={"count": 5, "fpops_est": 1e13, "delay_bound_s": 86400})
    await order(pi)
    await pi.feed()

    await refuse(pi, *slow)

    assert await told(pi) == {}


async def test_most_specific_reason_and_its_advice_win(pi: LiveServer) -> None:
    """Half of the hosts lack a version, and half a label."""
    linux, windows = await called(pi, "linux"), await pi.add_host("windows")
    await windows.ask(platforms=("windows_x86_64",))
    values = ("queues=lab=0/2/1 normal=1/1/1", "queue_hosts=lab:label=lab")
    await json_of(pi, "priority", "set", *values, "--why", "a class of hosts")
    batch_id = await pi.submit(jobs={"count": 5}, queue="lab", name="lab only")
    await order(pi)
    await pi.feed()

    await refuse(pi, linux)

    assert await told(pi) == {batch_id: {"queue": 1, "platform": 1}}
    [item] = [one for one in (await pi.create("GET", "/attention"))["items"] if one["kind"] == "unschedulable"]
    assert not missing(item["sentence"], "queue", "1", "platform")
    assert not missing(item["remedy"], "label = lab", "muster host set")
    assert not missing((await command(pi, "unschedulable")).stdout, "label = lab")


async def test_waiting_batch_is_judged_right_after_a_restart(pi: LiveServer) -> None:
    """No host has asked since the workers started: only the database knows how long the batch has waited."""
    for number in range(3):
        await called(pi, f"ordinary{number}")
    huge = await pi.submit(jobs={"count": 5, "memory_bytes": 1e13}, name="huge")
    submitted_at = pi.clock.now()
    await pi.submit(jobs={"count": 5}, name="fits")
    await order(pi)
    await judge(pi)
    assert await told(pi) == {}
    await pi.forward(2 * COOL_OFF_S)

    await judge(pi)

    assert await told(pi) == {huge: {"memory": 3}}
    [row] = (await json_of(pi, "unschedulable"))["refused"]
    assert (row["waiting"], row["active_hosts"]) == (5, 3)
    assert abs(row["since_at"] - submitted_at) < COOL_OFF_S


async def test_batch_that_moves_to_another_queue_has_no_verdict(pi: LiveServer) -> None:
    host = await called(pi, "linux")
    values = ("queues=lab=0/2/1 normal=1/1/1", "queue_hosts=lab:label=lab")
    await json_of(pi, "priority", "set", *values, "--why", "a class of hosts")
    batch_id = await pi.submit(jobs={"count": 5}, queue="lab")
    await order(pi)
    await pi.feed()
    await refuse(pi, host)
    assert await told(pi) == {batch_id: {"queue": 1}}

    await pi.create("PATCH", f"/batches/{batch_id}", json={"queue": "normal"})
    moved = await told(pi)
    await judge(pi)

    assert (moved, await told(pi)) == ({}, {})


async def test_withdrawn_version_is_the_verdict(pi: LiveServer) -> None:
    host = await called(pi, "linux")
    batch_id = await pi.submit(jobs={"count": 5}, name="orphan")
    await order(pi)
    await pi.feed()
    await json_of(pi, "app", "version", "withdraw", "1", "--leave")
    await pi.feed()
    await refuse(pi, host)

    assert set(await told(pi)) == {batch_id}
    [row] = (await json_of(pi, "unschedulable"))["refused"]
    assert "withdr" in row["verdict"] and "processor" not in row["verdict"]
    await add_operator(pi)
    async with a_browser(pi, OPERATOR) as browser:
        for place in ("/unschedulable", "/batches/1"):
            page = (await browser.get(place))[1]
            assert "withdr" in page and "have no processor" not in page


async def test_preview_warns_of_jobs_that_no_host_can_run(pi: LiveServer) -> None:
    """The last hosts are a sample: the state and the end stay those of the forecast."""
    for number in range(3):
        await called(pi, f"ordinary{number}")
    await called(pi, "large", ram_bytes=32e9)
    jobs = {"count": 5, "fpops_est": 1e12}
    table, fits = (
        {"app": "pi", "qos": "throughput", "jobs": {**jobs, "memory_bytes": memory}} for memory in (1e11, 3e10)
    )

    told = [await pi.create("POST", "/batches", params={"preview": "true"}, json=one) for one in (table, fits)]
    unable, able = [one["forecast"] for one in told]

    assert not missing(unable["unable"], "last 4 hosts", "100 GB", "32 GB", "memory_bytes")
    assert not able["unable"]
    for name in ("forecast_state", "method", "q50_at"):
        assert (unable[name] is None) == (able[name] is None)
    assert unable["forecast_state"] == able["forecast_state"]
    await add_operator(pi)
    await pi.feed()
    async with a_browser(pi, OPERATOR) as browser:
        form = {
            "app": "pi",
            "qos": "throughput",
            "count": "5",
            "gflop": "1000",
            "memory_mb": "100000",
            "what": "preview",
        }
        page = (await browser.post("/batches/new", form))[2]
    assert not missing(page, "<strong>None of the last 4 hosts", "32 GB") and "<strong>Expected end" not in page

    submitted = await pi.create("POST", "/batches", json=table)
    assert submitted["forecast"]["unable"] == ""


async def test_preview_checks_hosts_at_their_limit_too(pi: LiveServer) -> None:
    host = await called(pi, "busy", ncpus=1)
    await pi.create("PUT", "/settings/scheduler.in_progress_per_cpu", json={"value": 1, "why": "a test"})
    await pi.submit(jobs={"count": 1})
    await order(pi)
    await pi.feed()
    assert await given(pi, host) is not None
    table = {"app": "pi", "qos": "throughput", "jobs": {"count": 1, "fpops_est": 1e12, "memory_bytes": 1e11}}

    found = await pi.create("POST", "/batches", params={"preview": "true"}, json=table)

    assert not missing(found["forecast"]["unable"], "100 GB")
