"""Tests copies of late jobs, and batch acceleration, on every store."""

from __future__ import annotations

from dataclasses import replace

from domain.acceleration import Acceleration, LowTurnaround
from domain.batches import Batch, QoS
from domain.catalogue import Catalogue
from domain.history import MovedJobs
from domain.jobs import InstanceState
from domain.settings import Settings
from domain.settlement import CopyUse, ExtraCopy, TailInstance
from domain.units import DAY_S, AppId, BatchId, HostId, InstanceId, Instant, JobId, later
from domain.views import UnsentExtras
from jobs.tails import Accelerator, TailCopier, TailReport
from lifecycle.settle import settle
from lifecycle.tail import LOST
from tests.builders import NOW
from tests.conformance.test_history import move
from tests.conformance.test_history import settle as settle_all
from tests.conformance.test_turnarounds import results as results_of
from tests.stores import Store
from tests.unit.jobs.projects import HandClock
from tests.worlds import (
    a_hav_event,
    a_registered_host,
    a_report,
    a_sent_instance,
    a_submitted_batch,
    report,
    the_version,
    waiting_of,
)

LATER = later(NOW, 10 * DAY_S)
S = InstanceState


def a_copier(store: Store, now: Instant = LATER, **settings: object) -> TailCopier:
    few = {"lifecycle.tail_overhead_fraction": 0.1, "lifecycle.tail_late_factor": 1.0}
    values = few | {key.replace("__", "."): value for key, value in settings.items()}
    return TailCopier(store.tails, lambda: Catalogue(settings=Settings.from_mapping(values)), HandClock(now))


async def a_tail(store: Store, jobs: int = 20, quorum: int = 1, qos: QoS = QoS.AFAP) -> Batch:
    """Create a batch with every instance on a host, ten days late."""
    batch = await a_submitted_batch(store, jobs=jobs, quorum=quorum, qos=qos)
    for _ in range(quorum):
        host = await a_registered_host(store)
        for candidate in {one.ready.job_id: one for one in await waiting_of(store, batch.batch_id)}.values():
            await a_sent_instance(store, batch.batch_id, host, candidate)
    return batch


async def copies_of(store: Store, batch: Batch) -> list[tuple[JobId, int]]:
    """Return the unsent instances that precede fresh ones: job and retries."""
    return [(one.ready.job_id, one.ready.retries) for one in await store.waiting.urgent([batch.batch_id], 1000)]


async def test_last_jobs_are_copied_up_to_the_cap_and_not_again(store: Store) -> None:
    batch = await a_tail(store, jobs=20)

    assert await a_copier(store).run_once() == TailReport(batches=1, copies=2, capped=1)
    assert await a_copier(store).run_once() == TailReport(batches=1, copies=0, capped=1)

    jobs = [row.job_id for row in await store.views.jobs(batch.batch_id, limit=2)]
    assert await copies_of(store, batch) == [(jobs[0], 1), (jobs[1], 1)]
    assert (await store.views.batch(batch.batch_id)).counts.unsent == 2


async def test_adaptive_copies_are_no_overhead(store: Store) -> None:
    batch = await a_submitted_batch(store, jobs=20, qos=QoS.AFAP)
    host = await a_registered_host(store)
    sent = [
        await a_sent_instance(store, batch.batch_id, host, candidate, copies=2 if position < 10 else 0)
        for position, candidate in enumerate(await waiting_of(store, batch.batch_id))
    ]
    seconds = [ExtraCopy(one.job_id, 1, 0, 0, because="the second of two") for one in sent[:10]]
    assert await store.tails.add_copies(seconds, now=LATER) == 10

    assert await store.tails.copy_use(batch.batch_id) == CopyUse(wanted=30, copies=10)
    copier = a_copier(store, lifecycle__tail_overhead_fraction=0.5)
    assert await copier.run_once() == TailReport(1, copies=5, capped=1)
    assert await copier.run_once() == TailReport(batches=1, copies=0, capped=1)


async def copied_because(store: Store, instance_id: InstanceId) -> str | None:
    job = await store.views.job_of_instance(instance_id)
    listed = await store.listings.instances(job.batch_id, list(S), after=None, limit=9)
    [of_job] = {one.copied_because for one in job.instances if one.instance_id == instance_id}
    assert [one.copied_because for one in listed if one.instance_id == instance_id] == [of_job]
    return of_job


async def test_a_copy_remembers_why_it_was_made_into_the_history(store: Store) -> None:
    host = await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=1, qos=QoS.AFAP)
    first = await a_sent_instance(store, batch.batch_id, host)
    await a_copier(store, lifecycle__tail_overhead_fraction=1.0).run_once()
    [copy] = await store.waiting.urgent([batch.batch_id], 9)

    because = await copied_because(store, copy.ready.instance_id)
    assert because == LOST
    assert await copied_because(store, first.instance_id) is None
    assert await store.listings.extras(batch.batch_id) == UnsentExtras(copies=1, retries=0)

    await report(store, host, a_report(first, to_state=S.REPORTED))
    await settle_all(store)
    assert await move(store) == MovedJobs(jobs=1, instances=2)
    assert await copied_because(store, copy.ready.instance_id) == because


