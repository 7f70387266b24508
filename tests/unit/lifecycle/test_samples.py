"""What turnarounds are measured by, and what is known of one that has no end."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from domain.units import Instant, Seconds
from lifecycle.samples import LEAST_S, censored_sample, returned_sample, yardstick_s


def test_a_relaxed_instance_is_measured_by_its_batch_and_a_tight_one_by_its_own_runtime() -> None:
    runtime_s, usual_s = Seconds(3600.0), Seconds(7200.0)

    assert yardstick_s(tight=False, est_runtime_s=runtime_s, median_turnaround_s=usual_s) == usual_s
    assert yardstick_s(tight=True, est_runtime_s=runtime_s, median_turnaround_s=usual_s) == runtime_s


def test_before_anything_has_come_back_the_runtime_stands_in() -> None:
    assert yardstick_s(tight=False, est_runtime_s=Seconds(60.0), median_turnaround_s=None) == 60.0


def test_a_turnaround_of_nothing_still_has_a_logarithm() -> None:
    assert returned_sample(0.0, yardstick_s=Seconds(0.0)) == 0.0
    assert returned_sample(0.0, yardstick_s=Seconds(100.0)) == math.log(LEAST_S / 100.0)


def test_an_instance_given_up_at_its_due_date_counts_as_all_that_it_was_given() -> None:
    hour = Seconds(3600.0)
    sample = censored_sample(sent_at=Instant(0.0), due_at=Instant(20 * hour), now=Instant(19 * hour), yardstick_s=hour)
    assert sample == math.log(20.0)


@given(
    given_s=st.floats(0.0, 1e7),
    silent_s=st.floats(0.0, 1e7),
    usual_s=st.floats(0.0, 1e7),
)
def test_a_time_out_never_counts_less_than_what_the_host_was_given(
    given_s: float, silent_s: float, usual_s: float
) -> None:
    sample = censored_sample(
        sent_at=Instant(0.0),
        due_at=Instant(given_s),
        now=Instant(silent_s),
        yardstick_s=Seconds(usual_s),
    )
    ratio = math.exp(sample)
    runtime_s = max(1.0, usual_s)
    assert ratio >= 10.0 * (1 - 1e-12)
    assert ratio * runtime_s >= max(given_s, silent_s) * (1 - 1e-9)
    assert ratio <= max(10.0, max(given_s, silent_s) / runtime_s) * (1 + 1e-9)
