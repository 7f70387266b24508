"""Estimates how fast a batch's unsent instances are sent, and when sending starts. Pure.

The rate looks back as far as the forecast looks ahead. A batch without sent instances has no rate of its own, so its
app's history is used: the peak number of instances in progress divided by their turnaround is the rate at which a full
queue is served (Little's law; docs/decisions/0061).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from batch_estimator.peak import SampledInstances, in_progress
from batch_estimator.snapshot import AppQueue, BatchSnapshot, Bools, Floats, InstanceStanding, Ints
from domain.forecasting import MOVED_S, NEVER_MOVED
from domain.units import Instant

RECENT_S = 14 * 86400.0  # window for the peak number of instances in progress
USUAL_BUSY = 0.5  # fraction of the available processors assumed to work for the project
LEAST_SENT = 10.0
FILL_S = 6 * 3600.0  # most hosts contact the server within this time and fill free capacity
USUAL_BOUNDS = 4.0  # the work of an unknown app is assumed to be sent within this many delay bounds
UNKNOWN_LOG_SD = 1.0  # of a rate estimated only from the number of processors


@dataclass(frozen=True, slots=True)
class Capacity:
    """The rate at which a full queue is sent, with the sd of its ln; `room` more instances are sent within FILL_S."""

    rate_per_s: float
    room: float
    log_sd: float


def is_waiting(snapshot: BatchSnapshot) -> bool:
    """Return True if a limit blocks the batch, or nothing of it was sent yet: since its move, no first instance."""
    rows = snapshot.instances
    sent = rows.standing != InstanceStanding.UNSENT
    if snapshot.moved_at > NEVER_MOVED:
        sent &= ~is_urgent(snapshot) & (rows.sent_at >= snapshot.moved_at)
    return snapshot.queue.held or not bool(np.any(sent))


def is_urgent(snapshot: BatchSnapshot) -> Bools:
    """Return which instances are retries or copies. They go before the other instances of their batch."""
    urgent: Bools = snapshot.instances.created_at > snapshot.submitted_at + URGENT_AFTER_S
    return urgent


def usual_flop_per_s(snapshot: BatchSnapshot) -> float:
    """Return the speed of half the available processors; NaN if unknown."""
    return USUAL_BUSY * snapshot.active_processors * snapshot.median_flop_per_s


def usual_rate_per_s(snapshot: BatchSnapshot, turnaround_s: float) -> float:
    """Return the rate if half the available processors work, each job for its computing time (or `turnaround_s`)."""
    processors, flop_per_s = snapshot.active_processors, snapshot.median_flop_per_s
    if not np.isfinite(processors):
        processors = float(snapshot.active_hosts)
    flop = float(np.mean(snapshot.jobs.fpops_flop)) if len(snapshot.jobs.fpops_flop) else 0.0
    known = np.isfinite(snapshot.active_processors) and flop > 0.0 and np.isfinite(flop_per_s) and flop_per_s > 0.0
    each_s = min(flop / flop_per_s, turnaround_s) if known else turnaround_s
    return max(USUAL_BUSY * processors / max(each_s, 1.0), 1.0 / snapshot.delay_bound_s)


def capacity_of(snapshot: BatchSnapshot, turnaround_s: float, lasts_s: float, *, queued: float = 0.0) -> Capacity:
    """Return the app's capacity. `lasts_s` is the mean time an instance is in progress, including lost instances.

    Hosts take longer than `lasts_s` to fill. With fewer than ten instances sent before that: the usual rate, or the
    rate that sends `queued` instances in 4 delay bounds.
    """
    own, weight = snapshot.instances, snapshot.sent_weight if np.isfinite(snapshot.sent_weight) else 1.0
    sample = SampledInstances(snapshot.sent.sent_at, snapshot.sent.reported_at, snapshot.sent.page, weight)
    since, tried_at = snapshot.now - RECENT_S, snapshot.now - lasts_s
    found = in_progress(own.sent_at, own.reported_at, sample, since=since, now=snapshot.now, lasts_s=lasts_s)
    tried = np.sum(own.sent_at <= tried_at) + weight * np.sum(sample.sent_at <= tried_at)
    if tried < LEAST_SENT or found.most <= 0.0:
        usual = max(usual_rate_per_s(snapshot, turnaround_s), found.most / lasts_s)
        return Capacity(max(usual, queued / (USUAL_BOUNDS * snapshot.delay_bound_s)), 0.0, UNKNOWN_LOG_SD)
    rows = float(np.sum(own.sent_at > since) + np.sum(sample.sent_at > since))
    room = max(0.0, found.most - found.now)
    return Capacity(found.most / lasts_s, room, float(np.sqrt(0.16 + 1.0 / (rows + 1.0))))


def turn_s(queue: AppQueue, *, app: Capacity, usual_per_s: float, flop_per_s: float) -> float:
    """Return the time until a waiting batch is sent: (ahead - room) / app's rate + the time for the work of other apps,
    at most until its deadline is so near that it goes first.

    The work of other apps takes as long as its jobs are large, or as at the usual rate of this batch if their size or
    the speed is unknown.

    >>> from dataclasses import replace
    >>> app, queue = Capacity(0.02, 20.0, 0.3), AppQueue(ahead=80, ahead_of_others=50)
    >>> turn_s(queue, app=app, usual_per_s=0.01, flop_per_s=1e9)
    8000.0
    >>> turn_s(replace(queue, flop_of_others=9e12), app=app, usual_per_s=0.01, flop_per_s=1e9)
    12000.0
    """
    known = queue.flop_of_others > 0.0 and flop_per_s > 0.0
    others_s = queue.flop_of_others / flop_per_s if known else queue.ahead_of_others / usual_per_s
    return min(max(0.0, queue.ahead - app.room) / app.rate_per_s + others_s, queue.first_s)


LEAST_WINDOW_S = 6 * 3600.0
WARM_UP_FRACTION, WARM_UP_S = 0.25, 6 * 3600.0  # the first hours fill the hosts' queues and do not show the steady rate
BURST_S = 600.0  # the shortest time that sending is assumed to have taken so far
SUB_WINDOWS = 8
MOST_BOUNDS = 40.0  # in delay bounds; no forecast if sending takes longer
ROUNDS = 4
USUAL_WEIGHT = 3.0  # number of dispatches that the usual rate counts as
LEAST_RETRIES = 3
LEAST_HOSTS = 10  # show how often hosts get work
MISSED_HOSTS = 30.0  # a wait in which so many hosts got nothing is not chance
RETURN_S = 3600.0  # after a pause, hosts come back within about this time
USUAL_RETRY_WAIT_S = 1800.0
RATE_SDS = 3.0**0.5  # a forecast averages over the rate and this many sd above and below it
URGENT_AFTER_S = 60.0  # an instance created this long after its batch is a retry or a tail copy


@dataclass(frozen=True, slots=True)
class SendingRate:
    """First instances are sent from `starts_s` on: `room` of them within FILL_S, the rest at `rate_per_s`.

    `log_sd` is the standard deviation of ln of both times. Retries and copies wait `retry_wait_s` from now.
    `assumed`: the rate of a waiting batch, which no dispatch shows yet.
    """

    rate_per_s: float
    log_sd: float
    retry_wait_s: float
    starts_s: float = 0.0
    room: float = 0.0
    assumed: bool = False

    def after_s(self, position: Floats) -> Floats:
        """Return the seconds until the unsent instance at each position is sent; position 0 has already been sent.

        >>> SendingRate(0.5, 0.3, 600.0, starts_s=100.0, room=10.0).after_s(np.array([0.0, 5.0, 20.0])).tolist()
        [0.0, 110.0, 120.0]
        """
        fill_s = min(FILL_S, self.room / self.rate_per_s)
        filled_s = fill_s * np.minimum(position / max(self.room, 1.0), 1.0)
        later_s = np.maximum(0.0, position - self.room) / self.rate_per_s
        after: Floats = np.where(position > 0.0, self.starts_s + np.maximum(filled_s, later_s), 0.0)
        return after


def sending_of(snapshot: BatchSnapshot, to_send: float, turnaround_s: float, lasts_s: float) -> SendingRate:
    """Return the sending rate for `to_send` unsent first instances of jobs that take `turnaround_s`.

    A batch that was being sent and is moved ahead of other work is sent at least as fast as if it had not been moved,
    because no more work is ahead of it than before. Moved behind other work, it is sent at most as fast.
    """
    sending = _as_moved(snapshot, to_send, turnaround_s, lasts_s)
    sent_at = snapshot.instances.sent_at[~is_urgent(snapshot)]
    if snapshot.moved_ahead is None or snapshot.queue.held or not np.any(sent_at < snapshot.moved_at):
        return sending
    unmoved = replace(snapshot, moved_at=NEVER_MOVED, queue=AppQueue(first_s=snapshot.queue.first_s))
    before = _as_moved(unmoved, to_send, turnaround_s, lasts_s)
    return _limited(sending, before, max(to_send, 1.0), ahead=snapshot.moved_ahead)


def _limited(sending: SendingRate, before: SendingRate, to_send: float, *, ahead: bool) -> SendingRate:
    """Return `sending`, but with an end not later than that of `before` (`ahead`), or not earlier.

    This also holds for the rates RATE_SDS above and below the mean: the sd is that of `sending` as far as possible. A
    batch that was being sent and is moved ahead does not wait again.

    >>> slow, fast = SendingRate(0.01, 0.3, 600.0), SendingRate(0.02, 1.0, 60.0)
    >>> ahead, behind = (_limited(slow, fast, 100.0, ahead=one) for one in (True, False))
    >>> ahead.rate_per_s, ahead.log_sd, behind.rate_per_s, round(behind.log_sd, 3)
    (0.02, 1.0, 0.01, 0.6)
    """
    limit = min if ahead else max
    sending_s, before_s = (float(one.after_s(np.array([to_send]))[0]) for one in (sending, before))
    last_s, wait_s = limit(sending_s, before_s), limit(sending.retry_wait_s, before.retry_wait_s)
    within = abs(float(np.log(last_s / before_s))) / RATE_SDS
    log_sd = min(max(sending.log_sd, before.log_sd - within), before.log_sd + within)
    if last_s == before_s:
        return replace(before, retry_wait_s=wait_s)
    if ahead:
        sending = replace(sending, rate_per_s=to_send / last_s, starts_s=0.0, room=0.0)
    return replace(sending, log_sd=log_sd, retry_wait_s=wait_s)


def _as_moved(snapshot: BatchSnapshot, to_send: float, turnaround_s: float, lasts_s: float) -> SendingRate:
    """Return the sending rate by the dispatches since the last move alone.

    Before the first dispatch, the app's capacity determines the rate; afterwards, the batch's own dispatches do, with
    the capacity counted as three dispatches. A move, or the end of a wait for the batch's turn, starts both again; a
    batch that was being sent before it is then assumed to be sent at its rate before, not at the app's capacity.
    """
    rows, urgent = snapshot.instances, is_urgent(snapshot)
    sent = rows.standing != InstanceStanding.UNSENT
    wait = (rows.sent_at - rows.created_at)[urgent & sent]
    wait_s = float(np.mean(np.maximum(wait, 0.0))) if len(wait) >= LEAST_RETRIES else USUAL_RETRY_WAIT_S
    waiting_s = (snapshot.now - np.maximum(rows.created_at, snapshot.moved_at))[urgent & ~sent]
    if len(waiting_s):  # work of other batches may come first: they wait about as long again as they have waited
        wait_s = max(wait_s, min(float(np.mean(waiting_s)), snapshot.queue.first_s))
    wait_s = min(wait_s, float(snapshot.delay_bound_s))
    queued = to_send + snapshot.queue.ahead
    capacity = capacity_of(snapshot, turnaround_s, lasts_s, queued=queued)
    dispatched_at = rows.sent_at[sent & ~urgent]
    ages = np.maximum(snapshot.now - dispatched_at, 0.0)
    waited_s = float(dispatched_at.min()) - snapshot.submitted_at if len(dispatched_at) else 0.0
    placed_at = _placed_at(snapshot, rows.host_id[sent & ~urgent], dispatched_at)
    moved_s = snapshot.now - placed_at
    if placed_at > snapshot.moved_at:  # a first dispatch, possibly of this instant, and by another clock
        moved_s = max(moved_s, MOVED_S)
    since_move = ages[ages <= moved_s]
    elapsed_s = snapshot.now - snapshot.submitted_at - (waited_s if waited_s > LEAST_WINDOW_S else 0.0)
    elapsed_s = max(elapsed_s, BURST_S)
    rate, log_sd = rate_of(ages, elapsed_s, to_send, capacity.rate_per_s)
    least_per_s = to_send / (MOST_BOUNDS * snapshot.delay_bound_s)
    usual_per_s, flop_per_s = usual_rate_per_s(snapshot, turnaround_s), usual_flop_per_s(snapshot)
    starts_s = turn_s(snapshot.queue, app=capacity, usual_per_s=usual_per_s, flop_per_s=flop_per_s)
    room = max(0.0, capacity.room - snapshot.queue.ahead)
    # its turn or pause past, it is sent at least as fast as before
    waiting_per_s = max(capacity.rate_per_s, least_per_s, rate if len(ages) else 0.0)
    waiting = SendingRate(waiting_per_s, capacity.log_sd, wait_s, starts_s, room)
    before = ages[ages > moved_s]
    last_s = float(before.min(initial=np.inf))
    lasted_s = float(before.max(initial=0.0)) - last_s  # without the wait before its first dispatch
    if not snapshot.queue.held and lasted_s >= BURST_S and np.sum(before <= last_s + RETURN_S) >= LEAST_SENT:
        # it was being sent: as before the move, other work, gates and limits keep it from the app's peak
        per_s, sd = rate_of(before - last_s, lasted_s, to_send, capacity.rate_per_s)
        waiting = SendingRate(max(per_s, least_per_s), sd, wait_s, starts_s)
    if is_waiting(snapshot):
        return replace(waiting, assumed=True)
    if moved_s < np.inf and len(since_move):
        rate, log_sd = rate_of(since_move, moved_s, to_send, capacity.rate_per_s, is_moved=True)
        returning = _while_hosts_return(float(len(since_move)), moved_s, to_send, waiting)
        if returning > rate:
            rate, log_sd = returning, waiting.log_sd
    return SendingRate(max(rate, least_per_s), log_sd, wait_s)


def _while_hosts_return(sent: float, moved_s: float, to_send: float, waiting: SendingRate) -> float:
    """Return the rate if hosts may have been away: that of a waiting batch for RETURN_S^2 / moved_s, then `sent` and
    the next one, which may be about to be sent.
    """
    if to_send <= 0.0:
        return 0.0
    away_s = RETURN_S**2 / max(moved_s, 1.0)
    usual_per_s = to_send / float(waiting.after_s(np.array([to_send]))[0])
    return (sent + 1.0 + usual_per_s * away_s) / (moved_s + away_s)


def _placed_at(snapshot: BatchSnapshot, host_id: Ints, sent_at: Floats) -> Instant:
    """Return since when the batch has had its place: its last move, or its first dispatch if it waited for it. The
    arguments are those of its first instances.

    It waited if the first dispatch came more than `BURST_S` after submission, and if 30 hosts (`MISSED_HOSTS`) would
    have got work until then at the rate at which the first ten did. Later dispatches do not change this.
    """
    order = np.argsort(sent_at, kind="stable")
    began = np.sort(sent_at[order][np.unique(host_id[order], return_index=True)[1]])[:LEAST_HOSTS]
    waited_s = float(began.min(initial=np.inf)) - snapshot.submitted_at
    if len(began) < LEAST_HOSTS or not BURST_S < waited_s <= LEAST_WINDOW_S:
        return snapshot.moved_at
    missed = LEAST_HOSTS * waited_s / max(float(began[-1] - began[0]), 1.0)
    return max(snapshot.moved_at, Instant(float(began[0]))) if missed > MISSED_HOSTS else snapshot.moved_at


def rate_of(
    ages_s: Floats, elapsed_s: float, to_send: float, usual_per_s: float, *, is_moved: bool = False
) -> tuple[float, float]:
    """Return the dispatch rate per second, and the standard deviation of its logarithm.

    The window w is as long as the remaining sending time, to_send / rate: at least 6 h, at most the time since
    submission minus a warm-up of min(25 %, 6 h). With k dispatches in the window, rate = (k + usual v) / (w + v), where
    v is the time for 3 dispatches at the usual rate, at most max(w / 4, 90 min); and sd^2 = 0.3^2 + 1/(k + 1) + min(1,
    overdispersion) / 4, with overdispersion measured over 8 parts of the window. `is_moved`: `elapsed_s` began with a
    move while the hosts were busy, so there is no warm-up, and v is at most w / 4.

    One instance per hour for two days with 24 left: the last day counts.

    >>> rate, sd = rate_of(np.arange(0.5, 48.0) * 3600.0, 48 * 3600.0, 24.0, 1 / 3600.0)
    >>> round(rate * 3600.0, 2), round(sd, 2)
    (1.0, 0.36)
    """
    longest = elapsed_s if is_moved else elapsed_s - min(WARM_UP_FRACTION * elapsed_s, WARM_UP_S)
    least_s = 0.0 if is_moved else LEAST_WINDOW_S
    window, rate, k = min(longest, LEAST_WINDOW_S), 0.0, 0.0
    for _ in range(ROUNDS):
        k = float(np.sum(ages_s < window))
        rate = _with_usual(k, window, usual_per_s, least_s)
        window = min(longest, max(LEAST_WINDOW_S, to_send / rate))
    k = float(np.sum(ages_s < window))
    rate = _with_usual(k, window, usual_per_s, least_s)
    counts, _ = np.histogram(ages_s, bins=SUB_WINDOWS, range=(0.0, window))
    mean = float(np.mean(counts))
    beyond = max(0.0, (float(np.var(counts)) - mean) / mean**2) if mean > 0 else 1.0
    return rate, float(np.sqrt(0.09 + 1.0 / (k + 1.0) + min(1.0, beyond) / 4.0))


def _with_usual(k: float, window_s: float, usual_per_s: float, least_s: float) -> float:
    usual_s = min(USUAL_WEIGHT / usual_per_s, max(window_s, least_s) / 4.0)
    return (k + usual_per_s * usual_s) / (window_s + usual_s)
