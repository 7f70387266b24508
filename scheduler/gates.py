"""Is a host fast and reliable enough, and what is a newcomer given? Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from domain.apps import AppVersion
from domain.catalogue import Catalogue
from domain.hosts import HostAppVersion
from domain.jobs import Ready
from domain.ranking import BOOTSTRAP_P, CutPoints, Percentile, percentile
from domain.refusals import Refusal, RefusalCode
from domain.settings import DeadlineRule, DeadlineSettings
from domain.units import AppVersionId, InstanceId, Instant


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
    if settings.rule is DeadlineRule.PROPOSAL:
        return min(settings.p_afap, settings.p_tight)
    return min(settings.p_afap, settings.p_late, settings.p_retry, settings.p_tight)


def reachable(settings: DeadlineSettings, cuts: CutPoints | None) -> DeadlineSettings:
    """The gates no host can reach, lowered to the bootstrap percentile while no row is ranked yet.

    Before the host statistics have ranked anybody, hosts have P 0.5 or 0: no request can come from a host
    above, so the expected time to send a job behind a higher gate has no end (POLICY D9). The rule
    `proposal` keeps its own.

    >>> reachable(DeadlineSettings(p_tight=0.9), None).p_tight
    0.5
    """
    if settings.rule is not DeadlineRule.MUSTER or (cuts is not None and cuts.turnaround):
        return settings
    return replace(
        settings,
        p_afap=min(settings.p_afap, BOOTSTRAP_P),
        p_late=min(settings.p_late, BOOTSTRAP_P),
        p_retry=min(settings.p_retry, BOOTSTRAP_P),
        p_tight=min(settings.p_tight, BOOTSTRAP_P),
    )


def newcomer_refusal(found: Percentile, slot: Ready, fraction: float) -> Refusal | None:
    """Why a host without a percentile may not have this ungated slot; None when it may, or is no newcomer.

    Newcomers get `fraction` of the first instances of ungated batches so that they get a record at all
    (DESIGN section 5). Which ones is drawn once per instance, not per request: else a host that asks
    again would have its way with all of them.
    """
    if found.p is not None:
        return None
    if slot.urgent:
        return Refusal(RefusalCode.NEWCOMER_SHARE, "{0}; only first instances are for newcomers", (found.because,))
    if draw(slot.instance_id) < fraction:
        return None
    terms = (found.because, fraction)
    return Refusal(RefusalCode.NEWCOMER_SHARE, "{0}; newcomers get {1:g} of first instances", terms)


def draw(instance_id: InstanceId) -> float:
    """A number from 0 to below 1 that belongs to an instance: equal for all requests and workers.

    The id's bits are mixed by two rounds of multiply and xor-shift, so that the neighbours of one batch
    are spread evenly.

    >>> sum(draw(InstanceId(i)) < 0.05 for i in range(100_000)) / 100_000
    0.05065
    """
    mixed = (instance_id * 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
    mixed = ((mixed ^ (mixed >> 32)) * 0xD6E8FEB86659FD93) & 0xFFFFFFFFFFFFFFFF
    mixed ^= mixed >> 32
    return (mixed >> 11) / float(1 << 53)