async def test_copy_of_a_failed_instance_counts_as_a_retry(store: Store) -> None:
    host = await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=1, qos=QoS.AFAP)
    first = await a_sent_instance(store, batch.batch_id, host)
    await a_copier(store, lifecycle__tail_overhead_fraction=1.0).run_once()
    [copy] = await store.waiting.urgent([batch.batch_id], 9)

    await report(store, host, a_report(first, to_state=S.FAILED))
    [facts] = await store.unsettled.unsettled(9, now=LATER)
    assert await store.unsettled.settle([settle(facts, {}, now=LATER, max_lost=9)]) == 1

    assert await copied_because(store, copy.ready.instance_id) is None
    assert await store.listings.extras(batch.batch_id) == UnsentExtras(copies=0, retries=1)
    assert [one.ready for one in await store.waiting.urgent([batch.batch_id], 9)] == [copy.ready]


async def test_a_job_is_copied_again_only_once_its_copy_is_late_too(store: Store) -> None:
    batch = await a_tail(store, jobs=3)
    copier = a_copier(store, lifecycle__tail_overhead_fraction=10.0)

    assert [(await copier.run_once()).copies for _ in range(3)] == [3, 0, 0]
    host = await a_registered_host(store)
    for candidate in await store.waiting.urgent([batch.batch_id], 99):
        await a_sent_instance(store, batch.batch_id, host, candidate)
    once = a_copier(store, lifecycle__tail_overhead_fraction=10.0, lifecycle__tail_late_factor=0.0)
    assert (await once.run_once()).copies == 0
    assert [(await copier.run_once()).copies for _ in range(2)] == [3, 0]


async def test_nearly_lost_jobs_are_copied_beyond_the_cap(store: Store) -> None:
    batch = await a_tail(store, jobs=20, qos=QoS.THROUGHPUT)
    assert await a_copier(store).run_once() == TailReport(batches=1, copies=2, capped=1)

    measured, version = await a_submitted_batch(store, jobs=99), await the_version(store)
    await results_of(store, measured.batch_id, version, [2.0] * 20)
    await store.hav_tables.refresh_turnarounds(version.app_id)

    assert await a_copier(store, later(NOW, 60.0)).run_once() == TailReport(batches=1)
    never = a_copier(store, lifecycle__tail_late_factor=0.0)
    assert await never.run_once() == TailReport(batches=1)
    assert await a_copier(store).run_once() == TailReport(batches=1, copies=18)
    assert len(await copies_of(store, batch)) == 20


async def test_copies_wait_in_the_order_they_were_chosen_in(store: Store) -> None:
    batch = await a_tail(store, jobs=4)
    jobs = [row.job_id for row in await store.views.jobs(batch.batch_id, limit=9)]
    chosen = [jobs[2], jobs[0], jobs[3], jobs[1]]

    copies = [ExtraCopy(job_id, 1, 0, 1, because="late") for job_id in chosen]
    assert await store.tails.add_copies(copies, now=NOW) == 4

    assert [job_id for job_id, _ in await copies_of(store, batch)] == chosen


async def test_a_batch_is_looked_at_once_it_is_sent(store: Store) -> None:
    host = await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=40, qos=QoS.LONG_DEADLINE)
    for candidate in (await waiting_of(store, batch.batch_id))[:39]:
        await a_sent_instance(store, batch.batch_id, host, candidate)

    async def found(unsent: float) -> list[BatchId]:
        return [one.batch_id for one in await store.tails.tails(fraction=0.1, jobs=4, limit=9, unsent=unsent)]

    assert await found(-1.0) == await found(0.02) == []
    assert await found(0.025) == [batch.batch_id]


async def test_a_cap_of_nothing_copies_nothing(store: Store) -> None:
    await a_tail(store)
    assert await a_copier(store, lifecycle__tail_overhead_fraction=0).run_once() == TailReport()


async def test_jobs_that_are_soon_back_are_left_alone(store: Store) -> None:
    await a_tail(store, jobs=3)

    assert (await a_copier(store, now=later(NOW, 60.0)).run_once()).copies == 0
    assert (await a_copier(store, lifecycle__tail_overhead_fraction=1.0).run_once()).copies == 3


async def test_a_copy_decided_upon_what_has_changed_since_is_not_made(store: Store) -> None:
    batch = await a_tail(store, jobs=3)
    jobs = await store.tails.tail_jobs(batch.batch_id, after=JobId(0), limit=9, now=LATER)
    copies = [ExtraCopy(job.job_id, len(job.instances), job.tail_copies, 1, "slow") for job in jobs]
    [first, second, third] = copies
    made = [first, replace(second, instances=2), replace(third, tail_copies=1)]

    assert await store.tails.add_copies(made, now=LATER) == 1
    assert await store.tails.add_copies([first], now=LATER) == 0

    await store.submissions.abort_batch(batch.batch_id, now=LATER)
    assert await store.tails.add_copies([second], now=LATER) == 0


