"""The order of batches as shown and changed by the API, its client and the command line."""

from __future__ import annotations

import json

import pytest

from domain.access import Role
from domain.units import BatchId
from muster_client import ApiError, Client
from tests.acceptance.faces import client_of, command, json_of, run_duty
from tests.acceptance.server import LiveServer
from tests.acceptance.test_access import a_person, a_token
from tests.facts import missing, states


async def order(server: LiveServer) -> None:
    await run_duty(server, "ordering")


async def ordering_history(server: LiveServer) -> set[tuple[str, str, str]]:
    """Return changes of ordering settings with their authors and reasons."""
    changes = await json_of(server, "setting", "history")
    return {(one["key"], one["by"], one["why"]) for one in changes if one["key"].startswith("ordering.")}


async def two_batches(server: LiveServer) -> tuple[BatchId, BatchId]:
    first = await server.submit(submitter="ada", jobs={"count": 5})
    return first, await server.submit(submitter="bob", jobs={"count": 5})


async def test_priority_terms_sum_to_the_total(pi: LiveServer) -> None:
    first, second = await two_batches(pi)
    changes = ["policy=multifactor", "wait_weight=1000", "user_weight=300"]
    await json_of(pi, "priority", "set", *changes, "--why", "as on the cluster")
    await json_of(pi, "batch", "set", str(second), "--user-priority", "-512")
    await order(pi)

    shown = await json_of(pi, "priority", "show")

    assert [one["batch"] for one in shown["batches"]] == [first, second]
    for one in shown["batches"]:
        assert one["policy"] == "multifactor"
        assert sum(part["points"] for part in one["components"]) == pytest.approx(one["total"], abs=1e-9)
    user = {part["name"]: part for part in shown["batches"][1]["components"]}["user"]
    assert (user["value"], user["points"]) == (-0.5, -150.0)

    words = (await command(pi, "priority", "show", "--verbose", "--batch", str(second))).stdout
    assert f"batch {second}, multifactor" in words and "user * user_weight" in words and "-0.5 * 300" in words
    for layout in ("table", "mdiag", "sprio", "flux"):
        printed = (await command(pi, "priority", "show", "--format", layout)).stdout.splitlines()
        assert len(printed) >= 3, layout
    async with client_of(pi) as client:
        assert (await client.priority(second))["total"] == shown["batches"][1]["total"]
        assert [one["place"] for one in await client.priorities()] == [1, 2]


async def test_unordered_batch_is_listed_as_such(pi: LiveServer) -> None:
    done = await command(pi, "priority", "show", "--batch", "9999")
    assert (done.exit_code, done.stdout, done.stderr) == (1, "", "muster: no batch 9999\n")
    assert (await command(pi, "priority", "show")).stdout.startswith("No batch has been ordered")


async def test_ordering_preview_changes_nothing(pi: LiveServer) -> None:
    first, second = await two_batches(pi)
    await json_of(pi, "batch", "set", str(first), "--user-priority", "-1024")
    await order(pi)

    found = await json_of(pi, "priority", "preview", "policy=multifactor", "user_weight=1e9")

    assert found["policy"] == {"from": "logical_time", "to": "multifactor"}
    assert [(one["batch"], one["place"], one["would_be"]) for one in found["places"]] == [(second, 2, 1), (first, 1, 2)]
    async with client_of(pi) as client:
        again = await client.preview_ordering({"policy": "multifactor", "user_weight": 1e9})
    assert again["places"] == found["places"] and again["changes"] == found["changes"]
    assert await ordering_history(pi) == set()


async def test_policy_change_is_audited(pi: LiveServer) -> None:
    async with client_of(pi) as client:
        changed = await client.set_ordering({"policy": "components", "components": "XFACTORWEIGHT=7"}, why="as before")
        with pytest.raises(ApiError) as refused:
            await client.set_ordering({"queues": "normal=0/1/1 normal=1/1/1"}, why="twice")
        with pytest.raises(ApiError) as unexplained:
            await client.set_ordering({"policy": "fifo"}, why=" ")

    assert [(one["key"], one["to"]) for one in changed] == [
        ("ordering.policy", "components"),
        ("ordering.components", "XFACTORWEIGHT=7"),
    ]
    assert not missing(str(refused.value), "ordering.queues:", "each queue once")
    assert "why: expected a reason" in str(unexplained.value)
    assert await ordering_history(pi) == {
        ("ordering.policy", "api", "as before"),
        ("ordering.components", "api", "as before"),
    }
    weights = await json_of(pi, "priority", "weights")
    normal = {one["term"]: one["weight"] for one in weights if one["level"] == "normal"}
    assert normal == {"QUEUETIME": 1.0, "XFACTOR": 7.0}  # the queue time's weight is 1 by default
    done = await command(pi, "setting", "set", "ordering.queues", "normal=0/1/1 normal=1/1/1")
    assert (done.exit_code, missing(done.stderr, "ordering.queues:", "each queue once")) == (1, [])


