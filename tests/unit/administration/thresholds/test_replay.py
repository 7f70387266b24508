"""Replays of a running project with unchanged and changed thresholds."""

from __future__ import annotations

import asyncio
import json
import pickle
import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from io import BytesIO, StringIO
from types import SimpleNamespace
from typing import Any, cast

import pytest

from administration.changes import Changes
from administration.simulations.process import main, simulated_tasks
from administration.thresholds.keys import changes_of
from administration.thresholds.recent import recent_project
from administration.thresholds.replay import MOST_LEFT_OUT, LeftOut, Replayed, ThresholdReplay, left_out, replay
from administration.thresholds.shown import replayed_in_words
from domain.batches import BatchCounts, QoS
from domain.errors import InvalidInputError
from domain.insight import HostSample, RecentHost
from domain.ranking import Percentile, percentile
from domain.units import DAY_S, Instant, Seconds, later
from simulator.engine import Engine
from simulator.population import MeasuredPopulation
from simulator.report import rows_of
from simulator.run import Case, Ran, run_case, warnings_only
from simulator.scenario import read_scenario
from simulator.services import AnyStore
from simulator.sweep import run_here, unwatched
from simulator.virtual_time import VirtualClock, run_without_threads
from store.postgres import PostgresStore
from tests.builders import NOW, a_batch
from tests.facts import missing, states
from tests.memory import MemoryStore
from tests.stores import as_postgres
from tests.worlds import a_registered_host, a_registered_version

HOSTS = 8
PACE = {  # what is looked at so seldom is still looked at many times: a day is simulated in a fifth of the time
    "estimator.pause_s": DAY_S / 2,
    "estimator.timer_s": DAY_S / 2,
    "lifecycle.sweep_interval_s": 900.0,
    "lifecycle.tail_interval_s": 3600.0,
    "ordering.interval_s": DAY_S / 4,
}
STORY = {
    "population.hosts": HOSTS,
    "days": 6,
    "delay_bound_days": 3,
    "settings": {**PACE, "deadline.p_afap": 0.4},
    "submitter": [{"name": "ada", "shares": 3}],
    "batch": [
        {"name": "survey", "submitter": "ben", "qos": "throughput", "jobs": 80, "fpops_est": 1.5e14},
        {"name": "rush", "submitter": "ada", "qos": "afap", "at_hours": 140, "jobs": 10, "fpops_est": 6e13},
        {
            "name": "soon",
            "submitter": "ada",
            "qos": "short_deadline",
            "deadline_hours": 48,
            "at_hours": 141,
            "jobs": 6,
            "fpops_est": 3e13,
        },
    ],
}


@cache
def a_project() -> Engine:
    """Return a project after six days, with two batches just submitted. It is cached and not changed."""
    engine = Engine(
        read_scenario("small", STORY),
        3,
        store=lambda clock: MemoryStore(),
        settings={},
        more_tasks=simulated_tasks,
        watch=unwatched,
    )
    with warnings_only():
        run_without_threads(engine.run())
    engine.clock.turn_to(engine.ended_at)
    return engine


def stored_project() -> MemoryStore:
    store = a_project().store
    assert isinstance(store, MemoryStore)
    return store


def prepared(*changes: tuple[str, object], seeds: int = 1, most_hosts: int = 100) -> ThresholdReplay:
    engine = a_project()
    wanted: Changes = changes_of(changes)
    return run_without_threads(
        replay(
            as_postgres(stored_project()),
            engine.clock,
            wanted,
            seeds=range(1, seeds + 1),
            most_hosts=most_hosts,
            days=2.0,
        )
    )


class Unwatched:
    """Satisfies the simulator's Watching; discards progress."""

    def moved(self, place: int, at: Instant) -> None: ...

    def over(self, place: int) -> None: ...


RAN: list[tuple[Case, Ran]] = []  # cases that were run here


