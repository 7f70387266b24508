"""Writes the messages of a reply: why there is no work, what went wrong, and when to call again. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache

from domain.formatting import in_words
from domain.refusals import PLAIN_REASONS, Refusal, RefusalCode, Whys
from domain.units import Seconds
from scheduler.admission import Admission, HostCase
from scheduler.delays import WRONG_PLATFORM
from wire.messages import Message

MOST_REASONS = 3
MOST_CHARS = 300  # of a sentence that is kept
HIGH = "high"
NOTICE = "notice"

Reasons = Mapping[RefusalCode, tuple[int, str]]  # how often a reason was met, and its first sentence
# The owner reads the two numbers of these themselves: they differ from computer to computer.
_IN_FULL = frozenset({RefusalCode.CLOCK_SKEW})
_PLACE = {code: place for place, code in enumerate(RefusalCode)}
# What the client knows already and must not be told.
_UNSAID = frozenset({RefusalCode.NO_WORK_WANTED, RefusalCode.NO_NEW_TASKS})


def about_host(admission: Admission, *, taken_over: int = 0) -> tuple[Message, ...]:
    """What the volunteer should know of how the computer was recognised, and of the tasks that it goes on with."""
    match admission.case:
        case HostCase.KNOWN | HostCase.FIRST_CONTACT:
            return ()
        case HostCase.STATE_LOST:
            return (Message(f"This computer is known as host {admission.host.host_id}; it continues as that."),)
        case HostCase.NOT_THEIRS | HostCase.CLONE:
            return (
                Message(
                    f"This computer is now host {admission.host.host_id}: {admission.because}. "
                    + (f"It goes on with {tasks(taken_over)}." if taken_over else "Its earlier tasks are cancelled.")
                ),
            )


def tasks(count: int) -> str:
    """A number of tasks that a client has.

    >>> tasks(1), tasks(2)
    ('the task it has', 'the 2 tasks it has')
    """
    return "the task it has" if count == 1 else f"the {count} tasks it has"


def wrong_account(project_name: str) -> Message:
    """For a client whose account key nobody has."""
    return Message(
        f"{project_name} does not know this account key. Remove the project and add it again with your account.",
        NOTICE,
    )


def too_many_hosts(because: str) -> Message:
    """For a computer of which no record is made.

    >>> too_many_hosts("2 new computers of this account were added today").text
    'This computer was not added: 2 new computers of this account were added today.'
    """
    return Message(f"This computer was not added: {_sentence(because)}", NOTICE)


def why_no_work(reasons: Reasons, delay_s: Seconds, *, unrunnable: bool = False) -> tuple[Message, ...]:
    """Why nothing was sent, as the volunteers' pages say it, and when to call again.

    At most three reasons, the most frequent first; every decision without a job has one
    (tests/properties/test_choices.py). If the host can run no version of the project, that is the
    owner's to know: the client shows it as an important message.

    >>> reasons = {RefusalCode.MEMORY: (3, "job needs 4 GB of RAM, host offers 2 GB")}
    >>> why_no_work(reasons, Seconds(300.0))[0].text
    'No work sent. The jobs that wait need more memory than the client may use.'
    """
    told = [code for code in _by_frequency(reasons) if code not in _UNSAID]
    if not told and any(code in reasons for code in _UNSAID):
        return ()
    messages = [
        Message(
            f"{'No work sent. ' if position == 0 else ''}{_said(code, reasons)}",
            _priority(code, unrunnable=unrunnable),
        )
        for position, code in enumerate(told[:MOST_REASONS])
    ]
    return (*(messages or [Message("No work sent.", "low")]), _again(delay_s))


def _said(code: RefusalCode, reasons: Reasons) -> str:
    if code not in _IN_FULL:
        return PLAIN_REASONS[code][0]
    sentence = _sentence(reasons[code][1])
    return sentence[0].upper() + sentence[1:]


def _priority(code: RefusalCode, *, unrunnable: bool) -> str:
    if code is RefusalCode.CLOCK_SKEW:
        return NOTICE
    return HIGH if unrunnable and code in WRONG_PLATFORM else "low"


def kept_of(reasons: Reasons) -> Whys:
    """What is kept of the reasons for those who look later: as many as are told, and those the client knows itself.

    >>> [(str(code), why) for code, why in kept_of({RefusalCode.DISK: (1, "too little")})]
    [('disk', 'too little')]
    """
    first = _by_frequency(reasons)[:MOST_REASONS]
    return tuple([(code.value, reasons[code][1][:MOST_CHARS]) for code in first])


def _by_frequency(reasons: Reasons) -> list[RefusalCode]:
    """The most frequent first."""
    if len(reasons) == 1:
        return list(reasons)
    return sorted(reasons, key=lambda code: (-reasons[code][0], _PLACE[code]))


def reasons_of(refusal: Refusal) -> Reasons:
    """One refusal as the only reason."""
    return {refusal.code: (1, refusal.detail)}


def counts_as_empty(reasons: Collection[RefusalCode]) -> bool:
    """Whether other work than what was looked at could have been sent.

    Not when every reason lies in the computer: its limits, its platform, its owner's choices; nor while more
    work was there than was looked at.
    """
    if RefusalCode.REQUEST_LIMIT in reasons:
        return False
    return not reasons or not _ABOUT_THE_COMPUTER.issuperset(reasons)


_ABOUT_THE_COMPUTER = WRONG_PLATFORM | {
    RefusalCode.CLOCK_SKEW,
    RefusalCode.NO_WORK_WANTED,
    RefusalCode.NO_NEW_TASKS,
    RefusalCode.PROJECT_DOWN,
    RefusalCode.DAILY_QUOTA,
    RefusalCode.IN_PROGRESS_LIMIT,
    RefusalCode.NOT_YET,
    RefusalCode.PLAN_CLASS,
    RefusalCode.APP_NOT_SELECTED,
    RefusalCode.BETA,
    RefusalCode.NO_GPU,
    RefusalCode.NO_CPU,
}


def _sentence(detail: str) -> str:
    return detail if detail.endswith((".", "!", "?")) else detail + "."


@lru_cache(maxsize=64)  # a handful of delays are set, or follow from others
def _again(delay_s: Seconds) -> Message:
    return Message(f"Your client may ask again in {in_words(delay_s)}.")
