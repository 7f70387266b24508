"""Tests previews and changes of thresholds on every store: requests behave as previewed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from administration.thresholds.keys import changes_of
from administration.thresholds.service import Thresholds
from administration.thresholds.shown import preview_as_text
from domain.acceleration import Acceleration
from domain.apps import CPU, AppVersion
from domain.batches import QoS
from domain.dispatch import RequestWrites
from domain.errors import InvalidInputError
from domain.jobs import InstanceState
from domain.ranking import Gate
from domain.settlement import JobSettlement
from domain.units import HOUR_S, BatchId, Instant, VolunteerId, later
from muster_client import shapes
from scheduler.gates import percentile_of
from tests.builders import NOW
from tests.conformance.test_host_statistics import a_result, one_sample_is_enough, ranked
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

LATER = later(NOW, 7200.0)


def thresholds(store: Store, now: Instant = LATER) -> Thresholds:
    return Thresholds(as_postgres(store), HandClock(now))


async def call(store: Store, host: RegisteredHost) -> None:
    """Let the host make requests one and two hours after NOW."""
    for hours in (1, 2):
        said = replace(host.host, last_rpc_at=later(NOW, hours * HOUR_S))
        await store.ledger.write(RequestWrites(said, known=host.host))


async def ranked_hosts(
    store: Store, version: AppVersion, count: int = 20, *, best: int = 1, owner: VolunteerId | None = None
) -> list[RegisteredHost]:
    """Create hosts with a result each, fastest first, with a request per hour; by default one per volunteer.

    The `best` first have more valid results than the others.
    """
    await one_sample_is_enough(store)
    batch = await a_submitted_batch(store, jobs=count)
    hosts = [await a_registered_host(store, last_rpc_at=NOW, volunteer_id=owner) for _ in range(count)]
    for position, host in enumerate(hosts):
        for _ in range(1 + 12 * (position < best)):
            more = batch if position >= best else await a_submitted_batch(store, jobs=1)
            await a_result(store, host, more.batch_id, position / 10, version)
    await ranked(store)
    for host in hosts:
        await call(store, host)
    return hosts


async def previewed(store: Store, *changes: tuple[str, object], now: Instant = LATER) -> shapes.ThresholdsPreviewed:
    return await thresholds(store, now).preview(changes_of(changes))


def gate_of(types: list[shapes.TypePreviewed], gate: Gate) -> tuple[tuple[int, float], tuple[int, float]]:
    """Return rows and calls per hour, before and after, of the only (app, processor type)."""
    [one] = types
    [found] = [each for each in one["gates"] if each["gate"] == gate.value]
    old, new = found["old"], found["new"]
    return (old["havs"], old["calls_per_hour"]), (new["havs"], new["calls_per_hour"])


async def a_late_batch(store: Store, jobs: int = 6, quorum: int = 1) -> BatchId:
    """Create a batch due before a host of median speed can finish."""
    due_at = later(LATER, 120.0)
    batch = await a_submitted_batch(store, jobs, quorum, qos=QoS.SHORT_DEADLINE, deadline_at=due_at)
    return batch.batch_id


async def test_a_preview_counts_the_rows_a_request_would_let_through(store: Store) -> None:
    version = await a_registered_version(store)
    hosts = await ranked_hosts(store, version)
    catalogue = await store.applications.load_catalogue()
    havs = {host.host_id: (await store.ledger.read(host.key())).havs for host in hosts}
    ranks = [percentile_of(version, havs[host.host_id], catalogue, now=LATER) for host in hosts]
    p, x = [one.p for one in ranks], [one.x for one in ranks]

    found = await previewed(store, ("p_tight", 0.45))

    before, after = (sum(one is not None and one >= gate for one in p) for gate in (0.9, 0.45))
    assert 0 < before < after
    [tight] = [one["new"] for one in found["hosts"][0]["gates"] if one["gate"] == Gate.TIGHT]
    assert tight["fast"] == sum(one is not None and one >= 0.45 for one in x) >= after
    assert gate_of(found["hosts"], Gate.TIGHT) == ((before, float(before)), (after, float(after)))
    assert gate_of(found["hosts"], Gate.AFAP)[0] == gate_of(found["hosts"], Gate.AFAP)[1]
    assert found["changes"] == [{"key": "deadline.p_tight", "from": 0.9, "to": 0.45}]
    assert [(one["processor_type"], one["havs"], one["newcomers"]) for one in found["hosts"]] == [(CPU, 20, 0)]


async def test_jobs_behind_a_gate_wait_for_the_calls_of_those_who_pass(store: Store) -> None:
    version = await a_registered_version(store)
    await ranked_hosts(store, version)
    await a_late_batch(store, jobs=6)

    found = await previewed(store, ("p_tight", 0.45))

    [wait] = found["waiting"]
    assert (wait["gate"], wait["jobs"]) == (Gate.TIGHT, 6)
    (_, old_rate), (_, new_rate) = gate_of(found["hosts"], Gate.TIGHT)
    assert wait["old"]["calls_per_hour"] == pytest.approx(old_rate)
    assert wait["new"]["calls_per_hour"] == pytest.approx(new_rate)
    assert wait["old"]["send_s"] == round(6 / old_rate * HOUR_S, 1)
    assert wait["new"]["send_s"] == round(6 / new_rate * HOUR_S, 1)


async def test_effect_names_the_batches_that_need_the_gate(store: Store) -> None:
    """Hosts of an AFAP batch need p_afap if they are busy: no host of median speed waits for it."""
    version = await a_registered_version(store)
    await ranked_hosts(store, version)
    afap = await a_submitted_batch(store, jobs=7, qos=QoS.AFAP)
    await a_submitted_batch(store, jobs=7)

    found = await thresholds(store, LATER).foreseen(changes_of([("p_afap", 0.3)]))
    other = await thresholds(store, LATER).foreseen(changes_of([("p_tight", 0.45)]))

    (before, _), (after, _) = gate_of(found.shown["hosts"], Gate.AFAP)
    [effect] = found.effects
    assert (effect.gate, effect.before, effect.after) == (Gate.AFAP, before, after) and before < after
    assert [one.batch_id for one in effect.batches] == [afap.batch_id] and found.shown["waiting"] == []
    assert [(one.gate, one.batches) for one in other.effects] == [(Gate.TIGHT, [])]


async def test_each_gate_has_a_line_of_its_own(store: Store) -> None:
    version = await a_registered_version(store)
    hosts = await ranked_hosts(store, version)
    await a_submitted_batch(store, jobs=4, qos=QoS.SHORT_DEADLINE, deadline_at=later(LATER, 1.0))
    await a_submitted_batch(store, jobs=7, qos=QoS.AFAP)  # sent to any host in turn: waits for none
    retried = await a_submitted_batch(store, jobs=3, qos=QoS.AFAP)
    await a_retry(store, hosts[0], retried.batch_id)

    await store.settings.set_setting("deadline.gate_wait_fraction", 0.0, now=NOW, who="ops", why="never relaxed")

    waits = (await previewed(store, ("p_retry", 0.4)))["waiting"]

    assert [(one["gate"], one["jobs"]) for one in waits] == [(Gate.RETRY, 1), (Gate.TIGHT, 4)]
    assert [(one["old"]["threshold"], one["new"]["threshold"]) for one in waits] == [(0.5, 0.4), (0.9, 0.9)]


async def a_retry(store: Store, host: RegisteredHost, batch_id: BatchId) -> None:
    sent = await a_sent_instance(store, batch_id, host)
    await report(store, host, a_report(sent, to_state=InstanceState.FAILED))
    for facts in await store.unsettled.unsettled(99, now=NOW):
        if facts.job_id == sent.job_id:
            again = JobSettlement(facts.job_id, facts.serial, facts.state, NOW, new_instances=1, retries=1)
            await store.unsettled.settle([again])


async def test_newcomers_pass_reachable_gates_without_ranking(store: Store) -> None:
    await a_registered_version(store)
    host = await a_registered_host(store, last_rpc_at=NOW)
    await call(store, host)
    await a_submitted_batch(store, jobs=5, qos=QoS.SHORT_DEADLINE, deadline_at=later(LATER, 1.0))

    found = await previewed(store, ("p_tight", 0.6))

    [one] = found["hosts"]
    assert (one["havs"], one["newcomers"], one["small_population"]) == (0, 1, True)
    [tight] = [each for each in one["gates"] if each["gate"] == Gate.TIGHT]
    assert (tight["old"]["newcomers"], tight["new"]["newcomers"]) == (1, 1)
    assert (tight["new"]["asked"], tight["new"]["threshold"]) == (0.6, 0.5)  # no host can reach more yet
    [wait] = found["waiting"]
    assert wait["old"]["send_s"] == pytest.approx(5 * HOUR_S)


async def test_jobs_without_eligible_hosts_wait_forever(store: Store) -> None:
    version = await a_registered_version(store)
    await ranked_hosts(store, version)
    await a_late_batch(store)

    await store.settings.set_setting("deadline.gate_wait_fraction", 0.0, now=NOW, who="ops", why="never relaxed")

    [wait] = (await previewed(store, ("p_tight", 1.0)))["waiting"]

    assert wait["old"]["send_s"] is not None
    assert (wait["new"]["calls_per_hour"], wait["new"]["send_s"]) == (0.0, None)


async def test_more_samples_asked_for_leave_fewer_rows(store: Store) -> None:
    version = await a_registered_version(store)
    await ranked_hosts(store, version)
    await store.settings.set_setting("deadline.p_afap", 0.4, now=NOW, who="ops", why="")

    found = await previewed(store, ("min_samples", 5), ("min_rows", 1))

    (before, _), (after, _) = gate_of(found["hosts"], Gate.AFAP)
    assert before > after == 1


async def test_too_many_samples_asked_for_open_the_gates(store: Store) -> None:
    """No host would be ranked: the bootstrap rule gives every host P = 0.5, and gates are capped there."""
    version = await a_registered_version(store)
    hosts = await ranked_hosts(store, version)

    [found] = (await previewed(store, ("min_samples", 100)))["hosts"]

    assert (found["small_population"], found["would_be_small"]) == (False, True)
    assert (found["measured"], found["would_be_measured"]) == (len(hosts), 0)
    [tight] = [one["new"] for one in found["gates"] if one["gate"] == Gate.TIGHT]
    assert (tight["threshold"], tight["asked"], tight["havs"]) == (0.5, 0.9, len(hosts))
    await store.settings.set_setting("ranking.min_samples", 100.0, now=NOW, who="ops", why="")
    await ranked(store)  # as the preview says
    [there] = (await previewed(store, ("p_late", 0.4)))["hosts"]
    assert [one["old"] for one in there["gates"] if one["gate"] == Gate.TIGHT] == [tight]


async def test_gate_that_would_be_lowered_again_is_previewed_so(store: Store) -> None:
    version = await a_registered_version(store)
    await ranked_hosts(store, version)
    await a_late_batch(store, jobs=400)

    found = await previewed(store, ("p_tight", 1.0))

    [tight] = [one for one in found["hosts"][0]["gates"] if one["gate"] == Gate.TIGHT]
    assert (tight["new"]["asked"], tight["new"]["threshold"]) == (1.0, 0.45)
    assert tight["old"]["threshold"] == 0.45 and tight["new"]["because"]


async def test_a_host_that_does_not_call_any_more_does_not_count(store: Store) -> None:
    version = await a_registered_version(store)
    await ranked_hosts(store, version)

    [one] = (await previewed(store, ("p_tight", 0.5), now=later(LATER, 8 * 86400.0)))["hosts"]

    assert (one["havs"], one["newcomers"]) == (0, 0)


async def test_a_rule_without_gates_keeps_no_job_waiting(store: Store) -> None:
    await a_registered_version(store)
    await a_late_batch(store)
    await store.settings.set_setting("deadline.rule", "fixed", now=NOW, who="ops", why="")

    found = await previewed(store, ("p_tight", 0.5))

    assert found["waiting"] == []
    assert [one["gates"] for one in found["hosts"]] == [[]]


async def test_stale_cut_points_are_ignored(store: Store) -> None:
    version = await a_registered_version(store)
    await ranked_hosts(store, version)
    old = later(LATER, 49 * HOUR_S)

    found, stale = await previewed(store, ("p_tight", 0.45)), await previewed(store, ("p_tight", 0.45), now=old)

    assert [(one["small_population"], one["havs"]) for one in (*found["hosts"], *stale["hosts"])] == [
        (False, 20),
        (True, 20),
    ]
    assert found["stale_cut_points"] == []
    assert [(one["app"], one["processor_type"]) for one in stale["stale_cut_points"]] == [("pi", CPU)]
    assert not missing(preview_as_text(stale), "pi cpu:", "last ranked")


async def test_accelerated_batch_waits_for_low_turnaround_hosts(store: Store) -> None:
    version = await a_registered_version(store)
    hosts = await ranked_hosts(store, version)
    batch = await a_submitted_batch(store, jobs=4)
    await store.settings.set_setting("deadline.rule", "accelerated", now=NOW, who="ops", why="")
    low = frozenset(host.host_id for host in hosts[:2])
    await store.notes.note_acceleration(
        Acceleration(NOW, low, apps=frozenset({version.app_id}), batches=frozenset({batch.batch_id}))
    )

    [wait] = (await previewed(store, ("p_tight", 0.45)))["waiting"]

    assert (wait["gate"], wait["jobs"]) == (Gate.LOW_TURNAROUND, 4)
    assert wait["old"]["calls_per_hour"] == pytest.approx(2.0)
    assert wait["old"]["send_s"] == pytest.approx(2 * HOUR_S)


async def test_a_preview_changes_nothing(store: Store) -> None:
    version = await a_registered_version(store)
    hosts = await ranked_hosts(store, version)
    batch_id = await a_late_batch(store)
    before = (
        await store.settings.settings(),
        await store.settings.setting_changes(99),
        await store.views.batch(batch_id),
        [await store.views.host(host.host_id) for host in hosts],
    )

    await previewed(store, ("p_tight", 0.5))

    assert before == (
        await store.settings.settings(),
        await store.settings.setting_changes(99),
        await store.views.batch(batch_id),
        [await store.views.host(host.host_id) for host in hosts],
    )


async def test_change_is_recorded_with_author_and_reason(store: Store) -> None:
    service = thresholds(store)

    done = await service.set(changes_of([("p_tight", 0.85)]), who="ada", why="gated jobs waited for 15 h")

    assert done == [
        {"key": "deadline.p_tight", "from": 0.9, "to": 0.85, "by": "ada", "why": "gated jobs waited for 15 h"}
    ]
    [change] = await store.settings.setting_changes(9)
    assert (change.key, change.from_value, change.to_value, change.changed_at) == (
        "deadline.p_tight",
        None,
        0.85,
        LATER,
    )
    [tight] = [row for row in await service.show() if row["key"] == "deadline.p_tight"]
    assert (tight["value"], tight["default"], tight["changed_by"]) == (0.85, 0.9, "ada")
    assert (tight["changed_at"], tight["why"]) == (LATER, "gated jobs waited for 15 h")


async def test_a_change_without_a_reason_is_refused(store: Store) -> None:
    with pytest.raises(InvalidInputError, match="why: expected a reason"):
        await thresholds(store).set(changes_of([("p_tight", 0.85)]), who="ada", why=" ")

    assert await store.settings.settings() == {}


def all_jobs(waits: list[shapes.WaitPreviewed]) -> int:
    return sum(one["jobs"] for one in waits)


async def test_ungated_work_is_not_among_what_waits(store: Store) -> None:
    await a_registered_version(store)
    await a_submitted_batch(store, jobs=9)

    assert all_jobs((await previewed(store, ("p_tight", 0.5)))["waiting"]) == 0
