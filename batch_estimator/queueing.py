"""When does the sending of a batch begin that waits for its turn, and how fast will it be? Pure.

That nothing was sent of a batch says nothing of its rate while others come before it or a limit holds it. Then it is
sent at the usual rate, once what is ahead has been.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from batch_estimator.snapshot import Queue, Snapshot, Standing

LATELY_S = 6 * 3600.0  # what was sent within says how fast an app's work is sent
LEAST_SENT = 10.0
USUAL_BUSY = 0.5  # of the active hosts have an instance of the app
WAITING_LOG_SD = 1.16  # of a rate that nothing is known of, as `sending.rate_of` has it without a sending


@dataclass(frozen=True, slots=True)
class Turn:
    """First instances are sent from `starts_s` from now on, at `rate_per_s`."""

    starts_s: float
    rate_per_s: float


def is_waiting(snapshot: Snapshot) -> bool:
    """Nothing of the batch was ever sent, or nothing is while a limit holds it."""
    return snapshot.queue.held or not bool(np.any(snapshot.instances.standing != Standing.UNSENT))


def turn_of(snapshot: Snapshot, turnaround_s: float) -> Turn:
    """Of a batch that is waiting, of jobs that take `turnaround_s`.

    The usual rate is one instance at a time for every second active host; the app's is what was sent of it in the last
    6 h, where that is known and at least ten.
    """
    usual = max(USUAL_BUSY * snapshot.active_hosts / turnaround_s, 1.0 / snapshot.delay_bound_s)
    lately = float(np.sum(snapshot.sent.sent_at > snapshot.now - LATELY_S)) * snapshot.sent_weight
    return turn(snapshot.queue, app_per_s=lately / LATELY_S if lately >= LEAST_SENT else usual, usual_per_s=usual)


def turn(queue: Queue, *, app_per_s: float, usual_per_s: float) -> Turn:
    """start = ahead / app's rate + ahead of other apps / usual rate.

    >>> turn(Queue(ahead=80, ahead_of_others=50), app_per_s=0.02, usual_per_s=0.01)
    Turn(starts_s=9000.0, rate_per_s=0.02)
    """
    return Turn(queue.ahead / app_per_s + queue.ahead_of_others / usual_per_s, app_per_s)
