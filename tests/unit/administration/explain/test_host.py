"""What would help a host that has used up a quota."""

from __future__ import annotations

from dataclasses import replace

from administration.explain.host import gate_help, quota_help
from domain.dispatch import RequestView
from domain.hosts import HostAppVersion
from domain.quotas import SharedQuota
from domain.ranking import Gate, Percentile
from domain.refusals import Refusal, RefusalCode
from domain.settings import RankingSettings, SchedulerSettings
from domain.units import DAY_S, HOUR_S, AppVersionId, HostId, Instant
from scheduler.deadline.inputs import below_gate, busy_below_gate, slow_below_gate
from tests.facts import missing

SHARED = Refusal(RefusalCode.DAILY_QUOTA, "{0} got {1} of {2}, {3}", ("account", 635, 1710, 427))
OWN = Refusal(RefusalCode.DAILY_QUOTA, "version {1}: {2} of {3}", (1, 100, 50, 50))
SETTINGS = SchedulerSettings(daily_quota_start=50, shared_quota_start=4000)
AT = Instant(9.0 * DAY_S - 6.0 * HOUR_S)
HAV = HostAppVersion(HostId(1), AppVersionId(1), quota_per_day=60, n_valid=32, n_error=60, n_timeout=8)
VIEW = RequestView(havs={HAV.app_version_id: HAV}, quotas=(SharedQuota("volunteer 1", 10, 8, 50),))


def test_used_quota_names_its_setting_and_its_reset() -> None:
    own, shared = (quota_help(one, VIEW, SETTINGS, AT) for one in (OWN, SHARED))

    assert not missing(own, "in 6 h", "scheduler.daily_quota_start", "(50)") and "68" not in own
    assert not missing(shared, "in 6 h", "scheduler.shared_quota_start", "(4000)") and "68" not in shared
    assert "idle" in shared and "idle" not in own
    assert "idle" not in quota_help(replace(SHARED, terms=("account", 1710, 1710, 427)), VIEW, SETTINGS, AT)


def test_low_quota_is_due_to_failed_results() -> None:
    low = replace(VIEW, havs={HAV.app_version_id: replace(HAV, quota_per_day=5)})
    used = replace(VIEW, quotas=(SharedQuota("volunteer 1", -2290, 8, 635),))

    assert not missing(quota_help(OWN, low, SETTINGS, AT), "68 of 100")
    assert not missing(quota_help(SHARED, used, SETTINGS, AT), "68 of 100", "account")
    assert "68" not in quota_help(SHARED, low, SETTINGS, AT) and "68" not in quota_help(OWN, used, SETTINGS, AT)


def test_quota_is_judged_by_the_version_that_refused() -> None:
    other = replace(HAV, app_version_id=AppVersionId(2), quota_per_day=5, n_error=900)
    both = replace(VIEW, havs={**VIEW.havs, other.app_version_id: other})
    own, others = (quota_help(one, both, SETTINGS, AT) for one in (OWN, replace(OWN, terms=(2, 101, 50, 50))))

    assert " of " not in own and not missing(others, "908 of 940")


def test_threshold_helps_only_a_host_with_a_rank() -> None:
    known, new = (Percentile(p, reason="because") for p in (0.05267, None))

    ranked, newcomer = (gate_help(below_gate(one, Gate.TIGHT, 0.9), RankingSettings()) for one in (known, new))

    assert not missing(ranked, "deadline.p_tight", "0.052") and "min_samples" not in ranked
    assert not missing(newcomer, "ranking.min_samples", "3 results") and "p_tight" not in newcomer


def test_slow_host_below_a_gate_is_told_of_no_queued_work() -> None:
    slow = slow_below_gate(Percentile(0.05267, reason="because"), Gate.AFAP, 0.5, 9.0 * HOUR_S, 2.0 * HOUR_S)

    said = gate_help(slow, RankingSettings())

    assert not missing(said, "deadline.p_afap", "0.052") and "2 h" not in said


def test_busy_host_below_a_gate_needs_less_queued_work() -> None:
    known, new = (Percentile(p, reason="because") for p in (0.05267, None))
    refusals = (busy_below_gate(one, Gate.AFAP, 0.5, 9.0 * HOUR_S, 2.0 * HOUR_S) for one in (known, new))

    ranked, newcomer = (gate_help(one, RankingSettings()) for one in refusals)

    assert not missing(ranked, "2 h", "deadline.p_afap", "0.052")
    assert not missing(newcomer, "2 h") and "p_afap" not in newcomer