def ran_here(case: Case) -> Ran:
    """What a case comes to; the side of the project as it is is run for one test."""
    for known, ran in RAN:
        if known == case:
            return ran
    [ran] = run_here([case], simulated_tasks, Unwatched())
    RAN.append((case, ran))
    return ran


def replayed(of: ThresholdReplay) -> Replayed:
    return of.replayed([ran_here(case) for case in of.cases])


def test_scenario_has_the_project_as_it_is() -> None:
    of = prepared(("p_afap", 0.6))
    scenario = of.cases[0].scenario
    views = a_project().record.batches.values()
    left = {one.name: one.jobs - len(one.ended_at) for one in views}

    assert (of.sample.hosts, of.sample.hosts_active) == (HOSTS, HOSTS)
    hosts = run_without_threads(stored_project().views.hosts(limit=100))
    assert of.asked["known_s"] == a_project().clock.now() - min(host.created_at for host in hosts) > 0.0
    assert scenario.settings["deadline.p_afap"] == 0.4
    assert [(one.submitter, one.shares) for one in scenario.submitters if one.submitter in ("ada", "ben")] == [
        ("ben", 1.0),
        ("ada", 3.0),
    ]
    waiting = scenario.batches
    assert {(plan.submitter, plan.qos, plan.jobs, plan.fpops_est) for plan in waiting} == {
        ("ben", QoS.THROUGHPUT, left["survey"], 1.5e14),
        ("ada", QoS.AFAP, left["rush"], 6e13),
        ("ada", QoS.SHORT_DEADLINE, left["soon"], 3e13),
    }
    [soon] = [plan for plan in waiting if plan.qos is QoS.SHORT_DEADLINE]
    assert soon.deadline_s == pytest.approx((141 + 48) * 3600 - 6 * DAY_S)
    assert sorted(plan.at_s for plan in waiting) == [0.0, 1.0, 2.0]


def test_hosts_start_with_their_statistics_in_the_project() -> None:
    """Six days of results: without them, every host would be a newcomer."""
    scenario = replace(prepared(("p_afap", 0.6)).cases[0].scenario, horizon_s=Seconds(0.0))
    engine = Engine(
        scenario, 1, store=lambda _: MemoryStore(), settings={}, more_tasks=simulated_tasks, watch=unwatched
    )
    run_without_threads(engine.run())

    def percentiles(store: AnyStore, now: Instant) -> list[Percentile]:
        catalogue = run_without_threads(store.applications.load_catalogue())
        [cuts], ranking = catalogue.cut_points.values(), catalogue.settings.ranking
        assert isinstance(store, MemoryStore)
        sample = run_without_threads(store.insight.sampled_hosts(HOSTS, active_since=Instant(0.0)))
        return [percentile(hav, cuts, now=now, settings=ranking) for one in sample.hosts for hav in one.havs]

    known = percentiles(a_project().store, scenario.starts_at)
    assert percentiles(engine.store, scenario.starts_at) == known
    assert len({one.p for one in known}) > 1


def test_scenario_has_the_measured_computers() -> None:
    population = prepared(("p_afap", 0.6)).cases[0].scenario.population
    assert isinstance(population, MeasuredPopulation)
    stored = run_without_threads(stored_project().views.hosts(limit=100))

    assert [(one.ncpus, one.flop_per_s) for one in population.hosts] == [(h.ncpus, h.flop_per_s) for h in stored]
    assert len({one.stretch for one in population.hosts}) > 2
    assert 0.0 < max(one.loss_fraction for one in population.hosts) < 0.5


