"""An instance that never came back counts as slow, by how long the host was waited for."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from domain.units import Instant, Seconds
from lifecycle.censoring import censored_sample


def test_an_instance_given_up_at_its_due_date_counts_as_all_that_it_was_given() -> None:
    hour = Seconds(3600.0)
    sample = censored_sample(
        sent_at=Instant(0.0), due_at=Instant(20 * hour), now=Instant(19 * hour), est_runtime_s=hour
    )
    assert sample == math.log(20.0)


@given(
    given_s=st.floats(0.0, 1e7),
    silent_s=st.floats(0.0, 1e7),
    est_runtime_s=st.floats(0.0, 1e7),
)
def test_a_time_out_never_counts_less_than_what_the_host_was_given(
    given_s: float, silent_s: float, est_runtime_s: float
) -> None:
    sample = censored_sample(
        sent_at=Instant(0.0),
        due_at=Instant(given_s),
        now=Instant(silent_s),
        est_runtime_s=Seconds(est_runtime_s),
    )
    ratio = math.exp(sample)
    runtime_s = max(1.0, est_runtime_s)
    assert ratio >= 10.0 * (1 - 1e-12)
    assert ratio * runtime_s >= max(given_s, silent_s) * (1 - 1e-9)
    assert ratio <= max(10.0, max(given_s, silent_s) / runtime_s) * (1 + 1e-9)
