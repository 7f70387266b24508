from __future__ import annotations

import numpy as np
import pytest

from simulator.laws import HyperExponential, Law, LogNormal, Weibull

LAWS: list[Law] = [Weibull(0.8, 3600.0), LogNormal(3600.0, 0.8), HyperExponential((0.7, 0.3), (600.0, 36000.0))]


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_what_is_drawn_has_the_mean(law: Law) -> None:
    drawn = law.draw(np.random.default_rng(1), 200_000)

    assert drawn.min() >= 0.0
    assert drawn.mean() == pytest.approx(law.mean_s, rel=0.02)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_a_length_biased_draw_has_the_mean_of_squares_over_the_mean(law: Law) -> None:
    rng = np.random.default_rng(2)
    plain = law.draw(rng, 400_000)
    biased = np.array([law.length_biased_s(rng) for _ in range(20_000)])

    assert biased.mean() == pytest.approx((plain**2).mean() / plain.mean(), rel=0.06)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_a_scaled_law_has_a_scaled_mean(law: Law) -> None:
    assert law.scaled(3.0).mean_s == pytest.approx(3.0 * law.mean_s)