async def test_shares_are_shown_and_changed(pi: LiveServer) -> None:
    await json_of(pi, "fairshare", "set", "account", "adas", "3")
    await json_of(pi, "fairshare", "set", "submitter", "bob", "2", "--account", "adas")

    tree = await json_of(pi, "fairshare", "show")

    shares = {(one["account"], one["submitter"]): one for one in tree}
    assert shares["adas", None]["shares"] == 3.0
    assert shares["adas", "bob"]["shares"] == 2.0
    assert shares["adas", "ada"]["share_fraction"] == pytest.approx(shares["adas", None]["share_fraction"] / 3.0)
    assert shares["adas", "ada"]["level_weight"] is None  # no usage yet
    assert "adas/" in (await command(pi, "fairshare", "show")).stdout
    async with client_of(pi) as client:
        assert await client.fairshare() == tree
        await client.set_shares("account", "adas", 5.0)
        assert {one["account"]: one["shares"] for one in await client.fairshare() if not one["submitter"]}["adas"] == 5
        with pytest.raises(ApiError, match="shares"):
            await client.set_shares("account", "adas", -1.0)


async def test_edits_over_the_api_record_the_former_values(pi: LiveServer) -> None:
    async with client_of(pi) as client:
        await client.set_shares("account", "adas", 2.0)
        await client.set_shares("submitter", "ada", 3.0)
        await client.permit("submitter", "ada", ["raise"])
        await client.set_grant("adas", granted_su=10.0, period_s=100.0)
        await client.set_grant("adas", granted_su=20.0, period_s=100.0)
        await client.set_limit("submitter", "jobs", name="ada", soft=1.0)
        await client.set_limit("submitter", "jobs", name="ada", hard=2.0)
        await client.take_grant("adas")
        for scope in ("submitter", "account", "app", "queue"):
            with states(ApiError, "name:", "'zoe'", scope):
                await client.set_limit(scope, "jobs", name="zoe", hard=1.0)
        assert [one["name"] for one in await client.limits()] == ["ada"]
    acts = [(one.what, one.detail.get("was")) for one in reversed(await pi.store.access.acts(limit=8))]
    assert acts == [
        ("set_shares", {"shares": 1.0, "parent": "", "permissions": []}),
        ("set_shares", {"shares": 1.0, "permissions": []}),
        ("permit", {"shares": 3.0, "permissions": []}),
        ("set_grant", {}),
        ("set_grant", {"granted_su": 10.0, "period_s": 100.0}),
        ("set_limit", {}),
        ("set_limit", {"soft": 1.0, "hard": None}),
        ("take_grant", {"granted_su": 20.0, "period_s": 100.0}),
    ]


async def test_changed_settings_over_the_api_record_former_values(pi: LiveServer) -> None:
    async with client_of(pi) as client:
        await client.set_setting("deadline.p_tight", 0.8, why="late")
        await client.set_thresholds({"p_tight": 0.7, "deadline.p_late": 0.6}, why="late")
        await client.reset_setting("deadline.p_tight", why="done")
        await client.set_ordering({"policy": "multifactor"}, why="trial")
    assert [one.detail for one in reversed(await pi.store.access.acts(limit=4))] == [
        {"value": 0.8, "was": 0.9, "why": "late"},
        {
            "values": {"deadline.p_tight": 0.7, "deadline.p_late": 0.6},
            "was": {"deadline.p_tight": 0.8, "deadline.p_late": 0.5},
            "why": "late",
        },
        {"value": None, "was": 0.7, "why": "done"},
        {"values": {"ordering.policy": "multifactor"}, "was": {"ordering.policy": "logical_time"}, "why": "trial"},
    ]


async def test_changes_of_a_batch_record_its_former_values(pi: LiveServer) -> None:
    batch_id = await pi.submit(name="sweep", submitter="ada", user_priority=-3)
    for body in (
        {"level": "standby", "why": " "},
        {"user_priority": -7, "release": False, "why": " the paper is due "},
    ):
        await pi.create("PATCH", f"/batches/{batch_id}", json=body)
    last, first = [one.detail for one in await pi.store.access.acts(limit=2)]
    assert first == {"level": "standby", "was": {"level": "normal"}}
    assert last == {"user_priority": -7, "was": {"user_priority": -3}, "why": "the paper is due"}


async def test_the_audit_trail_describes_submissions(pi: LiveServer) -> None:
    first = await pi.submit(name="sweep", submitter="ada", jobs={"count": 5})
    await pi.create("POST", f"/batches/{first}/clone", json={"submitter": "bob"})
    clone, submission = await pi.store.access.acts(limit=2)
    assert submission.detail == {"name": "sweep", "app": "pi", "submitter": "ada", "jobs": 5}
    named = {key: clone.detail[key] for key in ("app", "submitter", "jobs", "clone_of")}
    assert named == {"app": "pi", "submitter": "bob", "jobs": 5, "clone_of": first}


