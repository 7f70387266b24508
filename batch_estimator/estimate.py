"""When will this batch be complete? A snapshot in, a forecast with its reasons out. Pure.

ESTIMATOR section 5, the lognormal model with the retry chain. Every way through (nothing known, a new
app, hosts with a record) is the same calculation with other laws of turnaround.
"""

from __future__ import annotations

import numpy as np

from batch_estimator.bounds import bound_of
from batch_estimator.chain import RetryRules
from batch_estimator.completion import LogServed, Model, Unsure, completion, time_grid
from batch_estimator.explain import OutDoubts, holds_of
from batch_estimator.fit import Fit, fitted
from batch_estimator.forecast import CompletionLaw, Forecast, stretched_s
from batch_estimator.outstanding import answered_by, prospects
from batch_estimator.sending import Sending, sending_of
from batch_estimator.slots import Open, open_slots
from batch_estimator.snapshot import Floats, Snapshot, Tail
from batch_estimator.turnaround import LEAST_COLD_SUCCESSES
from batch_estimator.waiting import Board, board_of
from domain.errors import MusterError
from domain.forecasts import ForecastHold, Method, Terms
from domain.units import Instant, Seconds

SHARES = (0.1, 0.5, 0.9)
BECAUSE = {
    Method.WARM: "from the record of the app's hosts and this batch's replies",
    Method.COLD: "the app is new: from this batch's replies and silences",
    Method.APRIORI: "nothing came back yet: from the size of the jobs and the speed of the hosts",
}


class NoForecastError(MusterError):
    """The model gave no finite answer for a batch; `fallback` stands in, and this is logged."""


def estimate(snapshot: Snapshot, *, spread: float = 1.0) -> Forecast:
    """q10, q50 and q90 of the completion, and what holds it. Raises NoForecastError.

    `spread` stretches the forecast about its median, as the self-check found necessary (1 = as fitted).
    """
    now = snapshot.now
    if not snapshot.jobs.is_open.any():
        return Forecast(now, now, now, now, Method.COMPLETE, "nothing is open")
    fit, open_ = fitted(snapshot), open_slots(snapshot)
    bound_s = bound_of(snapshot)
    sending = sending_of(snapshot, open_.first_unsent, _turnaround_s(fit), fit.fresh.lasts_s(bound_s))
    x = time_grid(snapshot.delay_bound_s, _sending_s(sending, open_))
    board = board_of(snapshot, fit, open_, x)
    rules = RetryRules(bound_s, sending.retry_wait_s, fit.failures.fraction, fit.failures.turnaround_s)
    unsure = Unsure(fit.shift.sd, fit.loss.logit_sd, fit.failures.logit_sd)
    model = Model(fit.fresh, rules, unsure, sending, x, _turnaround_s(fit), snapshot.tail)
    share, parts = completion(board.waiting, model)
    q10_at, q50_at, q90_at = _quantiles(now, CompletionLaw(x, share), spread)
    method = _method(fit)
    return Forecast(
        now,
        q10_at,
        q50_at,
        q90_at,
        method,
        BECAUSE[method],
        _terms(snapshot, fit, open_, sending=sending, board=board, rules=rules),
        tuple(_holds(snapshot, open_, board, parts, int(np.searchsorted(x, q90_at - now)))),
        copied=snapshot.tail is not None and _in_tail(snapshot.tail, open_),
    )


def _in_tail(tail: Tail, open_: Open) -> bool:
    """Whether copies may be made, and all jobs were sent: a job's first instance has the time its batch promises."""
    return open_.first_unsent == 0 and open_.jobs <= tail.open_jobs


def _quantiles(now: Instant, law: CompletionLaw, spread: float) -> tuple[Instant, Instant, Instant]:
    within = [law.within_s(share) for share in SHARES]
    if not np.all(np.isfinite(within)) or not np.all(np.isfinite(law.share)):
        raise NoForecastError(f"no finite quantile: {within}")
    low, median, high = (stretched_s(each, within[1], spread, most_s=float(law.x_s[-1])) for each in within)
    return Instant(now + low), Instant(now + median), Instant(now + high)


def _sending_s(sending: Sending, open_: Open) -> float:
    """Until the last first instance is sent."""
    return float(sending.after_s(np.array([float(open_.first_unsent)]))[0])


def _turnaround_s(fit: Fit) -> float:
    """The median of a first instance, on the hosts that ask."""
    return float(np.exp(fit.fresh.share @ fit.fresh.mu))


def _method(fit: Fit) -> Method:
    if fit.law.warm:
        return Method.WARM
    return Method.COLD if fit.law.n >= LEAST_COLD_SUCCESSES else Method.APRIORI


def _terms(snapshot: Snapshot, fit: Fit, open_: Open, *, sending: Sending, board: Board, rules: RetryRules) -> Terms:
    return Terms(
        jobs_open=open_.jobs,
        jobs_with_success=open_.jobs_with_success,
        sending_s=Seconds(_sending_s(sending, open_)),
        loss_fraction=fit.loss.fraction,
        error_fraction=fit.failures.fraction,
        retries_expected=_retries_expected(board, rules),
        median_turnaround_s=Seconds(_turnaround_s(fit)),
        shift=fit.shift.mean if np.isfinite(snapshot.mean_ln_fpops) else 0.0,
    )


def _retries_expected(board: Board, rules: RetryRules) -> float:
    """How many of the instances out now will not have succeeded by their time-outs."""
    mean = board.classes.mean
    if len(mean.age_s) == 0:
        return 0.0
    each = np.ones((len(mean.age_s), 1))
    in_time = answered_by(mean, np.maximum(mean.left_s, 0.0)[:, None], each)[:, 0]
    return float(np.bincount(board.classes.of) @ (1.0 - prospects(mean, rules).success * in_time))


def _holds(snapshot: Snapshot, open_: Open, board: Board, parts: list[LogServed], at: int) -> list[ForecastHold]:
    """The doubts at the grid's point `at`, at the middle node of the shared uncertainty."""
    middle = parts[1]
    at = min(at, middle.retries.shape[0] - 1)
    doubt = np.zeros(len(board.weight))
    doubt[board.alone] = _per_slot(middle.alone[:, at], board)
    doubt[~board.alone] = -middle.helped[:, at]
    rows = snapshot.instances
    out = OutDoubts(doubt, rows.host_id[open_.in_progress], board.out.age_s, board.overdue, open_.agreeing)
    return holds_of(
        out,
        retries=open_.retries_unsent,
        retry_doubt=-float(middle.retries[at]),
        first_unsent=open_.first_unsent,
        first_doubt=-float(middle.first[1][at]),
    )


def _per_slot(log_served: Floats, board: Board) -> Floats:
    """A class's -ln H shared out over its slots by weight."""
    of = board.classes.of
    shared: Floats = -log_served[of] * board.weight[board.alone] / board.classes.weight[of]
    return shared
