"""Estimates when a batch completes, from a snapshot, and returns a forecast with its causes of delay. Pure.

It uses the lognormal model with the retry chain (docs/formulas.md). Batches of new apps, batches with results of their
own, and batches without any data use the same calculation with different turnaround distributions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from batch_estimator.chain import RetryRules
from batch_estimator.completion import LOOSENED, LogServed, Model, Unsure, WaitingSlots, completion, time_grid
from batch_estimator.fit import Fit, fitted, outstanding_of
from batch_estimator.loss import Silence, bound_of
from batch_estimator.outstanding import InstanceClasses, Open, Outstanding, failing, merged, open_slots
from batch_estimator.publish import CompletionLaw, Forecast, stretched_s
from batch_estimator.sending import SendingRate, sending_of
from batch_estimator.snapshot import AppQueue, BatchSnapshot, Bools, Floats, Ints, Tail
from batch_estimator.turnaround import LEAST_COLD_SUCCESSES
from domain.errors import MusterError
from domain.forecasting import PROVISIONAL_S
from domain.forecasts import ForecastHold, HoldKind, Method, Terms
from domain.formatting import in_words
from domain.units import HostId, Instant, Seconds

MOST_HOSTS = 5
STATES = {
    HoldKind.OVERDUE: "longer than usual there",
    HoldKind.QUORUM: "to agree with an existing result",
    HoldKind.IN_PROGRESS: "not late yet",
}


@dataclass(frozen=True, slots=True, eq=False)
class OutDoubts:
    """Per slot with an instance in progress: doubt (-ln H), host, age, whether it is overdue, and `agreeing`: whether a
    result of its job is waiting to be confirmed.
    """

    doubt: Floats
    host_id: Ints
    age_s: Floats
    overdue: Bools
    agreeing: Bools


def holds_of(
    out: OutDoubts,
    *,
    retries: int,
    retry_doubt: float,
    first_unsent: int,
    first_doubt: float,
    retry_wait_s: float = 0.0,
) -> list[ForecastHold]:
    """Return the causes of delay that apply to at least one slot, largest doubt first.

    >>> overdue, agreeing = np.array([True, False]), np.array([False, False])
    >>> out = OutDoubts(np.array([0.3, 0.1]), np.array([7, 8]), np.array([86400.0, 60.0]), overdue, agreeing)
    >>> for hold in holds_of(out, retries=0, retry_doubt=0.0, first_unsent=4, first_doubt=0.6):
    ...     print(hold.kind, hold.doubt_fraction, hold.host_ids, hold.because)
    not_sent 0.6 () 4 first instances are not sent yet
    overdue 0.3 (7,) 1 needed result is awaited from 1 host for up to 1 d, longer than usual there
    in_progress 0.1 (8,) 1 needed result is awaited from 1 host for up to 60 s, not late yet
    """
    total = float(out.doubt.sum()) + retry_doubt + first_doubt
    holds = []
    if first_unsent:
        because = f"{first_unsent} first {_plural('instance', first_unsent)} not sent yet"
        holds.append(ForecastHold(HoldKind.NOT_SENT, first_unsent, _part(first_doubt, total), (), because))
    if retries:
        because = f"{retries} {_plural('retry', retries)} not sent yet, expected to wait {in_words(retry_wait_s)}"
        holds.append(ForecastHold(HoldKind.RETRIES, retries, _part(retry_doubt, total), (), because))
    for kind, chosen in (
        (HoldKind.OVERDUE, out.overdue),
        (HoldKind.QUORUM, ~out.overdue & out.agreeing),
        (HoldKind.IN_PROGRESS, ~out.overdue & ~out.agreeing),
    ):
        if chosen.any():
            holds.append(_of_hosts(kind, out, chosen, total))
    return sorted(holds, key=lambda hold: (-hold.doubt_fraction, hold.kind))


def _of_hosts(kind: HoldKind, out: OutDoubts, chosen: Bools, total: float) -> ForecastHold:
    slots = int(chosen.sum())
    hosts, of = np.unique(out.host_id[chosen], return_inverse=True)
    per_host = np.bincount(of, weights=out.doubt[chosen])
    first = np.lexsort((hosts, -per_host))[:MOST_HOSTS]
    ids = tuple(HostId(int(host)) for host in hosts[first])
    because = (
        f"{slots} needed result{'s are' if slots > 1 else ' is'} awaited from {len(hosts)} "
        f"host{'s' * (len(hosts) > 1)} for up to {in_words(float(out.age_s[chosen].max()))}, {STATES[kind]}"
    )
    return ForecastHold(kind, slots, _part(float(out.doubt[chosen].sum()), total), ids, because)


def _part(doubt: float, total: float) -> float:
    return round(doubt / total, 4) if total > 0 else 0.0


def _plural(noun: str, count: int) -> str:
    if count == 1:
        return f"{noun} is"
    return f"{noun[:-1]}ies are" if noun.endswith("y") else f"{noun}s are"


OVERDUE_SD = 0.5  # an instance in progress for longer than mu + 0.5 sd, in ln seconds, is overdue


@dataclass(frozen=True, slots=True, eq=False)
class OpenWork:
    """The open slots as used by the model, and the slots behind each class in the order of `open_.in_progress`."""

    waiting: WaitingSlots
    out: Outstanding
    weight: Floats
    overdue: Bools
    alone: Bools
    classes: InstanceClasses


def open_work_of(snapshot: BatchSnapshot, fit: Fit, open_: Open, x: Floats) -> OpenWork:
    """Merge slots served by one instance; keep slots with a helper, and retries with a helper, separate."""
    out = outstanding_of(snapshot, fit, open_.in_progress)
    overdue = np.log(out.age_s) > out.mu + OVERDUE_SD * out.sd
    weight = host_weights(fit.roster.of_instance[open_.in_progress], overdue)
    alone = open_.helper < 0
    classes = merged(out.take(np.flatnonzero(alone)), weight[alone], snapshot.delay_bound_s)
    helped = np.flatnonzero(~alone)
    main = out.take(helped)
    helper = outstanding_of(snapshot, fit, open_.helper[helped])
    has_helper = open_.retry_helper[open_.retry_helper >= 0]
    retry_helper = merged(outstanding_of(snapshot, fit, has_helper), np.ones(len(has_helper)), snapshot.delay_bound_s)
    waiting = WaitingSlots(
        alone=classes.mean,
        alone_weight=classes.weight,
        alone_count=np.bincount(classes.of, minlength=len(classes.weight)).astype(np.float64),
        alone_ended=ended_by(fit.silence, classes.mean, x),
        helped=main,
        helper=helper,
        helped_weight=weight[helped],
        helped_ended=ended_by(fit.silence, main, x),
        helper_ended=ended_by(fit.silence, helper, x),
        retry_helper=retry_helper.mean,
        retry_weight=retry_helper.weight,
        retry_ended=ended_by(fit.silence, retry_helper.mean, x),
        retries=float(open_.retries_unsent - len(has_helper)),
        first_unsent=float(open_.first_unsent),
    )
    return OpenWork(waiting, out, weight, overdue, alone, classes)


def host_weights(entry: Ints, overdue: Bools) -> Floats:
    """Return each slot's weight. k overdue slots on one (host, app version) are correlated and count as sqrt(k).

    >>> host_weights(np.array([3, 3, 3, 3, 5]), np.array([True, True, True, True, False])).tolist()
    [0.5, 0.5, 0.5, 0.5, 1.0]
    """
    weight = np.ones(len(entry))
    if overdue.any():
        weight[overdue] = np.bincount(entry[overdue])[entry[overdue]] ** -0.5
    return weight


def ended_by(silence: Silence | None, out: Outstanding, x: Floats) -> Floats:
    """Return, for each instance, the share of equally silent hosts that make contact within x; 1 without data."""
    if silence is None:
        return np.ones((len(out.age_s), len(x)))
    return silence.ended(out.silent_s[:, None], x[None, :])


SHARES = (0.1, 0.5, 0.9)
MUCH_SOONER = 0.75  # of the time to q50: an end without the work before the batch is given if it is at most this
BECAUSE = {
    Method.WARM: "from the records of the app's hosts",
    Method.COLD: "new app: from this batch's results and pending instances",
    Method.APRIORI: "no valid result yet: from the size of the jobs and the speed of the hosts",
}


class NoForecastError(MusterError):
    """The model gave no finite answer for a batch. The fallback is used instead, and the failure is logged."""


def estimate(snapshot: BatchSnapshot, *, spread: float = 1.0) -> Forecast:
    """Return q10, q50 and q90 of the completion time, and the causes of delay. Raises NoForecastError.

    `spread` stretches the forecast around its median; the self-check sets it (1 = as fitted).
    """
    now = snapshot.now
    if not snapshot.jobs.is_open.any():
        return Forecast(now, now, now, now, Method.COMPLETE, "nothing is open")
    fit, open_ = fitted(snapshot), open_slots(snapshot)
    course = _course(snapshot, fit, open_)
    q10_at, q50_at, q90_at = _quantiles(now, course.law, spread)
    work, rules, method = course.work, course.rules, _method(fit)
    terms = _terms(snapshot, fit, open_, sending=course.sending, work=work, rules=rules)
    is_new = now - max(snapshot.moved_at, snapshot.submitted_at) < PROVISIONAL_S  # hosts would have taken it since
    if is_new and course.sending.assumed and snapshot.queue.is_behind:
        at_once_s = _course(replace(snapshot, queue=AppQueue()), fit, open_).law.within_s(0.5)
        if at_once_s < MUCH_SOONER * (q50_at - now):
            terms = replace(terms, at_once_s=Seconds(at_once_s), provisional=True)
    at = int(np.searchsorted(course.law.x_s, q90_at - now))
    return Forecast(
        now,
        q10_at,
        q50_at,
        q90_at,
        method,
        _because(method, has_results=bool(open_.jobs_with_success) or not snapshot.jobs.is_open.all()),
        terms,
        tuple(_holds(snapshot, open_, work, course.parts, at, retry_wait_s=rules.wait_s)),
        copied=snapshot.tail is not None and _in_tail(snapshot.tail, open_),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Course:
    """How the open work is sent and completes."""

    sending: SendingRate
    work: OpenWork
    rules: RetryRules
    law: CompletionLaw
    parts: list[LogServed]


def _course(snapshot: BatchSnapshot, fit: Fit, open_: Open) -> _Course:
    bound_s, turnaround_s = bound_of(snapshot), _turnaround_s(fit)
    sending = sending_of(snapshot, open_.first_unsent, turnaround_s, fit.fresh.lasts_s(bound_s))
    x = time_grid(snapshot.delay_bound_s, _sending_s(sending, open_))
    work = open_work_of(snapshot, fit, open_, x)
    rules = RetryRules(bound_s, sending.retry_wait_s, fit.failures.fraction, fit.failures.turnaround_s)
    unsure = Unsure(fit.shift.sd, fit.loss.logit_sd, fit.failures.logit_sd)
    share, parts = completion(work.waiting, Model(fit.fresh, rules, unsure, sending, x, turnaround_s, snapshot.tail))
    return _Course(sending, work, rules, CompletionLaw(x, share), parts)


def _in_tail(tail: Tail, open_: Open) -> bool:
    """Return whether copies may be made: the tail is enabled and all first instances have been sent."""
    return open_.first_unsent == 0 and open_.jobs <= tail.open_jobs


def _quantiles(now: Instant, law: CompletionLaw, spread: float) -> tuple[Instant, Instant, Instant]:
    within = [law.within_s(share) for share in SHARES]
    if not np.all(np.isfinite(within)) or not np.all(np.isfinite(law.share)):
        raise NoForecastError(f"no finite quantile: {within}")
    low, median, high = (stretched_s(each, within[1], spread, most_s=float(law.x_s[-1])) for each in within)
    return Instant(now + low), Instant(now + median), Instant(now + high)


def _sending_s(sending: SendingRate, open_: Open) -> float:
    """Return the time in seconds until the last first instance is sent."""
    return float(sending.after_s(np.array([float(open_.first_unsent)]))[0])


def _turnaround_s(fit: Fit) -> float:
    """Return the usual turnaround of a first instance: the geometric mean over the hosts that request work."""
    return float(np.exp(fit.fresh.share @ fit.fresh.mu))


def _method(fit: Fit) -> Method:
    if fit.law.warm:
        return Method.WARM
    return Method.COLD if fit.law.n >= LEAST_COLD_SUCCESSES else Method.APRIORI


def _because(method: Method, *, has_results: bool) -> str:
    own = " and this batch's results" if method is Method.WARM and has_results else ""
    return BECAUSE[method] + own


def _terms(
    snapshot: BatchSnapshot, fit: Fit, open_: Open, *, sending: SendingRate, work: OpenWork, rules: RetryRules
) -> Terms:
    return Terms(
        jobs_open=open_.jobs,
        jobs_with_success=open_.jobs_with_success,
        sending_s=Seconds(_sending_s(sending, open_) * (1.0 if snapshot.tail is None else LOOSENED)),
        loss_fraction=fit.loss.fraction,
        error_fraction=fit.failures.fraction,
        retries_expected=_retries_expected(work, rules),
        median_turnaround_s=Seconds(fit.fresh.returned_s(0.5)),
        slow_turnaround_s=Seconds(fit.fresh.returned_s(0.99)),
        error_turnaround_s=Seconds(rules.error_s),
        shift=fit.shift.mean if np.isfinite(snapshot.mean_ln_fpops) else 0.0,
        assumed_rate=sending.assumed,
        provisional=open_.first_unsent > 0 and snapshot.now - snapshot.moved_at < PROVISIONAL_S,
    )


def _retries_expected(work: OpenWork, rules: RetryRules) -> float:
    """Return the expected number of failures of instances in progress whose jobs have no other one in progress."""
    return float(np.bincount(work.classes.of) @ failing(work.classes.mean, rules))


def _holds(
    snapshot: BatchSnapshot, open_: Open, work: OpenWork, parts: list[LogServed], at: int, *, retry_wait_s: float
) -> list[ForecastHold]:
    """Return the causes of delay at grid point `at`, with the shared quantities at their means."""
    middle = parts[1]
    at = min(at, middle.retries.shape[0] - 1)
    doubt = np.zeros(len(work.weight))
    doubt[work.alone] = _per_slot(middle.alone[:, at], work)
    doubt[~work.alone] = -middle.helped[:, at]
    rows = snapshot.instances
    out = OutDoubts(doubt, rows.host_id[open_.in_progress], work.out.age_s, work.overdue, open_.agreeing)
    return holds_of(
        out,
        retries=open_.retries_unsent,
        retry_doubt=-float(middle.retries[at]),
        first_unsent=open_.first_unsent,
        first_doubt=-float(middle.first[1][at]),
        retry_wait_s=retry_wait_s,
    )


def _per_slot(log_served: Floats, work: OpenWork) -> Floats:
    """Divide each class's -ln H among its slots in proportion to their weights."""
    of = work.classes.of
    shared: Floats = -log_served[of] * work.weight[work.alone] / work.classes.weight[of]
    return shared