async def test_submitters_need_permissions_and_operators_none(pi: LiveServer) -> None:
    first, _ = await two_batches(pi)
    await a_person(pi, "ann", Role.SUBMITTER, "ada")
    assert (await command(pi, "batch", "set", str(first), "--user-priority", "-1025")).exit_code == 1
    async with client_of(pi) as client, Client(pi.url, await a_token(pi, "ann")) as ann:
        with pytest.raises(ApiError, match="requires the raise permission"):
            await ann.set_batch(first, user_priority=5)
        permitted = await json_of(pi, "account", "set", "adas", "--permit", "raise")
        assert permitted["permissions"] == ["raise"]
        assert (await ann.set_batch(first, user_priority=5))["user_priority"] == 5
        assert (await json_of(pi, "account", "set", "adas", "--no-permissions"))["permissions"] == []
        with pytest.raises(ApiError, match="requires the"):
            await ann.set_batch(first, user_priority=6)
        await client.permit("submitter", "ada", ["raise"])
        await ann.set_batch(first, user_priority=6)
        assert (await client.batch(first))["user_priority"] == 6
        with pytest.raises(ApiError, match="requires the expedite permission"):
            await ann.set_batch(first, level="expedite")
        assert (await client.set_batch(first, level="expedite"))["level"] == "expedite"
        with states(ApiError, "queue:", "one of express"):
            await client.set_batch(first, queue="nowhere")
        moved = await client.set_batch(first, level="standby", queue="express")
        assert (moved["user_priority"], moved["level"], moved["queue"]) == (6, "standby", "express")
        with states(ApiError, "account:", "submitter ada (adas)"):
            await client.set_batch(first, account="bobs")
        with pytest.raises(ApiError, match="a batch with qos short_deadline"):
            await client.set_batch(first, deadline_at=4e9)
    assert (await json_of(pi, "batch", "set", str(first), "--account", "adas"))["account"] == "adas"
    assert "set_batch" in [act.what for act in await pi.store.access.acts(limit=10)]


async def test_grants_are_set_shown_and_removed(pi: LiveServer) -> None:
    made = await json_of(pi, "grant", "add", "adas", "--units", "100", "--period-days", "30")
    assert (made["granted_su"], made["left_su"], made["period_s"]) == (100.0, 100.0, 30 * 86400.0)
    twice = await command(pi, "grant", "add", "adas", "--units", "1")
    assert twice.exit_code == 1 and "an account without a grant" in twice.stderr
    assert (await json_of(pi, "grant", "set", "adas", "--units", "50"))["granted_su"] == 50.0
    async with client_of(pi) as client:
        assert [one["account"] for one in await client.grants()] == ["adas"]
        with pytest.raises(ApiError, match="no account"):
            await client.set_grant("missing", granted_su=1.0, period_s=86400.0)
    assert (await json_of(pi, "grant", "drop", "adas"))["granted_su"] is None
    assert await json_of(pi, "grant", "list") == []


async def test_limits_are_set_listed_removed_and_block_batches(pi: LiveServer) -> None:
    await two_batches(pi)
    set_one = await json_of(pi, "limit", "set", "submitter", "jobs", "ada", "--soft", "1", "--hard", "2")
    assert (set_one["name"], set_one["soft"], set_one["hard"]) == ("ada", 1.0, 2.0)
    wrong = await command(pi, "limit", "set", "submitter", "jobs", "--soft", "3", "--hard", "2")
    assert (wrong.exit_code, missing(wrong.stderr, "soft:", "at most the hard limit")) == (1, [])
    async with client_of(pi) as client:
        await client.set_limit("submitter", "jobs", hard=0.0)
        assert len(await client.limits()) == 2
    await order(pi)
    shown = {one["batch"]: one for one in (await json_of(pi, "priority", "show"))["batches"]}
    assert [one["hold"] is not None for one in shown.values()].count(True) == 1  # bob's, by the default limit
    await json_of(pi, "limit", "drop", "submitter", "jobs")
    await json_of(pi, "limit", "drop", "submitter", "jobs", "ada")
    assert await json_of(pi, "limit", "list") == []


async def test_fairshare_emulation_over_the_api(pi: LiveServer) -> None:
    tree = {"name": "root", "children": [{"name": "ann", "usage": 3}, {"name": "bob", "usage": 1}]}
    async with client_of(pi) as client:
        found = await client.emulate_fairshare("flux", tree)
        with pytest.raises(ApiError, match=r"ann\.usage"):
            await client.emulate_fairshare("flux", json.loads(json.dumps(tree).replace("3", '"3"')))
        with pytest.raises(ApiError, match="system: expected one of"):
            await client.emulate_fairshare("lsf", tree)

    assert (found["columns"], found["rows"][0]) == (["user", "fairshare", "weight"], ["bob", "1", "2"])