async def test_a_tail_job_says_what_is_known_of_its_hosts(store: Store) -> None:
    batch = await a_submitted_batch(store, jobs=2, quorum=2, qos=QoS.AFAP)
    host = await a_registered_host(store, last_rpc_at=NOW)
    before = await a_submitted_batch(store, jobs=2)
    for ratio in (1.0, 2.0):
        earlier = await a_sent_instance(store, before.batch_id, host)
        await report(store, host, a_report(earlier, hav_event=a_hav_event(earlier, at=NOW, ln_turnaround_ratio=ratio)))
    sent = await a_sent_instance(store, batch.batch_id, host)

    [first, second] = await store.tails.tail_jobs(batch.batch_id, after=JobId(0), limit=9, now=NOW)

    assert (first.job_id, first.copies, first.tail_copies) == (sent.job_id, 0, 0)
    assert {one.state for one in second.instances} == {S.UNSENT}
    [held] = [one for one in first.instances if one.state is S.IN_PROGRESS]
    known = TailInstance(
        sent.instance_id,
        S.IN_PROGRESS,
        False,
        host.host_id,
        sent.app_version_id,
        sent.sent_at,
        sent.est_runtime_s,
        ln_ratio=0.75,  # 3 / (2 + 2)
    )
    assert held == known
    assert [
        job.job_id for job in await store.tails.tail_jobs(batch.batch_id, after=first.job_id, limit=9, now=NOW)
    ] == [second.job_id]


async def test_a_copy_stays_while_its_job_is_settled(store: Store) -> None:
    batch = await a_submitted_batch(store, jobs=1, quorum=2, qos=QoS.AFAP)
    host = await a_registered_host(store)
    sent = await a_sent_instance(store, batch.batch_id, host)
    await a_sent_instance(store, batch.batch_id, await a_registered_host(store))
    assert (await a_copier(store, lifecycle__tail_overhead_fraction=1.0).run_once()).copies == 1
    await report(store, host, a_report(sent))

    [facts] = await store.unsettled.unsettled(9, now=NOW)

    assert (facts.tail_copies, facts.more_instances) == (1, 0)
    assert settle(facts, {}, now=NOW, max_lost=20).steps == ()


async def results(store: Store, *, quick: int, slow: int) -> Batch:
    """Complete a batch with a result of each host: fast ones after 600 s, slow ones after 7200 s."""
    batch = await a_submitted_batch(store, jobs=quick + slow)
    for number in range(quick + slow):
        host = await a_registered_host(store)
        sent = await a_sent_instance(store, batch.batch_id, host)
        took_s = 600.0 if number < quick else 7200.0
        await report(store, host, a_report(sent, reported_at=later(NOW, took_s)))
    return batch


async def test_low_turnaround_is_counted_alike(store: Store) -> None:
    batch = await results(store, quick=30, slow=75)
    timing_out = await a_submitted_batch(store, jobs=1)
    await a_sent_instance(store, timing_out.batch_id, await a_registered_host(store))

    low = await store.tails.low_turnaround(since=Instant(NOW - 1.0))

    assert low.hosts == frozenset(HostId(n) for n in range(1, 31))
    assert low.apps == frozenset({AppId(1)})
    assert low.median_s == {batch.batch_id: 7200.0}
    assert await store.tails.low_turnaround(since=later(NOW, 1.0)) == LowTurnaround()


async def test_acceleration_flags_hosts_and_hastens_remaining_jobs(store: Store) -> None:
    done = await results(store, quick=30, slow=75)
    rushed = await a_submitted_batch(store, jobs=3)
    await a_sent_instance(store, rushed.batch_id, await a_registered_host(store))
    await store.settings.set_setting("deadline.rule", "accelerated", now=NOW, who="ops", why="")
    catalogue = await store.applications.load_catalogue()
    assert catalogue.acceleration is None
    accelerator = Accelerator(store.tails, store.notes, lambda: catalogue, HandClock(LATER))

    report_ = await accelerator.run_once()

    found = (await store.applications.load_catalogue()).acceleration
    assert found is not None
    assert (len(found.hosts), found.apps) == (30, frozenset({AppId(1)}))
    assert rushed.batch_id in found.batches
    assert done.batch_id not in found.batches  # its 105 results are not validated
    assert report_.copies == 1
    urgent = await copies_of(store, rushed)
    assert len(urgent) == 3
    assert sorted(retries for _, retries in urgent) == [0, 0, 1]
    assert (await accelerator.run_once()).copies == 0  # its copy is unsent


async def test_other_rules_ignore_acceleration(store: Store) -> None:
    await store.notes.note_acceleration(Acceleration(NOW, frozenset({HostId(1)}), batches=frozenset({BatchId(3)})))
    catalogue = await store.applications.load_catalogue()
    assert catalogue.acceleration is None
    accelerator = Accelerator(store.tails, store.notes, lambda: catalogue, HandClock())
    assert (await accelerator.run_once()).batches == 0
    await store.settings.set_setting("deadline.rule", "accelerated", now=NOW, who="ops", why="")
    found = (await store.applications.load_catalogue()).acceleration
    assert found == Acceleration(NOW, frozenset({HostId(1)}), batches=frozenset({BatchId(3)}))
