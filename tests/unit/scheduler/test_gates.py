"""Percentiles at the gate, and what newcomers are given."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from domain.apps import CPU
from domain.batches import QoS
from domain.draws import draw
from domain.hosts import DecayedSums
from domain.ranking import Gate, Percentile, RelaxedGate
from domain.refusals import Refusal, RefusalCode
from domain.settings import DeadlineRule, DeadlineSettings
from domain.units import HOUR_S, AppId, InstanceId, Seconds, later
from scheduler.dispatch import choose
from scheduler.gates import (
    RELAXED_STEP,
    affordable,
    lowest_gate,
    newcomer_refusal,
    percentile_of,
    reachable,
)
from tests.builders import NOW, a_hav, a_ready, an_app_version
from tests.unit.scheduler.arrays import ListArray, a_catalogue, a_group, an_asking, some_cuts

NEWCOMER = Percentile(None, reason="newcomer")


def test_a_host_is_ranked_among_its_app_and_processor_type() -> None:
    hav = a_hav(consecutive_valid=11, relaxed=DecayedSums(1e9, 0.2e9, 1e9, NOW))
    found = percentile_of(an_app_version(), {hav.app_version_id: hav}, a_catalogue(cuts=[some_cuts()]), now=NOW)
    assert found.p is not None
    assert round(found.p, 2) == 0.8


def test_a_host_without_a_row_is_a_newcomer_only_in_a_large_population() -> None:
    version = an_app_version()
    assert percentile_of(version, {}, a_catalogue(cuts=[some_cuts(n=20)]), now=NOW).p is None
    assert percentile_of(version, {}, a_catalogue(cuts=[some_cuts(n=19)]), now=NOW).p == 0.5
    assert percentile_of(version, {}, a_catalogue(), now=NOW).p == 0.5


def test_newcomers_get_their_share_of_first_instances() -> None:
    slots = [a_ready(instance_id=i) for i in range(1, 20_001)]
    open_to_all = [slot for slot in slots if newcomer_refusal(NEWCOMER, slot, 0.05) is None]
    assert 900 < len(open_to_all) < 1100


def test_asking_again_does_not_change_what_newcomers_get() -> None:
    slot = next(slot for i in range(100) if draw((slot := a_ready(instance_id=i)).instance_id) > 0.05)
    refusals = {newcomer_refusal(NEWCOMER, slot, 0.05) for _ in range(20)}
    assert len(refusals) == 1
    (refusal,) = refusals
    assert isinstance(refusal, Refusal)
    assert refusal.detail == "newcomer; newcomers get 0.05 of first instances"


def test_newcomers_get_all_or_nothing_at_the_ends() -> None:
    slots = [a_ready(instance_id=i) for i in range(1, 500)]
    assert all(newcomer_refusal(NEWCOMER, slot, 1.0) is None for slot in slots)
    assert all(newcomer_refusal(NEWCOMER, slot, 0.0) is not None for slot in slots)


def test_newcomers_get_first_instances_only() -> None:
    for slot in (a_ready(retries=1), a_ready(sibling_returned=True)):
        refusal = newcomer_refusal(NEWCOMER, slot, 1.0)
        assert refusal is not None
        assert refusal.code is RefusalCode.NEWCOMER_SHARE


def test_a_ranked_host_is_no_newcomer() -> None:
    assert newcomer_refusal(Percentile(0.0), a_ready(retries=3), 0.0) is None


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


@given(st.floats(0.5, 1.0), st.integers(1, 10_000), st.lists(st.floats(0.0, 500.0), max_size=50), st.floats(60.0, 1e6))
def test_a_gate_is_as_high_as_the_rate_of_requests_affords_and_never_below_a_half(
    threshold: float, jobs: int, hosts: list[float], longest_s: float
) -> None:
    """Host i of n has percentile (i + 0.5) / n and makes `hosts[i]` calls an hour."""

    def calls_per_hour(p: float) -> float:
        return sum(rate for i, rate in enumerate(hosts) if (i + 0.5) / len(hosts) >= p)

    p, rate = affordable(threshold, jobs, calls_per_hour, longest_s=Seconds(longest_s))

    assert 0.5 <= p <= threshold
    assert rate == calls_per_hour(p)
    assert p == 0.5 or jobs * HOUR_S <= rate * longest_s
    if p < threshold:
        one_step_higher = min(threshold, p + RELAXED_STEP)
        assert jobs * HOUR_S > calls_per_hour(round(one_step_higher, 6)) * longest_s or one_step_higher == threshold


def test_lowered_gates_hold_for_their_kind_alone_and_raise_nothing() -> None:
    relaxed = (RelaxedGate(AppId(1), CPU, Gate.TIGHT, 0.7), RelaxedGate(AppId(1), CPU, Gate.LATE, 0.6))
    settings = DeadlineSettings(p_late=0.55, p_tight=0.9)
    held = reachable(settings, some_cuts(relaxed=relaxed))
    assert (held.p_tight, held.p_late, held.p_afap, held.p_retry) == (0.7, 0.55, 0.5, 0.5)
    assert reachable(settings, some_cuts()) == settings
    proposal = DeadlineSettings(DeadlineRule.PROPOSAL)
    assert reachable(proposal, some_cuts(relaxed=relaxed)) == proposal


def test_a_host_that_reaches_a_lowered_gate_gets_the_late_job_with_the_gate_told() -> None:
    hav = a_hav(consecutive_valid=11, relaxed=DecayedSums(1e9, 0.35e9, 1e9, NOW))  # P 0.65
    for threshold, given_ in ((0.6, 1), (0.7, 0)):
        cuts = some_cuts(relaxed=(RelaxedGate(AppId(1), CPU, Gate.TIGHT, threshold),))
        asking = an_asking(catalogue=a_catalogue(cuts=[cuts]), havs={hav.app_version_id: hav})
        late = a_group(1, qos=QoS.SHORT_DEADLINE, deadline_at=later(NOW, 60.0))
        chosen = choose(asking, ListArray([late])).chosen
        assert len(chosen) == given_
        if chosen:
            assert "P 0.650 >= 0.6" in chosen[0].assignment.because
