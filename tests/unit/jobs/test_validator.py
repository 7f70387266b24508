"""Tests that jobs are settled by their instances' outputs, without delaying each other."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.batches import Batch, BatchState
from domain.dispatch import Assignment, InstanceStep, Upload
from domain.errors import UnavailableError
from domain.havs import HavEvent, HavEventKind
from domain.hosts import HostAppVersion
from domain.jobs import InstanceState, JobState, Output, ValidatorKind, output_file_name
from domain.settlement import ALL_JOBS, InstanceFacts, JobFacts, JobSettlement, JobShare
from domain.units import AppVersionId, Flop, HostId, InstanceId, Instant, JobId, Seconds, later
from jobs.comparisons import Compared, Comparison, OutputFile, TooSlowError, compare_here
from jobs.validator import Validator, ValidatorReport
from lifecycle.settle import UNREADABLE, speed_s_per_flop
from tests.builders import NOW, a_job_class
from tests.memory import MemoryStore
from tests.unit.jobs.projects import HandClock, a_project
from tests.worlds import RegisteredHost, a_registered_host, a_report, a_sent_instance, a_submitted_batch, report

MD5_A, MD5_B = "a" * 32, "b" * 32


class Outputs:
    """Uploaded outputs by file name; a name in `damaged` cannot be read."""

    def __init__(self) -> None:
        self.contents: dict[str, bytes] = {}
        self.damaged: set[str] = set()
        self.read: list[str] = []

    at_once = 2

    async def compare(self, comparison: Comparison) -> Compared:
        return compare_here(comparison, self._content)

    def _content(self, file: OutputFile) -> bytes | None:
        self.read.append(file.file_name)
        if file.file_name in self.damaged:
            raise OSError("input/output error")
        return self.contents.get(file.file_name)


class Project:
    """A store whose jobs are sent, uploaded and reported as by hosts, with a validator."""

    def __init__(self, store: MemoryStore, **options: Any) -> None:
        self.store = store
        self.clock = HandClock(later(NOW, 7200.0))
        self.outputs = Outputs()
        self.validator = Validator(store.unsettled, self.outputs, self.clock, max_lost=lambda: 20, **options)
        self.sent: list[tuple[RegisteredHost, Assignment]] = []

    async def send(self, batch: Batch, **changes: Any) -> tuple[RegisteredHost, Assignment]:
        """Send the next unsent instance to a new host."""
        host = await a_registered_host(self.store)
        return host, await a_sent_instance(self.store, batch.batch_id, host, **changes)

    async def bring(
        self, host: RegisteredHost, sent: Assignment, md5: str = MD5_A, content: bytes | None = None, **changes: Any
    ) -> None:
        """Upload output 0 and report."""
        name = output_file_name(await self.name_of(sent), 0)
        if content is not None:
            self.outputs.contents[name] = content
        await self.store.uploads.record_upload(sent.instance_id, name=name, nbytes=3, md5=md5, completed_at=NOW)
        await report(self.store, host, a_report(sent, **changes))

    async def send_and_bring(self, batch: Batch, md5: str = MD5_A, content: bytes | None = None) -> Assignment:
        host, sent = await self.send(batch)
        await self.bring(host, sent, md5, content)
        return sent

    async def name_of(self, sent: Assignment) -> str:
        return f"pi_{sent.batch_id}_{sent.job_id}_{sent.instance_id}"

    async def states(self, sent: Assignment) -> list[InstanceState]:
        return [row.state for row in (await self.store.views.job(sent.job_id)).instances]

    async def job_state(self, sent: Assignment) -> JobState:
        return (await self.store.views.job(sent.job_id)).state

    async def hav(self, host_id: HostId) -> HostAppVersion:
        _, [hav] = await self.store.views.host(host_id)
        return hav


@pytest.fixture
async def project() -> Project:
    return Project(await a_project())


# ------------------------------------------------------------------ bitwise


async def test_one_result_settles_a_job_with_a_quorum_of_one(project: Project) -> None:
    batch = await a_submitted_batch(project.store, jobs=1)
    sent = await project.send_and_bring(batch)
    assert await project.validator.run_once() == ValidatorReport(looked_at=1, current=1, validated=1)
    row = await project.store.views.job(sent.job_id)
    assert (row.state, row.canonical_instance_id) == (JobState.VALID, sent.instance_id)
    assert (await project.store.views.batch(batch.batch_id)).state is BatchState.COMPLETE


async def test_outputs_are_compared_without_reading_files(project: Project) -> None:
    batch = await a_submitted_batch(project.store, jobs=1, quorum=2)
    for md5 in (MD5_A, MD5_A):
        sent = await project.send_and_bring(batch, md5)
    await project.validator.run_once()
    assert await project.states(sent) == [InstanceState.VALID, InstanceState.VALID]
    assert project.outputs.read == []


async def test_results_that_differ_ask_for_a_third_one_which_decides(project: Project) -> None:
    batch = await a_submitted_batch(project.store, jobs=1, quorum=2)
    await project.send_and_bring(batch, MD5_A)
    await project.send_and_bring(batch, MD5_B)
    assert (await project.validator.run_once()).retried == 1
    sent = await project.send_and_bring(batch, MD5_B)
    await project.validator.run_once()
    assert await project.states(sent) == [InstanceState.INVALID, InstanceState.VALID, InstanceState.VALID]
    assert await project.job_state(sent) is JobState.VALID


async def test_too_many_errors_fail_the_job(project: Project) -> None:
    batch = await a_submitted_batch(project.store, jobs=1, job_class=a_job_class(max_errors=1))
    host, sent = await project.send(batch)
    await report(project.store, host, a_report(sent, to_state=InstanceState.FAILED))
    assert (await project.validator.run_once()).failed == 1
    assert await project.job_state(sent) is JobState.FAILED


async def test_a_job_is_looked_at_once_for_each_thing_that_happened(project: Project) -> None:
    await project.send_and_bring(await a_submitted_batch(project.store, jobs=1))
    await project.validator.run_once()
    assert await project.validator.run_once() == ValidatorReport()


# ------------------------------------------------------------------ tolerance


def a_tolerant_class(**changes: Any) -> Any:
    return a_job_class(quorum=2, validator=ValidatorKind.TOLERANCE, tolerance=1e-3, **changes)


async def test_numbers_that_are_close_agree(project: Project) -> None:
    batch = await a_submitted_batch(project.store, jobs=1, job_class=a_tolerant_class(), copies=2)
    await project.send_and_bring(batch, MD5_A, b"[1000.0]")
    sent = await project.send_and_bring(batch, MD5_B, b"[1000.9]")
    await project.validator.run_once()
    assert await project.states(sent) == [InstanceState.VALID, InstanceState.VALID]


async def test_numbers_that_are_far_apart_do_not(project: Project) -> None:
    batch = await a_submitted_batch(project.store, jobs=1, job_class=a_tolerant_class(), copies=2)
    await project.send_and_bring(batch, MD5_A, b"[1000.0]")
    sent = await project.send_and_bring(batch, MD5_B, b"[1002.0]")
    await project.validator.run_once()
    assert await project.states(sent) == [InstanceState.INCONCLUSIVE] * 2 + [InstanceState.UNSENT]


async def test_a_result_that_is_no_table_or_not_there_is_rejected(project: Project) -> None:
    batch = await a_submitted_batch(project.store, jobs=1, job_class=a_tolerant_class(), copies=2)
    await project.send_and_bring(batch, MD5_A, b'{"a": ')
    sent = await project.send_and_bring(batch, MD5_A, None)
    await project.validator.run_once()
    assert (await project.states(sent))[:2] == [InstanceState.INVALID, InstanceState.INVALID]


async def test_optional_output_missing_on_one_side_differs(project: Project) -> None:
    outputs = (Output("out", 100), Output("log", 100, optional=True))
    batch = await a_submitted_batch(project.store, jobs=1, job_class=a_job_class(quorum=2, outputs=outputs), copies=2)
    (host, first), (other, second) = [await project.send(batch) for _ in range(2)]
    log = output_file_name(await project.name_of(first), 1)
    await project.store.uploads.record_upload(first.instance_id, name=log, nbytes=1, md5=MD5_B, completed_at=NOW)
    await project.bring(host, first)
    await project.bring(other, second)
    await project.validator.run_once()
    assert (await project.states(first))[:2] == [InstanceState.INCONCLUSIVE] * 2


# ------------------------------------------------------------------ one job never holds up the others


async def test_unreadable_job_is_counted_and_others_settle(project: Project) -> None:
    job_class = replace(a_tolerant_class(), quorum=1)
    broken, fine = [await a_submitted_batch(project.store, jobs=1, job_class=job_class, copies=1) for _ in range(2)]
    hurt = await project.send_and_bring(broken, MD5_A, b"[1]")
    project.outputs.damaged.add(output_file_name(await project.name_of(hurt), 0))
    sent = await project.send_and_bring(fine, MD5_A, b"[1]")
    assert await project.validator.run_once() == ValidatorReport(looked_at=2, current=1, validated=1, broken=1)
    assert await project.job_state(sent) is JobState.VALID
    assert await project.job_state(hurt) is JobState.OPEN


async def test_a_broken_job_rests_and_is_tried_again(project: Project) -> None:
    job_class = replace(a_tolerant_class(), quorum=1)
    hurt = await project.send_and_bring(
        await a_submitted_batch(project.store, jobs=1, job_class=job_class, copies=1), MD5_A, b"[1]"
    )
    project.outputs.damaged.add(output_file_name(await project.name_of(hurt), 0))
    assert (await project.validator.run_once()).broken == 1
    assert await project.validator.run_once() == ValidatorReport()
    project.outputs.damaged.clear()
    project.clock.time = later(project.clock.time, 61.0)
    assert (await project.validator.run_once()).validated == 1


async def test_broken_jobs_at_the_head_do_not_fill_every_round() -> None:
    project = Project(await a_project(), limit=1)
    job_class = replace(a_tolerant_class(), quorum=1)
    batches = [await a_submitted_batch(project.store, jobs=1, job_class=job_class, copies=1) for _ in range(3)]
    sent = [await project.send_and_bring(batch, MD5_A, b"[1]") for batch in batches]
    project.outputs.damaged |= {output_file_name(await project.name_of(one), 0) for one in sent[:2]}
    reports = [await project.validator.run_once() for _ in range(3)]
    assert [report.broken for report in reports] == [1, 1, 0]
    assert await project.job_state(sent[2]) is JobState.VALID


class Picky:
    """A store with jobs to settle that refuses to write one of them, or is unavailable."""

    def __init__(self, jobs: Sequence[JobFacts], refuses: JobId, *, available: bool = True) -> None:
        self.jobs = jobs
        self.refuses = refuses
        self.available = available
        self.written: list[JobId] = []

    async def unsettled(
        self, limit: int, *, now: Instant, share: JobShare = ALL_JOBS, with_content: bool = True
    ) -> Sequence[JobFacts]:
        return self.jobs[:limit]

    async def begin_comparisons(self, job_ids: Sequence[JobId], *, now: Instant) -> Mapping[JobId, int]:
        return dict.fromkeys(job_ids, 1)

    async def settle(self, settlements: Sequence[JobSettlement]) -> int:
        if not self.available:
            raise UnavailableError
        if any(settlement.job_id == self.refuses for settlement in settlements):
            raise ValueError("a row that cannot be")
        self.written.extend(settlement.job_id for settlement in settlements)
        return len(settlements)


def a_job(number: int = 1, *instances: InstanceFacts, **changes: Any) -> JobFacts:
    job = JobFacts(
        JobId(number),
        a_job_class().batch_id,
        serial=1,
        state=JobState.OPEN,
        job_class=a_job_class(),
        copies=0,
        canonical_instance_id=None,
        batch_aborted=False,
        app_name="pi",
        instances=instances or (an_instance(),),
    )
    return replace(job, **changes)


def an_instance(number: int = 1, **changes: Any) -> InstanceFacts:
    name = f"pi_1_1_{number}"
    instance = InstanceFacts(
        InstanceId(number),
        name,
        InstanceState.REPORTED,
        HostId(number),
        AppVersionId(1),
        sent_at=NOW,
        due_at=later(NOW, 86_400.0),
        reported_at=later(NOW, 7200.0),
        est_runtime_s=Seconds(3600.0),
        elapsed_s=Seconds(1800.0),
        tight=True,
        uploads=(Upload(f"{name}_r0", 3, MD5_A),),
    )
    return replace(instance, **changes)


async def test_a_settlement_that_cannot_be_written_is_left_out_alone() -> None:
    store = Picky([a_job(1), a_job(2), a_job(3)], refuses=JobId(2))
    validator = Validator(store, Outputs(), HandClock(), max_lost=lambda: 20)
    assert await validator.run_once() == ValidatorReport(looked_at=3, current=2, validated=2, broken=1)
    assert store.written == [1, 3]


async def test_a_store_that_is_away_is_no_fault_of_the_jobs() -> None:
    store = Picky([a_job(1)], refuses=JobId(0), available=False)
    validator = Validator(store, Outputs(), HandClock(), max_lost=lambda: 20)
    with pytest.raises(UnavailableError):
        await validator.run_once()
    store.available = True
    assert (await validator.run_once()).current == 1


# ------------------------------------------------------------------ what hosts' statistics are told


class Recorder:
    """A store with jobs that records the steps it is given."""

    def __init__(self, *jobs: JobFacts) -> None:
        self.jobs = jobs
        self.steps: dict[InstanceId, InstanceStep] = {}

    async def unsettled(
        self, limit: int, *, now: Instant, share: JobShare = ALL_JOBS, with_content: bool = True
    ) -> Sequence[JobFacts]:
        return self.jobs[:limit]

    async def begin_comparisons(self, job_ids: Sequence[JobId], *, now: Instant) -> Mapping[JobId, int]:
        return dict.fromkeys(job_ids, 1)

    async def settle(self, settlements: Sequence[JobSettlement]) -> int:
        self.steps.update((step.instance_id, step) for settlement in settlements for step in settlement.steps)
        return len(settlements)


async def event_of(job: JobFacts, instance_id: int = 1) -> HavEvent | None:
    store = Recorder(job)
    await Validator(store, Outputs(), HandClock(), max_lost=lambda: 20).run_once()
    return store.steps[InstanceId(instance_id)].hav_event


async def test_a_valid_result_tells_its_turnaround_and_speed() -> None:
    event = await event_of(a_job())
    assert event == HavEvent(
        HostId(1),
        AppVersionId(1),
        HavEventKind.VALID,
        NOW,
        tight=True,
        ln_turnaround_ratio=math.log(2.0),
        ln_turnaround=math.log(7200.0),
        speed_s_per_flop=1800.0 / 3.6e12,
    )


async def test_a_valid_result_takes_back_what_its_time_out_left() -> None:
    event = await event_of(a_job(1, an_instance(turnaround_sample=2.5, timeout_at=later(NOW, 90_000.0))))
    assert event is not None
    assert (event.replaces, event.replaces_at) == (2.5, NOW + 90_000.0)


async def test_invalid_result_has_no_turnaround() -> None:
    forged = an_instance(3, uploads=(Upload("pi_1_1_3_r0", 3, MD5_B),), turnaround_sample=2.5)
    job = a_job(1, an_instance(1), an_instance(2), forged, job_class=a_job_class(quorum=2))
    assert await event_of(job, 3) == HavEvent(
        HostId(3), AppVersionId(1), HavEventKind.INVALID, NOW, tight=True, replaces=2.5
    )


async def test_zero_turnaround_sample_is_bounded() -> None:
    event = await event_of(a_job(1, an_instance(reported_at=NOW, est_runtime_s=Seconds(0.0), elapsed_s=None)))
    assert event is not None
    assert (event.ln_turnaround, event.ln_turnaround_ratio, event.speed_s_per_flop) == (0.0, 0.0, None)


@given(elapsed_s=st.floats(1e-3, 1e9), turnaround_s=st.floats(1.0, 1e7))
def test_no_host_runs_longer_than_its_job_was_away(elapsed_s: float, turnaround_s: float) -> None:
    speed = speed_s_per_flop(Seconds(elapsed_s), turnaround_s, Flop(1e12))
    assert speed is not None
    assert 0.0 < speed * 1e12 <= turnaround_s * (1 + 1e-12)


async def test_statistics_reach_the_hosts_row(project: Project) -> None:
    batch = await a_submitted_batch(project.store, jobs=1)
    host, sent = await project.send(batch)
    await project.bring(host, sent)
    await project.validator.run_once()
    hav = await project.hav(host.host_id)
    assert (hav.n_valid, hav.consecutive_valid, hav.relaxed.n) == (1, 1, 1.0)


# ------------------------------------------------------------------ the next round


async def test_a_full_round_says_that_more_is_waiting() -> None:
    class Shrinking(Recorder):
        async def unsettled(
            self, limit: int, *, now: Instant, share: JobShare = ALL_JOBS, with_content: bool = True
        ) -> Sequence[JobFacts]:
            found, self.jobs = self.jobs[:limit], self.jobs[limit:]
            return found

    validator = Validator(Shrinking(a_job(1), a_job(2), a_job(3)), Outputs(), HandClock(), max_lost=lambda: 20, limit=2)

    reports = [await validator.run_once() for _ in range(3)]

    assert [(report.looked_at, report.more) for report in reports] == [(2, True), (1, False), (0, False)]


# ------------------------------------------------------------------ outputs that must be read


class Slow:
    """Comparisons that end when the test says so."""

    at_once = 2

    def __init__(self) -> None:
        self.begun: list[tuple[Comparison, asyncio.Future[Compared]]] = []

    async def compare(self, comparison: Comparison) -> Compared:
        end: asyncio.Future[Compared] = asyncio.get_running_loop().create_future()
        self.begun.append((comparison, end))
        return await end

    def end(self, number: int, *, because: str = "") -> None:
        comparison, end = self.begun[number]
        groups = dict.fromkeys(comparison.outputs, UNREADABLE if because else 0)
        end.set_result(Compared(groups, dict.fromkeys(comparison.outputs, because) if because else {}))


@pytest.fixture
async def slow() -> tuple[Project, Slow]:
    project = Project(await a_project())
    comparisons = Slow()
    project.validator = Validator(
        project.store.unsettled, comparisons, project.clock, max_lost=lambda: 20, patience_s=0.0
    )
    return project, comparisons


async def some_work(project: Project, count: int) -> list[Assignment]:
    by_content = a_job_class(validator=ValidatorKind.TOLERANCE, tolerance=1e-3)
    batches = [await a_submitted_batch(project.store, jobs=1, job_class=by_content) for _ in range(count)]
    return [await project.send_and_bring(batch, MD5_A, b"[1]") for batch in batches]


async def round_of(project: Project) -> None:
    """Run two rounds: comparisons started in the first get their turn in the second."""
    for _ in range(2):
        await project.validator.run_once()


async def test_a_slow_comparison_delays_no_other_job(slow: tuple[Project, Slow]) -> None:
    project, comparisons = slow
    first, second, third = await some_work(project, 3)
    bitwise = await project.send_and_bring(await a_submitted_batch(project.store, jobs=1))

    await round_of(project)
    assert await project.job_state(bitwise) is JobState.VALID
    assert len(comparisons.begun) == comparisons.at_once

    comparisons.end(1)
    await round_of(project)
    assert await project.job_state(second) is JobState.VALID
    assert len(comparisons.begun) == 3
    comparisons.end(2)
    await round_of(project)
    assert await project.job_state(third) is JobState.VALID
    assert await project.job_state(first) is JobState.OPEN

    comparisons.end(0)
    await round_of(project)
    assert await project.job_state(first) is JobState.VALID


async def test_full_round_does_not_wait_for_comparisons() -> None:
    """Further jobs can be settled at once. A round with few of them would wait for the comparison."""
    project, comparisons = Project(await a_project()), Slow()
    project.validator = Validator(
        project.store.unsettled, comparisons, project.clock, max_lost=lambda: 20, patience_s=600.0, limit=2
    )
    [slow] = await some_work(project, 1)
    batches = [await a_submitted_batch(project.store, jobs=1) for _ in range(3)]
    bitwise = [await project.send_and_bring(batch) for batch in batches]

    async with asyncio.timeout(60.0):
        reports = [await project.validator.run_once() for _ in range(2)]

    assert [report.validated for report in reports] == [1, 2]
    assert [await project.job_state(one) for one in (slow, *bitwise)] == [JobState.OPEN] + [JobState.VALID] * 3
    waiting = asyncio.create_task(project.validator.run_once())
    await asyncio.wait([waiting], timeout=0.0)
    while not comparisons.begun:
        await asyncio.wait([waiting], timeout=0.01)
    comparisons.end(0)
    assert (await waiting).validated == 1


async def test_other_jobs_do_not_wait_behind_a_full_queue() -> None:
    """Of six jobs to compare, two are being compared and two are queued; the others stay in the database."""
    project, comparisons = Project(await a_project()), Slow()
    project.validator = Validator(
        project.store.unsettled, comparisons, project.clock, max_lost=lambda: 20, patience_s=0.0, limit=2
    )
    compared = await some_work(project, 6)
    batches = [await a_submitted_batch(project.store, jobs=1) for _ in range(3)]
    bitwise = [await project.send_and_bring(batch) for batch in batches]

    reports = [await project.validator.run_once() for _ in range(5)]
    assert [report.validated for report in reports] == [0, 0, 0, 2, 1]
    assert {await project.job_state(one) for one in bitwise} == {JobState.VALID}

    for number in range(6):
        while len(comparisons.begun) <= number:
            await project.validator.run_once()
        comparisons.end(number)
    await round_of(project)
    assert {await project.job_state(one) for one in compared} == {JobState.VALID}


async def test_validator_settles_its_share_only() -> None:
    project = Project(await a_project())
    batch = await a_submitted_batch(project.store, jobs=3)
    sent = [await project.send_and_bring(batch) for _ in range(3)]
    shares = [JobShare(0, 2), JobShare(1, 2)]
    validator = Validator(
        project.store.unsettled, project.outputs, project.clock, max_lost=lambda: 20, share=lambda: shares[0]
    )

    assert (await validator.run_once()).validated == 1
    assert [await project.job_state(one) for one in sent] == [JobState.OPEN, JobState.VALID, JobState.OPEN]
    shares.reverse()
    assert (await validator.run_once()).validated == 2


async def test_dropped_comparisons_end_and_are_made_again(slow: tuple[Project, Slow]) -> None:
    """Running ones are cancelled; their jobs back off as after any attempt, and are compared again."""
    project, comparisons = slow
    jobs = await some_work(project, 3)
    await round_of(project)
    begun = [end for _, end in comparisons.begun]

    project.validator.drop_comparisons()
    await round_of(project)

    assert [end.cancelled() for end in begun] == [True] * comparisons.at_once
    comparisons.end(2)
    await project.clock.sleep(61.0)
    await round_of(project)
    for number in (3, 4):
        comparisons.end(number)
    await round_of(project)
    assert [await project.job_state(job) for job in jobs] == [JobState.VALID] * 3


async def test_an_output_that_cannot_be_read_says_why(slow: tuple[Project, Slow]) -> None:
    project, comparisons = slow
    [sent] = await some_work(project, 1)
    await round_of(project)
    comparisons.end(0, because="out is nested deeper than 100 levels")
    await round_of(project)
    [instance, *_] = (await project.store.views.job(sent.job_id)).instances
    assert (instance.state, instance.reason) == (InstanceState.INVALID, "out is nested deeper than 100 levels")


async def test_slow_comparison_fails_job_and_blames_no_host(
    slow: tuple[Project, Slow],
) -> None:
    project, comparisons = slow
    [sent] = await some_work(project, 1)
    await round_of(project)
    comparisons.begun[0][1].set_exception(TooSlowError("3 outputs"))
    await round_of(project)
    assert await project.job_state(sent) is JobState.FAILED
    assert await project.states(sent) == [InstanceState.TOO_LATE]


async def test_failed_comparison_blames_no_host_and_is_retried(slow: tuple[Project, Slow]) -> None:
    project, comparisons = slow
    [sent] = await some_work(project, 1)
    await round_of(project)
    comparisons.begun[0][1].set_exception(UnavailableError("a process ended"))
    await round_of(project)
    assert await project.states(sent) == [InstanceState.REPORTED]

    await project.clock.sleep(3600.0)
    await round_of(project)
    comparisons.end(1)
    await round_of(project)
    assert await project.states(sent) == [InstanceState.VALID]
