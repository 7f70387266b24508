"""Fills a store for tests: an app, a host, a batch or work in progress in one call each.

Everything goes through the ports, so that it works on every store. Names are numbered by the store's content, so that
each call can be repeated.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from administration.access.people import PROJECT_NAME
from administration.access.who import Person
from domain.access import Role
from domain.apps import App, AppVersion
from domain.batches import Batch, QoS
from domain.dispatch import Assignment, AssignmentFate, Report, RequestKey, RequestView, RequestWrites, WriteOutcome
from domain.havs import HavEvent, HavEventKind
from domain.hosts import Host
from domain.jobs import Candidate, FreshRange, InstanceState, JobClass
from domain.settlement import JobSettlement
from domain.submission import NewBatch, NewJob
from domain.units import (
    AccountId,
    AppId,
    BatchId,
    Flop,
    HostId,
    InstanceId,
    Instant,
    Seconds,
    SubmitterId,
    VolunteerId,
    later,
)
from domain.volunteers import Credentials
from tests.builders import NOW, a_host, a_job_class, an_app, an_app_version, some_due_terms
from tests.stores import Store

DAY_S = 86400.0
PROJECT = Person(PROJECT_NAME, Role.OPERATOR, Role.OPERATOR.rights)


@dataclass(frozen=True, slots=True)
class RegisteredHost:
    """A host, and the account key of its client."""

    host: Host
    account_key: str

    @property
    def host_id(self) -> HostId:
        return self.host.host_id

    @property
    def volunteer_id(self) -> VolunteerId:
        return self.host.volunteer_id

    @property
    def authenticator_hash(self) -> bytes:
        return hash_of(self.account_key)

    def key(self, *instance_ids: InstanceId) -> RequestKey:
        return RequestKey(self.authenticator_hash, self.host_id, self.host.host_cpid, instance_ids)


def hash_of(account_key: str) -> bytes:
    """Return the stored form of an account key: its SHA-256."""
    return hashlib.sha256(account_key.encode()).digest()


# ---------------------------------------------------------------- applications and people


async def a_registered_app(store: Store, name: str = "pi", **changes: Any) -> App:
    """Return the app of that name; create it if needed."""
    for app in await store.applications.apps():
        if app.name == name:
            return app
    return await store.applications.add_app(an_app(name=name, **changes))


async def a_registered_version(store: Store, app_id: AppId | None = None, **changes: Any) -> AppVersion:
    """Register a new version of the app with its files, by default with the next number."""
    app_id = (await a_registered_app(store)).app_id if app_id is None else app_id
    known = (await store.applications.load_catalogue()).versions
    version = an_app_version(**{"app_id": app_id, "version_num": 100 + len(known), **changes})
    for file in version.files:
        await store.applications.add_file(
            file.name, nbytes=file.nbytes, md5=file.md5, signature=file.signature, now=NOW
        )
    version_id = await store.applications.add_app_version(version)
    return (await store.applications.load_catalogue()).versions[version_id]


async def the_version(store: Store) -> AppVersion:
    """Return the newest version; create it if needed."""
    versions = (await store.applications.load_catalogue()).versions
    return versions[max(versions)] if versions else await a_registered_version(store)


async def a_registered_volunteer(store: Store, account_key: str = "", **changes: Any) -> VolunteerId:
    """Register a new volunteer, by default with a unique account key and e-mail."""
    number = len(await store.volunteers.volunteers()) + 1
    account_key = account_key or f"key-{number}"
    values: dict[str, Any] = {
        "email": f"volunteer{number}@example.org",
        "name": f"Volunteer {number}",
        "beta": False,
    } | changes
    email = values.pop("email")
    return await store.volunteers.add_volunteer(
        email,
        credentials=Credentials(b"nonce-%d" % number, hash_of(account_key)),
        cross_project_id=f"{number:032x}",
        now=NOW,
        **values,
    )


async def a_registered_host(store: Store, *, account_key: str = "", **changes: Any) -> RegisteredHost:
    """Register a new host, by default of a new volunteer."""
    number = len(await store.volunteers.volunteers()) + 1
    account_key = account_key or f"key-{number}"
    volunteer_id = changes.pop("volunteer_id", None)
    if volunteer_id is None:
        volunteer_id = await a_registered_volunteer(store, account_key)
    host = a_host(**{"volunteer_id": volunteer_id, "host_cpid": f"{number:032x}", **changes})
    host_id = await store.ledger.create_host(volunteer_id, host)
    stored, _ = await store.views.host(host_id)
    return RegisteredHost(stored, account_key)


# ---------------------------------------------------------------- batches


def a_new_batch(**changes: Any) -> NewBatch:
    """A throughput batch of the default submitter, charged from 50 s after NOW."""
    values: dict[str, Any] = {
        "submitter_id": SubmitterId(1),
        "account_id": AccountId(1),
        "app_id": AppId(1),
        "name": "a batch",
        "qos": QoS.THROUGHPUT,
        "jobs_total": 10,
        "created_at": NOW,
        "order_tier": 0,
        "order_key": NOW + 1000.0,
        "logical_start_at": NOW,
        "logical_end_at": Instant(NOW + 1000.0),
        "charged_s": Seconds(50.0),
        "batch_flop": Flop(3.6e13),
    }
    values |= changes
    values.setdefault("submitter_logical_at", later(values["logical_start_at"], values["charged_s"]))
    return NewBatch(**values)


async def a_submitted_batch(
    store: Store,
    jobs: int = 10,
    quorum: int = 1,
    *,
    copies: int | None = None,
    job_class: JobClass | None = None,
    **changes: Any,
) -> Batch:
    """Submit a batch of `jobs` equal jobs of the app pi, each with `copies` unsent instances (default: the quorum)."""
    app_id = changes.pop("app_id", None) or (await a_registered_app(store)).app_id
    job_class = job_class or a_job_class(quorum=quorum)
    async with store.submissions.submission() as writer:
        batch_id = await writer.add_batch(a_new_batch(app_id=app_id, jobs_total=jobs, **changes))
        [class_id] = await writer.add_classes(batch_id, [job_class])
        await writer.add_jobs(
            batch_id,
            [
                NewJob(class_id, f"--job {number}", copies=quorum if copies is None else copies)
                for number in range(jobs)
            ],
        )
    return await store.views.batch(batch_id)


async def a_batch_with_two_quorums(store: Store, jobs: tuple[int, int], flop: tuple[Flop, Flop]) -> Batch:
    """Submit a batch of the app pi with jobs of quorum 1, then some of quorum 3, each number with a flop estimate."""
    new = a_new_batch(
        app_id=(await a_registered_app(store)).app_id,
        jobs_total=sum(jobs),
        batch_flop=Flop(jobs[0] * flop[0] + 3 * jobs[1] * flop[1]),
        quorum_total=jobs[0] + 3 * jobs[1],
    )
    async with store.submissions.submission() as writer:
        batch_id = await writer.add_batch(new)
        classes = [a_job_class(fpops_est_flop=one, quorum=quorum) for one, quorum in zip(flop, (1, 3), strict=True)]
        numbers = zip(await writer.add_classes(batch_id, classes), jobs, (1, 3), strict=True)
        made = [NewJob(class_id, "--job", copies=quorum) for class_id, count, quorum in numbers for _ in range(count)]
        await writer.add_jobs(batch_id, made)
    return await store.views.batch(batch_id)


async def waiting_of(store: Store, batch_id: BatchId) -> list[Candidate]:
    """Return every unsent instance of a batch: urgent ones in order, then fresh ones by id."""
    urgent = await store.waiting.urgent([batch_id], 10_000)
    fresh = await store.waiting.tail([batch_id], 10_000)
    return [*urgent, *sorted(fresh, key=lambda candidate: candidate.ready.instance_id)]


async def fresh_of(store: Store, batch_id: BatchId, *, after: int = 0, limit: int = 10_000) -> list[Candidate]:
    """Return the fresh instances of a batch after `after`, `limit` per shard."""
    ranges = [FreshRange(batch_id, shard, InstanceId(after), limit) for shard in range(64)]
    return list(await store.waiting.fresh(ranges))


# ---------------------------------------------------------------- instances on their way


def an_assignment(candidate: Candidate, host: RegisteredHost, version: AppVersion, **changes: Any) -> Assignment:
    """Assign the candidate to the host: sent at NOW, due in a day, with an hour of grace."""
    ready = candidate.ready
    sent_at = changes.get("sent_at", NOW)
    due_at = changes.get("due_at", later(sent_at, DAY_S))
    values: dict[str, Any] = {
        "instance_id": ready.instance_id,
        "job_id": ready.job_id,
        "batch_id": ready.batch_id,
        "job_class_id": ready.job_class_id,
        "app_version_id": version.app_version_id,
        "host_id": host.host_id,
        "volunteer_id": host.volunteer_id,
        "sent_at": sent_at,
        "due_at": due_at,
        "timeout_at": later(due_at, 3600.0),
        "est_runtime_s": Seconds(3600.0),
        "tight": False,
        "due_terms": some_due_terms(),
    }
    return Assignment(**(values | changes))


async def send(store: Store, host: RegisteredHost, *assignments: Assignment) -> WriteOutcome:
    """Write the assignments as one request of the host."""
    return await store.ledger.write(RequestWrites(host.host, assignments=assignments))


async def a_sent_instance(
    store: Store, batch_id: BatchId, host: RegisteredHost, candidate: Candidate | None = None, **changes: Any
) -> Assignment:
    """Send the batch's first unsent instance, or the given one, to the host."""
    candidate = candidate or (await waiting_of(store, batch_id))[0]
    assignment = an_assignment(candidate, host, await the_version(store), **changes)
    outcome = await send(store, host, assignment)
    assert outcome.fates == {assignment.instance_id: AssignmentFate.SENT}, outcome
    return assignment


