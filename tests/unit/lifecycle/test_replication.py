"""Which hosts' results are checked by copies."""

from __future__ import annotations

import random

import pytest

from lifecycle.replication import copies_for


@pytest.mark.parametrize("adaptive_copies", [0, 1])
def test_an_app_without_adaptive_replication_checks_nobody(adaptive_copies: int) -> None:
    assert copies_for(0, adaptive_copies, rng=random.Random(1)) == 0


@pytest.mark.parametrize("consecutive_valid", [0, 1, 10])
def test_a_host_without_a_record_is_always_checked(consecutive_valid: int) -> None:
    rng = random.Random(1)
    assert {copies_for(consecutive_valid, 3, rng=rng) for _ in range(200)} == {3}


@pytest.mark.parametrize("consecutive_valid", [11, 40])
def test_a_trusted_host_is_checked_once_in_as_many_jobs_as_it_got_right(consecutive_valid: int) -> None:
    rng = random.Random(1)
    checked = sum(copies_for(consecutive_valid, 2, rng=rng) > 0 for _ in range(20_000))
    assert checked / 20_000 == pytest.approx(1 / consecutive_valid, rel=0.15)


def test_the_number_of_valid_results_that_earn_trust_can_be_changed() -> None:
    rng = random.Random(1)
    drawn = {copies_for(5, 2, rng=rng, consecutive_valid_infinite=4) for _ in range(200)}
    assert drawn == {0, 2}


def test_the_same_seed_draws_the_same_copies() -> None:
    one, other = random.Random(9), random.Random(9)
    assert [copies_for(11, 2, rng=one) for _ in range(50)] == [copies_for(11, 2, rng=other) for _ in range(50)]
