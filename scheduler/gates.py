"""Decides whether a host is fast and reliable enough for a job, and which jobs are kept for newcomers. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from domain.apps import AppVersion
from domain.batches import Batch, QoS
from domain.catalogue import Catalogue
from domain.deadline_rules import traits_of
from domain.hosts import HostAppVersion
from domain.ranking import BOOTSTRAP_P, CutPoints, Gate, Percentile, percentile
from domain.refusals import Refusal, RefusalCode
from domain.settings import DeadlineSettings
from domain.units import HOUR_S, AppVersionId, Instant, Seconds
from scheduler.runtime import runtime_behind_s


def percentile_of(
    version: AppVersion, havs: Mapping[AppVersionId, HostAppVersion], catalogue: Catalogue, *, now: Instant
) -> Percentile:
    """P of the host with this version, among all hosts with the app on its processor type."""
    cuts = catalogue.cut_points.get((version.app_id, version.processor_type))
    return percentile(havs.get(version.app_version_id), cuts, now=now, settings=catalogue.settings.ranking)


def lowest_gate(settings: DeadlineSettings) -> float:
    """The least threshold any gated job asks for: a host below it needs no look at gated jobs.

    >>> lowest_gate(DeadlineSettings(p_afap=0.6, p_late=0.5, p_retry=0.7, p_tight=0.9))
    0.5
    """
    thresholds: list[float] = [getattr(settings, gate) for gate in traits_of(settings).gates]  # named as their setting
    return min(thresholds)


def reachable(settings: DeadlineSettings, cuts: CutPoints | None) -> DeadlineSettings:
    """The gates as they hold: lower than set where too few requests come from hosts above (decision 12).

    Before the host statistics have ranked anybody, hosts have P 0.5 or 0: no request can come from a host
    above, so the expected time to send a job behind a higher gate has no end, and gates are at most at the
    bootstrap percentile. Afterwards those that the measured rate of requests has lowered (`cuts.relaxed`) are.
    Rules that do not relax gates keep them as set.

    >>> reachable(DeadlineSettings(p_tight=0.9), None).p_tight
    0.5
    >>> from domain.ranking import RelaxedGate
    >>> relaxed = (RelaxedGate(1, "cpu", Gate.TIGHT, 0.7),)
    >>> cuts = CutPoints(1, "cpu", 0.0, 40, (1.0, 2.0), (), relaxed=relaxed)
    >>> reachable(DeadlineSettings(p_tight=0.9), cuts).p_tight
    0.7
    """
    traits = traits_of(settings)
    if not traits.relaxes_gates:
        return settings
    highest = dict.fromkeys(traits.gates, BOOTSTRAP_P)
    if cuts is not None and cuts.turnaround:
        highest = {gate.gate: gate.threshold for gate in cuts.relaxed}
    held: dict[str, Any] = {
        gate: min(getattr(settings, gate), highest[gate]) for gate in traits.gates if gate in highest
    }
    return replace(settings, **held) if held else settings


LEAST_RELAXED_P = BOOTSTRAP_P  # the last jobs of a batch stay with the better half,
KEPT_OPEN = 0.25  # or with whoever makes this share of the calls, where the better half makes fewer
RELAXED_STEP = 0.05  # gates are lowered in steps of this


def least_gate(gate: Gate, calls_per_hour: Callable[[float], float]) -> float:
    """How far this gate may be lowered: to 0.5, or to what a quarter of the calls reach if that is less.

    P is the lower of two percentiles: where many hosts fail, far fewer than half of them have 0.5. Retries may go to
    any host that has a percentile: in such a project they are much of the work.

    >>> least_gate(Gate.TIGHT, lambda p: 10.0 * (1.0 - p)), least_gate(Gate.TIGHT, lambda p: 10.0 * (1.0 - p) ** 3)
    (0.5, 0.35)
    >>> least_gate(Gate.RETRY, lambda p: 10.0 * (1.0 - p))
    0.0
    """
    if gate is Gate.RETRY:
        return 0.0
    p, enough = LEAST_RELAXED_P, KEPT_OPEN * calls_per_hour(0.0)
    while p > 0.0 and calls_per_hour(p) < enough:
        p = max(0.0, round(p - RELAXED_STEP, 6))
    return p


def affordable(
    threshold: float, jobs: int, calls_per_hour: Callable[[float], float], *, longest_s: Seconds, least: float
) -> tuple[float, float]:
    """The highest gate at which `jobs` are sent within `longest_s`, one per call, and the calls an hour there.

    `calls_per_hour(p)` is how many calls an hour come from hosts with at least p. From `threshold` down in steps
    of 0.05 to the first p with jobs / rate <= longest, and not below `least` (decision 12); a gate at or below that
    stays as it is. By the rate alone: how long a job has waited lowers nothing.

    50 jobs, 3.3 calls an hour at 0.9 and 3.3 more for every 0.1 below, 5 hours at most: 10 calls an hour are
    needed, which come at 0.65 (11.55).

    >>> p, rate = affordable(0.9, 50, lambda p: 33.0 * (1.0 - p), longest_s=Seconds(5 * 3600.0), least=0.5)
    >>> round(p, 2), round(rate, 2)
    (0.65, 11.55)
    """
    p, rate = threshold, calls_per_hour(threshold)
    while p > least and jobs * HOUR_S > rate * longest_s:
        p = max(least, round(p - RELAXED_STEP, 6))
        rate = calls_per_hour(p)
    return p, rate


def longest_wait_s(cuts: CutPoints | None, settings: DeadlineSettings) -> Seconds:
    """How long jobs may wait behind a gate before it is lowered: max(fraction of the hosts' median R, least).

    R is that of a host with the median R_q and the slack of its app; the least alone while no median is known.

    >>> cuts = CutPoints(1, "cpu", 0.0, 40, (), (), median_safe_runtime_s=Seconds(20 * 3600.0))
    >>> longest_wait_s(cuts, DeadlineSettings()), longest_wait_s(None, DeadlineSettings())
    (7200.0, 1800.0)
    >>> punctual = replace(cuts, tight_n=100.0)  # whose hosts return tight work within R: R is 19 h, R_q an hour more
    >>> longest_wait_s(punctual, DeadlineSettings())
    17100.0
    """
    median_s = cuts.median_safe_runtime_s if cuts is not None else None
    runtime_s = 0.0 if median_s is None else runtime_behind_s(median_s, cuts, settings)
    return Seconds(max(settings.gate_wait_fraction * runtime_s, settings.min_gate_wait_s))


CAN_WAIT = frozenset({QoS.THROUGHPUT, QoS.LONG_DEADLINE})
KEPT = (
    "the last {0} of {1} jobs are for newcomers and idle processors (the last {2:g}); no processor of this host is idle"
)


def kept_for_newcomers(batch: Batch, of_host: Percentile, fraction: float) -> Refusal | None:
    """Return why a host without idle processors may not have an ungated first instance, or None when it may.

    The last `fraction` of a throughput or long-deadline batch is for hosts that are not ranked yet, which get a
    record with it, and for idle processors of any host. So where hosts compete for little work,
    ranked hosts do not store all of it; and no processor is idle because of this share.
    """
    counts = batch.counts
    if of_host.x is None or counts.unsent >= fraction * counts.jobs_total or batch.qos not in CAN_WAIT:
        return None
    return Refusal(RefusalCode.NEWCOMER_SHARE, KEPT, (counts.unsent, counts.jobs_total, fraction))
