"""Effects of the batch order on requests: which batch is served first, and what limits block."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from pathlib import Path

import pytest

from domain.access import Role
from domain.limits import Limit, Quantity, Scope
from domain.ordered_work import Permission
from domain.settings import FeederSettings
from domain.units import DAY_S, HOUR_S, BatchId, Instant, Seconds, later, utc
from jobs.ordering.rows import TURNS
from tests.acceptance.faces import command, json_of
from tests.acceptance.host import Host
from tests.acceptance.server import LiveServer, a_batch
from tests.acceptance.test_access import a_person, a_token
from tests.acceptance.test_console import a_browser
from tests.acceptance.test_ordering_faces import order
from tests.browser.scene import OPERATOR, add_operator
from tests.facts import missing
from tests.faults.waiting import until
from tests.stores import batches_of
from wire.messages import STATE_COMPUTE_ERROR, InProgress

HOUR_FLOP = HOUR_S * 1e9  # of one CPU of the hosts


async def given(server: LiveServer, host: Host) -> BatchId | None:
    """Request one job; return its batch."""
    tasks = await host.ask()
    return batch_of(tasks[0].result.name) if tasks else None


def batch_of(result: str) -> BatchId:
    return BatchId(int(result.split("_")[1]))


async def test_who_was_served_goes_after_who_was_not(pi: LiveServer) -> None:
    await pi.create("PUT", "/settings/ordering.policy", json={"value": "multifactor", "why": "a test"})
    adas = await pi.submit(submitter="ada", jobs={"count": 5})
    bobs = await pi.submit(submitter="bob", jobs={"count": 5})
    assert await given(pi, await pi.add_host("one")) == adas

    await order(pi)
    await pi.feed()
    assert await given(pi, await pi.add_host("two")) == bobs

    await order(pi)
    await pi.feed()
    assert await given(pi, await pi.add_host("three")) == adas


async def test_blocked_batch_is_sent_once_the_limit_allows(pi: LiveServer) -> None:
    adas = await pi.submit(submitter="ada", jobs={"count": 5})
    await pi.store.ordering_rules.put_limit(Limit(Scope.SUBMITTER, Quantity.JOBS, "ada", hard=2.0))
    await order(pi)
    await pi.feed()
    hosts = [await pi.add_host(name) for name in ("one", "two", "three", "four")]

    assert [await given(pi, host) for host in hosts] == [adas, adas, None, None]
    await order(pi)
    held = (await pi.store.views.batch(adas)).hold
    assert not missing(held or "", "hard", "submitter ada:", "2 + 1 > 2 jobs")

    [task] = hosts[0].held.values()
    await hosts[0].work(task)
    await pi.validate()
    await order(pi)
    await pi.feed()
    assert [await given(pi, await pi.add_host(name)) for name in ("five", "six")] == [adas, None]


@pytest.mark.parametrize("policy", ["equal_access", "logical_time", "multifactor"])
async def test_equals_share_forty_dispatches_between_orderings(pi: LiveServer, policy: str) -> None:
    await pi.create("PUT", "/settings/ordering.wait_weight", json={"value": 0.0, "why": "a test"})
    await pi.create("PUT", "/settings/ordering.policy", json={"value": policy, "why": "a test"})
    begun_at = pi.clock.now()
    adas = await pi.submit(submitter="ada", jobs={"count": 100})
    pi.clock.forward(begun_at - pi.clock.now())  # logical ends more than a second apart would not be equal
    await pi.submit(submitter="bob", jobs={"count": 100})
    for round_ in range(2):
        await order(pi)
        had = 0
        for number in range(40):
            if number % 15 == 0:
                await pi.feed()
            had += await given(pi, await pi.add_host(f"host{round_}-{number}")) == adas
        assert 16 <= had <= 24
        await pi.forward(60.0)


async def test_breakdowns_follow_numbers_within_ten_orderings(pi: LiveServer) -> None:
    await pi.create("PUT", "/settings/ordering.policy", json={"value": "equal_access", "why": "a test"})
    adas = await pi.submit(submitter="ada", jobs={"count": 30})
    await pi.submit(submitter="bob", jobs={"count": 30})
    hosts = [await pi.add_host(f"host{number}") for number in range(6)]
    for turn in range(3):
        await given(pi, hosts[2 * turn])
        await given(pi, hosts[2 * turn + 1])
        for _ in range(10):
            await pi.forward(60.0)
            await order(pi)
        shown = (await json_of(pi, "priority", "show"))["batches"]
        keys = {one["batch"]: (await pi.store.views.batch(BatchId(one["batch"]))).order_key for one in shown}
        assert {one["batch"]: -one["total"] for one in shown} == keys
        assert min(one["computed_at"] for one in shown) >= pi.clock.now() - 10 * 60.0 - 5.0
    assert adas in keys
    await pi.forward(600.0)
    [one, _] = (await pi.create("GET", "/priority"))["batches"]
    assert 600.0 <= one["age_s"] == pytest.approx(pi.clock.now() - one["computed_at"], abs=5.0)
    heading, first, _ = (await command(pi, "priority", "show")).stdout.splitlines()
    assert heading.split()[3] == "age" and first.split()[4] in ("ms", "s", "min")
    words = (await command(pi, "priority", "show", "--verbose", "--batch", str(adas))).stdout
    assert not missing(words, "computed", "ago")


async def test_reference_host_follows_the_first_hosts(pi: LiveServer) -> None:
    await order(pi)
    await pi.submit(submitter="ada", jobs={"count": 5, "ncpus": 4})
    sizes = []
    for number in range(4):
        host = await pi.add_host(f"host{number}", ncpus=8, ram_bytes=32e9, flop_per_s=5e9)
        await host.call()
        await order(pi)
        reference = (await pi.store.ordering.view()).reference
        assert reference is not None
        sizes.append(
            (reference.host.cores, reference.host.memory_bytes, reference.flop_per_s, reference.newest_host_id)
        )
    assert sizes == [(8.0, 32e9, 5e9, newest) for newest in (1, 2, 2, 4)]


async def test_one_measured_job_is_charged_as_measured(pi: LiveServer) -> None:
    await pi.submit(submitter="ada", jobs={"count": 1, "fpops_est": 4e12})
    host = await pi.add_host("one", flop_per_s=1e9)
    [task] = await host.ask()
    await order(pi)
    assert sum(one.usage.amounts.flop for one in (await pi.store.ordering.view()).usage) == pytest.approx(
        4e12, rel=1e-3
    )

    await pi.forward(60.0)
    await host.work(task, elapsed_s=9.0)
    await pi.validate()
    await order(pi)

    assert sum(one.usage.amounts.flop for one in (await pi.store.ordering.view()).usage) == pytest.approx(9e9, rel=1e-3)


async def test_spent_grant_is_named_where_the_place_is_explained(pi: LiveServer) -> None:
    account = next(one for one in await pi.store.people.accounts() if one.name == "adas")
    now = pi.clock.now()
    await pi.store.ordering_rules.put_grant(account.account_id, granted_su=2.0, starts_at=now, period_s=Seconds(DAY_S))
    adas = await pi.submit(submitter="ada", jobs={"count": 5, "fpops_est": 3.6e13})
    await given(pi, await pi.add_host("one"))
    await order(pi)
    await order(pi)

    await add_operator(pi)
    async with a_browser(pi, OPERATOR) as grace:
        _, page = await grace.get(f"/batches/{adas}")
    until = f"{utc(Instant(now + DAY_S)):%Y-%m-%d %H:%M} UTC"
    for words in (
        (await command(pi, "priority", "show", "--verbose", "--batch", str(adas))).stdout,
        (await command(pi, "explain", "batch", str(adas))).stdout,
        (await json_of(pi, "explain", "batch", str(adas)))["order"]["queue"],
        (await command(pi, "batch", "show", str(adas))).stdout,
        page,
    ):
        assert not missing(words, "bonus:", "2 SU", until)


async def test_usage_weight_of_a_small_unit_is_taken(pi: LiveServer) -> None:
    changed = {"value": "flop=1e-9 memory_byte_s=1e-12", "why": "a test"}
    assert (await pi.create("PUT", "/settings/ordering.usage_weights", json=changed))["value"] == changed["value"]


async def wide_and_small(pi: LiveServer) -> tuple[Host, list[BatchId]]:
    """Return an idle host of 8 CPUs, and the batches of a job for all of them and of 7 jobs, first and second."""
    for key, value in {"ordering.policy": "fifo", "deadline.rule": "fixed"}.items():
        await pi.create("PUT", f"/settings/{key}", json={"value": value, "why": "a test"})
    bound = {"delay_bound_s": 4.5 * HOUR_S}
    wide = await pi.submit(submitter="ada", jobs={**bound, "count": 1, "ncpus": 8, "fpops_est": 4 * HOUR_FLOP})
    small = await pi.submit(submitter="bob", jobs={**bound, "count": 7, "fpops_est": HOUR_FLOP})
    await order(pi)
    await pi.feed()
    return await pi.add_host("ada", ncpus=8), [wide, small]


async def test_plain_version_leaves_no_cpu_beside_a_wide_job(pi: LiveServer) -> None:
    """The client counts the CPUs of a job by its app version, so the reply describes one with 8."""
    host, [wide, small] = await wide_and_small(pi)

    reply = await host.call(cpu_req_s=Seconds(8.0), cpu_req_instances=8.0)

    assert [batch_of(result.name) for result in reply.results] == [wide]
    [version] = reply.app_versions
    assert (version.avg_ncpus, version.plan_class) == (8.0, reply.results[0].plan_class)
    [listed] = [InProgress(one.name, one.report_deadline, Seconds(4 * HOUR_S)) for one in reply.results]
    for queue in (None, (listed,), (replace(listed, ncpus=8.0),)):  # 4 h of work on every CPU: too long for the others
        assert not await host.ask(7, in_progress=queue, cpu_req_instances=0.0)

    words = (await command(pi, "explain", "host", str(host.host_id))).stdout
    assert not missing(words, "too_slow", "4 h of queued work", "4 h 30 min")
    await pi.forward(4 * HOUR_S)
    await host.work(next(iter(host.held.values())))
    tasks = await host.ask(8)
    assert [batch_of(task.result.name) for task in tasks] == [small] * 7
    assert {task.result.plan_class for task in tasks} == {""}


async def test_lost_wide_job_is_sent_again_with_its_cpus(pi: LiveServer) -> None:
    host, [wide, _] = await wide_and_small(pi)
    await host.ask(8)
    host.held.clear()

    reply = await host.call(cpu_req_s=Seconds(8.0), cpu_req_instances=8.0)

    assert [batch_of(result.name) for result in reply.results] == [wide]
    assert [version.avg_ncpus for version in reply.app_versions] == [8.0]


async def test_busy_host_is_refused_with_the_cpus_needed(pi: LiveServer) -> None:
    """One CPU is busy for a month: the others get the small jobs, and the wide job would start too late."""
    host, [_, small] = await wide_and_small(pi)
    busy = (InProgress("other", later(pi.clock.now(), 60 * DAY_S), Seconds(30 * DAY_S)),)

    tasks = await host.ask(7, in_progress=busy)

    assert [batch_of(task.result.name) for task in tasks] == [small] * 7
    words = (await command(pi, "explain", "host", str(host.host_id))).stdout
    assert not missing(words, "too_slow", "needs 8 CPUs")
    assert re.search(r"(1 h|59 min \d+ s) of queued work", words)  # the real clock goes on


async def test_level_without_permission_is_refused_in_words(pi: LiveServer) -> None:
    await a_person(pi, "ann", Role.SUBMITTER, "ada")
    token = await a_token(pi, "ann")
    status, answer = await pi.api("POST", "/batches", token=token, json=a_batch(submitter="ada", level="expedite"))
    assert status == 422
    assert not missing(str(answer["detail"]), "level:", "permission", "'expedite'")
    assert "ServiceLevel" not in str(answer)


async def test_operators_submit_and_clone_at_any_level(pi: LiveServer) -> None:
    urgent = a_batch(submitter="ada", level="expedite")
    previewed = await pi.create("POST", "/batches", params={"preview": "true"}, json=urgent)
    assert previewed["forecast"] is not None
    batch_id = (await pi.create("POST", "/batches", json=urgent))["batch_id"]
    clone_id = (await pi.create("POST", f"/batches/{batch_id}/clone", json={}))["batch_id"]
    assert [(await pi.batch(BatchId(one)))["level"] for one in (batch_id, clone_id)] == ["expedite"] * 2


@pytest.mark.parametrize(("mode", "first"), [("last", "bob"), ("penalty", "ada")])
async def test_soft_limit_is_a_tier_or_only_a_penalty(pi: LiveServer, mode: str, first: str) -> None:
    weights = "QUEUETIMEWEIGHT=1 SPVIOLATIONWEIGHT=-10"
    for key, value in (("policy", "components"), ("components", weights), ("soft_limits", mode)):
        await pi.create("PUT", f"/settings/ordering.{key}", json={"value": value, "why": "a test"})
    await pi.store.ordering_rules.put_limit(Limit(Scope.SUBMITTER, Quantity.JOBS, "ada", soft=0.0))
    ids = {"ada": await pi.submit(submitter="ada", jobs={"count": 5})}
    await pi.forward(3600.0)  # 60 points, of which ada's violation costs 10
    ids["bob"] = await pi.submit(submitter="bob", jobs={"count": 5})
    await order(pi)
    await pi.feed()

    assert await given(pi, await pi.add_host("one")) == ids[first]
    [shown] = (await json_of(pi, "priority", "show", "--batch", str(ids["ada"])))["batches"]
    terms = {one["name"]: one["points"] for one in shown["components"]}
    assert terms["SPVIOLATION"] == -10.0


async def test_mdiag_names_sub_components_with_whole_points(pi: LiveServer) -> None:
    weights = "QUEUETIMEWEIGHT=0.7 USERPRIOWEIGHT=0.3 FSUSERWEIGHT=1.7"
    for key, value in (("policy", "components"), ("components", weights)):
        await pi.create("PUT", f"/settings/ordering.{key}", json={"value": value, "why": "a test"})
    adas = await pi.submit(submitter="ada", jobs={"count": 5}, user_priority=-7)
    await pi.forward(100.0)
    await order(pi)

    printed = (await command(pi, "priority", "show", "--format", "mdiag")).stdout
    heading, of_weights, row, _foot = printed.splitlines()
    assert "SERVICE(QUEUETIME:USERPRIO)" in heading and "(0.7:0.3)" in of_weights
    assert row.split()[:2] == [str(adas), "-1"] and "-1 100.0%(1:-2)" in row


async def test_capped_value_is_shown_with_its_cap(pi: LiveServer) -> None:
    for key, value in (("policy", "components"), ("components", "QUEUETIMEWEIGHT=10 QUEUETIMECAP=50")):
        await pi.create("PUT", f"/settings/ordering.{key}", json={"value": value, "why": "a test"})
    adas = await pi.submit(submitter="ada", jobs={"count": 5})
    await pi.forward(133 * 60.0)
    for _ in range(TURNS):
        await order(pi)

    words = (await command(pi, "priority", "show", "--verbose", "--batch", str(adas))).stdout
    assert re.search(r"= min\(133(\.\d+)?, 50\) \* 10", words) and "= 500" in words


async def test_shorter_interval_is_noticed_during_the_pause(pi: LiveServer) -> None:
    """The pause was to last an hour."""
    await pi.create("PUT", "/settings/ordering.interval_s", json={"value": HOUR_S, "why": "a test"})
    assert pi.background is not None
    await pi.background.catalogue.refresh_once()
    [duty] = [one for one in pi.background.duties if one.name == "ordering"]
    task = asyncio.create_task(duty.run())

    await until(lambda: duty.runs >= 1, 60.0, "first pass")
    await pi.create("PUT", "/settings/ordering.interval_s", json={"value": 1.0, "why": "a test"})
    await pi.background.catalogue.refresh_once()
    await until(lambda: duty.runs >= 2, 60.0, "second pass")
    task.cancel()


async def test_refusals_so_far_are_shown_before_work_is_unschedulable(pi: LiveServer) -> None:
    batch_id = await pi.submit(submitter="ada", jobs={"count": 5, "disk_bytes": 1e15})
    await order(pi)
    await pi.feed()
    assert await given(pi, await pi.add_host("one")) is None
    for worker in pi.workers:
        await worker.parts.heartbeat.write_once()
    rotate = FeederSettings().refusals_to_rotate

    [found] = (await json_of(pi, "unschedulable"))["refused"]
    assert (found["batch_id"], found["hosts"], found["codes"], found["rotated_out"]) == (
        batch_id,
        1,
        {"disk": 1},
        False,
    )
    assert found["more_hosts"] == rotate - 1 and found["more_s"] > 0.0
    assert f"{rotate - 1} more hosts" in (await command(pi, "unschedulable")).stdout


async def test_usage_windows_are_shown_beside_their_targets(pi: LiveServer) -> None:
    targets = {"value": "user:ada=20 user:bob=50+", "why": "a test"}
    await pi.create("PUT", "/settings/ordering.targets", json=targets)
    await pi.submit(submitter="ada", jobs={"count": 3, "fpops_est": 1e12})
    await order(pi)
    await pi.feed()
    assert await given(pi, await pi.add_host("one")) is not None
    await order(pi)

    found = await json_of(pi, "fairshare", "windows")
    assert found["delivered_flop"][0] == pytest.approx(1e12)
    rows = {(one["section"], one["name"]): one for one in found["usage"]}
    ada = rows["user", "ada"]
    assert (ada["target"], ada["percent"], ada["off_target"], ada["windows"][0]) == ("20", 100.0, True, 100.0)
    assert (rows["user", "bob"]["target"], rows["user", "bob"]["off_target"]) == ("50+", True)
    assert rows["group", "adas"]["percent"] == rows["level", "normal"]["percent"] == 100.0
    printed = (await command(pi, "fairshare", "windows")).stdout
    assert any(line.split()[:4] == ["USER", "ada*", "100.00", "20"] for line in printed.splitlines())


async def test_order_lists_who_waits_and_how_long(pi: LiveServer) -> None:
    await pi.create("PUT", "/settings/ordering.policy", json={"value": "fifo", "why": "a test"})
    gone = await pi.submit(submitter="ada", jobs={"count": 1})
    await order(pi)
    await pi.feed()
    assert await given(pi, await pi.add_host("one")) == gone
    waits = await pi.submit(submitter="bob", jobs={"count": 7})
    await pi.forward(90.0)
    for _ in range(TURNS):  # each breakdown is renewed within so many passes
        await order(pi)
    await pi.feed()

    [shown] = (await json_of(pi, "priority", "show"))["batches"]
    assert (shown["batch"], shown["submitter"], shown["waiting"]) == (waits, "bob", 7)
    _heading, row = (await command(pi, "priority", "show")).stdout.splitlines()
    assert row.split()[:3] == [str(waits), "bob", "7"] and re.search(r"\+(9|1[0-4])\d", row)

    preview = await json_of(pi, "priority", "preview", "policy=multifactor")
    assert {one["name"] for one in preview["reasons"][0]["components"]} >= {"wait", "fairshare"}
    explained = (await command(pi, "priority", "preview", "policy=multifactor", "--verbose")).stdout
    assert "wait * wait_weight" in explained


async def test_batch_waits_until_others_are_valid_or_ended(pi: LiveServer) -> None:
    first = await pi.submit(submitter="ada", jobs={"count": 1})
    then = await pi.submit(submitter="ada", after_ok=[first], jobs={"count": 1})
    last = await pi.submit(submitter="bob", after_any=[first, then], jobs={"count": 1})
    await order(pi)
    await pi.feed()
    hosts = [await pi.add_host(name) for name in ("one", "two", "three")]

    assert [await given(pi, host) for host in hosts] == [first, None, None]
    holds = [(await pi.batch(one))["hold"] or "" for one in (first, then, last)]
    assert [[str(one) in hold for one in (first, then)] for hold in holds] == [[False] * 2, [True, False], [True] * 2]
    assert (await json_of(pi, "explain", "batch", str(then)))["order"]["hold"] == holds[1]

    for host, batch_id in zip(hosts, (first, then, last), strict=True):
        if not host.held:
            await order(pi)
            await pi.feed()
            assert await given(pi, host) == batch_id
        [task] = host.held.values()
        await host.work(task)
        await pi.validate()
    assert (await pi.batch(last))["state"] == "complete"


async def test_batch_behind_a_failed_one_starts_when_released(pi: LiveServer) -> None:
    first = await pi.submit(submitter="ada", jobs={"count": 1, "max_errors": 1})
    then = await pi.submit(submitter="ada", after_ok=[first], jobs={"count": 1})
    host = await pi.add_host("one")
    await order(pi)
    await pi.feed()
    assert await given(pi, host) == first
    [task] = host.held.values()
    host.end(task, STATE_COMPUTE_ERROR, 1)
    await host.call()
    await pi.validate()
    assert (await pi.batch(first))["jobs_failed"] == 1

    await order(pi)
    await pi.feed()
    other = await pi.add_host("two")
    assert await given(pi, other) is None
    assert not missing((await pi.batch(then))["hold"], f"batch {first}", "release")

    await json_of(pi, "batch", "set", str(then), "--release")
    await order(pi)
    await pi.feed()
    assert await given(pi, other) == then


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("wrong", [[99], [0], ["1"], 1, list(range(1, 30))])
async def test_unknown_or_odd_predecessors_are_refused(shared_pi: LiveServer, wrong: object) -> None:
    status, answer = await shared_pi.api("POST", "/batches", json=a_batch(submitter="ada", after_ok=wrong))
    assert status in (404, 422) and not missing(str(answer["detail"]), "99" if wrong == [99] else "after_ok")
    assert await batches_of(shared_pi.store, limit=1) == []


@pytest.mark.parametrize(("accrual", "waited_s"), [("eligible", 0.0), ("always", 600.0)])
async def test_queue_time_of_a_blocked_batch_follows_the_setting(pi: LiveServer, accrual: str, waited_s: float) -> None:
    for key, value in (("policy", "components"), ("accrual", accrual)):
        await pi.create("PUT", f"/settings/ordering.{key}", json={"value": value, "why": "a test"})
    await pi.store.ordering_rules.put_limit(Limit(Scope.SUBMITTER, Quantity.JOBS, "ada", hard=0.0))
    batch_id = await pi.submit(submitter="ada", jobs={"count": 5})
    await order(pi)
    await pi.forward(600.0)
    for _ in range(TURNS):
        await order(pi)

    shown = await json_of(pi, "priority", "show", "--batch", str(batch_id))
    [queued] = [one["raw"] for one in shown["batches"][0]["components"] if one["name"] == "QUEUETIME"] or [0.0]
    assert queued == pytest.approx(waited_s / 60.0, abs=0.1)


async def test_usage_can_be_reset_and_the_reason_is_audited(pi: LiveServer) -> None:
    await pi.submit(submitter="ada", jobs={"count": 3, "fpops_est": 1e12})
    await pi.submit(submitter="bob", jobs={"count": 3, "fpops_est": 1e12})
    await order(pi)
    await pi.feed()
    for name in ("one", "two", "three", "four"):  # more than either has jobs
        assert await given(pi, await pi.add_host(name)) is not None
    await order(pi)
    used = {one["submitter"]: one["usage"] for one in await json_of(pi, "fairshare", "show")}
    assert used["ada"] > 0.0 and used["bob"] > 0.0

    done = await json_of(pi, "fairshare", "reset", "--submitter", "ada", "--why", "a new year")
    assert done == {"records": 1}
    await order(pi)
    used = {one["submitter"]: one["usage"] for one in await json_of(pi, "fairshare", "show")}
    assert used["ada"] == 0.0 and used["bob"] > 0.0
    assert {one["name"] for one in (await json_of(pi, "fairshare", "windows"))["usage"]} & {"ada", "bob"} == {"bob"}
    [act, *_] = await pi.store.access.acts(limit=5)
    assert (act.what, act.detail["why"]) == ("reset_usage", "a new year")
    assert (await command(pi, "fairshare", "reset", "--why", "nothing")).exit_code != 0


async def test_accounts_move_are_renamed_and_deleted(pi: LiveServer) -> None:
    await json_of(pi, "account", "add", "physics")
    await json_of(pi, "account", "set", "adas", "--parent", "physics")
    await pi.store.ordering_rules.put_limit(Limit(Scope.ACCOUNT, Quantity.JOBS, "adas", hard=2.0))
    assert (await command(pi, "account", "set", "physics", "--parent", "adas")).exit_code == 1  # a circle
    await json_of(pi, "account", "set", "adas", "--name", "optics")
    await json_of(pi, "submitter", "set", "ada", "--name", "lovelace")

    parents = {one["name"]: one["parent"] for one in await json_of(pi, "account", "list")}
    assert (parents["optics"], parents["physics"]) == ("physics", None) and "adas" not in parents
    assert [limit.name for limit in await pi.store.ordering_rules.limits()] == ["optics"]
    batch_id = await pi.submit(submitter="lovelace", jobs={"count": 1})
    assert (await pi.batch(batch_id))["account"] == "optics"

    for words in (
        ("submitter", "delete", "lovelace"),
        ("account", "delete", "optics"),
        ("account", "delete", "physics"),
    ):
        assert (await command(pi, *words)).exit_code == 1, words
    await json_of(pi, "submitter", "delete", "bob")
    await json_of(pi, "account", "delete", "bobs")
    assert {one["name"] for one in await json_of(pi, "submitter", "list")} >= {"lovelace"}
    assert "bobs" not in {one["name"] for one in await json_of(pi, "account", "list")}
    status, answer = await pi.api("DELETE", "/accounts/bobs")
    assert (status, "bobs" in str(answer["detail"])) == (404, True)
    status, answer = await pi.api("DELETE", "/accounts/physics")
    assert status == 409 and not missing(str(answer["detail"]), "physics", "accounts below")


async def test_account_tree_is_dumped_edited_and_loaded(pi: LiveServer, tmp_path: Path) -> None:
    await pi.store.people.permit_account("adas", [Permission.EXPEDITE])
    await pi.store.people.put_membership("bob", account="adas", shares=0.5)
    dumped = (await command(pi, "account", "dump")).stdout
    file = tmp_path / "tree.csv"
    file.write_text(dumped)
    assert await json_of(pi, "account", "load", str(file)) == []

    file.write_text(dumped + "account,optics,physics,3,\naccount,physics,,2,raise\nsubmitter,eve,optics,1.5,\n")
    would = await json_of(pi, "account", "load", str(file), "--dry-run")
    assert [one["name"] for one in would] == ["physics", "optics", "eve"]
    assert "eve" not in (await command(pi, "account", "dump")).stdout
    assert await json_of(pi, "account", "load", str(file)) == would
    again = await json_of(pi, "account", "dump")
    assert {"kind": "submitter", "name": "eve", "parent": "optics", "shares": 1.5, "permissions": []} in again
    assert await pi.submit(submitter="eve", jobs={"count": 1})

    wrong = {
        "account,physics,optics,1,": "rows[0].parent",
        "submitter,max,nowhere,1,": "rows[0].parent",
        "account,new,,-1,": "shares",
        "account,new,,1,everything": "rows[0].permissions",
        "account,new,,1,\naccount,new,,2,": "rows[1]",
        "account,new,,many,": "line 2: shares",
    }
    for rows, field in wrong.items():
        file.write_text("kind,name,parent,shares,permissions\n" + rows + "\n")
        done = await command(pi, "account", "load", str(file))
        assert (done.exit_code, field in done.stderr) == (1, True), (rows, done.stderr)
    assert await json_of(pi, "account", "dump") == again
