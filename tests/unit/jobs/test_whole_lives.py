"""Tests that every job ends within its limits for any behaviour of hosts, and that counters equal the rows."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from domain.batches import BatchState
from domain.catalogue import Catalogue
from domain.jobs import InstanceState, JobState, output_file_name
from domain.settings import LifecycleSettings
from domain.units import later
from jobs.build import JobsPorts, JobsServices, build
from jobs.comparisons import Compared, Comparison
from tests.builders import a_job_class
from tests.memory import MemoryStore
from tests.stores import batches_of
from tests.unit.jobs.projects import HandClock, a_project
from tests.worlds import a_registered_host, a_report, a_sent_instance, a_submitted_batch, report, waiting_of

BEHAVIOUR = st.sampled_from(["right", "right", "wrong", "error", "silent"])


class NoFiles:
    """Bitwise comparison reads no file contents."""

    at_once = 1

    async def compare(self, comparison: Comparison) -> Compared:
        raise AssertionError(f"{comparison} is not to be read")


def services(store: MemoryStore, clock: HandClock) -> JobsServices:
    ports = JobsPorts(store.unsettled, NoFiles(), store.overdue, store.outages, store.history, store.tails, store.notes)
    return build(ports, Catalogue, clock)


async def behave(store: MemoryStore, batch_id: int, behaviour: str, clock: HandClock) -> None:
    """Send the first unsent instance to a new host, which acts as `behaviour` says."""
    host = await a_registered_host(store)
    [batch] = await batches_of(store, limit=1)
    assert batch.batch_id == batch_id
    now = clock.now()
    sent = await a_sent_instance(store, batch.batch_id, host, sent_at=now, due_at=later(now, 60.0))
    if behaviour == "silent":
        return
    if behaviour == "error":
        await report(store, host, a_report(sent, to_state=InstanceState.FAILED, reported_at=later(now, 30.0)))
        return
    name = output_file_name(f"pi_{sent.batch_id}_{sent.job_id}_{sent.instance_id}", 0)
    md5 = "a" * 32 if behaviour == "right" else f"{sent.instance_id:032x}"
    await store.uploads.record_upload(sent.instance_id, name=name, nbytes=3, md5=md5, completed_at=now)
    await report(store, host, a_report(sent, reported_at=later(now, 30.0)))


@settings(max_examples=60, deadline=None)
@given(
    behaviours=st.lists(BEHAVIOUR, min_size=1, max_size=12),
    quorum=st.integers(1, 3),
    max_errors=st.integers(1, 4),
    more_instances=st.integers(0, 4),
)
async def test_every_job_ends_within_its_limits(
    behaviours: list[str], quorum: int, max_errors: int, more_instances: int
) -> None:
    store, clock = await a_project(), HandClock()
    running = services(store, clock)
    job_class = a_job_class(quorum=quorum, max_errors=max_errors, max_instances=quorum + more_instances)
    batch = await a_submitted_batch(store, jobs=1, job_class=job_class, copies=quorum)
    [job] = await store.views.jobs(batch.batch_id, limit=1)
    for turn in range(200):
        if not await waiting_of(store, batch.batch_id):
            clock.time = later(clock.now(), 500.0)  # nothing to send: outstanding ones come due
        else:
            await behave(store, batch.batch_id, behaviours[turn % len(behaviours)], clock)
            clock.time = later(clock.now(), 30.0)
        await running.sweeper.run_once()
        await running.validator.run_once()
        row = await store.views.job(job.job_id)
        if row.state is not JobState.OPEN and InstanceState.IN_PROGRESS not in [one.state for one in row.instances]:
            break
    else:
        raise AssertionError("the job never ended")
    states = [one.state for one in row.instances]
    assert (
        sum(state is not InstanceState.CANCELLED for state in states)
        <= job_class.max_instances + LifecycleSettings().max_lost_instances
    )
    assert InstanceState.UNSENT not in states
    assert (await store.views.batch(batch.batch_id)).state is BatchState.COMPLETE
    assert list(await store.views.check_counters()) == []
    if row.state is JobState.VALID:
        assert states.count(InstanceState.VALID) >= quorum
    else:
        assert row.state is JobState.FAILED
        assert row.failure


def test_a_sweep_is_often_enough_to_notice_an_outage() -> None:
    assert LifecycleSettings().sweep_interval_s * 3 < LifecycleSettings().outage_s
