"""Tests dry runs of the scheduler's decision: they match the real request and change nothing."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from administration.attention.service import AttentionViews
from administration.explain.dry_run import OfOneBatch, private_feeder
from administration.explain.host import explain_host
from administration.explain.service import Explain
from administration.explain.words import batch_in_words, host_in_words, instance_in_words, job_in_words
from administration.ordering.places import position, sent_first, sequence, turn_of
from domain.acceleration import Acceleration
from domain.apps import CPU, NVIDIA, OnePerVolunteer, VersionState
from domain.batches import UNNUMBERED, QoS
from domain.dispatch import RequestWrites
from domain.errors import NotFoundError
from domain.forecasts import ForecastHold, HoldKind
from domain.hosts import Coprocessor
from domain.insight import WorkAhead
from domain.jobs import InstanceState
from domain.ordering import PlaceInOrder
from domain.quotas import QuotaRequest
from domain.ranking import CutPoints, Gate
from domain.restrictions import Restricted, Restriction
from domain.settings import Settings
from domain.settlement import ExtraCopy, JobSettlement
from domain.units import BatchId, FlopPerSecond, HostId, InstanceId, Instant, JobId, Seconds, later
from feeder.array import JobArray
from tests.builders import NOW, a_job_class, some_due_terms
from tests.conformance.test_forecasts import TERMS, a_record
from tests.conformance.test_history import settle
from tests.conformance.test_thresholds import ranked_hosts
from tests.facts import missing
from tests.stores import Store, as_postgres
from tests.unit.jobs.projects import HandClock
from tests.worlds import (
    RegisteredHost,
    a_registered_host,
    a_registered_version,
    a_report,
    a_sent_instance,
    a_submitted_batch,
    report,
)

GIVEN = some_due_terms(
    retry=True, queue_s=Seconds(7200.0), safe_runtime_s=Seconds(9000.0), p=0.75, gate=Gate.RETRY, threshold=0.5
)


def explain(store: Store) -> Explain:
    return explain_at(store, NOW)


def explain_at(store: Store, now: Instant) -> Explain:
    known, clock = as_postgres(store), HandClock(now)
    return Explain(known, clock, attention=AttentionViews(known, Settings, clock))


async def a_calling_host(store: Store, **changes: Any) -> RegisteredHost:
    """Return a host that makes a request once an hour."""
    host = await a_registered_host(store, last_rpc_at=later(NOW, -3600.0), **changes)
    said = replace(host.host, last_rpc_at=NOW)
    await store.ledger.write(RequestWrites(said, known=host.host))
    return RegisteredHost(said, host.account_key)


async def a_retry(store: Store, host: RegisteredHost, batch_id: BatchId, *, copies: int = 0) -> JobId:
    """Fail the batch's first job on the host, so that it gets another instance; `copies`: requested at dispatch."""
    sent = await a_sent_instance(store, batch_id, host, copies=copies)
    await report(store, host, a_report(sent, to_state=InstanceState.FAILED, reason="exit status 1"))
    [facts] = await store.unsettled.unsettled(99, now=NOW)
    again = JobSettlement(facts.job_id, facts.serial, facts.state, NOW, new_instances=1, retries=1)
    await store.unsettled.settle([again])
    return sent.job_id


# ---------------------------------------------------------------- hosts


async def test_a_dry_run_decides_on_the_worker_array(store: Store) -> None:
    """The database has jobs but the answering worker's array has none: a request gets none, nor does the dry run."""
    await a_registered_version(store)
    await a_submitted_batch(store, jobs=5)
    host = await a_calling_host(store, ncpus=2)
    catalogue = await store.applications.load_catalogue()
    live = JobArray(HandClock(NOW), lambda: catalogue.settings.feeder)

    shown = await explain_host(as_postgres(store), HandClock(NOW), live, host.host_id)
    filled = await explain(store).host(host.host_id)

    assert (shown["array"], listed(shown, "would_get"), shown["would_search"]) == ("worker", [], True)
    assert "job array of one worker" in host_in_words(shown) and "search the database" in host_in_words(shown)
    assert (filled["array"], len(listed(filled, "would_get")), filled["would_search"]) == ("filled", 2, False)
    assert "filled for this request" in host_in_words(filled)


async def test_a_dry_run_on_a_worker_array_takes_nothing(store: Store) -> None:
    await a_registered_version(store)
    batch = await a_submitted_batch(store, jobs=5)
    host = await a_calling_host(store, ncpus=2)
    catalogue = await store.applications.load_catalogue()
    fed = await private_feeder(store.waiting, catalogue, HandClock(NOW))

    for _ in range(2):
        shown = await explain_host(as_postgres(store), HandClock(NOW), fed.array, host.host_id)
        assert [one["batch_id"] for one in listed(shown, "would_get")] == [batch.batch_id] * 2
    assert len(fed.array) == 5


@pytest.mark.parametrize("slots", [16, 40, 4096])
async def test_array_for_one_batch_has_its_slots_of_a_full_one(store: Store, slots: int) -> None:
    await a_registered_version(store)
    batches = [await a_submitted_batch(store, jobs=jobs, qos=qos) for jobs in (1, 30, 9) for qos in KINDS]
    await a_retry(store, await a_calling_host(store), batches[2].batch_id)
    await store.settings.set_setting("feeder.slots", slots, now=NOW, who="ops", why="")
    catalogue, clock = await store.applications.load_catalogue(), HandClock(NOW)

    full = await private_feeder(store.waiting, catalogue, clock)
    for batch in batches:
        own = await private_feeder(OfOneBatch(store.waiting, batch.batch_id), catalogue, clock)
        assert slots_of(own.array, batch.batch_id) == slots_of(full.array, batch.batch_id)
    assert 0 < len(full.array) <= slots


