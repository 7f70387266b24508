"""How long are the instances that are still to be sent given until their time-out? Pure.

As long as this batch's were lately: the rule of due dates is seen in what it did. The delay bound is only the most it
gives, and for a batch that is to be done as fast as possible many times too much. Never C(B) itself: a forecast made
of due dates that were made of the forecast runs away (docs/decisions/0034).
"""

from __future__ import annotations

import numpy as np

from batch_estimator.sending import URGENT_AFTER_S
from batch_estimator.snapshot import Floats, Snapshot, Standing

LEAST_GIVEN = 5
LATELY = 50  # instances that were sent last


def bound_of(snapshot: Snapshot) -> float:
    """Seconds from a sending to the time-out: the median of the batch's retries, else of its instances sent last.

    Below 5 of either it is what an instance is given at most, D and its grace.
    """
    rows = snapshot.instances
    given = rows.timeout_at - rows.sent_at
    sent = (rows.standing != Standing.UNSENT) & np.isfinite(given) & (given > 0.0)
    urgent = rows.created_at > snapshot.submitted_at + URGENT_AFTER_S
    retries = given[sent & urgent]
    if len(retries) >= LEAST_GIVEN:
        return float(np.median(retries))
    lately = sent_last(given[sent], rows.sent_at[sent])
    if len(lately) < LEAST_GIVEN:
        return float(snapshot.delay_bound_s)
    return min(float(np.median(lately)), float(snapshot.delay_bound_s))


def sent_last(given_s: Floats, sent_at: Floats) -> Floats:
    """The bounds of the 50 that were sent last, and of all that were sent in the same moment as the first of them.

    >>> float(sent_last(np.arange(60.0), np.arange(60.0)).min())
    10.0
    """
    if len(given_s) <= LATELY:
        return given_s
    last: Floats = given_s[sent_at >= np.partition(sent_at, -LATELY)[-LATELY]]
    return last
