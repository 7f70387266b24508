"""Percentile gates, and the newcomers' share."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.apps import CPU
from domain.batches import Batch, BatchCounts, QoS
from domain.hosts import DecayedSums
from domain.jobs import draw
from domain.ranking import Gate, Percentile, RelaxedGate, gate_in_words
from domain.refusals import RefusalCode
from domain.settings import DeadlineRule, DeadlineSettings
from domain.units import HOUR_S, AppId, InstanceId, Seconds, later
from scheduler.gates import (
    RELAXED_STEP,
    affordable,
    kept_for_newcomers,
    least_gate,
    lowest_gate,
    percentile_of,
    reachable,
)
from scheduler.selection import choose
from tests.builders import NOW, a_batch, a_hav, an_app_version
from tests.facts import missing
from tests.unit.scheduler.arrays import ListArray, a_catalogue, a_group, an_asking, some_cuts

NEWCOMER = Percentile(None, reason="newcomer")
RANKED = Percentile(0.9, 0.9, 0.9)


def test_a_host_is_ranked_among_its_app_and_processor_type() -> None:
    hav = a_hav(consecutive_valid=11, relaxed=DecayedSums(1e9, 0.2e9, 1e9, NOW))
    found = percentile_of(an_app_version(), {hav.app_version_id: hav}, a_catalogue(cuts=[some_cuts()]), now=NOW)
    assert found.p is not None
    assert round(found.p, 2) == 0.8


def test_unknown_host_is_a_newcomer_only_in_a_large_population() -> None:
    version = an_app_version()
    assert percentile_of(version, {}, a_catalogue(cuts=[some_cuts(n=20)]), now=NOW).p is None
    assert percentile_of(version, {}, a_catalogue(cuts=[some_cuts(n=19)]), now=NOW).p == 0.5
    assert percentile_of(version, {}, a_catalogue(), now=NOW).p == 0.5


def with_unsent(unsent: int, qos: QoS = QoS.THROUGHPUT) -> Batch:
    return a_batch(qos=qos, counts=BatchCounts(jobs_total=100, unsent=unsent))


def test_the_newcomers_share_is_the_last_of_a_batch() -> None:
    kept = [unsent for unsent in range(101) if kept_for_newcomers(with_unsent(unsent), RANKED, 0.05)]
    assert kept == [0, 1, 2, 3, 4]
    assert kept_for_newcomers(with_unsent(99), RANKED, 1.0) is not None
    assert kept_for_newcomers(with_unsent(0), RANKED, 0.0) is None


def test_batches_in_a_hurry_keep_nothing_for_newcomers() -> None:
    kept = {qos for qos in QoS if kept_for_newcomers(with_unsent(1, qos), RANKED, 0.05)}
    assert kept == {QoS.THROUGHPUT, QoS.LONG_DEADLINE}


def test_hosts_that_are_not_ranked_are_refused_nothing() -> None:
    for standing in (NEWCOMER, Percentile(0.5, reason="bootstrap: no failure yet")):
        assert kept_for_newcomers(with_unsent(1), standing, 1.0) is None


def test_the_newcomers_share_is_explained_with_its_numbers() -> None:
    why = kept_for_newcomers(with_unsent(3), RANKED, 0.05)
    assert why is not None
    assert why.code is RefusalCode.NEWCOMER_SHARE
    assert not missing(why.detail, "last 3 of 100", "share 0.05")


def test_draws_are_spread_evenly_over_neighbours() -> None:
    draws = [draw(InstanceId(i)) for i in range(10_000)]
    assert all(0.0 <= one < 1.0 for one in draws)
    for tenth in range(10):
        assert 900 < sum(tenth / 10 <= one < (tenth + 1) / 10 for one in draws) < 1100


def test_the_lowest_gate_is_the_least_that_the_rule_asks_for() -> None:
    settings = DeadlineSettings(p_afap=0.6, p_late=0.4, p_retry=0.3, p_tight=0.9)
    assert lowest_gate(settings) == 0.3
    proposal = DeadlineSettings(DeadlineRule.PROPOSAL, p_afap=0.6, p_late=0.4, p_retry=0.3, p_tight=0.9)
    assert lowest_gate(proposal) == 0.6


@given(
    st.floats(0.5, 1.0),
    st.floats(0.0, 0.5),
    st.integers(1, 10_000),
    st.lists(st.floats(0.0, 500.0), max_size=50),
    st.floats(60.0, 1e6),
)
def test_gate_follows_request_rate_and_stays_above_its_minimum(
    threshold: float, least: float, jobs: int, hosts: list[float], longest_s: float
) -> None:
    """Host i of n has percentile (i + 0.5) / n and sends `hosts[i]` requests per hour."""

    def calls_per_hour(p: float) -> float:
        return sum(rate for i, rate in enumerate(hosts) if (i + 0.5) / len(hosts) >= p)

    p, rate = affordable(threshold, jobs, calls_per_hour, longest_s=Seconds(longest_s), least=least)

    assert least <= p <= threshold
    assert rate == calls_per_hour(p)
    assert p == least or jobs * HOUR_S <= rate * longest_s
    if p < threshold:
        one_step_higher = min(threshold, p + RELAXED_STEP)
        assert jobs * HOUR_S > calls_per_hour(round(one_step_higher, 6)) * longest_s or one_step_higher == threshold


@given(st.lists(st.floats(0.0, 500.0), max_size=50), st.floats(0.5, 5.0), st.sampled_from(sorted(Gate)))
def test_a_quarter_of_requests_passes_the_lowest_gate(hosts: list[float], skew: float, gate: Gate) -> None:
    """Host i of n has percentile ((i + 0.5) / n) ** skew and sends `hosts[i]` requests per hour."""

    def calls_per_hour(p: float) -> float:
        return sum(rate for i, rate in enumerate(hosts) if ((i + 0.5) / len(hosts)) ** skew >= p)

    least = least_gate(gate, calls_per_hour)

    assert 0.0 <= least <= 0.5
    assert calls_per_hour(least) >= 0.25 * calls_per_hour(0.0)


def test_lowered_gates_apply_per_kind_and_never_raise_a_gate() -> None:
    relaxed = (RelaxedGate(AppId(1), CPU, Gate.TIGHT, 0.7), RelaxedGate(AppId(1), CPU, Gate.LATE, 0.6))
    settings = DeadlineSettings(p_late=0.55, p_tight=0.9)
    held = reachable(settings, some_cuts(relaxed=relaxed))
    assert (held.p_tight, held.p_late, held.p_afap, held.p_retry) == (0.7, 0.55, 0.5, 0.5)
    assert reachable(settings, some_cuts()) == settings
    proposal = DeadlineSettings(DeadlineRule.PROPOSAL)
    assert reachable(proposal, some_cuts(relaxed=relaxed)) == proposal


def test_host_passing_a_lowered_gate_gets_the_late_job() -> None:
    hav = a_hav(consecutive_valid=11, relaxed=DecayedSums(1e9, 0.35e9, 1e9, NOW))  # P 0.65
    for threshold, given_ in ((0.6, 1), (0.7, 0)):
        cuts = some_cuts(relaxed=(RelaxedGate(AppId(1), CPU, Gate.TIGHT, threshold),))
        context = an_asking(catalogue=a_catalogue(cuts=[cuts]), havs={hav.app_version_id: hav})
        late = a_group(1, qos=QoS.SHORT_DEADLINE, deadline_at=later(NOW, 60.0))
        chosen = choose(context, ListArray([late])).chosen
        assert len(chosen) == given_
        if chosen:
            assert "P 0.650 >= 0.6" in chosen[0].assignment.due_terms.because


@pytest.mark.parametrize("qos", [QoS.SHORT_DEADLINE, QoS.AFAP], ids=["below the gate", "too slow without it"])
def test_refusal_by_a_lowered_gate_has_its_setting(qos: QoS) -> None:
    hav = a_hav(consecutive_valid=11, relaxed=DecayedSums(1e9, 0.7e9, 1e9, NOW))  # P 0.3
    relaxed = tuple(RelaxedGate(AppId(1), CPU, gate, 0.45) for gate in (Gate.AFAP, Gate.TIGHT))
    found = {}
    for lowered in ((), relaxed):
        catalogue = a_catalogue(cuts=[some_cuts(relaxed=lowered)], deadline__afap_turn_factor=0.01)
        context = an_asking(catalogue=catalogue, havs={hav.app_version_id: hav})
        group = a_group(1, qos=qos, deadline_at=later(NOW, 60.0) if qos is QoS.SHORT_DEADLINE else None)
        [refused] = choose(context, ListArray([group])).refused
        found[bool(lowered)] = refused.refusal
    set_to = found[False].terms[4]

    assert found[True].terms[3:5] == (found[False].terms[3], 0.45)
    for text in (found[True].detail, found[True].brief):
        assert not missing(text, gate_in_words(0.45, set_to))
    assert "(" not in found[False].brief
