"""What a host may have today beyond what its own record covers, from the quotas of its account and address. Pure."""

from __future__ import annotations

from domain.quick import quick_dataclass
from domain.quotas import FREE_PART, QuotaGrant, QuotaRequest
from domain.refusals import Refusal, RefusalCode
from scheduler.asking import Asking
from scheduler.need import Need, believed, need_of
from scheduler.versions import day_of

COVER_FACTOR = 2  # jobs a day that each validated result of the host lets it have


@quick_dataclass(frozen=True, slots=True)
class Draw:
    """What is asked of the shared quotas, and the jobs that the host may have without them."""

    request: QuotaRequest
    covered: int

    def unused(self, given: int, grant: QuotaGrant) -> int:
        """How many of the jobs granted were not given."""
        return grant.granted - min(grant.granted, max(0, given - self.covered))


def draw_of(asking: Asking) -> Draw | None:
    """What the request asks of the shared quotas; None when the host's own record covers all it may get.

    A host may have COVER_FACTOR times as many jobs a day as it has had results validated.
    """
    if not asking.catalogue.settings.scheduler.shared_quota_start:
        return None
    needs = [need for want in asking.wants if isinstance(need := need_of(want, asking, sent=0), Need)]
    wanted, day = sum(need.jobs for need in needs), day_of(asking.now)
    today = sum(hav.sent_today for hav in asking.havs.values() if hav.day == day)
    covered = max(0, COVER_FACTOR * sum(hav.n_valid for hav in asking.havs.values()) - today)
    if wanted <= covered:
        return None
    processors = sum(believed(max(1, want.count), asking.havs) for want in asking.wants)
    idle = max(0, processors - len(asking.held))
    host = asking.host
    return Draw(QuotaRequest(host.host_id, asking.volunteer.volunteer_id, day, wanted - covered, idle), covered)


def quota_refusal(grant: QuotaGrant) -> Refusal:
    """Why a host gets no more jobs than were granted."""
    whose = "address" if grant.name.startswith("address") else "account"
    sentence = (
        "computers of this {0} without a record had {1} jobs today, their quota is {2}; beyond {3} each gets one job "
        "per idle processor"
    )
    return Refusal(RefusalCode.DAILY_QUOTA, sentence, (whose, grant.sent, grant.quota, grant.quota // FREE_PART))
