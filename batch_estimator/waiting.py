"""Everything that is open, as the classes the completion law is worked out from. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from batch_estimator.completion import Waiting
from batch_estimator.contact import Silence
from batch_estimator.fit import Fit, outstanding_of
from batch_estimator.merging import Classes, merged
from batch_estimator.outstanding import Outstanding
from batch_estimator.slots import Open
from batch_estimator.snapshot import Bools, Floats, Ints, Snapshot

OVERDUE_SD = 0.5  # an instance out for longer than mu + 0.5 sd, in ln seconds, is overdue


@dataclass(frozen=True, slots=True, eq=False)
class Board:
    """`waiting` for the law; the slots behind its classes, in the order of `open_.in_progress`."""

    waiting: Waiting
    out: Outstanding
    weight: Floats
    overdue: Bools
    alone: Bools
    classes: Classes


def board_of(snapshot: Snapshot, fit: Fit, open_: Open, x: Floats) -> Board:
    """Merge the slots served by one instance; keep those with a helper, and helped retries, one by one."""
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
    waiting = Waiting(
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
    return Board(waiting, out, weight, overdue, alone, classes)


def host_weights(entry: Ints, overdue: Bools) -> Floats:
    """Overdue slots of one (host, app version) share its fate: k of them count as sqrt(k).

    >>> host_weights(np.array([3, 3, 3, 3, 5]), np.array([True, True, True, True, False])).tolist()
    [0.5, 0.5, 0.5, 0.5, 1.0]
    """
    weight = np.ones(len(entry))
    if overdue.any():
        weight[overdue] = np.bincount(entry[overdue])[entry[overdue]] ** -0.5
    return weight


def ended_by(silence: Silence | None, out: Outstanding, x: Floats) -> Floats:
    """Share of hosts as silent as each instance's that are heard of within x; all, if nothing is known of silences."""
    if silence is None:
        return np.ones((len(out.age_s), len(x)))
    return silence.ended(out.silent_s[:, None], x[None, :])
