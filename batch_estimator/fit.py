"""Fits the distributions of turnaround, loss, error and sending for one batch. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from batch_estimator.chain import FreshLaw
from batch_estimator.loss import Failures, Loss, Silence, failures_of, host_loss, loss_fraction, silence_law
from batch_estimator.outstanding import Outstanding
from batch_estimator.snapshot import BatchSnapshot, Floats, Ints
from batch_estimator.survival import SurvivalData, sampled_of, watched_of
from batch_estimator.turnaround import (
    Roster,
    Shift,
    TurnaroundLaw,
    batch_shift,
    roster_of,
    turnaround_law,
    whole_levels,
)

LOCATION_WIDTH = 0.4  # in ln T; fresh instances within this width are merged
LEAST_SILENCES = 20
ONE_REQUEST_S = 60.0  # instances sent to a host within this time belong to one reply
RECENT_S = 7 * 86400.0


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """The fitted parameters. `mu`, `sd` and `lost` have one value per roster entry, including the batch's shift."""

    roster: Roster
    law: TurnaroundLaw
    shift: Shift
    failures: Failures
    loss: Loss
    silence: Silence | None
    mu: Floats
    sd: Floats
    lost: Floats
    fresh: FreshLaw


def fitted(snapshot: BatchSnapshot) -> Fit:
    """Fit the distributions of errors, turnaround, the batch's shift and loss, in this order.

    Loss is fitted with levels that exclude this batch's results, because the first results are the fastest.
    """
    roster = roster_of(snapshot)
    law = turnaround_law(snapshot)
    watched, sampled = watched_of(snapshot, roster.of_instance), sampled_of(snapshot, roster.of_sent)
    from_sums = law.level(roster.n_success, roster.sum_ln)
    mu, sd = whole_levels(*from_sums, sampled) if law.warm else from_sums
    shift = batch_shift(snapshot, law, mu, sd, watched)
    loss = _loss(watched, sampled, shift, mu=mu, sd=sd)
    with_own = _with_own_results(law, roster, watched, shift)
    mu, sd = mu + with_own[0] - from_sums[0] + shift.mean, sd * with_own[1] / from_sums[1]
    lost = host_loss(loss.fraction, roster.n_lost, roster.n_due)
    fresh = _fresh_law(snapshot, roster, law, shift, loss, mu=mu, sd=sd, lost=lost)
    return Fit(roster, law, shift, failures_of(snapshot), loss, _silence(snapshot), mu, sd, lost, fresh)


def outstanding_of(snapshot: BatchSnapshot, fit: Fit, positions: Ints) -> Outstanding:
    """Return the instances at `positions` with their distributions."""
    rows, entry = snapshot.instances, fit.roster.of_instance[positions]
    sent_at = rows.sent_at[positions]
    age = np.maximum(snapshot.now - sent_at, 1.0)
    silence = np.clip(snapshot.now - fit.roster.last_contact_at[entry], 0.0, age)
    left = rows.timeout_at[positions] - snapshot.now
    return Outstanding(age, left, fit.mu[entry], fit.sd[entry], fit.lost[entry], silence)


def _with_own_results(law: TurnaroundLaw, roster: Roster, watched: SurvivalData, shift: Shift) -> tuple[Floats, Floats]:
    """Return each (host, app version)'s level of ln T, based also on this batch's results minus the shift."""
    came = watched.entry[~watched.silent]
    entries = len(roster.n_success)
    own_n = np.bincount(came, minlength=entries)
    own_sum = np.bincount(came, weights=watched.ln_s[~watched.silent] - shift.mean, minlength=entries)
    return law.level(roster.n_success + own_n, roster.sum_ln + own_sum)


def _loss(watched: SurvivalData, sampled: SurvivalData, shift: Shift, *, mu: Floats, sd: Floats) -> Loss:
    def silent_z(rows: SurvivalData, by: float) -> Floats:
        entry = rows.entry[rows.silent]
        z: Floats = (rows.ln_s[rows.silent] - mu[entry] - by) / sd[entry]
        return z

    z = np.concatenate([silent_z(watched, shift.mean), silent_z(sampled, 0.0)])
    return loss_fraction(z, len(watched.ln_s) + len(sampled.ln_s))


def _silence(snapshot: BatchSnapshot) -> Silence | None:
    silences = snapshot.now - snapshot.havs.last_rpc_at
    known = np.isfinite(silences)
    if known.sum() < LEAST_SILENCES:
        return None
    return silence_law(silences[known], snapshot.havs.weight[known])


def _fresh_law(
    snapshot: BatchSnapshot,
    roster: Roster,
    law: TurnaroundLaw,
    shift: Shift,
    loss: Loss,
    *,
    mu: Floats,
    sd: Floats,
    lost: Floats,
) -> FreshLaw:
    """Return the hosts that will run the next instances, merged into classes with similar ln T."""
    requests = _requests(snapshot, roster)
    if not requests.any():
        unknown_mu, unknown_sd = law.level(np.zeros(1), np.zeros(1))
        return FreshLaw(unknown_mu + shift.mean, unknown_sd, np.array([loss.fraction]), np.ones(1))
    used = np.flatnonzero(requests)
    count = requests[used]
    cells = np.floor(mu[used] / LOCATION_WIDTH).astype(np.int64)
    of = cells - cells.min()
    weight = np.bincount(of, weights=count)
    there = weight > 0
    means = [np.bincount(of, weights=count * column[used])[there] / weight[there] for column in (mu, sd, lost)]
    return FreshLaw(means[0], means[1], means[2], weight[there] / weight.sum())


def _requests(snapshot: BatchSnapshot, roster: Roster) -> Floats:
    """Return each (host, app version)'s rate of requests that got work; a request a week ago counts 1/e.

    A host that gets six jobs per request is one opportunity for a retry, not six.
    """
    was_sent = roster.of_instance >= 0
    entry = np.concatenate([roster.of_instance[was_sent], roster.of_sent])
    sent_at = np.concatenate([snapshot.instances.sent_at[was_sent], snapshot.sent.sent_at])
    order = np.lexsort((sent_at, entry))
    entry, sent_at = entry[order], sent_at[order]
    new = np.ones(len(entry), dtype=bool)
    new[1:] = (np.diff(entry) != 0) | (np.diff(sent_at) > ONE_REQUEST_S)
    weight = np.exp((sent_at[new] - snapshot.now) / RECENT_S)
    return np.bincount(entry[new], weights=weight, minlength=len(roster.n_success)).astype(np.float64)