def a_report(assignment: Assignment, **changes: Any) -> Report:
    """A success, reported an hour after dispatch."""
    values: dict[str, Any] = {
        "instance_id": assignment.instance_id,
        "job_id": assignment.job_id,
        "host_id": assignment.host_id,
        "from_state": InstanceState.IN_PROGRESS,
        "to_state": InstanceState.REPORTED,
        "reported_at": later(assignment.sent_at, 3600.0),
        "elapsed_s": Seconds(3000.0),
        "cpu_s": Seconds(2900.0),
        "exit_status": 0,
    }
    return Report(**(values | changes))


async def report(store: Store, host: RegisteredHost, *reports: Report) -> None:
    """Write the reports as one request of the host."""
    await store.ledger.write(RequestWrites(host.host, reports=reports))


async def read(store: Store, host: RegisteredHost, *instance_ids: InstanceId) -> RequestView:
    """Read the store's data for a request of the host."""
    return await store.ledger.read(host.key(*instance_ids))


def a_hav_event(assignment: Assignment, kind: HavEventKind = HavEventKind.VALID, **changes: Any) -> HavEvent:
    """An event of the instance's host and app version, an hour after dispatch."""
    values: dict[str, Any] = {
        "host_id": assignment.host_id,
        "app_version_id": assignment.app_version_id,
        "kind": kind,
        "at": later(assignment.sent_at, 3600.0),
        "tight": assignment.tight,
    }
    return HavEvent(**(values | changes))


async def a_retry(store: Store, host: RegisteredHost, batch_id: BatchId) -> None:
    """Fail an instance of the batch, so that its job gets another."""
    sent = await a_sent_instance(store, batch_id, host)
    await report(store, host, a_report(sent, to_state=InstanceState.FAILED))
    [facts] = await store.unsettled.unsettled(9, now=NOW)
    again = JobSettlement(facts.job_id, facts.serial, facts.state, NOW, new_instances=1, retries=1)
    await store.unsettled.settle([again])
