"""Survival data of sent instances, and the distribution of replies in standard deviations of ln T. Pure.

F0 is the logistic distribution that approximates the normal: Phi(z) ~ 1 / (1 + exp(-1.702 z)) within 0.01. Its upper
tail is heavier: a reply two standard deviations late is likelier than under the normal (docs/decisions/0020).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from batch_estimator.snapshot import BatchSnapshot, Bools, Floats, InstanceStanding, Ints

SLOPE = 1.702
LEAST_SHARE = 1e-13  # lower bound of a tail, so that the ratio of two tails stays finite


def replied(z: Floats) -> Floats:
    """Return F0(z) = 1 / (1 + exp(-1.702 z)).

    >>> replied(np.array([0.0, 1.0])).round(4).tolist()
    [0.5, 0.8458]
    """
    from scipy.special import expit  # noqa: PLC0415  slow to import: only for forecasts

    share: Floats = expit(SLOPE * z)
    return share


def silent_share(z: Floats) -> Floats:
    """Return 1 - F0(z), at least 1e-13.

    >>> silent_share(np.array([0.0, 2.0, 40.0])).round(4).tolist()
    [0.5, 0.0322, 0.0]
    """
    return np.maximum(replied(-z), LEAST_SHARE)


def logit_moved(share: Floats, by: float) -> Floats:
    """Return the fraction with its log-odds increased by `by`.

    >>> logit_moved(np.array([0.5]), 1.0).round(4).tolist()
    [0.7311]
    """
    moved: Floats = share / (share + (1.0 - share) * np.exp(-by))
    return moved


@dataclass(frozen=True, slots=True, eq=False)
class SurvivalData:
    """Per instance: ln of its turnaround, or of its age while it is silent, and its index in the roster."""

    ln_s: Floats
    silent: Bools
    entry: Ints
    sent_at: Floats


def watched_of(snapshot: BatchSnapshot, of_instance: Ints) -> SurvivalData:
    """Return the data of instances that succeeded, are silent, or were silent until aborted; errors are excluded.

    An instance is aborted when another instance completes its job: its turnaround is right-censored at that time.
    """
    rows = snapshot.instances
    return _watched(snapshot.now, rows.standing, rows.sent_at, rows.reported_at, of_instance)


def sampled_of(snapshot: BatchSnapshot, of_sent: Ints) -> SurvivalData:
    """Return the same data for other work of the app."""
    rows = snapshot.sent
    return _watched(snapshot.now, rows.standing, rows.sent_at, rows.reported_at, of_sent)


def thinned(watched: SurvivalData, most: int) -> SurvivalData:
    """Return at most `most` of the instances. The selection depends neither on the input order nor on the time."""
    if len(watched.ln_s) <= most:
        return watched
    kept = np.sort(np.argpartition(_scrambled(watched), most)[:most])
    return SurvivalData(watched.ln_s[kept], watched.silent[kept], watched.entry[kept], watched.sent_at[kept])


def _watched(now: float, standing: Ints, sent_at: Floats, reported_at: Floats, entry: Ints) -> SurvivalData:
    aborted = (standing == InstanceStanding.ABORTED) & np.isfinite(reported_at)
    out = (standing == InstanceStanding.IN_PROGRESS) | (standing == InstanceStanding.TIMED_OUT)
    chosen = np.flatnonzero(out | aborted | (standing == InstanceStanding.SUCCESS))
    end_at = np.where(out[chosen], now, reported_at[chosen])
    ln_s = np.log(np.maximum(end_at - sent_at[chosen], 1.0))
    return SurvivalData(ln_s, (out | aborted)[chosen], entry[chosen], sent_at[chosen])


def _scrambled(watched: SurvivalData) -> Ints:
    """Return a pseudo-random number for each instance that depends only on its dispatch."""
    bits = watched.sent_at.view(np.uint64) ^ (watched.entry.astype(np.uint64) << np.uint64(40))
    bits = (bits ^ (bits >> np.uint64(31))) * np.uint64(0x9E3779B97F4A7C15)
    number: Ints = (bits >> np.uint64(2)).astype(np.int64)
    return number
