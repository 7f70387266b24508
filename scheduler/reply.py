"""Builds the reply to a client from committed data. Pure. docs/protocol.md#reply."""

from __future__ import annotations

from dataclasses import replace

from domain.quick import quick_dataclass
from domain.settings import Settings
from domain.units import Seconds
from domain.volunteers import Volunteer
from scheduler import messages
from scheduler.admission import Admission
from scheduler.elements import ReplyWork
from scheduler.held import HeldReview
from scheduler.messages import Reasons, request_delay_s
from scheduler.ports import CodeSigning
from wire.messages import Message, ProjectPreferences, SchedulerReply


@quick_dataclass(frozen=True, slots=True)
class Answer:
    """The content of a reply. Everything in it has been committed.

    `reasons` explain why there is not more work. `wanted`: the client requested work. `work_s` is how long the host now
    has work. `unrunnable`: it can run no version of the project.
    """

    admission: Admission
    acks: tuple[str, ...]
    review: HeldReview
    work: ReplyWork
    reasons: Reasons
    wanted: bool
    work_s: Seconds
    unrunnable: bool
    ack_trickles: bool = False


def to_unknown(why: Message, settings: Settings) -> SchedulerReply:
    """Reply to an unknown account or a refused new host. Nothing is acknowledged, so the client keeps its results."""
    return SchedulerReply(
        master_url=settings.project.url,
        project_name=settings.project.name,
        request_delay_s=settings.scheduler.refused_delay_s,
        messages=(why,),
    )


def to_volunteer(answer: Answer, settings: Settings) -> SchedulerReply:
    """Reply to a volunteer's host; includes the host id if the client does not know it.

    All replies contain `send_full_workload` and `dont_use_dcf`, because clients forget the latter.
    """
    admission, review, work = answer.admission, answer.review, answer.work
    volunteer, host = admission.volunteer, admission.host
    delay_s = request_delay_s(
        answer.reasons,
        sent=bool(work.results),
        wanted=answer.wanted,
        work_s=answer.work_s,
        unrunnable=answer.unrunnable,
        holds_work=bool(review.kept),
        settings=settings.scheduler,
    )
    return SchedulerReply(
        master_url=settings.project.url,
        project_name=settings.project.name,
        request_delay_s=delay_s,
        messages=(*messages.about_host(admission, taken_over=len(review.taken_over)), *_about_work(answer, delay_s)),
        user_name=volunteer.name,
        user_create_at=volunteer.created_at,
        email_hash=volunteer.email_hash,
        cross_project_id=volunteer.cross_project_id,
        host_id=host.host_id if admission.tell_id else None,
        host_create_at=host.created_at,
        next_rpc_delay_s=Seconds(max(delay_s, settings.scheduler.next_contact_s)),
        send_full_workload=True,
        dont_use_dcf=True,
        preferences=preferences_of(volunteer) if volunteer.preferred_at is not None else None,
        acks=answer.acks,
        ack_trickles=answer.ack_trickles,
        aborts=review.abort,
        aborts_if_not_started=review.abort_if_not_started,
        apps=work.apps,
        downloads=work.downloads,
        uploads=work.uploads,
        app_versions=work.app_versions,
        workunits=work.workunits,
        results=work.results,
    )


def preferences_of(volunteer: Volunteer) -> ProjectPreferences:
    """Return the volunteer's saved preferences. A client that already has them ignores the copy."""
    return ProjectPreferences(
        volunteer.preferred_at or volunteer.created_at,
        no_cpu=volunteer.no_cpu,
        no_gpu=volunteer.no_gpu,
        beta=volunteer.beta,
        max_jobs=volunteer.max_jobs,
        max_cpus=volunteer.max_cpus,
        app_ids=volunteer.apps,
    )


def _about_work(answer: Answer, delay_s: Seconds) -> tuple[Message, ...]:
    if answer.work.results or not answer.wanted:
        return ()
    return messages.why_no_work(answer.reasons, delay_s, unrunnable=answer.unrunnable)


def with_key(reply: SchedulerReply, client_key: str, signing: CodeSigning) -> SchedulerReply:
    """Add the code-signing key if the client has none, or an older key of this project.

    A client that has the current key must not receive it again (docs/protocol.md#reply).
    """
    ours = signing.public_key_text()
    if client_key == ours or client_key.split() == ours.split():
        return reply
    if not client_key.strip():
        return replace(reply, code_sign_key=ours)
    signature = signing.rotation_signature(client_key)
    if signature is None:
        return reply
    return replace(reply, code_sign_key=ours, code_sign_key_signature=signature)
