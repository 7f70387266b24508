"""With what probability is the whole batch complete by a time? Pure. ESTIMATOR 5.7."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from batch_estimator.chain import Chain, FreshLaw, RetryRules, retry_chain
from batch_estimator.outstanding import Outstanding, late_by, served_by
from batch_estimator.replies import logit_moved
from batch_estimator.sending import Sending
from batch_estimator.snapshot import Floats

NODES = (-1.7320508, 0.0, 1.7320508)  # three-point Gauss-Hermite rule: standard deviations,
NODE_WEIGHTS = (1.0 / 6.0, 2.0 / 3.0, 1.0 / 6.0)  # and their probabilities
SEND_POSITIONS = 24
LEAST_SHARE = 1e-300


@dataclass(frozen=True, slots=True, eq=False)
class Waiting:
    """All that is open: classes of slots with an instance out, alone or helped, and what is to be sent.

    `ended` matrices are of hosts heard of by the times of the grid. `helped` slots are served by `main`
    or by `helper`; a helped retry is one still to be sent.
    """

    alone: Outstanding
    alone_weight: Floats
    alone_ended: Floats
    helped: Outstanding
    helper: Outstanding
    helped_weight: Floats
    helped_ended: Floats
    helper_ended: Floats
    retry_helper: Outstanding
    retry_weight: Floats
    retry_ended: Floats
    retries: float  # retries to be sent that nobody helps
    first_unsent: float


@dataclass(frozen=True, slots=True)
class Unsure:
    """Standard deviations of what all slots share: the batch's shift, log-odds of loss and error."""

    shift: float
    lost: float
    error: float


@dataclass(frozen=True, slots=True, eq=False)
class LogServed:
    """ln of the probability that each part is all served, by time: rows of classes, and the unsent parts."""

    alone: Floats
    helped: Floats
    retries: Floats
    first: Floats  # one row per sending rate


def completion(
    waiting: Waiting, fresh: FreshLaw, rules: RetryRules, unsure: Unsure, *, sending: Sending, x: Floats
) -> tuple[Floats, list[LogServed]]:
    """P(x) on the grid, and its parts at each node of the shared uncertainty.

    P(x) = mean over nodes of exp(sum over classes weight ln H(x)). The nodes move the shift, the
    log-odds of loss and of error together; independently the sending rate.
    """
    total = np.zeros(len(x))
    parts = []
    for node, weight in zip(NODES, NODE_WEIGHTS, strict=True):
        part = _at_node(waiting, fresh, rules, unsure, node=node, sending=sending, x=x)
        common = part.alone.sum(axis=0) + part.helped.sum(axis=0) + part.retries
        for row, rate_weight in zip(part.first, NODE_WEIGHTS, strict=True):
            total += weight * rate_weight * np.exp(common + row)
        parts.append(part)
    return np.maximum.accumulate(np.clip(total, 0.0, 1.0)), parts


def _at_node(
    waiting: Waiting, fresh: FreshLaw, rules: RetryRules, unsure: Unsure, *, node: float, sending: Sending, x: Floats
) -> LogServed:
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

    def moved(out: Outstanding) -> Outstanding:
        return out.moved(node * unsure.shift, logit_moved(out.lost, node * unsure.lost))

    alone = served_by(moved(waiting.alone), x, waiting.alone_ended, chain, moved_rules)
    main = served_by(moved(waiting.helped), x, waiting.helped_ended, chain, moved_rules)
    help_comes = late_by(moved(waiting.helper), x, waiting.helper_ended, moved_rules)
    retry_sent = chain.by(x - rules.wait_s)
    retry_help = late_by(moved(waiting.retry_helper), x, waiting.retry_ended, moved_rules)
    helped_retries = waiting.retry_weight @ _ln(1.0 - (1.0 - retry_sent) * (1.0 - retry_help))
    return LogServed(
        waiting.alone_weight[:, None] * _ln(alone),
        waiting.helped_weight[:, None] * _ln(1.0 - (1.0 - main) * (1.0 - help_comes)),
        waiting.retries * _ln(retry_sent) + helped_retries,
        _first_sendings(chain, waiting.first_unsent, sending, x),
    )


def _first_sendings(chain: Chain, unsent: float, sending: Sending, x: Floats) -> Floats:
    """sum over 24 positions n of U/24 ln G(x - start - n / rate), one row per rate: slow and late is a high node."""
    if unsent <= 0:
        return np.zeros((len(NODES), len(x)))
    count = int(min(SEND_POSITIONS, np.ceil(unsent)))
    positions = (np.arange(count) + 0.5) / count * unsent
    rows = []
    for node in NODES:
        sent_after = (sending.starts_s + positions / sending.rate_per_s) * np.exp(node * sending.log_sd)
        served = chain.by(x[None, :] - sent_after[:, None])
        rows.append(unsent / count * _ln(served).sum(axis=0))
    return np.stack(rows)


def _ln(share: Floats) -> Floats:
    logs: Floats = np.log(np.maximum(share, LEAST_SHARE))
    return logs


def time_grid(bound_s: float, sending_s: float) -> Floats:
    """Seconds from now at which P is worked out: log-spaced to D/2, even to 4.2 D, coarse to 16 D.

    Sending that goes on for `sending_s` stretches the even part and the horizon.

    >>> grid = time_grid(1000.0, 0.0)
    >>> len(grid), float(grid[0]), float(grid[-1])
    (137, 0.0, 16000.0)
    """
    early = np.geomspace(0.002, 0.5, 36) * bound_s
    even = np.linspace(0.5 * bound_s, 4.2 * bound_s + sending_s, 77)[1:]
    late = np.linspace(even[-1], 16.0 * bound_s + 3.0 * sending_s, 25)[1:]
    return np.concatenate([[0.0], early, even, late])
