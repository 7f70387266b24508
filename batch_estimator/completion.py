"""Computes the probability that a whole batch is complete by a given time. Pure. docs/formulas.md."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from batch_estimator.chain import Chain, Copies, FreshLaw, RetryRules, helped_by, retry_chain, tail_begins_s
from batch_estimator.outstanding import Outstanding, late_by, served_by
from batch_estimator.sending import RATE_SDS, SendingRate
from batch_estimator.snapshot import Floats, Tail
from batch_estimator.survival import logit_moved

NODES = (-RATE_SDS, 0.0, RATE_SDS)  # three-point Gauss-Hermite rule: nodes in standard deviations
NODE_WEIGHTS = (1.0 / 6.0, 2.0 / 3.0, 1.0 / 6.0)  # and their probabilities
SEND_POSITIONS = 24
LEAST_SHARE = 1e-300
LEAST_WEIGHT = 1e-9
SENDING_FRACTION = 0.05  # of the delay bound; longer sending times get additional grid points
COPIES_LN_MEAN, COPIES_LN_SD = -0.1, 0.45  # mean and sd of ln(actual / modelled remaining time with copies)
LOOSENED = float(np.exp(COPIES_LN_MEAN))


@dataclass(frozen=True, slots=True, eq=False)
class WaitingSlots:
    """All open slots by class: with an instance in progress, alone or with a helper, and with an unsent instance.

    `ended` matrices give the share of hosts that have contacted the server again, by time. `helped` slots succeed
    through `main` or `helper`; the retry of a helped slot is still unsent.
    """

    alone: Outstanding
    alone_weight: Floats
    alone_count: Floats  # number of slots; correlated slots count less
    alone_ended: Floats
    helped: Outstanding
    helper: Outstanding
    helped_weight: Floats
    helped_ended: Floats
    helper_ended: Floats
    retry_helper: Outstanding
    retry_weight: Floats
    retry_ended: Floats
    retries: float  # unsent retries without a helper
    first_unsent: float


@dataclass(frozen=True, slots=True)
class Unsure:
    """Standard deviations of quantities shared by all slots: the batch's shift, and the log-odds of loss and error."""

    shift: float
    lost: float
    error: float


@dataclass(frozen=True, slots=True, eq=False)
class LogServed:
    """For each time, ln of the probability that all slots have succeeded, by class and for each unsent part."""

    alone: Floats
    helped: Floats
    retries: Floats
    first: Floats  # one row per sending rate
    first_open: Floats  # expected number of open first instances, at the middle sending rate


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """The distributions used by one forecast, on a grid x of seconds from now. `usual_s` is the usual turnaround."""

    fresh: FreshLaw
    rules: RetryRules
    unsure: Unsure
    sending: SendingRate
    x: Floats
    usual_s: float
    tail: Tail | None = None


def completion(waiting: WaitingSlots, model: Model) -> tuple[Floats, list[LogServed]]:
    """Return P(x) on the grid, and its parts at each node of the shared uncertainty.

    P(x) = mean over nodes of exp(sum over classes weight ln H(x)). The nodes vary the shift and the log-odds of loss
    and error together, and with them the start of the tail; the sending rate varies independently.
    """
    total = np.zeros(len(model.x))
    parts = []
    for node, weight in zip(NODES, NODE_WEIGHTS, strict=True):
        part = at_node(waiting, model, node, None)
        if model.tail is not None:
            copies = expected_copies(waiting, model, model.tail, open_jobs(waiting, part))
            part = at_node(waiting, model, node, copies)
        common = part.alone.sum(axis=0) + part.helped.sum(axis=0) + part.retries
        for row, rate_weight in zip(part.first, NODE_WEIGHTS, strict=True):
            total += weight * rate_weight * np.exp(common + row)
        parts.append(part)
    share = np.maximum.accumulate(np.clip(total, 0.0, 1.0))
    return share if model.tail is None else loosened(share, model.x), parts


def loosened(share: Floats, x: Floats) -> Floats:
    """Return P'(x), widened for the uncertainty of copies: mean over u of P(x exp(-COPIES_LN_MEAN - u COPIES_LN_SD)).

    The model ignores which hosts request work while gates allow them a copy, weekends, and other batches that use up
    the permitted copies. Calibrated on the tuning half of the sampled populations (docs/decisions/0061, 0063). A batch
    that the model completes at 100 s with certainty is complete by then with probability 5/6:

    >>> x = np.array([0.0, 99.0, 100.0, 1000.0])
    >>> loosened(np.array([0.0, 0.0, 1.0, 1.0]), x).round(3).tolist()
    [0.0, 0.833, 0.833, 1.0]
    """
    nodes = zip(NODES, NODE_WEIGHTS, strict=True)
    found: Floats = sum(
        (weight * np.interp(x * np.exp(-COPIES_LN_MEAN - node * COPIES_LN_SD), x, share) for node, weight in nodes),
        start=np.zeros(len(x)),
    )
    return found


def open_jobs(waiting: WaitingSlots, part: LogServed) -> Floats:
    """Return the expected number of open slots at each time, assuming the middle sending rate."""
    found = np.zeros(len(part.retries))
    helped_count = np.ones(len(waiting.helped_weight))
    for weight, count, logs in (
        (waiting.alone_weight, waiting.alone_count, part.alone),
        (waiting.helped_weight, helped_count, part.helped),
    ):
        found += count @ -np.expm1(logs / np.maximum(weight, LEAST_WEIGHT)[:, None])
    retries = waiting.retries + float(np.sum(waiting.retry_weight))
    found += retries * -np.expm1(part.retries / max(retries, LEAST_WEIGHT))
    return found + part.first_open


