"""How fast are the batch's unsent instances sent? Pure. ESTIMATOR 5.7: look back as far as you look ahead."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from batch_estimator.queueing import FILL_S, capacity_of, is_waiting, turn_s, usual_rate_per_s
from batch_estimator.snapshot import Floats, Snapshot, Standing

LEAST_WINDOW_S = 6 * 3600.0
WARM_UP_FRACTION, WARM_UP_S = 0.25, 6 * 3600.0  # the first hours fill the hosts' buffers: no steady rate
BURST_S = 600.0  # what is sent sooner after submission counts as sent within this
SUB_WINDOWS = 8
MOST_BOUNDS = 40.0  # delay bounds: sending for longer than this is no forecast
ROUNDS = 4
USUAL_WEIGHT = 3.0  # sendings that the usual rate counts as
LEAST_RETRIES = 3
USUAL_RETRY_WAIT_S = 1800.0
URGENT_AFTER_S = 60.0  # an instance created this much after the batch is a retry or a tail copy


@dataclass(frozen=True, slots=True)
class Sending:
    """First instances are sent from `starts_s` on: `room` of them within FILL_S, the others at `rate_per_s`.

    ln of both times is known to `log_sd`. Retries and copies wait `retry_wait_s`.
    """

    rate_per_s: float
    log_sd: float
    retry_wait_s: float
    starts_s: float = 0.0
    room: float = 0.0

    def after_s(self, position: Floats) -> Floats:
        """Seconds until the unsent instance at each position is sent; position 0 is already sent.

        >>> Sending(0.5, 0.3, 600.0, starts_s=100.0, room=10.0).after_s(np.array([0.0, 5.0, 20.0])).tolist()
        [0.0, 110.0, 120.0]
        """
        fill_s = min(FILL_S, self.room / self.rate_per_s)
        filled_s = fill_s * np.minimum(position / max(self.room, 1.0), 1.0)
        later_s = np.maximum(0.0, position - self.room) / self.rate_per_s
        after: Floats = np.where(position > 0.0, self.starts_s + np.maximum(filled_s, later_s), 0.0)
        return after


def sending_of(snapshot: Snapshot, to_send: float, turnaround_s: float, lasts_s: float) -> Sending:
    """With `to_send` first instances still unsent, of jobs that take `turnaround_s`.

    While nothing was sent the app's capacity says when. Then the batch's own sendings do; with few of these the
    capacity counts as three.
    """
    rows = snapshot.instances
    urgent = rows.created_at > snapshot.submitted_at + URGENT_AFTER_S
    sent = rows.standing != Standing.UNSENT
    wait = (rows.sent_at - rows.created_at)[urgent & sent]
    wait_s = float(np.mean(np.maximum(wait, 0.0))) if len(wait) >= LEAST_RETRIES else USUAL_RETRY_WAIT_S
    wait_s = min(wait_s, float(snapshot.delay_bound_s))
    queued = to_send + snapshot.queue.ahead
    capacity = capacity_of(snapshot, turnaround_s, lasts_s, queued=queued)
    if is_waiting(snapshot):
        starts_s = turn_s(snapshot.queue, app=capacity, usual_per_s=usual_rate_per_s(snapshot, turnaround_s))
        room = max(0.0, capacity.room - snapshot.queue.ahead)
        least_per_s = to_send / (MOST_BOUNDS * snapshot.delay_bound_s)
        return Sending(max(capacity.rate_per_s, least_per_s), capacity.log_sd, wait_s, starts_s, room)
    ages = np.maximum(snapshot.now - rows.sent_at[sent & ~urgent], 0.0)
    elapsed_s = max(snapshot.now - _began_at(snapshot, ages), BURST_S)
    rate, log_sd = rate_of(ages, elapsed_s, to_send, capacity.rate_per_s)
    return Sending(max(rate, to_send / (MOST_BOUNDS * snapshot.delay_bound_s)), log_sd, wait_s)


def _began_at(snapshot: Snapshot, ages_s: Floats) -> float:
    """When sending began: at the submission, unless the batch had to wait for its turn.

    A first sending within `LEAST_WINDOW_S` of the submission is no turn that was waited for.
    """
    waited_s = snapshot.now - float(ages_s.max(initial=0.0)) - snapshot.submitted_at
    return snapshot.submitted_at + (waited_s if len(ages_s) and waited_s > LEAST_WINDOW_S else 0.0)


def rate_of(ages_s: Floats, elapsed_s: float, to_send: float, usual_per_s: float) -> tuple[float, float]:
    """Sendings per second, and the standard deviation of its logarithm.

    The window w is as long as the sending that remains, to_send / rate: at least 6 h, at most the time
    since submission less a warm-up of min(25 %, 6 h). With k sendings in it rate = (k + usual v) / (w + v),
    where v, the time the usual rate counts as, is that of 3 sendings, at most max(w / 4, 90 min); and
    sd^2 = 0.3^2 + 1/(k + 1) + min(1, overdispersion) / 4, the latter over 8 parts of the window.

    An instance an hour for two days, 24 to go: the last day counts.

    >>> rate, sd = rate_of(np.arange(0.5, 48.0) * 3600.0, 48 * 3600.0, 24.0, 1 / 3600.0)
    >>> round(rate * 3600.0, 2), round(sd, 2)
    (1.0, 0.36)
    """
    longest = elapsed_s - min(WARM_UP_FRACTION * elapsed_s, WARM_UP_S)
    window, rate, k = min(longest, LEAST_WINDOW_S), 0.0, 0.0
    for _ in range(ROUNDS):
        k = float(np.sum(ages_s < window))
        rate = _with_usual(k, window, usual_per_s)
        window = min(longest, max(LEAST_WINDOW_S, to_send / rate))
    k = float(np.sum(ages_s < window))
    rate = _with_usual(k, window, usual_per_s)
    counts, _ = np.histogram(ages_s, bins=SUB_WINDOWS, range=(0.0, window))
    mean = float(np.mean(counts))
    beyond = max(0.0, (float(np.var(counts)) - mean) / mean**2) if mean > 0 else 1.0
    return rate, float(np.sqrt(0.09 + 1.0 / (k + 1.0) + min(1.0, beyond) / 4.0))


def _with_usual(k: float, window_s: float, usual_per_s: float) -> float:
    usual_s = min(USUAL_WEIGHT / usual_per_s, max(window_s, LEAST_WINDOW_S) / 4.0)
    return (k + usual_per_s * usual_s) / (window_s + usual_s)
