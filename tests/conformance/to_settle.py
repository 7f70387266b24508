"""Jobs to settle, and simple settlements of them."""

from __future__ import annotations

from domain.dispatch import InstanceStep
from domain.jobs import InstanceState, JobState
from domain.settlement import JobFacts, JobSettlement
from domain.units import later
from tests.builders import NOW
from tests.stores import Store
from tests.worlds import RegisteredHost, a_report, a_sent_instance, a_submitted_batch, report

S = InstanceState
SETTLED_AT = later(NOW, 9000.0)


async def a_reported_job(
    store: Store, host: RegisteredHost, *, quorum: int = 1, to_state: InstanceState = S.REPORTED, jobs: int = 1
) -> JobFacts:
    """Return a job of a new batch whose first instance was reported."""
    batch = await a_submitted_batch(store, jobs=jobs, quorum=quorum)
    sent = await a_sent_instance(store, batch.batch_id, host)
    await report(store, host, a_report(sent, to_state=to_state))
    return next(facts for facts in await store.unsettled.unsettled(99, now=NOW) if facts.job_id == sent.job_id)


def valid(facts: JobFacts) -> JobSettlement:
    """Settle the job as valid by its first instance; unsent ones are cancelled."""
    first = facts.instances[0].instance_id
    steps = [InstanceStep(first, S.REPORTED, S.VALID)]
    steps += [InstanceStep(one.instance_id, S.UNSENT, S.CANCELLED) for one in facts.instances if one.state is S.UNSENT]
    return JobSettlement(
        facts.job_id, facts.serial, JobState.VALID, SETTLED_AT, canonical_instance_id=first, steps=tuple(steps)
    )


def failed(facts: JobFacts, failure: str = "too many errors") -> JobSettlement:
    return JobSettlement(facts.job_id, facts.serial, JobState.FAILED, SETTLED_AT, failure=failure)
