"""Limits a host's daily jobs beyond those its own results cover, by quotas for its account and address. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from domain.quick import quick_dataclass
from domain.quotas import FREE_PART, QuotaGrant, QuotaRequest, SharedQuota, grant
from domain.refusals import Refusal, RefusalCode
from scheduler.context import JobQuota, RemainingDemand, SchedulingContext, believed, demand_of
from scheduler.versions import day_of

COVER_FACTOR = 2  # jobs per day for each of the host's validated results


@quick_dataclass(frozen=True, slots=True)
class Draw:
    """The charge to shared quotas, and the number of jobs that need no charge."""

    request: QuotaRequest
    covered: int

    def unused(self, given: int, granted: int) -> int:
        """Return how many granted jobs were not sent."""
        return granted - min(granted, max(0, given - self.covered))


def draw_of(context: SchedulingContext, jobs: int) -> Draw | None:
    """Return the charge for `jobs` jobs to the shared quotas; None if the host's own results cover them.

    A host's results cover COVER_FACTOR jobs per day for each validated result. With one result per processor, a host
    has a record.
    """
    if not jobs or not context.catalogue.settings.scheduler.shared_quota_start:
        return None
    day = day_of(context.now)
    today = sum([hav.sent_today for hav in context.havs.values() if hav.day == day])
    valid = sum([hav.n_valid for hav in context.havs.values()])
    covered = max(0, COVER_FACTOR * valid - today)
    if jobs <= covered:
        return None
    processors = sum([believed(max(1, want.count), context.havs) for want in context.wants])
    request = QuotaRequest(
        context.host.host_id,
        context.volunteer.volunteer_id,
        day,
        jobs - covered,
        idle=max(0, processors - len(context.held)),
        network=context.network,
        has_record=valid >= processors,
    )
    return Draw(request, covered)


def within_quotas(context: SchedulingContext, quotas: Iterable[SharedQuota]) -> SchedulingContext:
    """Return the context with the job limit from the host's own results and its shared quotas, if they limit it."""
    start = context.catalogue.settings.scheduler.shared_quota_start
    if not start:
        return context
    needs = [need for want in context.wants if isinstance(need := demand_of(want, context, sent=0), RemainingDemand)]
    draw = draw_of(context, sum([need.jobs for need in needs]))
    if draw is None:
        return context
    found = grant(draw.request, quotas, start)
    if found.granted == draw.request.wanted:
        return context
    return replace(context, quota=JobQuota(draw.covered + found.granted, quota_refusal(found)))


def quota_refusal(grant: QuotaGrant) -> Refusal:
    """Return why a host gets no more jobs than the quotas granted."""
    whose = "address" if grant.name.startswith("address") else "account"
    sentence = (
        "computers of this {0} without enough valid results got {1} jobs today of their shared quota of {2}; above "
        "{3}, each gets one job per idle processor"
    )
    terms = whose, grant.sent, grant.quota, grant.quota // FREE_PART
    return Refusal(
        RefusalCode.DAILY_QUOTA,
        sentence,
        terms,
        figures="{1} jobs sent today to the {0}, shared quota {2}: above {3}, one per idle processor",
    )
