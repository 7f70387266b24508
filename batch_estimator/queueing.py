"""How much of the app's work is computed at once, and when a waiting batch's turn comes. Pure. docs/decisions/0061.

A batch of which nothing was sent says nothing of its own rate. Its app's record does: the most instances in progress
at once, over what an instance takes, is the rate at which a full queue is worked off (Little's law).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from batch_estimator.snapshot import Floats, Queue, Snapshot, Standing

RECENT_S = 14 * 86400.0  # the most in progress at once is looked for within this
POINTS = 57  # at each of so many instants, every 6 h
USUAL_BUSY = 0.5  # of the available processors work for the project
LEAST_SENT = 10.0
FILL_S = 6 * 3600.0  # within this most hosts call: free capacity is filled
USUAL_BOUNDS = 4.0  # delay bounds in which the work of an unknown app is sent
UNKNOWN_LOG_SD = 1.0  # of a rate that only follows from the number of processors


@dataclass(frozen=True, slots=True)
class Capacity:
    """`rate_per_s` is that of a full queue, known to `log_sd`; `room` more instances are sent within FILL_S."""

    rate_per_s: float
    room: float
    log_sd: float


def is_waiting(snapshot: Snapshot) -> bool:
    """Nothing of the batch was ever sent, or nothing is while a limit holds it."""
    return snapshot.queue.held or not bool(np.any(snapshot.instances.standing != Standing.UNSENT))


def usual_rate_per_s(snapshot: Snapshot, turnaround_s: float) -> float:
    """Half of the available processors, each over a job's computing time; over `turnaround_s` where that is unknown."""
    processors, flop_per_s = snapshot.active_processors, snapshot.median_flop_per_s
    if not np.isfinite(processors):
        processors = float(snapshot.active_hosts)
    flop = float(np.mean(snapshot.jobs.fpops_flop)) if len(snapshot.jobs.fpops_flop) else 0.0
    known = np.isfinite(snapshot.active_processors) and flop > 0.0 and np.isfinite(flop_per_s) and flop_per_s > 0.0
    each_s = min(flop / flop_per_s, turnaround_s) if known else turnaround_s
    return max(USUAL_BUSY * processors / max(each_s, 1.0), 1.0 / snapshot.delay_bound_s)


def capacity_of(snapshot: Snapshot, turnaround_s: float, lasts_s: float, *, queued: float = 0.0) -> Capacity:
    """Of the batch's app; `lasts_s` is how long an instance is in progress on average, lost ones included.

    Fewer than ten known instances: the usual rate, or what sends the `queued` instances within 4 delay bounds.
    """
    sent, own = snapshot.sent, snapshot.instances
    was_sent = own.standing != Standing.UNSENT
    stands_for = snapshot.sent_weight if np.isfinite(snapshot.sent_weight) else 1.0
    sent_at = np.concatenate([sent.sent_at, own.sent_at[was_sent]])
    ended_at = np.concatenate([sent.reported_at, own.reported_at[was_sent]])
    weight = np.concatenate([np.full(len(sent.sent_at), stands_for), np.ones(int(was_sent.sum()))])
    at_once = in_progress(sent_at, ended_at, weight, now=snapshot.now)
    usual = usual_rate_per_s(snapshot, turnaround_s)
    if float(np.sum(weight)) < LEAST_SENT or at_once.max() <= 0.0:
        return Capacity(max(usual, queued / (USUAL_BOUNDS * snapshot.delay_bound_s)), 0.0, UNKNOWN_LOG_SD)
    most = float(at_once.max())
    rows = float(np.sum(sent_at > snapshot.now - RECENT_S))
    return Capacity(most / lasts_s, max(0.0, most - float(at_once[-1])), float(np.sqrt(0.16 + 1.0 / (rows + 1.0))))


def in_progress(sent_at: Floats, ended_at: Floats, weight: Floats, *, now: float) -> Floats:
    """How many instances were in progress at 57 instants of the last 14 days, `now` last; NaN: not ended.

    >>> found = in_progress(np.array([-7200.0, -100.0]), np.array([-60.0, np.nan]), np.array([3.0, 1.0]), now=0.0)
    >>> float(found.max()), float(found[-1])
    (1.0, 1.0)
    """
    at = now - np.linspace(RECENT_S, 0.0, POINTS)
    ends = np.where(np.isnan(ended_at), np.inf, ended_at)
    begun = _weight_by(sent_at, weight, at)
    return begun - _weight_by(ends, weight, at)


def _weight_by(instants: Floats, weight: Floats, at: Floats) -> Floats:
    """The weight of the instants at or before each of `at`."""
    order = np.argsort(instants, kind="stable")
    total = np.concatenate([[0.0], np.cumsum(weight[order])])
    found: Floats = total[np.searchsorted(instants[order], at, side="right")]
    return found


def turn_s(queue: Queue, *, app: Capacity, usual_per_s: float) -> float:
    """Seconds until a waiting batch is sent: (ahead - room) / app's rate + ahead of other apps / usual rate.

    >>> turn_s(Queue(ahead=80, ahead_of_others=50), app=Capacity(0.02, 20.0, 0.3), usual_per_s=0.01)
    8000.0
    """
    return max(0.0, queue.ahead - app.room) / app.rate_per_s + queue.ahead_of_others / usual_per_s
