"""Builds the messages in a reply: why no work was sent, what went wrong, and when to contact the server again. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache

from domain.apps import ANONYMOUS, CPU, AppVersion, plan_of
from domain.catalogue import Catalogue
from domain.formatting import in_words
from domain.hosts import Host
from domain.jobs import InstanceInProgress
from domain.refusals import About, Refusal, RefusalCode, Whys, codes_where
from domain.settings import SchedulerSettings
from domain.units import AppVersionId, Instant, Seconds
from scheduler.admission import Admission, HostCase
from scheduler.busy import usage_of
from scheduler.context import WorkRequest
from scheduler.elements import JobToSend
from wire.messages import Message

LEAST_FRACTION = 1.0 / 6.0  # of request_delay_s: the minimum delay for a host that finishes sooner, 10 s by default

WRONG_PLATFORM = codes_where(lambda traits: traits.wrong_platform)
_KNOWN_TO_CLIENT = codes_where(lambda traits: traits.known_to_client)
_NOT_ABOUT_JOBS = codes_where(lambda traits: traits.about is not About.JOBS)


def request_delay_s(
    reasons: Collection[RefusalCode],
    *,
    sent: bool,
    wanted: bool,
    work_s: Seconds,
    unrunnable: bool,
    held_s: Seconds | None,
    settings: SchedulerSettings,
) -> Seconds:
    """Return the seconds after which the client may contact the server again.

    After jobs were sent, or lost to other hosts, this is the time until the host has finished its work (`work_s`),
    between one sixth of `request_delay_s` and `request_delay_s`, so that a host with little work returns soon. If the
    client wanted work and got none, it is `no_work_delay_s`, or `refused_delay_s` if the host can run no version of the
    project (`unrunnable`) or is banned. With jobs in progress, the last of them sent `held_s` ago, the host returns
    sooner to report them: when they should end, but not before the time since then has doubled.

    >>> def delay_s(work_s, sent, held_s):
    ...     return request_delay_s((), sent=sent, wanted=True, work_s=work_s, unrunnable=False, held_s=held_s,
    ...                            settings=SchedulerSettings())
    >>> delay_s(2.0, True, 0.0), delay_s(45.0, True, 0.0), delay_s(3600.0, True, 0.0)
    (10.0, 45.0, 60.0)
    >>> delay_s(2.0, False, 20.0), delay_s(2.0, False, 4000.0), delay_s(0.0, False, None)
    (20.0, 300.0, 300.0)
    """
    longest_s = settings.request_delay_s
    least_s = LEAST_FRACTION * longest_s
    if not wanted:
        return longest_s
    if sent or RefusalCode.LOST_RACE in reasons:
        return Seconds(min(longest_s, max(work_s, least_s)))
    if held_s is not None:
        return Seconds(min(settings.no_work_delay_s, max(work_s, held_s, least_s)))
    if unrunnable or RefusalCode.BANNED in reasons:
        return settings.refused_delay_s
    return settings.no_work_delay_s


def work_s(
    jobs: Iterable[JobToSend],
    held: Iterable[InstanceInProgress],
    wants: Sequence[WorkRequest],
    versions: Mapping[AppVersionId, AppVersion],
) -> Seconds:
    """Return how long the processors that got or wanted jobs have work: the minimum over their types.

    New jobs use the client's own estimate, fpops_est divided by the speed sent to it, divided by the processors of the
    type; jobs in progress count in full.
    """
    sent = [(job.plan, job.job_class.fpops_est_flop / job.flop_per_s) for job in jobs]
    kinds = {plan.processor_type for plan, _ in sent}
    counts = {want.processor_type: max(1, want.count) for want in wants}
    left = {kind: 0.0 for kind in counts if kind in kinds or not kinds}
    known = [(plan_of(versions, one.app_version_id, one.ncpus), one.est_runtime_s) for one in held]
    for plan, runtime_s in (*sent, *known):
        kind = plan.processor_type
        if kind in left:
            left[kind] += usage_of(plan) * runtime_s / counts[kind]
    return Seconds(min(left.values(), default=0.0))


def is_unrunnable(reasons: Collection[RefusalCode], host: Host, catalogue: Catalogue, *, now: Instant) -> bool:
    """Return whether none of the project's apps has a version for any platform and processor of the host.

    False within `refused_delay_s` after a version was added, because versions for other platforms may follow. A client
    with its own programs (anonymous platform) cannot run any of the project's versions.
    """
    if not reasons or not WRONG_PLATFORM.issuperset(reasons):
        return False
    if ANONYMOUS in host.platforms:
        return True
    kinds = {CPU, *(gpu.type for gpu in host.coprocessors)}
    current = [version for versions in catalogue.current.values() for version in versions]
    if any(version.platform in host.platforms and version.processor_type in kinds for version in current):
        return False
    newest_at = max((version.created_at for version in catalogue.versions.values()), default=now)
    return now - newest_at > catalogue.settings.scheduler.refused_delay_s


MOST_REASONS = 3
MOST_CHARS = 300  # maximum length of a stored sentence
HIGH = "high"
NOTICE = "notice"

Reasons = Mapping[RefusalCode, tuple[int, str]]  # count and first sentence of each reason
_PLACE = {code: place for place, code in enumerate(RefusalCode)}


def about_host(admission: Admission, *, taken_over: int = 0) -> tuple[Message, ...]:
    """Return the message that tells the volunteer which host record the computer got, and which tasks it continues."""
    match admission.case:
        case HostCase.KNOWN | HostCase.FIRST_CONTACT:
            return ()
        case HostCase.STATE_LOST:
            return (Message(f"This computer was recognised as host {admission.host.host_id} and keeps its record."),)
        case HostCase.NOT_THEIRS | HostCase.CLONE:
            return (
                Message(
                    f"This computer is now host {admission.host.host_id}: {admission.because}. "
                    + (f"It continues with {tasks(taken_over)}." if taken_over else "Its earlier tasks are cancelled.")
                ),
            )


def tasks(count: int) -> str:
    """Return the number of a client's tasks in words.

    >>> tasks(1), tasks(2)
    ('the task it has', 'the 2 tasks it has')
    """
    return "the task it has" if count == 1 else f"the {count} tasks it has"


def wrong_account(project_name: str) -> Message:
    """Return the message to a client whose account key is unknown."""
    return Message(
        f"Unknown account key: remove {project_name} from your client and add it again with your account.",
        NOTICE,
    )


def too_many_hosts(because: str) -> Message:
    """Return the message to a computer that gets no host record.

    >>> too_many_hosts("2 new computers of this account were added today").text
    'This computer was not added: 2 new computers of this account were added today.'
    """
    return Message(f"This computer was not added: {_sentence(because)}", NOTICE)


def why_no_work(reasons: Reasons, delay_s: Seconds, *, unrunnable: bool = False) -> tuple[Message, ...]:
    """Explain to the volunteer why nothing was sent and when the client will contact the server again.

    At most three reasons are given, most frequent first; each decision without a job has at least one
    (tests/properties/test_choices.py). If the host can run no version of the project, the client shows an important
    message.

    >>> reasons = {RefusalCode.MEMORY: (3, "job needs 4 GB of RAM, host offers 2 GB")}
    >>> why_no_work(reasons, Seconds(300.0))[0].text
    'No work sent. The available jobs need more memory than your client is allowed to use.'
    """
    shown = [code for code in _by_frequency(reasons) if code not in _KNOWN_TO_CLIENT]
    if not shown and any(code in reasons for code in _KNOWN_TO_CLIENT):
        return ()
    messages = [
        Message(
            f"{'No work sent. ' if position == 0 else ''}{_text_of(code, reasons)}",
            _priority(code, unrunnable=unrunnable),
        )
        for position, code in enumerate(shown[:MOST_REASONS])
    ]
    return (*(messages or [Message("No work sent.", "low")]), _again(delay_s))


def _text_of(code: RefusalCode, reasons: Reasons) -> str:
    if not code.traits.in_full:
        return code.traits.meaning
    sentence = _sentence(reasons[code][1])
    return sentence[0].upper() + sentence[1:]


def _priority(code: RefusalCode, *, unrunnable: bool) -> str:
    if code.traits.in_full:
        return NOTICE
    return HIGH if unrunnable and code.traits.wrong_platform else "low"


def kept_of(reasons: Reasons) -> Whys:
    """Return the reasons to store for the host's page: the most frequent ones, including those shown by the client.

    >>> [(str(code), why) for code, why in kept_of({RefusalCode.DISK: (1, "too little")})]
    [('disk', 'too little')]
    """
    first = _by_frequency(reasons)[:MOST_REASONS]
    return tuple([(code.value, reasons[code][1][:MOST_CHARS]) for code in first])


def _by_frequency(reasons: Reasons) -> list[RefusalCode]:
    """Return the codes sorted by frequency, highest first."""
    if len(reasons) == 1:
        return list(reasons)
    return sorted(reasons, key=lambda code: (-reasons[code][0], _PLACE[code]))


def reasons_of(refusal: Refusal) -> Reasons:
    """Return the refusal as the only reason."""
    return {refusal.code: (1, refusal.detail)}


def counts_as_empty(reasons: Collection[RefusalCode]) -> bool:
    """Return whether work other than the examined jobs could have been sent.

    False if all reasons concern the computer (limits, platform, owner's choices) or if a search limit was reached.
    """
    if RefusalCode.REQUEST_LIMIT in reasons:
        return False
    return not reasons or not _NOT_ABOUT_JOBS.issuperset(reasons)


def _sentence(detail: str) -> str:
    return detail if detail.endswith((".", "!", "?")) else detail + "."


@lru_cache(maxsize=64)  # few distinct delays occur
def _again(delay_s: Seconds) -> Message:
    return Message(f"Your client may request work again in {in_words(delay_s)}.")