def test_sample_of_computers_gets_its_share_of_jobs() -> None:
    whole, half = prepared(("p_afap", 0.6)).sample, prepared(("p_afap", 0.6), most_hosts=HOSTS // 2).sample

    assert (half.hosts, half.hosts_active) == (HOSTS // 2, HOSTS)
    assert half.jobs == pytest.approx(whole.jobs / 2, abs=2)
    assert half.jobs_open == whole.jobs_open == whole.jobs


def test_both_sides_are_simulated_and_compared() -> None:
    found = replayed(prepared(("rule", "fixed"), ("p_afap", 0.9)))
    shown = found.as_json()

    assert shown["changes"] == [
        {"key": "deadline.rule", "from": "muster", "to": "fixed"},
        {"key": "deadline.p_afap", "from": 0.4, "to": 0.9},
    ]
    now, changed = shown["now"], shown["changed"]
    assert isinstance(now, dict) and isinstance(changed, dict)
    assert now.keys() & changed.keys() >= {"afap_makespan_s", "instances_per_job", "tight_fraction"}
    assert now["tight_fraction"] > changed["tight_fraction"] == 0.0
    assert now["batches"] == 3 and "jobs_failed" not in now
    assert replayed_in_words(found).splitlines()[:2] == [
        "deadline.rule: muster -> fixed",
        "deadline.p_afap: 0.4 -> 0.9",
    ]
    assert not missing(replayed_in_words(found).splitlines()[3], f"{HOSTS} of {HOSTS}", "hosts")


def test_urgent_batches_end_on_both_sides() -> None:
    of = prepared(("rule", "fixed"), ("p_afap", 0.9))
    ids = {one.name: batch_id for batch_id, one in a_project().record.batches.items()}
    rush, soon = ids["rush"], ids["soon"]
    now, changed = (ran_here(case) for case in of.cases)

    def ends(ran: list[Ran]) -> Any:
        return of.result(ran)["replayed"]["batches"]  # type: ignore[index]  # a JSON document

    ended = replace(now, spans_s={f"batch {one}": 9.0 for one in ids.values()})
    assert of.replayed([ended, ended]).unfinished == []
    assert of.replayed([ended, replace(ended, spans_s={f"batch {soon}": 9.0})]).unfinished == sorted(
        {*ids.values()} - {soon}
    )
    now, changed = replace(now, spans_s={f"batch {rush}": 60.0, f"batch {soon}": 9.0}), replace(changed, spans_s={})
    assert ends([now, changed]) == [
        {"batch_id": rush, "now_s": 60.0, "changed_s": None},
        {"batch_id": soon, "now_s": 9.0, "changed_s": None},
    ]
    assert ends([now, now])[0]["changed_s"] == 60.0


def test_urgent_batches_not_compared_are_named_with_the_reason() -> None:
    deadline, sent = {"deadline_at": NOW}, {"counts": BatchCounts(in_progress=3)}
    unsent = {"counts": BatchCounts(unsent=3)}
    active = [
        a_batch(batch_id=number, qos=qos, **more)
        for number, qos, more in (
            (1, QoS.AFAP, unsent),
            (2, QoS.SHORT_DEADLINE, deadline | sent),
            (3, QoS.AFAP, unsent),
            (4, QoS.AFAP, unsent),
            (5, QoS.THROUGHPUT, sent),
            (6, QoS.THROUGHPUT, unsent),
            (7, QoS.THROUGHPUT, {"counts": BatchCounts(unsent=3, jobs_failed=9, jobs_validated=1)}),
            (8, QoS.THROUGHPUT, {"counts": BatchCounts(unsent=3, jobs_failed=9, jobs_validated=9)}),
        )
    ]
    found = [{"batch_id": 2, "why": LeftOut.SENT}, {"batch_id": 3, "why": LeftOut.BEYOND}]

    found += [{"batch_id": 4, "why": LeftOut.STOPPED}, {"batch_id": 6, "why": LeftOut.UNRUNNABLE}]
    found += [{"batch_id": 7, "why": LeftOut.FAILING}]

    assert left_out(active, {1, 3}, {1}, {6}) == {"left_out": found, "more_left_out": 0}
    many = left_out([a_batch(batch_id=number, qos=QoS.AFAP) for number in range(25)], (), (), ())
    assert many["more_left_out"] == 25 - MOST_LEFT_OUT
    asked = prepared(("p_afap", 0.6)).asked
    assert (asked["left_out"], asked["more_left_out"]) == ([], 0)


def test_separate_process_gives_the_same_result() -> None:
    of, output = prepared(("rule", "fixed"), ("p_afap", 0.9)), StringIO()
    main(BytesIO(pickle.dumps(of)), output)
    *steps, last = [json.loads(line) for line in output.getvalue().splitlines()]
    result = json.loads(json.dumps(last["result"], sort_keys=True))  # as a database stores it
    here, there = replayed(of), Replayed.read(result["replayed"])

    assert [step["done_fraction"] for step in steps] == sorted(step["done_fraction"] for step in steps)
    assert steps[-1]["done_fraction"] == 1.0
    assert json.dumps(there.as_json()) == json.dumps(here.as_json())
    assert replayed_in_words(there) == replayed_in_words(here)
    assert rows_of(there.comparison) == rows_of(here.comparison)
    assert there.comparison.ends == here.comparison.ends and here.comparison.ends
    assert last["result"].keys() >= {"rules", "rows", "curves", "seeds"}  # used by the console's page
    assert of.asked["rules"] == ["present values", "changed values"]


def test_unchanged_thresholds_give_equal_sides() -> None:
    shown = replayed(prepared(("p_afap", 0.4))).as_json()

    assert json.dumps(shown["now"]) == json.dumps(shown["changed"])


def test_replay_can_change_the_rule() -> None:
    of = prepared(("rule", "fixed"), ("p_late", 0.3))

    assert [(case.rule, dict(case.settings)) for case in of.cases] == [
        ("muster", {}),
        ("fixed", {"deadline.p_late": 0.3}),
    ]


def test_clairvoyant_bound_runs_the_scenario() -> None:
    case = prepared(("p_late", 0.3)).cases[0]
    bound = run_case(type(case)(case.scenario, 1, "clairvoyant"), simulated_tasks, unwatched).figures

    assert bound.afap_makespan_s is not None and bound.batches == 3


async def test_project_without_computers_or_work_is_refused() -> None:
    clock = VirtualClock(NOW)
    store = MemoryStore()
    with states(InvalidInputError, "population:", "last 7 days", "got 0"):
        await recent_project(as_postgres(store), clock, most_hosts=10, days=1.0)
    await a_registered_version(store)
    await a_registered_host(store, last_rpc_at=NOW)
    with states(InvalidInputError, "batches:", "at least one", "unsent", "got 0"):
        await recent_project(as_postgres(store), clock, most_hosts=10, days=1.0)


class RecordsThreads(tuple[RecentHost, ...]):
    """Hosts that record which threads iterate over them."""

    threads: set[int]

    def __iter__(self) -> Iterator[RecentHost]:
        self.threads.add(threading.get_ident())
        return super().__iter__()


def test_computers_are_prepared_in_another_thread() -> None:
    store, clock = stored_project(), a_project().clock
    read = asyncio.run(store.insight.sampled_hosts(HOSTS, active_since=later(clock.now(), -7 * DAY_S), most_held=9))
    hosts = RecordsThreads(read.hosts)
    hosts.threads = set()

    class Insight:
        waiting_batches, job_sizes = store.insight.waiting_batches, store.insight.job_sizes

        async def sampled_hosts(self, limit: int, *, active_since: Instant, most_held: int) -> HostSample:
            return replace(read, hosts=hosts)

    parts = {name: getattr(store, name) for name in ("applications", "settings", "people", "hav_tables")}
    noting = cast(PostgresStore, SimpleNamespace(**parts, insight=Insight()))

    recent = asyncio.run(recent_project(noting, clock, most_hosts=HOSTS, days=1.0))

    assert recent.sample.hosts == HOSTS
    assert hosts.threads and threading.get_ident() not in hosts.threads