def expected_copies(waiting: WaitingSlots, model: Model, tail: Tail, still_open: Floats) -> Copies:
    """Return the tail copies to expect. The tail is assumed to begin when it would begin if no job was copied."""
    unsent_by_s = np.inf
    if tail.unsent is not None:
        unsent_by_s = float(model.sending.after_s(np.array([max(0.0, waiting.first_unsent - tail.unsent)]))[0])
    starts_s = tail_begins_s(tail, still_open, model.x, unsent_by_s=unsent_by_s)
    return Copies(starts_s, tail.late_factor, model.usual_s)


def at_node(waiting: WaitingSlots, model: Model, node: float, copies: Copies | None) -> LogServed:
    """Return the parts of ln P(x), with each shared quantity `node` standard deviations above its mean."""
    rules, fresh, unsure, x = model.rules, model.fresh, model.unsure, model.x
    moved_rules = RetryRules(
        rules.bound_s,
        rules.wait_s,
        float(logit_moved(np.array([rules.error_fraction]), node * unsure.error)[0]),
        rules.error_s,
    )
    moved_fresh = FreshLaw(
        fresh.mu + node * unsure.shift, fresh.sd, logit_moved(fresh.lost, node * unsure.lost), fresh.share
    )
    chain = retry_chain(moved_fresh, moved_rules)
    copy_chain = None if copies is None else copies.chain(moved_fresh, moved_rules)

    def moved(out: Outstanding) -> Outstanding:
        return out.moved(node * unsure.shift, logit_moved(out.lost, node * unsure.lost))

    def copied(served: Floats, out: Outstanding) -> Floats:
        if copies is None or copy_chain is None or not len(served):
            return served
        after_s = copies.after_s(out.age_s, out.mu)
        return helped_by(served, after_s, copy_chain, wait_s=rules.wait_s, x=x)

    alone, main, helper = moved(waiting.alone), moved(waiting.helped), moved(waiting.helper)
    served = copied(served_by(alone, x, waiting.alone_ended, chain, moved_rules), alone)
    by_main = served_by(main, x, waiting.helped_ended, chain, moved_rules)
    by_helper = late_by(helper, x, waiting.helper_ended, moved_rules)
    by_either = copied(1.0 - (1.0 - by_main) * (1.0 - by_helper), helper)
    retry_sent = chain.by(x - rules.wait_s)
    if copies is not None and copy_chain is not None:
        out_s = rules.wait_s + copies.late_factor * copies.usual_s
        copied_s = np.array([max(copies.starts_s, out_s)])
        retry_sent = helped_by(retry_sent[None, :], copied_s, copy_chain, wait_s=rules.wait_s, x=x)[0]
    retry_help = late_by(moved(waiting.retry_helper), x, waiting.retry_ended, moved_rules)
    helped_retries = waiting.retry_weight @ _ln(1.0 - (1.0 - retry_sent) * (1.0 - retry_help))
    return LogServed(
        waiting.alone_weight[:, None] * _ln(served),
        waiting.helped_weight[:, None] * _ln(by_either),
        waiting.retries * _ln(retry_sent) + helped_retries,
        *_first_sendings(waiting.first_unsent, model, chain, copies=copies, copy_chain=copy_chain),
    )


def _first_sendings(
    unsent: float, model: Model, chain: Chain, *, copies: Copies | None, copy_chain: Chain | None
) -> tuple[Floats, Floats]:
    """Return ln P of all first instances by sending rate: the sum over 24 positions n of U/24 ln G(x - sent(n)).

    Also return the sum of U/24 (1 - G), the expected number of open slots, at the middle rate.
    """
    x, sending = model.x, model.sending
    if unsent <= 0:
        return np.zeros((len(NODES), len(x))), np.zeros(len(x))
    count = int(min(SEND_POSITIONS, np.ceil(unsent)))
    positions = (np.arange(count) + 0.5) / count * unsent
    rows, still_open = [], np.zeros(len(x))
    for node in NODES:
        sent_after = sending.after_s(positions) * np.exp(node * sending.log_sd)
        served = chain.by(x[None, :] - sent_after[:, None])
        if copies is not None and copy_chain is not None:
            copied_s = np.maximum(copies.starts_s, sent_after + copies.late_factor * copies.usual_s)
            served = helped_by(served, copied_s, copy_chain, wait_s=model.rules.wait_s, x=x)
        rows.append(unsent / count * _ln(served).sum(axis=0))
        if node == 0.0:
            still_open = unsent / count * (1.0 - served).sum(axis=0)
    return np.stack(rows), still_open


def _ln(share: Floats) -> Floats:
    logs: Floats = np.log(np.maximum(share, LEAST_SHARE))
    return logs


def time_grid(bound_s: float, sending_s: float) -> Floats:
    """Return the grid in seconds from now: logarithmic up to D/2, linear up to 4.2 D, logarithmic up to 16 D + 3 s.

    If sending takes s > D/20 seconds, add 48 points from s/4 to 2.2 s, where most of the batch completes.

    >>> grid = time_grid(1000.0, 0.0)
    >>> len(grid), float(grid[0]), round(float(grid[-1]))
    (145, 0.0, 16000)
    >>> len(time_grid(1000.0, 500.0))
    193
    """
    early = np.geomspace(0.0005, 0.5, 44) * bound_s
    even = np.linspace(0.5, 4.2, 77)[1:] * bound_s
    late = np.geomspace(4.2 * bound_s, 16.0 * bound_s + 3.0 * sending_s, 25)[1:]
    grid = np.concatenate([[0.0], early, even, late])
    if sending_s <= SENDING_FRACTION * bound_s:
        return grid
    return np.union1d(grid, sending_s * np.linspace(0.25, 2.2, 48))
