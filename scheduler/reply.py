"""Builds the reply to a client from committed data. Pure. docs/protocol.md#reply."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from domain.credit import NO_STANDING, Standing
from domain.quick import quick_dataclass
from domain.settings import Settings
from domain.units import Instant, Seconds
from domain.volunteers import Volunteer
from scheduler import messages
from scheduler.admission import Admission
from scheduler.elements import ReplyWork
from scheduler.held import HeldReview
from scheduler.messages import Reasons, request_delay_s
from scheduler.ports import CodeSigning
from wire.messages import GuiUrl, Message, ProjectPreferences, SchedulerReply


@quick_dataclass(frozen=True, slots=True)
class Answer:
    """The content of a reply. Everything in it has been committed.

    `reasons` explain why there is not more work; `wanted`: the client requested work. `work_s` is how long the host now
    has work; `unrunnable`: it can run no version of the project. `standing` is the credit as of the read.
    """

    admission: Admission
    acks: tuple[str, ...]
    review: HeldReview
    work: ReplyWork
    reasons: Reasons
    wanted: bool
    work_s: Seconds
    unrunnable: bool
    now: Instant
    standing: Standing = NO_STANDING
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
    admission, review, work, standing = answer.admission, answer.review, answer.work, answer.standing
    volunteer, host = admission.volunteer, admission.host
    delay_s = request_delay_s(
        answer.reasons,
        sent=bool(work.results),
        wanted=answer.wanted,
        work_s=answer.work_s,
        unrunnable=answer.unrunnable,
        held_s=min((Seconds(answer.now - one.sent_at) for one in review.kept), default=None),
        settings=settings.scheduler,
    )
    return SchedulerReply(
        master_url=settings.project.url,
        project_name=settings.project.name,
        request_delay_s=delay_s,
        messages=(*messages.about_host(admission, taken_over=len(review.taken_over)), *_about_work(answer, delay_s)),
        user_name=volunteer.name,
        user_id=volunteer.volunteer_id,
        user_credit=(standing.volunteer.total, standing.volunteer.average_at(answer.now)),
        user_create_at=volunteer.created_at,
        email_hash=volunteer.email_hash,
        cross_project_id=volunteer.cross_project_id,
        external_cpid=volunteer.external_cpid,
        host_id=host.host_id if admission.tell_id else None,
        host_credit=(standing.host.total, standing.host.average_at(answer.now)),
        host_create_at=host.created_at,
        team_id=standing.team_id,
        team_name=standing.team_name,
        gui_urls=links_of(settings.project.url, standing.team_id),
        feed_url=f"{settings.project.url}notices.php",
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


@lru_cache(maxsize=1024)
def links_of(url: str, team_id: int) -> tuple[GuiUrl, ...]:
    """Return the links that a client shows with the project; `team_id` 0 = no team."""
    pages = f"{url}volunteers/"
    team = (GuiUrl("Your team", "Members and credit", f"{pages}teams/{team_id}"),) if team_id else ()
    return (
        GuiUrl("Your account", "Credit, password and statistics", f"{pages}account"),
        GuiUrl("Your computers", "Their activity, and why a computer got no work", f"{pages}computers"),
        GuiUrl("Your results", "In progress, valid, failed", f"{pages}results"),
        *team,
        GuiUrl("Server status", "Work, volunteers and processes", f"{url}server_status.php"),
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
