"""Cut points of a population, and their agreement with the ranking they come from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.apps import App, AppVersion
from domain.hosts import DecayedSums
from domain.ranking import AppFacts, CutPoints, percentile
from domain.settings import DeadlineSettings, RankingSettings, Settings
from domain.units import AppId, AppVersionId, Flop, Instant, Seconds
from hoststats.apps import RankedPiece, pooled, quantiles, rank_app, retry_turnaround_s, slack_factors
from scheduler.runtime import slack_factor
from tests.builders import NOW
from tests.unit.hoststats.populations import Line, a_table

APP = App(AppId(1), "pi")
VERSION = AppVersion(AppVersionId(1), AppId(1), "linux", 100)


def the_part(lines: list[Line], settings: Settings | None = None, facts: AppFacts | None = None) -> RankedPiece:
    [part] = rank_app(
        APP, [VERSION], a_table(lines), facts=facts or AppFacts(), now=NOW, settings=settings or Settings()
    )
    return part


SCORES = st.floats(-5.0, 8.0) | st.sampled_from([-1.0, 0.0, 0.5])
LINES = st.builds(
    Line,
    SCORES,
    st.integers(0, 14),
    st.sampled_from([3.0, 9.0, 50.0]),
    met=st.sampled_from([0.0, 4.0]),
    missed=st.sampled_from([0.0, 1.0]),
)


@given(st.lists(LINES, min_size=1, max_size=60))
def test_a_request_finds_the_percentile_that_the_run_wrote(lines: list[Line]) -> None:
    """For any size: below 1,000 rows the cut points hold every score."""
    part = the_part(lines)

    written = {int(record["host_id"]): float(record["p"]) for record in part.percentiles}
    for host_id, line in enumerate(lines, start=1):
        found = percentile(line.hav(host_id), part.cuts, now=NOW, settings=RankingSettings())
        assert found.p == pytest.approx(written[host_id], abs=1e-6)


def test_lookup_in_large_population_is_exact_to_a_thousandth() -> None:
    rng = np.random.default_rng(3)
    lines = [Line(float(score), 11, 5.0) for score in rng.normal(0.0, 1.0, 7321)]
    part = the_part(lines)

    written = {int(record["host_id"]): float(record["p"]) for record in part.percentiles}
    found = [percentile(line.hav(i), part.cuts, now=NOW, settings=RankingSettings()) for i, line in enumerate(lines, 1)]

    assert len(part.cuts.turnaround) == 1000
    assert max(abs((one.p or 0.0) - written[i]) for i, one in enumerate(found, 1)) <= 0.001


def test_cut_points_stay_true_while_samples_fade() -> None:
    lines = [Line(score / 10, 11, 40.0) for score in range(100)]
    part = the_part(lines)
    tomorrow = Instant(NOW + 86400.0)

    found = [
        percentile(line.hav(i), part.cuts, now=tomorrow, settings=RankingSettings()) for i, line in enumerate(lines)
    ]

    written = part.percentiles["p"].tolist()
    assert [one.p for one in found] == pytest.approx(written, abs=0.02)


@given(st.lists(SCORES, min_size=1, max_size=2500))
def test_quantiles_are_ascending_values_that_occur(scores: list[float]) -> None:
    cuts = quantiles(np.sort(np.array(scores)))

    assert list(cuts) == sorted(cuts)
    assert set(cuts) <= set(scores)
    assert len(cuts) == min(len(scores), 1000)


def test_pooled_samples_are_those_of_all_rows() -> None:
    samples = [[0.1, 0.4, 0.9], [1.5], [0.2, 0.2]]
    sums = [np.array([f(row) for row in samples]) for f in (len, sum, lambda row: sum(x * x for x in row))]
    together = [x for row in samples for x in row]

    n, mean, sd = pooled(*(column.astype(float) for column in sums))

    assert (n, mean, sd) == pytest.approx((6.0, np.mean(together), np.std(together)))


TIGHT = st.tuples(st.floats(0.0, 300.0), st.floats(-2.0, 8.0), st.floats(0.0, 1.0))

SLACKS = st.sampled_from([2.5, 20.0])


@given(
    st.lists(TIGHT, min_size=1, max_size=10), st.floats(0.0, 200.0), st.floats(-1.0, 1.0), st.floats(0.0, 1.0), SLACKS
)
def test_the_slack_is_the_one_a_request_reckons_with(
    rows: list[tuple[float, float, float]], app_n: float, app_mean: float, app_sd: float, slack: float
) -> None:
    sums = [DecayedSums(n, n * mean, n * (mean * mean + sd * sd), NOW) for n, mean, sd in rows]
    columns = (np.array([getattr(one, name) for one in sums]) for name in ("n", "total", "total_sq"))
    settings = DeadlineSettings(slack_factor=slack)
    cuts = replace(the_part([Line(0.0, 0)]).cuts, tight_n=app_n, tight_mean=app_mean, tight_sd=app_sd)

    found = slack_factors(*columns, app=(app_n, app_mean, app_sd), settings=settings)

    assert found.tolist() == pytest.approx([slack_factor(one, cuts, settings=settings) for one in sums])


def test_a_retrys_turnaround_is_unknown_below_twenty_ranked_rows() -> None:
    ones = np.ones(30)
    p = np.where(np.arange(30) < 19, 0.95, np.nan)

    assert retry_turnaround_s(p, ones, ones, ones, p_tight=0.9, facts=AppFacts()) is None


def test_retry_turnaround_uses_the_best_twenty_rows() -> None:
    """Of sixty rows the best twenty take e^8 s, though only six are above p_tight."""
    p = (np.arange(60) + 0.5) / 60
    ln_s, n = np.where(p >= 40 / 60, 8.0, 10.0), np.ones(60)

    found = retry_turnaround_s(p, n, ln_s, ln_s**2, p_tight=0.9, facts=AppFacts())

    assert found == pytest.approx(np.exp(8.0), abs=1e-3)


def test_only_good_rows_say_how_long_a_retry_takes() -> None:
    """Forty hosts that take e^8 s and forty that take e^10 s: the quicker half counts."""
    lines = [Line(float(score), 12) for score in range(80)]
    table = a_table(lines)
    table["log_n"] = 5
    table["log_sum"] = np.where(np.arange(80) < 40, 40.0, 50.0)
    table["log_sum_sq"] = np.where(np.arange(80) < 40, 320.0, 500.0)
    settings = Settings.from_mapping({"deadline.p_tight": 0.5})

    [part] = rank_app(APP, [VERSION], table, facts=AppFacts(None, Seconds(60.0)), now=NOW, settings=settings)

    assert part.cuts.retry_turnaround_s == pytest.approx(np.exp(8.0) + 60.0, abs=1e-3)


def test_the_median_safe_runtime_is_of_the_apps_typical_job() -> None:
    table = a_table([Line(0.0, 0), Line(0.0, 0), Line(0.0, 0), Line(0.0, 0)])
    table["s_per_flop"] = [1e-9, 2e-9, 4e-9, np.nan]

    [part] = rank_app(APP, [VERSION], table, facts=AppFacts(Flop(3.6e12)), now=NOW, settings=Settings())

    assert part.cuts.median_safe_runtime_s == pytest.approx(2 * 3600.0 * 2.5)
    assert the_part([Line(0.0, 0)]).cuts.median_safe_runtime_s is None


def test_cut_points_count_valid_results_up_to_ten() -> None:
    cuts: CutPoints = the_part([Line(0.0, k) for k in (0, 0, 3, 10, 11, 12)]).cuts

    assert (cuts.n, cuts.consecutive_valid) == (6, (2, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1))
