"""Generates random histories for two stores: steps choose among what exists, so that every sequence is valid.

A step is a kind and three numbers; shorter sequences and smaller numbers are simpler histories.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from domain.dispatch import InstanceStep, Report, RequestWrites
from domain.errors import MusterError
from domain.havs import HavEvent, HavEventKind
from domain.history import JobPlace, MovedJobs
from domain.jobs import Candidate, InstanceInProgress, InstanceState, JobState
from domain.settlement import ExtraCopy, JobFacts, JobSettlement
from domain.units import BatchId, InstanceId, Instant, JobId, Seconds, later
from lifecycle.states import RETRY_CAUSES
from tests.builders import NOW, a_job_class
from tests.conformance.twins import Twins, assert_equal, months_of
from tests.stores import Store, batches_of
from tests.worlds import (
    RegisteredHost,
    a_new_batch,
    a_registered_host,
    a_registered_version,
    a_submitted_batch,
    an_assignment,
    the_version,
)

S = InstanceState
KINDS = (
    "submit",
    "change_of_mind",
    "dispatch",
    "report",
    "detach",
    "look",
    "settle",
    "time_out",
    "copy",
    "hasten",
    "count_due",
    "wait",
    "outage",
    "alive",
    "abort",
    "retry",
    "upload",
    "new_version",
    "to_history",
    "purge",
)
OFTEN = ("submit", "dispatch", "dispatch", "report", "report", "settle", "settle", "time_out")


@dataclass(frozen=True, slots=True)
class Step:
    kind: str
    a: int = 0
    b: int = 0
    c: int = 0


class Life(Twins):
    """Three hosts, two of one volunteer; one app."""

    def __init__(self, one: Store, other: Store) -> None:
        super().__init__(one, other)
        self.now = NOW
        self.hosts: list[RegisteredHost] = []
        self.seen_before: list[Candidate] = []
        self.read_before: list[JobFacts] = []  # facts as read some steps ago

    async def begin(self) -> None:
        await self.both(a_registered_version)
        first = await self.both(lambda store: a_registered_host(store, account_key="one"))
        second = await self.both(
            lambda store: a_registered_host(store, account_key="one", volunteer_id=first.volunteer_id)
        )
        third = await self.both(lambda store: a_registered_host(store, account_key="two"))
        self.hosts = [first, second, third]

    async def do(self, step: Step) -> None:
        self.now = later(self.now, 1.0)
        await getattr(self, step.kind)(step.a, step.b, step.c)

    # ------------------------------------------------------------ steps

    async def submit(self, a: int, b: int, c: int) -> None:
        quorum = 1 + b % 3
        await self.both(
            lambda store: a_submitted_batch(
                store, jobs=1 + a % 5, quorum=quorum, created_at=self.now, order_key=float(c % 4)
            )
        )

    async def change_of_mind(self, a: int, b: int, c: int) -> None:
        async def submit(store: Store) -> None:
            async with store.submissions.submission() as writer:
                app_id = (await the_version(store)).app_id
                await writer.add_classes(await writer.add_batch(a_new_batch(app_id=app_id)), [a_job_class()])
                raise MusterError("on second thought")

        await self.both(submit)

    async def dispatch(self, a: int, b: int, c: int) -> None:
        host = self.hosts[a % 3]
        candidates = await self._candidates()
        if not candidates:
            return
        chosen = [candidates[(b + 7 * position) % len(candidates)] for position in range(1 + c % 4)]
        version = await the_version(self.one)
        due_at = later(self.now, 3600.0 * (1 + b % 100))
        assignments = [
            an_assignment(
                candidate,
                host,
                version,
                sent_at=self.now,
                due_at=due_at,
                timeout_at=later(due_at, 300.0),
                tight=c % 3 == 0,
                hr_class=c % 5 // 3,
                copies=2 if c % 7 == 0 else 0,
            )
            for candidate in {one.ready.instance_id: one for one in chosen}.values()
        ]
        writes = RequestWrites(
            replace(host.host, last_rpc_at=self.now, rpc_seqno=a % 1000), assignments=tuple(assignments)
        )
        await self.both(lambda store: store.ledger.write(writes))

    async def report(self, a: int, b: int, c: int) -> None:
        host = self.hosts[a % 3]
        known = await self._on_host(host)
        if not known:
            return
        reports = [self._report(*known[(b + position) % len(known)], c + position) for position in range(1 + c % 3)]
        distinct = {report.instance_id: report for report in reports}
        await self.both(lambda store: store.ledger.write(RequestWrites(host.host, reports=tuple(distinct.values()))))

    def _report(self, held: InstanceInProgress, state: InstanceState, choice: int) -> Report:
        to_state = (S.REPORTED, S.REPORTED, S.FAILED, S.ABORTED)[choice % 4]
        kind = {S.FAILED: HavEventKind.ERROR, S.ABORTED: HavEventKind.LOST}.get(to_state, HavEventKind.VALID)
        event = HavEvent(
            held.host_id,
            held.app_version_id,
            kind,
            self.now,
            tight=held.tight,
            ln_turnaround_ratio=choice / 16.0,
            replaces=0.5 if state is S.TIMED_OUT else None,
            speed_s_per_flop=1e-9,
        )
        return Report(
            held.instance_id,
            S.IN_PROGRESS if choice % 5 == 0 else state,
            to_state,
            job_id=held.job_id,
            host_id=held.host_id,
            reported_at=self.now,
            exit_status=choice % 3,
            reason="because" if to_state is S.FAILED else "",
            stderr="x" * (choice % 2),
            turnaround_sample=choice / 16.0 if choice % 2 else None,
            hav_event=event if choice % 3 else None,
        )

    async def detach(self, a: int, b: int, c: int) -> None:
        await self.both(lambda store: store.ledger.write(RequestWrites(self.hosts[a % 3].host, detach=True)))

    async def look(self, a: int, b: int, c: int) -> None:
        self.read_before = list(await self.one.unsettled.unsettled(10, now=NOW))

    async def settle(self, a: int, b: int, c: int) -> None:
        """Settle with current facts, or (every fourth time) with older ones."""
        stale = c % 4 == 0
        mine = self.read_before if stale else list(await self.one.unsettled.unsettled(1 + a % 3, now=NOW))
        theirs = {facts.job_id: facts.serial for facts in await self.other.unsettled.unsettled(1000, now=NOW)}
        current = {facts.job_id: facts.serial for facts in await self.one.unsettled.unsettled(1000, now=NOW)}
        mine = [facts for facts in mine if facts.job_id in current]
        settlements = [self._settlement(facts, b + position) for position, facts in enumerate(mine)]
        # Each store has its own serials: a current one maps to the other's current one, a stale one stays stale.
        translated = [
            replace(one, serial=theirs[one.job_id] if one.serial == current[one.job_id] else -1) for one in settlements
        ]
        assert_equal(
            await self.one.unsettled.settle(settlements),
            await self.other.unsettled.settle(translated),
        )

    def _settlement(self, facts: JobFacts, choice: int) -> JobSettlement:
        back = [one.instance_id for one in facts.instances if one.state is S.REPORTED]
        unsent = [one.instance_id for one in facts.instances if one.state is S.UNSENT]
        retries = sum(one.state in RETRY_CAUSES for one in facts.instances)
        cancels = tuple(InstanceStep(instance_id, S.UNSENT, S.CANCELLED) for instance_id in unsent)
        settlement = JobSettlement(facts.job_id, facts.serial, facts.state, self.now)
        if facts.state is not JobState.OPEN:
            too_late = tuple(InstanceStep(instance_id, S.REPORTED, S.TOO_LATE) for instance_id in back)
            return replace(settlement, canonical_instance_id=facts.canonical_instance_id, steps=too_late)
        if back and choice % 3 == 0:
            steps = (*cancels, *(InstanceStep(one, S.REPORTED, S.VALID, 0.25, self._valid(facts, one)) for one in back))
            return replace(settlement, state=JobState.VALID, canonical_instance_id=back[0], steps=steps)
        if choice % 5 == 4:
            return replace(settlement, state=JobState.FAILED, failure="too many errors", steps=cancels)
        steps = tuple(InstanceStep(instance_id, S.REPORTED, S.INCONCLUSIVE) for instance_id in back)
        wanted = choice % 3 if retries or facts.job_class.quorum > 1 else 0
        made = replace(settlement, steps=steps, new_instances=wanted, retries=retries, hasten=bool(back))
        return replace(made, copies_needed=choice % 2 == 0)

    def _valid(self, facts: JobFacts, instance_id: int) -> HavEvent:
        one = next(one for one in facts.instances if one.instance_id == instance_id)
        assert one.host_id is not None and one.app_version_id is not None
        return HavEvent(one.host_id, one.app_version_id, HavEventKind.VALID, self.now, ln_turnaround_ratio=0.25)

    async def time_out(self, a: int, b: int, c: int) -> None:
        overdue = await self.both(lambda store: store.overdue.overdue(now=self.now, limit=1 + a % 3))
        steps = [
            InstanceStep(
                one.held.instance_id,
                S.IN_PROGRESS,
                S.TIMED_OUT,
                turnaround_sample=0.5,
                hav_event=HavEvent(
                    one.held.host_id,
                    one.held.app_version_id,
                    HavEventKind.TIMED_OUT,
                    self.now,
                    tight=one.held.tight,
                    ln_turnaround_ratio=0.5,
                ),
            )
            for one in overdue
        ]
        await self.both(lambda store: store.overdue.time_out(steps, now=self.now))

    async def copy(self, a: int, b: int, c: int) -> None:
        """Give some open jobs of a batch one more instance; every third time from outdated facts."""
        batch_id = BatchId(1 + a % 4)
        jobs = await self.both(
            lambda store: store.tails.tail_jobs(batch_id, after=JobId(b % 3), limit=1 + c % 4, now=self.now)
        )
        stale = c % 3 == 0
        copies = [
            ExtraCopy(job.job_id, len(job.instances) + stale, job.tail_copies, 1 + b % 2, "slow", more_instances=a % 2)
            for job in jobs
        ]
        await self.both(lambda store: store.tails.add_copies(copies, now=self.now))
        await self.both(lambda store: store.tails.tails(fraction=0.5, jobs=1 + c % 3, limit=5))

    async def hasten(self, a: int, b: int, c: int) -> None:
        jobs = await self.one.tails.tail_jobs(BatchId(1 + a % 4), after=JobId(0), limit=1 + b % 3, now=self.now)
        await self.both(lambda store: store.tails.hasten([job.job_id for job in jobs]))
        await self.both(lambda store: store.tails.low_turnaround(since=NOW))

    async def count_due(self, a: int, b: int, c: int) -> None:
        await self.both(lambda store: store.overdue.count_due(now=self.now))

    async def wait(self, a: int, b: int, c: int) -> None:
        self.now = later(self.now, 3600.0 * (a % 60))

    async def alive(self, a: int, b: int, c: int) -> None:
        """Record that the project is alive; after more than 10 minutes some due dates shift."""
        await self.both(
            lambda store: store.outages.note_alive(now=self.now, outage_at_least_s=Seconds(600.0), limit=1 + a % 3)
        )

    async def outage(self, a: int, b: int, c: int) -> None:
        await self.alive(a, b, c)
        self.now = later(self.now, 600.0 * (1 + a % 30))
        await self.alive(b, a, c)

    async def abort(self, a: int, b: int, c: int) -> None:
        await self.both(lambda store: store.submissions.abort_batch(BatchId(1 + a % 4), now=self.now))

    async def retry(self, a: int, b: int, c: int) -> None:
        await self.both(lambda store: _retried(store, BatchId(1 + a % 4), self.now))

    async def upload(self, a: int, b: int, c: int) -> None:
        md5 = f"{c % 3}" * 32
        name = f"out{b % 2}"
        instance_id = InstanceId(1 + a % 12)
        await self.both(
            lambda store: store.uploads.record_upload(instance_id, name=name, nbytes=b, md5=md5, completed_at=self.now)
        )

    async def new_version(self, a: int, b: int, c: int) -> None:
        await self.both(a_registered_version)

    async def to_history(self, a: int, b: int, c: int) -> None:
        """Move jobs that ended some hours ago to the history, a few at a time."""
        await self.count_due(a, b, c)
        before = later(self.now, -3600.0 * (a % 3))
        report = MovedJobs(more=True)
        while report.more:
            report = await self._move(before, report.after, 1 + b % 4)

    async def _move(self, before: Instant, after: JobPlace, limit: int) -> MovedJobs:
        return await self.both(lambda store: store.history.move_ended(before=before, after=after, limit=limit))

    async def purge(self, a: int, b: int, c: int) -> None:
        months = await self.both(months_of)
        if months:
            month = months[a % len(months)].month
            await self.both(lambda store: store.history.purge_month(month, now=self.now))

    # ------------------------------------------------------------ what there is to choose from

    async def _candidates(self) -> list[Candidate]:
        """Return everything unsent, and what was unsent at the last dispatch: another host may have it by now."""
        found = list(self.seen_before)
        for batch in await batches_of(self.one, limit=100):
            found.extend(await self.one.waiting.urgent([batch.batch_id], 100))
            found.extend(await self.one.waiting.tail([batch.batch_id], 100))
        self.seen_before = found[-3:]
        return found

    async def _on_host(self, host: RegisteredHost) -> list[tuple[InstanceInProgress, InstanceState]]:
        """Return the instances the host has or has lost, with their states."""
        ids: list[InstanceId] = []
        for batch in await batches_of(self.one, limit=100):
            for job in await self.one.views.jobs(batch.batch_id, limit=100):
                ids.extend(one.instance_id for one in (await self.one.views.job(job.job_id)).instances)
        reported = (await self.one.ledger.read(host.key(*ids))).reported
        alive = (S.IN_PROGRESS, S.TIMED_OUT, S.ABORTED)
        return [(one.held, one.state) for one in reported.values() if one.state in alive]


async def _retried(store: Store, batch_id: BatchId, now: Instant) -> int | type[MusterError]:
    try:
        return await store.repeating.retry_failed(batch_id, now=now)
    except MusterError as error:
        return type(error)
