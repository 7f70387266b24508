"""Tests that gates follow the measured request rate, on every store, and requests use them."""

from __future__ import annotations

import pytest

from administration.gate_relaxation import GateRelaxer, GateReport
from domain.apps import OnePerVolunteer
from domain.catalogue import Catalogue
from domain.ranking import Gate, RelaxedGate
from domain.settings import DeadlineSettings
from domain.units import DAY_S, later
from scheduler.gates import reachable
from tests.conformance.test_spread import set_app
from tests.conformance.test_thresholds import LATER, a_late_batch, ranked_hosts
from tests.stores import Store
from tests.unit.jobs.projects import HandClock
from tests.worlds import a_registered_host, a_registered_version


async def relax(store: Store, **settings: object) -> tuple[GateReport, Catalogue]:
    """Run one round, and return the catalogue that requests use afterwards."""
    for key, value in settings.items():
        await store.settings.set_setting(key.replace("__", "."), value, now=LATER, who="ops", why="")
    catalogue = await store.applications.load_catalogue()
    report = await GateRelaxer(store.insight, store.notes, lambda: catalogue, HandClock(LATER)).run_once()
    return report, await store.applications.load_catalogue()


async def test_app_newer_than_the_catalogue_is_skipped(store: Store) -> None:
    known = await store.applications.load_catalogue()
    await ranked_hosts(store, await a_registered_version(store))
    await a_late_batch(store, jobs=6)

    report = await GateRelaxer(store.insight, store.notes, lambda: known, HandClock(LATER)).run_once()

    assert report == GateReport()


def held_gates(catalogue: Catalogue) -> DeadlineSettings:
    [cuts] = catalogue.cut_points.values()
    return reachable(catalogue.settings.deadline, cuts)


async def test_gate_is_relaxed_until_calls_cover_waiting_jobs(store: Store) -> None:
    version = await a_registered_version(store)
    await ranked_hosts(store, version, count=20)  # each makes a request once an hour
    await a_late_batch(store, jobs=6)

    report, catalogue = await relax(store, deadline__min_gate_wait_s=7200.0)

    [gate] = report.relaxed
    assert (gate.gate, gate.jobs, report.waiting) == (Gate.TIGHT, 6, 6)
    assert gate.threshold < 0.9
    assert gate.calls_per_hour >= 3.0
    gates = held_gates(catalogue)
    assert gates.p_tight == gate.threshold
    assert (gates.p_afap, gates.p_late, gates.p_retry) == (0.5, 0.5, 0.5)


async def test_gate_with_enough_calls_stays_while_jobs_wait(store: Store) -> None:
    version = await a_registered_version(store)
    await ranked_hosts(store, version)
    await a_late_batch(store, jobs=1)

    report, catalogue = await relax(store, deadline__min_gate_wait_s=40 * DAY_S)

    assert (report.waiting, report.relaxed) == (1, ())
    assert held_gates(catalogue).p_tight == 0.9


async def test_gate_is_relaxed_if_its_hosts_all_had_a_waiting_job(store: Store) -> None:
    version = await a_registered_version(store)
    await ranked_hosts(store, version)  # one of them reaches 0.5, and 0.9 as well
    await a_late_batch(store, jobs=1, quorum=2)

    report, catalogue = await relax(store, deadline__min_gate_wait_s=40 * DAY_S)

    [gate] = report.relaxed
    assert (report.waiting, gate.gate) == (2, Gate.TIGHT)
    assert gate.threshold < 0.5
    assert gate.calls_per_hour > 0.0
    assert held_gates(catalogue).p_tight == gate.threshold


@pytest.mark.parametrize(("one_per_volunteer", "lowered"), [("never", 0), ("quorum", 1)])
async def test_one_per_volunteer_limit_counts_hosts_once(store: Store, one_per_volunteer: str, lowered: int) -> None:
    version = await a_registered_version(store)
    await set_app(store, one_per_volunteer=OnePerVolunteer(one_per_volunteer))
    owner = (await a_registered_host(store)).host.volunteer_id
    await ranked_hosts(store, version, best=5, owner=owner)
    await a_late_batch(store, jobs=1, quorum=2)

    report, _ = await relax(store, deadline__min_gate_wait_s=40 * DAY_S, deadline__p_tight=0.6)

    assert len(report.relaxed) == lowered


async def test_a_gate_is_as_set_again_once_nothing_waits_behind_it(store: Store) -> None:
    version = await a_registered_version(store)
    await ranked_hosts(store, version)
    batch_id = await a_late_batch(store, jobs=6)
    _, lowered = await relax(store, deadline__min_gate_wait_s=7200.0)
    assert held_gates(lowered).p_tight < 0.9

    await store.submissions.abort_batch(batch_id, now=later(LATER, 1.0))
    report, catalogue = await relax(store)

    assert report == GateReport()
    assert held_gates(catalogue).p_tight == 0.9


async def test_counts_of_a_relaxed_gate_are_renewed(store: Store) -> None:
    version = await a_registered_version(store)
    await ranked_hosts(store, version, count=20)
    await a_late_batch(store, jobs=6)
    await relax(store, deadline__min_gate_wait_s=7200.0)

    await a_late_batch(store, jobs=1)
    catalogue = await store.applications.load_catalogue()
    await GateRelaxer(store.insight, store.notes, lambda: catalogue, HandClock(later(LATER, 60.0))).run_once()

    [cuts] = (await store.applications.load_catalogue()).cut_points.values()
    [gate] = cuts.relaxed
    assert (gate.jobs, gate.measured_at) == (7, later(LATER, 60.0))


@pytest.mark.parametrize("settings", [{"deadline__rule": "proposal"}, {"deadline__gate_wait_fraction": 0}])
async def test_no_gate_is_lowered_where_that_is_switched_off(store: Store, settings: dict[str, object]) -> None:
    version = await a_registered_version(store)
    await ranked_hosts(store, version)
    await a_late_batch(store)
    of_type = (version.app_id, version.processor_type)
    await store.notes.note_relaxed_gates([RelaxedGate(*of_type, Gate.TIGHT, 0.6)], now=LATER)

    report, catalogue = await relax(store, **settings)

    assert report == GateReport()
    assert all(cuts.relaxed == () for cuts in catalogue.cut_points.values())


async def test_gates_without_ranking_follow_bootstrap_rule(store: Store) -> None:
    version = await a_registered_version(store)
    await store.notes.note_relaxed_gates(
        [RelaxedGate(version.app_id, version.processor_type, Gate.TIGHT, 0.6)], now=LATER
    )
    assert (await store.applications.load_catalogue()).cut_points == {}
