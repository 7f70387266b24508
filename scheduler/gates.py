"""Decides whether a host is fast and reliable enough for a job, and reserves some jobs for newcomers. Pure."""

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
    """Return the host's P with this version, among all hosts that run the app on its processor type."""
    cuts = catalogue.cut_points.get((version.app_id, version.processor_type))
    return percentile(havs.get(version.app_version_id), cuts, now=now, settings=catalogue.settings.ranking)


def lowest_gate(settings: DeadlineSettings) -> float:
    """Return the lowest threshold of all gates. Hosts below it skip gated jobs.

    >>> lowest_gate(DeadlineSettings(p_afap=0.6, p_late=0.5, p_retry=0.7, p_tight=0.9))
    0.5
    """
    thresholds: list[float] = [getattr(settings, gate) for gate in traits_of(settings).gates]  # gate = setting name
    return min(thresholds)


def reachable(settings: DeadlineSettings, cuts: CutPoints | None) -> DeadlineSettings:
    """Return the gates in effect, lowered where hosts above them send too few requests (decision 12).

    Before the first ranking, all hosts have P = 0.5 or 0, so no host could pass a higher gate and its jobs would wait
    without limit: gates are capped at the bootstrap percentile. Afterwards, gates are lowered according to the measured
    request rate (`cuts.relaxed`). Rules that do not relax gates use the settings unchanged.

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


LEAST_RELAXED_P = BOOTSTRAP_P  # a batch's last jobs stay with the better half of the hosts
KEPT_OPEN = 0.25  # or with the hosts that send this share of the requests, if the better half sends fewer
RELAXED_STEP = 0.05  # step in which gates are lowered


def least_gate(gate: Gate, calls_per_hour: Callable[[float], float]) -> float:
    """Return how far this gate may be lowered: to 0.5, or to the P reached by a quarter of the requests if that is
    lower.

    P is the lower of two percentiles: where many hosts fail, far fewer than half of them reach 0.5. Retries may go to
    any ranked host, because in such a project they are a large part of the work.

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
    """Return the highest gate at which `jobs` are sent within `longest_s` at one per request, and its requests per
    hour.

    `calls_per_hour(p)` is the request rate of hosts with at least p. Searches from `threshold` down in steps of 0.05
    for the first p with jobs / rate <= longest, not below `least` (decision 12). A gate at or below `least` is
    unchanged. Only the rate counts; a job's waiting time lowers nothing.

    Example: 50 jobs in at most 5 hours, 3.3 requests per hour at 0.9 and 3.3 more for every 0.1 below: the required 10
    requests per hour are reached at 0.65 (11.55).

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
    """Return how long jobs may wait behind a gate until it is lowered: max(fraction of the hosts' median R, minimum).

    R is that of a host with the median R_q and its app's slack. Without a known median, only the minimum applies.

    >>> cuts = CutPoints(1, "cpu", 0.0, 40, (), (), median_safe_runtime_s=Seconds(20 * 3600.0))
    >>> longest_wait_s(cuts, DeadlineSettings()), longest_wait_s(None, DeadlineSettings())
    (7200.0, 1800.0)
    >>> punctual = replace(cuts, tight_n=100.0)  # tight work returns within R: R is 19 h, R_q an hour more
    >>> longest_wait_s(punctual, DeadlineSettings())
    17100.0
    """
    median_s = cuts.median_safe_runtime_s if cuts is not None else None
    runtime_s = 0.0 if median_s is None else runtime_behind_s(median_s, cuts, settings)
    return Seconds(max(settings.gate_wait_fraction * runtime_s, settings.min_gate_wait_s))


CAN_WAIT = frozenset({QoS.THROUGHPUT, QoS.LONG_DEADLINE})
KEPT = "the last {0} of {1} jobs (share {2:g}) are reserved for new hosts and idle processors; this host is not new "
"and has no idle processor"


def kept_for_newcomers(batch: Batch, of_host: Percentile, fraction: float) -> Refusal | None:
    """Return why a host without idle processors may not get an ungated first instance, None if it may.

    The last `fraction` of a throughput or long-deadline batch is reserved for unranked hosts, which get their first
    results with it, and for idle processors of any host. This keeps ranked hosts from queueing all of it when work is
    scarce, without leaving a processor idle.
    """
    counts = batch.counts
    if of_host.x is None or counts.unsent >= fraction * counts.jobs_total or batch.qos not in CAN_WAIT:
        return None
    terms = counts.unsent, counts.jobs_total, fraction
    return Refusal(RefusalCode.NEWCOMER_SHARE, KEPT, terms, figures="the last {0} of {1} jobs")
