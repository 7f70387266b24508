"""Answers scheduler requests, each with one read, one decision and one write."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from logging import DEBUG

import structlog

from domain.apps import ANONYMOUS
from domain.catalogue import CatalogueSource
from domain.clock import Clock
from domain.credit import NO_CREDIT
from domain.dispatch import Reported, RequestView, RequestWrites, TrickleFate
from domain.errors import TooManyHostsError
from domain.jobs import InstanceInProgress
from domain.refusals import Refusal
from domain.restrictions import drops_jobs
from domain.units import HostId, InstanceId, Seconds, later
from domain.volunteers import Volunteer
from scheduler import messages, reply
from scheduler.admission import (
    Admission,
    Contact,
    admit,
    admit_again,
    asks_for_work,
    banned,
    context_of,
    earlier_key,
    key_of,
    refuse_all,
    unusable_refusal,
    wants_of,
)
from scheduler.assignment import AssignmentCommitter, Committed, Decide
from scheduler.elements import Elements, JobToSend, lost_job
from scheduler.held import HeldReview, aborted_versions, review_held, runnable_versions, stray_ids
from scheduler.messages import is_unrunnable, work_s
from scheduler.other_records import OtherRecords
from scheduler.ports import CodeSigning, JobSource, Ledger, Pauses, RequestObserver, Uploads
from scheduler.reports import take_reports, take_trickles
from scheduler.selection import choose
from wire.messages import SchedulerReply, SchedulerRequest
from wire.reports import MAX_RESULTS

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class SchedulerPorts:
    """The dependencies of the request service."""

    ledger: Ledger
    array: JobSource
    catalogue: CatalogueSource
    uploads: Uploads
    signing: CodeSigning
    pauses: Pauses
    observer: RequestObserver


class RequestService:
    """Answers scheduler requests. One instance serves all requests of a process and has no state between them."""

    def __init__(self, ports: SchedulerPorts, clock: Clock, decide: Decide = choose) -> None:
        self._ports = ports
        self._clock = clock
        self._giver = AssignmentCommitter(ports.ledger, ports.array, decide)
        self._elements = Elements(ports.uploads)
        self._log = log.bind()  # bound once: with the default configuration, each use of `log` builds a new logger

    async def answer(self, request: SchedulerRequest) -> SchedulerReply:
        """Return the reply to a client's request.

        Raises UnavailableError if nothing was written; the client then repeats its reports.
        """
        catalogue, started_s = self._ports.catalogue.catalogue(), self._clock.monotonic()
        contact = Contact(request, key_of(request), self._clock.now(), catalogue, started_s)
        settings = contact.catalogue.settings

        # 1. Read the volunteer, the host and the reported instances.
        view = await self._ports.ledger.read(contact.key)
        if view.volunteer is None:
            self._note(contact, "unknown account", HostId(0), Committed())
            return reply.to_unknown(messages.wrong_account(settings.project.name), settings)

        # 2. Match the request with a host record, and decide whether it may get work at all.
        try:
            admission, known = await self._admitted(contact, view, view.volunteer)
        except TooManyHostsError as error:
            self._note(contact, "too many new hosts", HostId(0), Committed())
            return reply.to_unknown(messages.too_many_hosts(str(error)), settings)
        contact = replace(contact, catalogue=catalogue.on_host(admission.host.ncpus))
        paused = self._ports.pauses.refuse_work_because(contact.now)
        refusal = refuse_all(request, settings, paused=paused, now=contact.now) or banned(admission.host, catalogue)

        # 3. Process what the client reports.
        others = OtherRecords(self._ports.ledger, contact, admission, view)
        reported = await others.with_reported({**view.reported, **known.reported})
        taken = take_reports(request.results, reported, admission.host, others.counts, now=contact.now)

        # 4. Compare the jobs it has with the jobs it should have.
        review = await self._reviewed(contact, admission, others, known, refusal)
        if request.trickles:
            running = [reported[report.instance_id].held for report in taken.reports]
            await self._keep_trickles(contact, (*review.kept, *review.taken_over, *review.overdue, *running))
        lost = await self._lost_jobs(contact, admission, review.resend)
        review = review.resending([job.instance.instance_id for job in lost])

        # 5. Choose jobs for the host, and commit them together with all of the above.
        reports = others.errors_of_host(taken.reports)
        writes = RequestWrites(
            admission.host,
            (*reports, *review.ended),
            detach=admission.detach,
            known=known.host,
            take_over=others.take_over(reports, review),
        )
        wants = wants_of(request, admission.host)
        refusal = refusal or unusable_refusal(request, wants)
        if refusal is not None or not wants:
            given = await self._nothing_given(refusal, writes)
        else:
            context = context_of(contact, admission, known, wants, review)
            given = await self._giver.give(context if context.wants else None, writes)

        # 6. Build the reply from committed data only.
        self._note(contact, admission.case, admission.host.host_id, given, resent=len(lost), reports=len(taken.reports))
        review = others.taken_over(review, given.moved)
        work = self._elements.work_of((*given.jobs, *lost), contact.catalogue)
        acks = taken.acks_without(others.to_repeat(given.left_out, given.moved))
        answer = reply.Answer(
            admission,
            acks,
            review,
            work,
            given.reasons,
            wanted=asks_for_work(request),
            work_s=work_s(given.jobs, review.kept, wants, contact.catalogue.versions),
            unrunnable=is_unrunnable(given.reasons, admission.host, contact.catalogue, now=contact.now),
            now=contact.now,
            standing=known.standing if admission.same_record else replace(known.standing, host=NO_CREDIT),
            ack_trickles=bool(request.trickles),
        )
        return reply.with_key(reply.to_volunteer(answer, settings), request.code_sign_key, self._ports.signing)

    async def _admitted(
        self, contact: Contact, view: RequestView, volunteer: Volunteer
    ) -> tuple[Admission, RequestView]:
        """Return the admission, creating a host record if needed, and the stored data of that record."""
        settings = contact.catalogue.settings.scheduler
        admission = admit(contact.request, view, volunteer, settings=settings, now=contact.now)
        if not admission.create:
            return admission, view
        key = earlier_key(contact.key, admission)
        earlier = await self._ports.ledger.read(key) if key is not None else view
        if key is not None and earlier.host is not None:
            admission = admit_again(contact.request, admission, earlier.host, now=contact.now)
        if admission.again:
            return admission, earlier
        host_id = await self._ports.ledger.create_host(volunteer.volunteer_id, admission.host)
        log.info("host created", host_id=host_id, volunteer_id=volunteer.volunteer_id, because=admission.because)
        return replace(admission, host=replace(admission.host, host_id=host_id)), view

    async def _keep_trickles(self, contact: Contact, running: Iterable[InstanceInProgress]) -> None:
        """Store trickle messages from the instances in `running`, before all other writes. A repeated message is stored
        only once.
        """
        request, settings = contact.request, contact.catalogue.settings
        taken = take_trickles(request, running, settings=settings.files, now=contact.now)
        fates = taken.dropped
        if taken.keep:
            too_many = await self._ports.ledger.keep_trickles(
                taken.keep,
                per_instance=settings.files.trickles_per_instance,
                forget_before=later(contact.now, -settings.storage.keep_trickles_s),
            )
            fates += Counter({TrickleFate.TOO_MANY: too_many, TrickleFate.KEPT: len(taken.keep) - too_many})
        self._ports.observer.trickles_taken(fates)

    async def _reviewed(
        self, contact: Contact, admission: Admission, others: OtherRecords, view: RequestView, refusal: Refusal | None
    ) -> HeldReview:
        """Decide about jobs that the client lost, should abort, or received under another record of its computer.

        Listed results that are not in progress here are looked up, a rare second read. `view` has the stored data of
        the host record used for the request.
        """
        request = contact.request
        listed = frozenset([entry.name for entry in request.other_results])
        reported = frozenset([result.name for result in request.results])
        held = view.held if admission.same_record and not admission.detach else ()
        missing = any(one.name not in listed and one.name not in reported for one in held)
        strays: Mapping[InstanceId, Reported | None] = dict.fromkeys(stray_ids(listed, held))
        if strays and admission.same_record:
            key = replace(contact.key, host_id=admission.host.host_id, instance_ids=tuple(strays))
            strays = {**strays, **(await self._ports.ledger.read(key)).reported}
        strays = {**strays, **(await others.instances([i for i, known in strays.items() if known is None]))}
        return review_held(
            listed,
            reported,
            held,
            strays,
            host_id=admission.host.host_id,
            runnable=runnable_versions(contact.catalogue, admission.host)
            if missing and not request.dont_send_work and ANONYMOUS not in request.platforms
            else frozenset(),
            aborted=aborted_versions(contact.catalogue),
            hold_back=(refusal is not None and refusal.code.traits.keeps_lost_jobs)
            or len(request.results) >= MAX_RESULTS,
            drop_all=drops_jobs(contact.catalogue.restrictions, admission.host),
            now=contact.now,
        )

    async def _lost_jobs(
        self, contact: Contact, admission: Admission, lost: Sequence[InstanceInProgress]
    ) -> tuple[JobToSend, ...]:
        """Read what the reply needs for resending lost jobs; jobs that have ended since are omitted."""
        if not lost:
            return ()
        classes = await self._ports.ledger.job_classes([held.job_class_id for held in lost])
        sent = await self._ports.ledger.sent_jobs([held.instance_id for held in lost])
        versions = contact.catalogue.versions
        return tuple(
            lost_job(
                held,
                versions[held.app_version_id],
                classes[held.job_class_id],
                admission.host,
                sent[held.instance_id],
            )
            for held in lost
            if held.instance_id in sent and held.job_class_id in classes
        )

    async def _nothing_given(self, refusal: Refusal | None, writes: RequestWrites) -> Committed:
        """Commit the writes of a request that wants or gets no jobs."""
        if refusal is None:
            return await self._giver.give(None, writes)
        reasons = messages.reasons_of(refusal)
        given = await self._giver.give(None, replace(writes, refused=messages.kept_of(reasons)))
        return replace(given, reasons=reasons, refusals={refusal.code: 1})

    def _note(
        self, contact: Contact, case: str, host_id: HostId, given: Committed, *, resent: int = 0, reports: int = 0
    ) -> None:
        """Log and count the request."""
        took_s = Seconds(self._clock.monotonic() - contact.started_s)
        self._ports.observer.request_answered(
            sent=len(given.jobs), resent=resent, reports=reports, refusals=given.refusals, took_s=took_s
        )
        if not self._log.is_enabled_for(DEBUG):  # building the log fields costs more than the rest of this method
            return
        self._log.debug(
            "request answered",
            host_id=host_id,
            case=str(case),
            rpc_seqno=contact.request.rpc_seqno,
            reports=reports,
            sent=len(given.jobs),
            resent=resent,
            lost=given.lost,
            refusals={str(code): count for code, count in given.refusals.items()},
            took_ms=round(1000.0 * took_s, 3),
        )
