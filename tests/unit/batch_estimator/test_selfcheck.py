"""How forecasts are scored, and when that changes their spread."""

from __future__ import annotations

import pytest

from batch_estimator.forecast import stretched_s
from batch_estimator.selfcheck import accuracy, adapted_spread, score
from domain.forecasts import KeptForecast, Score
from domain.units import BatchId, Instant, Seconds

BOUND_S = Seconds(1000.0)


def a_kept(batch: int = 1, spread: float = 1.0) -> KeptForecast:
    """Made at 1000: 10 % by 1050, 50 % by 1100, 90 % by 1400."""
    high_s = stretched_s(400.0, 100.0, spread)
    return KeptForecast(
        BatchId(batch), 0.5, Instant(1000.0), Instant(1050.0), Instant(1100.0), Instant(1000.0 + high_s), spread
    )


def a_score(ended_at: float, batch: int = 1, spread: float = 1.0) -> Score:
    return score(a_kept(batch, spread), submitted_at=Instant(0.0), ended_at=Instant(ended_at), delay_bound_s=BOUND_S)


def scores(ends: list[float], spread: float = 1.0) -> list[Score]:
    return [a_score(ended_at, number, spread) for number, ended_at in enumerate(ends)]


def test_a_score_says_below_which_quantiles_the_end_lay() -> None:
    one = a_score(1080.0)

    assert (one.below_q10, one.below_q50, one.below_q90) == (False, True, True)


def test_errors_are_of_the_makespan_and_of_what_was_left() -> None:
    one = a_score(1250.0)

    assert one.error_fraction == pytest.approx(-150.0 / 1250.0)
    assert one.remaining_error_fraction == pytest.approx(-150.0 / 250.0)


def test_a_forecast_made_after_the_end_cannot_be_scored() -> None:
    with pytest.raises(ValueError, match="batch 1 ended at 900"):
        a_score(900.0)


def test_the_needed_spread_would_have_put_q90_on_the_end() -> None:
    one = a_score(1900.0)

    assert stretched_s(400.0, 100.0, one.needed_spread) == pytest.approx(900.0)


def test_accuracy_of_nothing_is_nothing() -> None:
    assert accuracy([]) is None


def test_accuracy_gives_coverage_and_median_errors() -> None:
    found = accuracy(scores([1040.0, 1090.0, 1200.0, 1500.0]))

    assert found is not None
    assert (found.batches, found.coverage_q10, found.coverage_q50, found.coverage_q90) == (4, 0.25, 0.5, 0.75)
    assert found.median_error_fraction == pytest.approx((60 / 1040 + 100 / 1200) / 2)


def test_spread_waits_for_thirty_batches() -> None:
    assert adapted_spread(1.0, scores([2000.0] * 29))[0] == 1.0


def test_spread_is_kept_while_coverage_is_near_nine_tenths() -> None:
    spread, because = adapted_spread(1.0, scores([1200.0] * 27 + [2000.0] * 5))

    assert (spread, because) == (1.0, "84% of 32 batches' forecasts lay below q90: kept")


def test_spread_grows_until_nine_in_ten_would_have_been_covered() -> None:
    ends = [1200.0] * 20 + [1900.0] * 20
    spread, because = adapted_spread(1.0, scores(ends))

    assert because.startswith("50% of 40 batches' forecasts lay below q90: from 1.00 to")
    assert sum(1000.0 + stretched_s(400.0, 100.0, spread) >= ended_at - 1e-6 for ended_at in ends) >= 36


def test_spread_shrinks_when_all_is_covered_by_far() -> None:
    spread, _ = adapted_spread(1.0, scores([1200.0] * 60))

    assert spread == pytest.approx(0.5)


def test_forecasts_made_at_another_spread_ask_for_the_same_one() -> None:
    narrow, wide = adapted_spread(1.0, scores([1900.0] * 40)), adapted_spread(1.4, scores([1900.0] * 40, spread=1.4))

    assert narrow[0] == pytest.approx(wide[0])


def test_only_the_batches_that_ended_last_count() -> None:
    old = scores([1900.0] * 100)
    new = [a_score(2000.0 - number / 100, 1000 + number) for number in range(100)]

    assert "100 batches" in adapted_spread(1.0, [*old, *new])[1]