KINDS = (QoS.AFAP, QoS.THROUGHPUT)


def slots_of(array: JobArray, batch_id: BatchId) -> set[InstanceId]:
    return {slot.instance_id for one in array.groups() if one.batch.batch_id == batch_id for slot in one.slots()}


async def test_a_dry_run_keeps_to_the_quotas_the_host_shares(store: Store) -> None:
    """It shows what a request gets if the account's quota of the day is used up, and charges nothing."""
    await a_registered_version(store)
    batch = await a_submitted_batch(store, jobs=5)
    host = await a_calling_host(store, ncpus=2)
    await store.settings.set_setting("scheduler.shared_quota_start", 100, now=NOW, who="ops", why="")
    await store.applications.load_catalogue()
    used = QuotaRequest(host.host_id, host.volunteer_id, int(NOW // 86_400), 99, 99, "192.0.2.7")
    assert (await store.ledger.reserve_quota(used)).granted == 99

    shown = await explain(store).host(host.host_id)
    assert len(listed(shown, "would_get")) == 1
    assert (await store.ledger.reserve_quota(replace(used, wanted=1, idle=1))).granted == 1, "the dry run charged none"
    shown = await explain(store).host(host.host_id)
    sample = (await explain(store).batch(batch.batch_id))["sample"]

    assert listed(shown, "would_get") == []
    [refused] = listed(shown, "refused_at_large")
    assert (refused["code"], missing(refused["why"], "100 jobs", "quota of 100")) == ("daily_quota", [])
    [condition] = listed(shown, "conditions")
    assert (condition["batch_ids"], condition["apps"]) == ([batch.batch_id], ["pi"])
    assert "scheduler.shared_quota_start" in condition["help"]
    assert isinstance(sample, dict)
    assert [one["code"] for one in sample["held_back"]] == ["daily_quota"]


async def test_a_dry_run_counts_what_the_host_address_has_used(store: Store) -> None:
    await a_registered_version(store)
    await a_submitted_batch(store, jobs=5)
    host, neighbour = await a_calling_host(store, ncpus=2), await a_calling_host(store)
    await store.settings.set_setting("scheduler.shared_quota_start", 100, now=NOW, who="ops", why="")
    await store.applications.load_catalogue()
    used = QuotaRequest(neighbour.host_id, neighbour.volunteer_id, int(NOW // 86_400), 100, 100, "192.0.2.7")
    await store.ledger.reserve_quota(used)
    none = replace(used, host_id=host.host_id, volunteer_id=host.volunteer_id, wanted=0)
    await store.ledger.reserve_quota(none)

    shown = await explain(store).host(host.host_id)

    assert listed(shown, "would_get") == []
    assert "this address" in listed(shown, "refused_at_large")[0]["why"]


async def test_a_dry_run_refuses_a_host_whose_clock_is_off(store: Store) -> None:
    await a_registered_version(store)
    batch = await a_submitted_batch(store, jobs=5)
    host = await a_calling_host(store, clock_skew_s=Seconds(-7200.0))

    shown = await explain(store).host(host.host_id)
    sample = (await explain(store).batch(batch.batch_id))["sample"]

    refused = shown["refused"]
    assert isinstance(refused, dict) and refused["code"] == "clock_skew"
    assert not missing(refused["why"], "2 h behind")
    assert isinstance(sample, dict)
    assert [one["code"] for one in sample["held_back"]] == ["clock_skew"]


async def test_explain_host_shows_what_it_would_get_and_why(store: Store) -> None:
    await a_registered_version(store)
    batch = await a_submitted_batch(store, jobs=5, qos=QoS.AFAP)
    host = await a_calling_host(store, ncpus=2)

    shown = await explain(store).host(host.host_id)

    assert [one["batch_id"] for one in listed(shown, "would_get")] == [batch.batch_id] * 2
    assert all(not missing(one["because"], "good host") for one in listed(shown, "would_get"))
    assert all(one["tight"] and one["due_in_s"] > 0 for one in listed(shown, "would_get"))
    [group] = listed(shown, "groups")
    assert (group["place"], group["slots"], group["given"]) == (1, 5, 2)
    assert (group["looks"][0]["pass"], group["looks"][0]["given"]) == ("gated", 1)
    [standing] = listed(shown, "standing")
    assert (standing["app"], standing["p"], standing["p_because"]) == ("pi", 0.5, "bootstrap: no failure yet")
    assert "it would be sent:" in host_in_words(shown)
    assert not missing(shown["verdict"], f"Host {host.host_id}", "2 jobs", "1 batch")


def listed(shown: Mapping[str, object], key: str) -> list[dict[str, Any]]:
    found = shown[key]
    assert isinstance(found, list)
    return found


async def test_every_group_a_host_is_refused_has_its_sentence(store: Store) -> None:
    await a_registered_version(store)
    await a_submitted_batch(store, order_key=1.0, job_class=a_job_class(memory_bytes=1e15))
    await a_submitted_batch(store, order_key=2.0, job_class=a_job_class(delay_bound_s=Seconds(60.0)))
    await a_submitted_batch(store, order_key=3.0, qos=QoS.AFAP)
    host = await a_calling_host(store, flop_per_s=FlopPerSecond(1e9))

    groups = listed(await explain(store).host(host.host_id), "groups")

    codes = [[look["code"] for look in group["looks"] if look["code"]] for group in groups]
    assert codes == [[], ["memory"], ["too_slow"]]  # most requests take AFAP batches first
    assert not missing(groups[1]["looks"][-1]["why"], "job needs 1 PB")
    assert groups[0]["given"] > 0 and "prompt" in groups[0]["stages"] and "prompt" not in groups[1]["stages"]
    conditions = {one["code"]: one for one in listed(await explain(store).host(host.host_id), "conditions")}
    assert {code: one["groups"] for code, one in conditions.items()} == {"memory": 1, "too_slow": 1}
    assert conditions["memory"]["suggestion"]["options"] == [{"value": 1e15, "passes": 1}]
    words = host_in_words(await explain(store).host(host.host_id))
    assert "memory: job needs" in words and "too_slow: host needs" in words and "the delay bound is 60 s" in words


async def test_refusals_of_a_group_leave_out_unusable_processors(store: Store) -> None:
    """The app has no version for the host's GPU: groups are refused for their own reasons, or not needed."""
    await a_registered_version(store)
    sizes = (1e15, 1e6, 1e6)
    for number, size in enumerate(sizes):
        await a_submitted_batch(store, order_key=float(number), job_class=a_job_class(memory_bytes=size))
    host = await a_calling_host(store, ncpus=1, coprocessors=(Coprocessor(NVIDIA, 1),))

    shown = await explain(store).host(host.host_id)

    large, given, spare = listed(shown, "groups")
    assert [(one["code"], missing(one["help"], "1 PB")) for one in large["refusals"]] == [("memory", [])]
    assert [(one["given"], one["refusals"]) for one in (given, spare)] == [(1, []), (0, [])]
    assert [one["code"] for one in listed(shown, "conditions")] == ["memory"]
    assert [one["code"] for one in listed(shown, "refused_at_large")] == ["no_app_version"]


async def test_explain_host_without_version_says_so(store: Store) -> None:
    await a_registered_version(store)
    await a_submitted_batch(store)
    host = await a_calling_host(store, platforms=("windows_x86_64",))

    shown = await explain(store).host(host.host_id)

    [standing], [group] = listed(shown, "standing"), listed(shown, "groups")
    assert standing["refused"] == "platform"
    assert [one["code"] for one in group["refusals"]] == ["platform"]
    assert shown["would_get"] == []
    assert [one["code"] for one in listed(shown, "refused_at_large")] == ["platform"]
    facts = ("no app has a version", "x86_64-pc-linux-gnu", "windows_x86_64")
    assert not missing(host_in_words(shown), *facts)


async def test_explain_host_lists_batches_without_a_slot(store: Store) -> None:
    await a_registered_version(store)
    blocked, full = await a_submitted_batch(store, jobs=2), await a_submitted_batch(store)
    pause = Restriction(Restricted.BATCH, str(blocked.batch_id), 0, "wrong input", "ada", NOW)
    await store.restrictions.put(pause)
    host = await a_calling_host(store)

    shown = await explain(store).host(host.host_id)

    assert {one["batch_id"] for one in listed(shown, "groups")} == {full.batch_id}
    [left] = listed(shown, "left_out")
    assert (left["batch_id"], left["unsent"]) == (blocked.batch_id, 2) and not missing(left["why"], "wrong input")
    assert not missing(host_in_words(shown), f"batch {blocked.batch_id}", "wrong input")


async def test_explain_host_leaves_out_apps_without_a_version(store: Store) -> None:
    await a_registered_version(store, state=VersionState.DEPRECATED)
    batch, host = await a_submitted_batch(store, jobs=3), await a_calling_host(store)

    shown = await explain(store).host(host.host_id)
    await store.restrictions.put(Restriction(Restricted.BATCH, str(batch.batch_id), 0, "wrong input", "ada", NOW))
    paused = await explain(store).host(host.host_id)

    assert shown["groups"] == [] and shown["conditions"] == []
    [left], [besides] = listed(shown, "left_out"), listed(paused, "left_out")
    assert left["batch_id"] == batch.batch_id and not missing(left["why"], "no version of pi gets jobs")
    assert not missing(besides["why"], "wrong input", "no version of pi gets jobs")


async def test_batches_without_an_offered_version_are_found(store: Store) -> None:
    old = await a_registered_version(store, state=VersionState.DEPRECATED)
    drained, one, two = [await a_submitted_batch(store, jobs=1) for _ in range(3)]
    await a_sent_instance(store, drained.batch_id, await a_registered_host(store))
    attention = as_postgres(store).attention
    app_ids = list(await attention.apps_without_version())

    found = [await attention.without_version(app_ids, most) for most in (9, 1)]
    await a_registered_version(store, old.app_id)

    assert app_ids == [old.app_id]
    assert [([batch.batch_id for batch in batches], count) for batches, count in found] == [
        ([one.batch_id, two.batch_id], 2),
        ([one.batch_id], 2),
    ]
    assert list(await attention.apps_without_version()) == []


async def test_busy_processors_request_at_most_one_job(store: Store) -> None:
    await a_registered_version(store)
    batch = await a_submitted_batch(store, jobs=9)
    host = await a_calling_host(store, ncpus=2, coprocessors=(Coprocessor(NVIDIA, 1, FlopPerSecond(1e12)),))
    await a_sent_instance(store, batch.batch_id, host)

    wants = listed(await explain(store).host(host.host_id), "wants")

    assert [(one["processor_type"], one["idle"], one["count"]) for one in wants] == [("NVIDIA", 1, 1), ("cpu", 1, 2)]


async def test_project_that_is_down_sends_nothing(store: Store) -> None:
    await a_registered_version(store)
    host = await a_calling_host(store)
    await store.settings.set_setting("project.down", True, now=NOW, who="ops", why="")

    shown = await explain(store).host(host.host_id)

    assert shown["refused"] is not None
    assert f"refused all work now: {shown['refused']['why']}" in host_in_words(shown)


# ---------------------------------------------------------------- batches


async def test_a_batch_is_held_back_by_reasons_with_counts(store: Store) -> None:
    await a_registered_version(store)
    first = await a_submitted_batch(store, jobs=3, qos=QoS.AFAP, order_key=1.0)
    await a_submitted_batch(store, jobs=9, order_key=1.5)  # most requests take AFAP batches before it
    batch = await a_submitted_batch(store, jobs=4, qos=QoS.AFAP, order_key=2.0)
    for platforms in (("windows_x86_64",), ("windows_x86_64",)):
        await a_calling_host(store, platforms=platforms)
    await a_calling_host(store, ram_bytes=1.0)
    taker = await a_calling_host(store, ncpus=2)

    shown = await explain(store).batch(batch.batch_id)

    sample = shown["sample"]
    assert isinstance(sample, dict)
    assert [(one["code"], one["hosts"]) for one in sample["held_back"]] == [("platform", 2), ("memory", 1)]
    assert [one["calls_per_hour"] for one in sample["held_back"]] == [2.0, 1.0]
    assert sample["held_back"][0]["suggestion"] is None
    helps = sample["held_back"][1]["suggestion"]
    assert helps is not None
    assert (helps["key"], helps["options"]) == ("memory_bytes", [{"value": 1.0, "passes": 1}])
    assert not missing(shown["verdict"], "1 of 4 hosts", "1 could start", "because 1 batch")
    assert sample["would_take"] == {"hosts": 1, "idle_hosts": 1, "calls_per_hour": 1.0, "jobs": 2}
    assert shown["order"] == {
        "queue": None,
        "queue_hosts": None,
        "hold": None,
        "order_tier": 0,
        "order_key": 2.0,
        "logical_end_at": batch.logical_end_at,
        "batches_ahead": 1,
        "unsent_ahead": first.counts.unsent,
        "gated_ahead": 0,
        "first_ahead": [{"batch_id": first.batch_id, "name": first.name, "unsent": first.counts.unsent}],
        "sent_first": shown["order"]["sent_first"],
        "place": 2,
        "of": 3,
    }
    assert not missing(shown["order"]["sent_first"] or "", "sent first", "because")
    assert (shown["gate"], shown["in_every_worker"], shown["slots"], shown["slots_total"]) == ("p_afap", True, 4, 16)
    words = batch_in_words(shown)
    assert not missing(words, "platform: 2 hosts", "2.0 calls an hour")
    assert f"host {taker.host_id}" not in words


async def test_turn_counts_the_work_that_requests_take_first(store: Store) -> None:
    await a_registered_version(store)
    plain = await a_submitted_batch(store, jobs=3, order_key=2.0)
    early = await a_submitted_batch(store, jobs=2, order_key=1.0)
    urgent = await a_submitted_batch(store, jobs=4, order_key=9.0, qos=QoS.AFAP)
    await a_submitted_batch(store, jobs=5, order_tier=1, order_key=0.0)
    catalogue = await store.applications.load_catalogue()
    new = replace(urgent, batch_id=UNNUMBERED)  # not submitted, at the same place

    first = await sent_first(as_postgres(store), catalogue, NOW, ())
    turns = [await turn_of(as_postgres(store), one, first, catalogue, NOW, ()) for one in (urgent, new, early, plain)]

    assert [ahead for _, ahead in turns] == [WorkAhead(), WorkAhead(1, 4), WorkAhead(1, 4), WorkAhead(2, 6)]
    assert [because is not None for because, _ in turns] == [True, True, False, False]
    assert [[one.batch_id for one in ahead.first] for _, ahead in (turns[0], *turns[2:])] == [
        [],
        [urgent.batch_id],
        [urgent.batch_id, early.batch_id],
    ]


async def test_work_that_no_host_can_run_is_not_ahead(store: Store) -> None:
    await a_registered_version(store)
    first = await a_submitted_batch(store, jobs=4, order_key=0.0)
    rush = await a_submitted_batch(store, jobs=3, order_key=1.0, qos=QoS.AFAP)
    early, late = [await a_submitted_batch(store, jobs=2, order_key=key) for key in (2.0, 3.0)]
    catalogue, known = await store.applications.load_catalogue(), as_postgres(store)
    unrunnable = [first.batch_id, rush.batch_id]
    urgent = await sent_first(known, catalogue, NOW, unrunnable)

    [_, some], [_, none] = [await turn_of(known, one, urgent, catalogue, NOW, unrunnable) for one in (late, early)]

    assert (some, none) == (WorkAhead(1, 2), WorkAhead())
    assert ([one.batch_id for one in some.first], list(none.first)) == ([early.batch_id], [])


async def test_late_batch_is_the_last_of_those_sent_first(store: Store) -> None:
    """It is first in the order, but requests take batches that can still be in time before it."""
    await a_registered_version(store)
    late = await a_submitted_batch(store, jobs=4, qos=QoS.SHORT_DEADLINE, deadline_at=NOW, order_key=1.0)
    rush = await a_submitted_batch(store, jobs=3, qos=QoS.AFAP, order_key=2.0)
    catalogue, known = await store.applications.load_catalogue(), as_postgres(store)

    first = await sent_first(known, catalogue, NOW, ())
    turns = [await turn_of(known, one, first, catalogue, NOW, ()) for one in (rush, late)]

    assert [ahead for _, ahead in turns] == [WorkAhead(), WorkAhead(1, 3)]
    places = [position(one, PlaceInOrder(at, 2), first).place for one, at in ((rush, 2), (late, 1))]
    assert places == [1, 2]
    assert sequence([late.batch_id, rush.batch_id], first) == [rush.batch_id, late.batch_id]


async def test_turn_counts_the_work_that_needs_a_fast_host(store: Store) -> None:
    await a_registered_version(store)
    late = await a_submitted_batch(store, jobs=4, qos=QoS.SHORT_DEADLINE, deadline_at=later(NOW, 60.0), order_key=2.0)
    before, after = [await a_submitted_batch(store, jobs=3, order_key=key) for key in (1.0, 3.0)]
    catalogue = await store.applications.load_catalogue()
    cuts = CutPoints(late.app_id, CPU, NOW, 1, (1.0,), (1,), median_safe_runtime_s=Seconds(3600.0))
    slow = replace(catalogue, cut_points={(late.app_id, CPU): cuts})

    turns = []
    for known in (slow, catalogue):
        first = await sent_first(as_postgres(store), known, NOW, ())
        turns += [await turn_of(as_postgres(store), one, first, known, NOW, ()) for one in (before, after)]

    assert [(ahead.unsent, ahead.gated) for _, ahead in turns] == [(4, 4), (7, 4), (4, 0), (7, 0)]


async def test_gate_ahead_is_told_if_own_jobs_may_need_none(store: Store) -> None:
    await a_registered_version(store)
    first, second = [
        await a_submitted_batch(store, jobs=4, qos=QoS.SHORT_DEADLINE, deadline_at=later(NOW, 60.0), order_key=key)
        for key in (1.0, 2.0)
    ]
    rush = await a_submitted_batch(store, jobs=3, order_key=3.0, qos=QoS.AFAP)
    catalogue = await store.applications.load_catalogue()
    cuts = CutPoints(first.app_id, CPU, NOW, 1, (1.0,), (1,), median_safe_runtime_s=Seconds(3600.0))
    catalogue = replace(catalogue, cut_points={(first.app_id, CPU): cuts})
    new = replace(rush, batch_id=UNNUMBERED)

    urgent = await sent_first(as_postgres(store), catalogue, NOW, ())
    turns = [await turn_of(as_postgres(store), one, urgent, catalogue, NOW, ()) for one in (second, rush, new)]

    found = [(ahead.unsent, ahead.gated, ahead.gated_share) for _, ahead in turns]
    assert found == [(4, 0, 1.0), (8, 8, 0.5), (11, 8, 0.5)]


async def test_a_batch_that_is_over_has_nothing_that_waits(store: Store) -> None:
    batch = await a_submitted_batch(store)
    await store.submissions.abort_batch(batch.batch_id, now=NOW)

    shown = await explain(store).batch(batch.batch_id)

    assert (shown["state"], shown["sample"]) == ("aborted", None)
    assert not missing(shown["verdict"], "aborted")
    assert "it has no unsent instances" in batch_in_words(shown)


async def test_a_batch_waits_for_its_instances_in_progress(store: Store) -> None:
    await a_registered_version(store)
    batch = await a_submitted_batch(store, jobs=2, qos=QoS.SHORT_DEADLINE, deadline_at=later(NOW, -840.0))
    hosts = [await a_calling_host(store) for _ in range(2)]
    sent = [await a_sent_instance(store, batch.batch_id, host) for host in hosts]

    shown = await explain(store).batch(batch.batch_id)

    awaited, risk = shown["awaited"], shown["at_risk"]
    assert awaited is not None and risk is not None and risk["missed"]
    assert (awaited["instances"], awaited["hosts"], awaited["overdue"]) == (2, 2, 0)
    assert awaited["last_due_at"] == max(one.due_at for one in sent)
    names = ", ".join(str(host.host_id) for host in hosts)
    assert not missing(shown["verdict"], "missed", "14 min") and f"2 instances on hosts {names}" in shown["facts"][0]


async def test_instances_sent_longest_ago_are_awaited_first(store: Store) -> None:
    """Copies and retries come first in other lists."""
    await a_registered_version(store)
    batch = await a_submitted_batch(store, jobs=2)
    hosts = [await a_calling_host(store) for _ in range(3)]
    sent = [await a_sent_instance(store, batch.batch_id, host) for host in hosts[:2]]
    copy = ExtraCopy(sent[1].job_id, 1, 0, 1, because="no result after 5.0 times the usual turnaround")
    assert await store.tails.add_copies([copy], now=NOW)
    [waiting] = await store.waiting.urgent([batch.batch_id], 9)
    await a_sent_instance(store, batch.batch_id, hosts[2], waiting)

    shown = (await explain(store).batch(batch.batch_id))["awaited"]

    assert shown is not None
    assert [one["copied_because"] for one in shown["oldest"]] == [None, None, copy.because]
    assert (shown["jobs"], shown["instances"], shown["copies"]) == (2, 3, 1)


async def test_instances_of_ended_jobs_are_not_awaited(store: Store) -> None:
    await a_registered_version(store)
    batch = await a_submitted_batch(store, jobs=2)
    hosts = [await a_calling_host(store) for _ in range(3)]
    done, held = [await a_sent_instance(store, batch.batch_id, host) for host in hosts[:2]]
    assert await store.tails.add_copies([ExtraCopy(done.job_id, 1, 0, 1, because="no result")], now=NOW)
    [waiting] = await store.waiting.urgent([batch.batch_id], 9)
    await a_sent_instance(store, batch.batch_id, hosts[2], waiting)
    await report(store, hosts[0], a_report(done))
    await settle(store, NOW)

    found = await explain(store).batch(batch.batch_id)

    shown = found["awaited"]
    assert shown is not None and [one["instance_id"] for one in shown["oldest"]] == [held.instance_id]
    assert (shown["instances"], shown["hosts"], shown["copies"]) == (1, 1, 0)
    assert found["in_progress"] == 2


async def test_a_batch_at_risk_opens_with_its_cause(store: Store) -> None:
    await a_registered_version(store)
    batch = await a_submitted_batch(store, jobs=2, qos=QoS.SHORT_DEADLINE, deadline_at=later(NOW, 3600.0))
    await a_calling_host(store, ncpus=2)
    unsent = ForecastHold(HoldKind.NOT_SENT, 2, 1.0, (), "2 first instances are not sent yet")
    terms = replace(TERMS, sending_s=Seconds(50_000.0))
    at = {"q10_at": later(NOW, 7e3), "q50_at": later(NOW, 5e4), "q90_at": later(NOW, 9e4)}
    await store.forecasts.publish(a_record(batch, terms=terms, holds=(unsent,), **at))

    shown = await explain(store).batch(batch.batch_id)

    assert shown["at_risk"] is not None and shown["awaited"] is None
    assert "miss its deadline: " in shown["verdict"] and shown["verdict"].count(". ") == 0
    assert not missing(shown["facts"][0], "13 h 53 min", "1 d 1 h")
    assert not missing(shown["facts"][1], "2 unsent", "at least")
    assert "1 of 1 host" in shown["facts"][2]
    assert [one["link"].partition("/")[0] for one in shown["remedies"]] == ["settings"]


@pytest.mark.parametrize("moved", [False, True])
async def test_forecast_before_a_move_gives_no_cause(store: Store, moved: bool) -> None:
    await a_registered_version(store)
    batch = await a_submitted_batch(store, jobs=2, qos=QoS.SHORT_DEADLINE, deadline_at=later(NOW, 3600.0))
    await a_calling_host(store, ncpus=2)
    slow = ForecastHold(HoldKind.OVERDUE, 2, 1.0, (), "2 jobs are slow")
    at = {"q10_at": later(NOW, 7e3), "q50_at": later(NOW, 5e4), "q90_at": later(NOW, 9e4)}
    await store.forecasts.publish(a_record(batch, terms=replace(TERMS, sending_s=Seconds(60.0)), holds=(slow,), **at))
    if moved:
        await store.ordering_rules.set_moved(batch.batch_id, NOW)

    shown = await explain(store).batch(batch.batch_id)

    assert (shown["forecast_state"], slow.because in shown["verdict"]) == ("moved" if moved else "shown", not moved)


async def test_a_deadline_out_of_reach_is_told(store: Store) -> None:
    """One request per hour takes two jobs at once: 90 of them take more than the hour left."""
    await a_registered_version(store)
    batch = await a_submitted_batch(store, jobs=90, qos=QoS.SHORT_DEADLINE, deadline_at=later(NOW, 3600.0))
    await a_calling_host(store, ncpus=2)
    at = {"q10_at": later(NOW, 7e3), "q50_at": later(NOW, 5e4), "q90_at": later(NOW, 9e4)}
    await store.forecasts.publish(a_record(batch, terms=replace(TERMS, sending_s=Seconds(3e5)), **at))

    shown = await explain(store).batch(batch.batch_id)

    assert not missing(shown["verdict"], "cannot meet", "90 unsent", "1 h")
    assert [one["right"] for one in shown["remedies"]] == ["submit", "submit"]


# ---------------------------------------------------------------- jobs and instances


async def test_a_retry_waits_for_hosts_that_have_not_had_the_job(store: Store) -> None:
    await a_registered_version(store)
    batch = await a_submitted_batch(store, jobs=2)
    host = await a_calling_host(store)
    job_id = await a_retry(store, host, batch.batch_id)

    shown = await explain(store).job(job_id)

    [waiting] = listed(shown, "waiting")
    assert (waiting["retries"], waiting["sibling_hosts"], waiting["in_array"]) == (1, [host.host_id], True)
    assert [one["code"] for one in waiting["sample"]["held_back"]] == ["same_host"]
    assert [one["state"] for one in listed(shown, "instances")] == ["failed", "unsent"]
    words = job_in_words(shown)
    assert f"not for hosts {host.host_id}" in words and "exit status 1" in words


@pytest.mark.parametrize(
    ("app", "codes", "words"),
    [
        ({}, ["same_host"], "one instance per host"),
        ({"one_per_volunteer": OnePerVolunteer.ALWAYS}, ["same_volunteer"], "one instance per volunteer"),
        ({"one_per_host": False}, [], "may get it again"),
    ],
)
async def test_explained_retry_names_the_limit(store: Store, app: dict[str, Any], codes: list[str], words: str) -> None:
    version = await a_registered_version(store)
    made = next(one for one in await store.applications.apps() if one.app_id == version.app_id)
    await store.applications.set_app(replace(made, **app))
    batch = await a_submitted_batch(store, jobs=2)
    job_id = await a_retry(store, await a_calling_host(store), batch.batch_id)

    shown = await explain(store).job(job_id)

    [waiting] = listed(shown, "waiting")
    assert [one["code"] for one in waiting["sample"]["held_back"]] == codes
    assert words in job_in_words(shown)


async def test_copies_asked_for_keep_the_volunteer_away(store: Store) -> None:
    """The app no longer replicates; the store would refuse this job in a reply each time."""
    await a_registered_version(store)
    batch = await a_submitted_batch(store, jobs=1)
    host = await a_calling_host(store)
    other = await a_calling_host(store, volunteer_id=host.volunteer_id)
    job_id = await a_retry(store, host, batch.batch_id, copies=2)

    shown = await explain(store).job(job_id)
    refused = await explain(store).host(other.host_id)

    [waiting] = listed(shown, "waiting")
    assert [(one["code"], one["hosts"]) for one in waiting["sample"]["held_back"]] == [("same_volunteer", 2)]
    assert waiting["sample"]["would_take"]["hosts"] == 0
    assert "one instance per volunteer" in job_in_words(shown)
    assert "same_volunteer: job 1" in host_in_words(refused)


async def test_first_instance_waits_for_any_host(store: Store) -> None:
    await a_registered_version(store)
    batch = await a_submitted_batch(store, jobs=70, qos=QoS.AFAP)
    await a_calling_host(store)

    [waiting] = listed(await explain(store).job(JobId(69)), "waiting")

    assert batch.counts.unsent == 70
    assert (waiting["instance_id"], waiting["retries"]) == (69, 0)
    assert waiting["sample"]["would_take"]["jobs"] == 1


async def test_a_due_date_is_taken_apart(store: Store) -> None:
    await a_registered_version(store)
    batch = await a_submitted_batch(store, jobs=1)
    host = await a_calling_host(store)
    sent = await a_sent_instance(store, batch.batch_id, host, due_terms=GIVEN, tight=False)
    await report(store, host, a_report(sent, turnaround_sample=0.25))

    shown = await explain(store).instance(sent.instance_id)

    due, outcome, today = shown["due"], shown["outcome"], shown["today"]
    assert due is not None and today is not None
    terms = due["terms"]
    assert terms is not None
    assert (due["because"], due["allowed_s"], due["est_runtime_s"]) == (GIVEN.because, 86400.0, 3600.0)
    assert (terms["start_s"], terms["queue_s"], terms["safe_runtime_s"]) == (0.0, 7200.0, 9000.0)
    assert (terms["rule"], terms["p"], terms["gate"]) == ("muster", 0.75, "p_retry")
    assert (due["allowed_over_runtime"], due["delay_bound_s"], due["is_delay_bound"]) == (24.0, 7 * 86400.0, False)
    assert (due["grace_s"], due["timeout_by_settings_at"]) == (3600.0, sent.due_at + 8640.0)
    assert (outcome["turnaround_s"], outcome["late_s"]) == (3600.0, 3600.0 - 86400.0)
    assert outcome["turnaround_sample"] == 0.25
    assert (today["runtime_s"], today["p"], today["complete_in_s"]) == (3600.0, 0.5, None)
    assert today["idle_host_would_get"]["row"] == 1
    words = instance_in_words(shown)
    assert not missing(words, "rule muster:", "start 0 s", "queue 2 h", "R_q 2 h 30 min", "P 0.750", "p_retry 0.5")
    assert "because: throughput" in words and "reported after 1 h" in words


async def test_an_accelerated_job_is_explained_behind_its_gate(store: Store) -> None:
    version = await a_registered_version(store)
    batch, host = await a_submitted_batch(store), await a_calling_host(store)
    sent = await a_sent_instance(store, batch.batch_id, host)
    await store.settings.set_setting("deadline.rule", "accelerated", now=NOW, who="ops", why="")
    answers = []
    for low in (frozenset[HostId](), frozenset({host.host_id})):
        found = Acceleration(NOW, low, apps=frozenset({version.app_id}), batches=frozenset({batch.batch_id}))
        await store.notes.note_acceleration(found)
        shown = await explain(store).instance(sent.instance_id)
        assert isinstance(shown["today"], dict)
        answers.append(shown["today"]["idle_host_would_get"])

    assert answers[0]["refused"] == "below_gate"
    assert answers[1]["gate"] == "low_turnaround"


async def test_cut_points_too_old_to_judge_by_are_left_out_and_named(store: Store) -> None:
    version = await a_registered_version(store)
    host = (await ranked_hosts(store, version))[-1]
    batch = await a_submitted_batch(store, jobs=2)
    sent = await a_sent_instance(store, batch.batch_id, host)
    waiting = sent.instance_id + 1
    told = []
    for hours in (2.0, 60.0):
        answer = explain_at(store, later(NOW, hours * 3600.0))
        shown_host, shown = await answer.host(host.host_id), await answer.instance(sent.instance_id)
        shown_batch, shown_waiting = await answer.batch(batch.batch_id), await answer.instance(InstanceId(waiting))
        assert isinstance(shown["today"], dict)
        [standing] = listed(shown_host, "standing")
        [unsent] = listed(shown_waiting, "waiting")
        kept = [listed(one, "stale_cut_points") for one in (shown_host, shown["today"], shown_batch, unsent)]
        words = (host_in_words(shown_host), instance_in_words(shown), batch_in_words(shown_batch))
        told.append((standing["p"], [len(one) for one in kept], ["last ranked" in one for one in words]))

    assert told[0][0] < 0.5
    assert told[0][1:] == ([0, 0, 0, 0], [False, False, False])
    assert told[1] == (0.5, [1, 1, 1, 1], [True, True, True])


async def test_an_unsent_instance_says_why_it_waits(store: Store) -> None:
    await a_registered_version(store)
    await a_submitted_batch(store, jobs=2)
    await a_calling_host(store, platforms=("windows_x86_64",))

    shown = await explain(store).instance(InstanceId(1))

    assert (shown["due"], shown["today"]) == (None, None)
    [waiting] = listed(shown, "waiting")
    assert [one["code"] for one in waiting["sample"]["held_back"]] == ["platform"]
    assert "it waits:" in instance_in_words(shown)


@pytest.mark.parametrize("kind", ["host", "batch", "job", "instance"])
async def test_what_does_not_exist_is_said_in_one_line(store: Store, kind: str) -> None:
    with pytest.raises(NotFoundError, match=f"no {kind} 4711"):
        await getattr(explain(store), kind)(4711)


# ---------------------------------------------------------------- nothing changes


@pytest.mark.parametrize("seed", range(5))
async def test_explaining_changes_nothing(store: Store, seed: int) -> None:
    """After any explanation, all data in the store and a worker's next refill are unchanged."""
    rng = random.Random(seed)
    await a_registered_version(store)
    batches = [
        await a_submitted_batch(
            store,
            jobs=rng.randint(3, 6),
            quorum=rng.randint(1, 2),
            order_key=float(number),
            qos=rng.choice([QoS.AFAP, QoS.THROUGHPUT]),
        )
        for number in range(4)
    ]
    hosts = [await a_calling_host(store, ncpus=rng.randint(1, 4)) for _ in range(4)]
    for host in hosts[:2]:
        await a_sent_instance(store, rng.choice(batches).batch_id, host)
    await a_retry(store, hosts[3], batches[0].batch_id)
    before = await everything(store, hosts, [batch.batch_id for batch in batches])

    await explain(store).host(rng.choice(hosts).host_id)
    await explain(store).batch(rng.choice(batches).batch_id)
    await explain(store).job(JobId(1))
    await explain(store).instance(InstanceId(1))

    assert await everything(store, hosts, [batch.batch_id for batch in batches]) == before


async def test_the_same_project_at_the_same_instant_is_explained_alike(store: Store) -> None:
    """Including random choices of a request: the versions tried, and the start of the array among equal batches."""
    version = await a_registered_version(store)
    await a_registered_version(store, version.app_id, platform="i686-pc-linux-gnu")
    batches = [
        await a_submitted_batch(store, jobs=5, order_key=1.0, qos=qos)
        for qos in (QoS.AFAP, QoS.THROUGHPUT, QoS.THROUGHPUT)
    ]
    hosts = [
        await a_calling_host(store, ncpus=3, platforms=("x86_64-pc-linux-gnu", "i686-pc-linux-gnu")) for _ in range(3)
    ]
    await a_retry(store, hosts[2], batches[0].batch_id)

    shown = [
        [await explain(store).host(host.host_id) for host in hosts]
        + [await explain(store).batch(batch.batch_id) for batch in batches]
        + [await explain(store).job(JobId(1)), await explain(store).instance(InstanceId(1))]
        for _ in range(3)
    ]

    assert listed(shown[0][0], "would_get")
    assert shown[1] == shown[0] and shown[2] == shown[0]


async def test_an_extra_copy_says_so_and_why(store: Store) -> None:
    await a_registered_version(store)
    batch = await a_submitted_batch(store, jobs=1, qos=QoS.AFAP)
    sent = await a_sent_instance(store, batch.batch_id, await a_registered_host(store))
    because = "likely back in 900 s, more than 1.5 times the 100 s a good host needs"
    assert await store.tails.add_copies([ExtraCopy(sent.job_id, 1, 0, 1, because)], now=NOW) == 1
    [copy] = await store.waiting.urgent([batch.batch_id], 9)

    waits = await explain(store).instance(copy.ready.instance_id)

    assert waits["copied_because"] == because
    assert not missing(instance_in_words(waits), "copy", because)
    whole, job = await explain(store).batch(batch.batch_id), await explain(store).job(sent.job_id)
    assert (whole["copies_unsent"], whole["retries_unsent"]) == (1, 0)
    assert [one["copied_because"] for one in job["waiting"]] == [because]
    assert because in job_in_words(job) and "retry" not in job_in_words(job)
    await a_sent_instance(store, batch.batch_id, await a_calling_host(store), copy)
    given = await explain(store).instance(copy.ready.instance_id)
    assert (given["state"], given["copied_because"]) == ("in_progress", because)
    assert (await explain(store).instance(sent.instance_id))["copied_because"] is None


async def everything(store: Store, hosts: list[RegisteredHost], batch_ids: list[BatchId]) -> list[object]:
    """Return all hosts, batches, jobs and settings of a store."""
    jobs = [job.job_id for batch_id in batch_ids for job in await store.views.jobs(batch_id, limit=99)]
    return [
        [await store.insight.caller(host.host_id) for host in hosts],
        [await store.views.host(HostId(host.host_id)) for host in hosts],
        [(await store.ledger.read(host.key())).held for host in hosts],
        [await store.views.batch(batch_id) for batch_id in batch_ids],
        [await store.views.job(job_id) for job_id in jobs],
        await store.waiting.ready_batches(99),
        await store.waiting.urgent(batch_ids, 99),
        await store.waiting.tail(batch_ids, 99),
        await store.unsettled.unsettled(99, now=NOW),
        await store.settings.settings(),
        await store.settings.setting_changes(99),
    ]
