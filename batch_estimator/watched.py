"""Sent instances as survival data: who came back when, who is silent since when. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from batch_estimator.snapshot import Bools, Floats, Ints, Snapshot, Standing


@dataclass(frozen=True, slots=True, eq=False)
class Watched:
    """ln of each instance's turnaround, or of its age while it is silent; and the roster's entry it belongs to."""

    ln_s: Floats
    silent: Bools
    entry: Ints
    sent_at: Floats


def watched_of(snapshot: Snapshot, of_instance: Ints) -> Watched:
    """The batch's instances that succeeded, are silent, or were silent until they were aborted; errors are left out.

    An instance is aborted when another one has finished its job: its turnaround is right-censored at the abort.
    """
    rows = snapshot.instances
    return _watched(snapshot.now, rows.standing, rows.sent_at, rows.reported_at, of_instance)


def sampled_of(snapshot: Snapshot, of_sent: Ints) -> Watched:
    """The same of the app's other work."""
    rows = snapshot.sent
    return _watched(snapshot.now, rows.standing, rows.sent_at, rows.reported_at, of_sent)


def thinned(watched: Watched, most: int) -> Watched:
    """`most` of the instances at most, the same ones in whatever order they come and whenever one looks."""
    if len(watched.ln_s) <= most:
        return watched
    kept = np.sort(np.argpartition(_scrambled(watched), most)[:most])
    return Watched(watched.ln_s[kept], watched.silent[kept], watched.entry[kept], watched.sent_at[kept])


def _watched(now: float, standing: Ints, sent_at: Floats, reported_at: Floats, entry: Ints) -> Watched:
    aborted = (standing == Standing.ABORTED) & np.isfinite(reported_at)
    out = (standing == Standing.IN_PROGRESS) | (standing == Standing.TIMED_OUT)
    chosen = np.flatnonzero(out | aborted | (standing == Standing.SUCCESS))
    end_at = np.where(out[chosen], now, reported_at[chosen])
    ln_s = np.log(np.maximum(end_at - sent_at[chosen], 1.0))
    return Watched(ln_s, (out | aborted)[chosen], entry[chosen], sent_at[chosen])


def _scrambled(watched: Watched) -> Ints:
    """A number per instance that depends on its sending alone, in no order anyone would come in."""
    bits = watched.sent_at.view(np.uint64) ^ (watched.entry.astype(np.uint64) << np.uint64(40))
    bits = (bits ^ (bits >> np.uint64(31))) * np.uint64(0x9E3779B97F4A7C15)
    number: Ints = (bits >> np.uint64(2)).astype(np.int64)
    return number
