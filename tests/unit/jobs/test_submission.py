"""Tests that a batch is written completely and in its place, or not at all."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from domain.batches import Batch, BatchState, QoS
from domain.errors import ConflictError, InvalidInputError, NotFoundError
from domain.jobs import Input, JobClass
from domain.ordered_work import SubmissionOrder
from domain.ordering_settings import OrderingSettings
from domain.submission import NewBatch, NewJob, SubmissionKey, SubmitterLimits
from domain.units import AccountId, AppId, BatchId, Instant, JobClassId, SubmitterId
from jobs.ports import BatchWriter, Submissions
from jobs.spec import BatchSpec, parse_batch, with_rows
from jobs.submission import CopiedJobs, SubmissionPorts, checked, classes_to_copy, submit, write
from tests.builders import NOW
from tests.facts import missing, states
from tests.memory import MemoryStore
from tests.stores import batches_of
from tests.unit.jobs.projects import HandClock, KnownFiles, a_project
from tests.worlds import a_registered_app, a_registered_version, waiting_of

JOBS = {
    "jobs": {"fpops_est": 1e12, "quorum": 2},
    "job": [{"count": 2, "command_line": "--part {i}"}, {"fpops_est": 4e12, "inputs": [{"name": "in.txt"}]}],
}


def a_spec(jobs: Mapping[str, object] | None = None, /, **changes: object) -> BatchSpec:
    table = {"fpops_est": 1e12, "count": 10, **(jobs or {})}
    return parse_batch({"app": "pi", "qos": "throughput", "submitter": "ada", "jobs": table, **changes})


@pytest.fixture
async def store() -> MemoryStore:
    store = await a_project()
    await a_registered_version(store)
    return store


async def submitted(store: MemoryStore, spec: BatchSpec, *files: str, **options: Any) -> Batch:
    ports = SubmissionPorts(store.submissions, store.people, store.applications, KnownFiles(*files))
    values: dict[str, Any] = {"ordering": OrderingSettings(), "clock": HandClock(), **options}
    return await store.views.batch(await submit(spec, ports=ports, **values))


async def nothing_is_written(store: MemoryStore) -> bool:
    batches = await batches_of(store, limit=10)
    return not batches and (await store.people.submitter("ada")).logical_at == 0.0


# ------------------------------------------------------------------ what is written


async def test_a_batch_is_written_with_an_instance_per_job(store: MemoryStore) -> None:
    batch = await submitted(store, a_spec(name="first"))
    assert (batch.name, batch.qos, batch.state) == ("first", QoS.THROUGHPUT, BatchState.ACTIVE)
    assert (batch.counts.jobs_total, batch.counts.unsent) == (10, 10)
    assert len(await store.views.jobs(batch.batch_id, limit=100)) == 10


async def test_every_copy_of_the_quorum_is_made_at_once(store: MemoryStore) -> None:
    batch = await submitted(store, a_spec({"quorum": 3}))
    assert (batch.counts.jobs_total, batch.counts.unsent) == (10, 30)


async def test_each_job_has_its_index_in_its_command_line(store: MemoryStore) -> None:
    tables = [{"count": 2, "command_line": "a {i}"}, {"command_line": "b {i}"}]
    batch = await submitted(store, a_spec(jobs={"fpops_est": 1e12}, job=tables))
    rows = await store.views.jobs(batch.batch_id, limit=10)
    assert [row.command_line for row in rows] == ["a 0", "a 1", "b 2"]


async def test_jobs_that_ask_for_the_same_share_a_class(store: MemoryStore) -> None:
    tables: list[dict[str, object]] = [{}, {"fpops_est": 5e12}, {"command_line": "x"}, {"fpops_est": 5e12}]
    batch = await submitted(store, a_spec(jobs={"fpops_est": 1e12}, job=tables))
    classes = await store.views.classes_of_batch(batch.batch_id)
    assert sorted(job_class.fpops_est_flop for job_class in classes) == [1e12, 5e12]


class Counted:
    """Submissions that count the calls that write classes."""

    def __init__(self, submissions: Submissions) -> None:
        self._submissions = submissions
        self._writer: BatchWriter | None = None
        self.written: list[int] = []  # classes per call

    @asynccontextmanager
    async def submission(self) -> AsyncIterator[BatchWriter]:
        async with self._submissions.submission() as self._writer:
            yield self

    async def standing(self, submitter_id: SubmitterId, *, now: Instant, lock: bool = True) -> SubmitterLimits:
        return await self._open().standing(submitter_id, now=now)

    async def order(
        self, submitter_id: SubmitterId, account_id: AccountId, *, app_id: AppId, queue: str
    ) -> SubmissionOrder:
        return await self._open().order(submitter_id, account_id, app_id=app_id, queue=queue)

    async def explain(self, batch_id: BatchId, record: Mapping[str, object], *, now: Instant) -> None:
        await self._open().explain(batch_id, record, now=now)

    async def remember(self, key: SubmissionKey, batch_id: BatchId, *, now: Instant) -> None:
        await self._open().remember(key, batch_id, now=now)

    async def add_batch(self, batch: NewBatch) -> BatchId:
        return await self._open().add_batch(batch)

    async def add_classes(self, batch_id: BatchId, job_classes: Sequence[JobClass]) -> Sequence[JobClassId]:
        self.written.append(len(job_classes))
        return await self._open().add_classes(batch_id, job_classes)

    async def add_jobs(self, batch_id: BatchId, jobs: Sequence[NewJob]) -> None:
        await self._open().add_jobs(batch_id, jobs)

    def _open(self) -> BatchWriter:
        assert self._writer is not None
        return self._writer


async def test_distinct_job_classes_need_few_round_trips(store: MemoryStore) -> None:
    counted = Counted(store.submissions)
    ports = SubmissionPorts(counted, store.people, store.applications, KnownFiles())
    spec = with_rows(
        a_spec(jobs={}, jobs_csv="x.csv"), lambda: ({"fpops_est": str(10**9 + n % 7000)} for n in range(12_000))
    )

    batch_id = await submit(spec, ports=ports, ordering=OrderingSettings(), clock=HandClock())

    assert counted.written == [5000, 2000]  # the third chunk has no new classes
    assert len(await store.views.classes_of_batch(batch_id)) == 7000


async def test_shared_inputs_are_in_class_own_inputs_in_job(store: MemoryStore) -> None:
    tables: list[dict[str, object]] = [{}, {"inputs": [{"path": "own", "open_name": "in"}]}]
    shared = {"fpops_est": 1e12, "inputs": [{"path": "shared", "sticky": True}]}
    batch = await submitted(store, a_spec(jobs=shared, job=tables), "shared", "own")
    classes = await store.views.classes_of_batch(batch.batch_id)
    of_class = {job_class.inputs for job_class in classes}
    assert of_class == {(Input("stored_shared", "shared", 100, "0" * 32, sticky=True),)}
    waiting = [candidate.ready.instance_id for candidate in await waiting_of(store, batch.batch_id)]
    sent = await store.ledger.sent_jobs(waiting)
    assert [sent[instance_id].inputs for instance_id in waiting] == [
        None,
        (Input("stored_own", "in", 100, "0" * 32),),
    ]


async def test_rows_of_a_csv_file_become_jobs(store: MemoryStore) -> None:
    rows = [{"command_line": f"--seed {seed}"} for seed in range(12_000)]
    spec = parse_batch(
        {"app": "pi", "qos": "afap", "submitter": "ada", "jobs": {"fpops_est": 1e12}, "jobs_csv": "jobs.csv"}
    )
    batch = await submitted(store, with_rows(spec, lambda: rows))
    assert batch.counts.jobs_total == batch.counts.unsent == 12_000
    [first] = await store.views.jobs(batch.batch_id, limit=1)
    assert first.command_line == "--seed 0"


async def test_a_deadline_counts_from_submission(store: MemoryStore) -> None:
    batch = await submitted(store, a_spec(qos="short_deadline", deadline_s=600))
    assert batch.deadline_at == NOW + 600.0


# ------------------------------------------------------------------ its place in the order


async def test_a_batch_is_placed_at_its_logical_end(store: MemoryStore) -> None:
    """10 jobs of 1e12 flop with a quorum of 2, on an unknown pool assumed at 1e12 flop/s: 20 s."""
    batch = await submitted(store, a_spec({"quorum": 2}))
    assert (batch.order_tier, batch.order_key, batch.logical_end_at) == (0, NOW + 20.0, NOW + 20.0)
    assert (await store.people.submitter("ada")).logical_at == NOW + 20.0


async def test_next_batch_starts_at_charged_logical_time(store: MemoryStore) -> None:
    await submitted(store, a_spec())
    assert (await submitted(store, a_spec())).logical_end_at == NOW + 20.0


async def test_the_ordering_settings_hold(store: MemoryStore) -> None:
    batch = await submitted(store, a_spec(), ordering=OrderingSettings(policy="fifo"))
    assert batch.order_key == NOW


# ------------------------------------------------------------------ nothing at all


@pytest.mark.parametrize(
    ("changes", "error", "facts"),
    [
        ({"app": "e"}, InvalidInputError, ("app:", "'e'")),
        ({"app": "bare"}, InvalidInputError, ("app:", "version")),
        ({"app": "old"}, InvalidInputError, ("app:", "deprecated", "'old'")),
        ({"submitter": "eve"}, InvalidInputError, ("submitter:", "'eve'")),
        ({"account": "other lab"}, InvalidInputError, ("account:", "ada", "lab")),
        ({"account": "nowhere"}, InvalidInputError, ("account:", "ada", "lab")),
    ],
)
async def test_what_does_not_exist_is_refused(
    store: MemoryStore, changes: dict[str, object], error: type[Exception], facts: tuple[str, ...]
) -> None:
    await a_registered_app(store, "bare")
    await a_registered_app(store, "old", deprecated=True)
    with pytest.raises(error) as caught:
        await submitted(store, a_spec(**changes))
    assert not missing(str(caught.value), *facts)
    assert await nothing_is_written(store)


async def test_delay_bound_below_min_slack_is_refused(store: MemoryStore) -> None:
    jobs = [{"delay_bound_s": bound_s} for bound_s in (86_400, 3600)]
    values = {"app": "pi", "qos": "throughput", "submitter": "ada", "jobs": {"fpops_est": 1e12}, "job": jobs}
    facts = ("jobs.delay_bound_s:", "more than 3600 s", "deadline.min_slack_s", "got 3600.0")
    with states(InvalidInputError, *facts):
        await submitted(store, parse_batch(values))
    assert await nothing_is_written(store)


@pytest.mark.parametrize(("key", "value"), [("deadline.min_slack_s", 60.0), ("deadline.rule", "fixed")])
async def test_a_short_bound_is_taken_where_due_dates_have_less_slack(
    store: MemoryStore, key: str, value: object
) -> None:
    await store.settings.set_setting(key, value, now=NOW, who="ops", why="")
    assert (await submitted(store, a_spec({"delay_bound_s": 3600}))).counts.jobs_total == 10


async def test_the_submitters_own_account_may_be_named(store: MemoryStore) -> None:
    assert (await submitted(store, a_spec(account="lab"))).counts.jobs_total == 10


async def test_a_missing_input_file_is_refused(store: MemoryStore) -> None:
    with pytest.raises(NotFoundError, match="no file nowhere"):
        await submitted(store, a_spec({"inputs": [{"path": "nowhere"}]}))
    assert await nothing_is_written(store)


async def test_an_unknown_ordering_policy_is_refused(store: MemoryStore) -> None:
    with pytest.raises(InvalidInputError, match=r"ordering\.policy"):
        await submitted(store, a_spec(), ordering=OrderingSettings(policy="luck"))
    assert await nothing_is_written(store)


async def test_a_wrong_row_far_down_leaves_nothing_behind(store: MemoryStore) -> None:
    rows = [{"fpops_est": "1e12"}] * 9_000 + [{"fpops_est": "-1"}]
    spec = parse_batch({"app": "pi", "qos": "afap", "submitter": "ada", "jobs_csv": "jobs.csv"})
    with pytest.raises(InvalidInputError, match="row 9001"):
        await submitted(store, with_rows(spec, lambda: rows))
    assert await nothing_is_written(store)


async def test_file_changed_during_submission_leaves_nothing(store: MemoryStore) -> None:
    openings = iter((8_000, 7_999))

    def rows() -> Iterator[dict[str, str]]:
        return iter([{"command_line": "x"}] * next(openings))

    spec = parse_batch(
        {"app": "pi", "qos": "afap", "submitter": "ada", "jobs": {"fpops_est": 1e12}, "jobs_csv": "jobs.csv"}
    )
    with states(InvalidInputError, "jobs_csv:", "8000 jobs", "got 7999"):
        await submitted(store, with_rows(spec, rows))
    assert await nothing_is_written(store)


async def copied(store: MemoryStore, batch_id: BatchId) -> BatchId:
    ports = SubmissionPorts(store.submissions, store.people, store.applications, KnownFiles())
    batch = await store.views.batch(batch_id)
    classes = await store.views.classes_of_batch(batch_id)
    spec = parse_batch(
        {"app": "pi", "qos": "throughput", "submitter": "ada", "name": "copy", "jobs": {"count": 1, "fpops_est": 1}}
    )
    jobs = await classes_to_copy(batch_id, batch.counts.jobs_total, classes, store.repeating)
    made = replace(
        await checked(replace(spec, jobs=jobs), ports=ports), copied=CopiedJobs(batch_id, classes, store.repeating)
    )
    made_id, _ = await write(made, submissions=store.submissions, ordering=OrderingSettings(), clock=HandClock())
    return made_id


async def a_submitted(store: MemoryStore) -> BatchId:
    await a_registered_version(store)
    ports = SubmissionPorts(store.submissions, store.people, store.applications, KnownFiles("in.txt"))
    spec = parse_batch({"app": "pi", "qos": "afap", "submitter": "ada", **JOBS})
    return await submit(spec, ports=ports, ordering=OrderingSettings(), clock=HandClock())


async def test_copy_has_the_same_jobs_and_new_instances() -> None:
    store = await a_project()
    first = await a_submitted(store)

    second = await copied(store, first)

    one, other = await store.views.jobs(first, limit=9), await store.views.jobs(second, limit=9)
    assert [(job.command_line, job.inputs) for job in one] == [(job.command_line, job.inputs) for job in other]
    sizes = [
        sorted((c.fpops_est_flop, c.quorum, c.inputs) for c in await store.views.classes_of_batch(id_))
        for id_ in (first, second)
    ]
    assert sizes[0] == sizes[1]
    batch = await store.views.batch(second)
    assert (batch.name, batch.qos.value, batch.counts.unsent, batch.counts.jobs_total) == ("copy", "throughput", 6, 3)
    whole = [(await store.views.batch(id_)).logical_end_at for id_ in (first, second)]
    assert whole[1] > whole[0]  # the copy is charged like any batch


async def test_copy_of_a_purged_batch_is_refused() -> None:
    store = await a_project()
    batch_id = await a_submitted(store)
    classes = await store.views.classes_of_batch(batch_id)
    with pytest.raises(ConflictError):
        await classes_to_copy(batch_id, 99, classes, store.repeating)
