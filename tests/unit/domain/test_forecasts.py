"""The risk of a deadline, from the quantiles of a forecast."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.forecasts import Method, risk_of
from domain.units import Instant, later
from tests.builders import NOW
from tests.unit.administration.forecasts.test_words import RECORD

Q10_S, Q50_S, Q90_S = (at - NOW for at in (RECORD.q10_at, RECORD.q50_at, RECORD.q90_at))


@pytest.mark.parametrize(
    ("deadline_s", "probability"),
    [(Q10_S, 0.9), (Q50_S, 0.5), ((Q50_S + Q90_S) / 2, 0.3), (Q90_S - 0.001, 0.1)],
)
def test_probability_lies_between_the_quantiles(deadline_s: float, probability: float) -> None:
    risk = risk_of(later(NOW, deadline_s), RECORD, NOW)

    assert risk is not None
    assert (risk.probability, risk.missed) == (probability, False)
    assert risk.late_by_s == pytest.approx(Q90_S - deadline_s, abs=1e-6)


def test_deadline_long_before_q10_is_certain_to_be_missed() -> None:
    risk = risk_of(later(NOW, 600.0), RECORD, NOW)

    assert risk is not None
    assert risk.probability > 0.999 and not risk.missed


def test_risk_rises_as_the_deadline_approaches() -> None:
    """A batch that is still active shortly before its deadline misses it."""
    deadline_at = later(NOW, 0.9 * Q10_S)
    early, late = (risk_of(deadline_at, RECORD, later(NOW, part * Q10_S)) for part in (0.0, 0.8))

    assert early is not None and late is not None
    assert 0.9 < early.probability < late.probability < 1.0


def test_deadline_after_q90_is_no_risk() -> None:
    assert risk_of(RECORD.q90_at, RECORD, NOW) is None
    assert risk_of(None, RECORD, NOW) is None


@pytest.mark.parametrize("method", [Method.APRIORI, Method.FALLBACK, None])
def test_no_risk_without_evidence_until_it_is_missed(method: Method | None) -> None:
    last = None if method is None else replace(RECORD, method=method)
    deadline_at = later(NOW, 60.0)

    assert risk_of(deadline_at, last, NOW) is None
    missed = risk_of(deadline_at, last, later(NOW, 900.0))
    assert missed is not None and (missed.late_by_s, missed.probability, missed.missed) == (840.0, 1.0, True)


@given(st.floats(1.0, Q90_S), st.floats(1.0, Q90_S))
def test_earlier_deadlines_are_likelier_to_be_missed(one_s: float, other_s: float) -> None:
    def probability(deadline_s: float) -> float:
        risk = risk_of(Instant(NOW + deadline_s), RECORD, NOW)
        return 0.0 if risk is None else risk.probability

    sooner, later_ = sorted((one_s, other_s))
    assert probability(sooner) >= probability(later_)
