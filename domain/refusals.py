"""Refusals: why a host gets no job. A code for machines, a sentence for operators, and wording for volunteers. Pure.

Operators see the sentence with both numbers (`Refusal.detail`). Everything else the house says or does about a code
stands in `TRAITS`, one entry per code; sets of codes elsewhere are derived from it (`codes_where`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from typing import Any

from domain.formatting import both_in_words, told
from domain.quick import quick_dataclass


class RefusalCode(StrEnum):
    """Every reason for which a job is not sent to a host, or a host gets no work at all."""

    # about the whole request
    NO_NEW_TASKS = "no_new_tasks"
    NO_SLOTS = "no_slots"
    PROJECT_DOWN = "project_down"
    DAILY_QUOTA = "daily_quota"
    IN_PROGRESS_LIMIT = "in_progress_limit"
    REQUEST_LIMIT = "request_limit"
    ANONYMOUS_PLATFORM = "anonymous_platform"
    CLOCK_SKEW = "clock_skew"
    # about an app
    NO_APP_VERSION = "no_app_version"
    PLATFORM = "platform"
    PLAN_CLASS = "plan_class"
    APP_NOT_SELECTED = "app_not_selected"
    BETA = "beta"
    NO_GPU = "no_gpu"
    NO_CPU = "no_cpu"
    # about a class of jobs
    MEMORY = "memory"
    DISK = "disk"
    CPUS = "cpus"
    TOO_SLOW = "too_slow"
    BELOW_GATE = "below_gate"
    NEWCOMER_SHARE = "newcomer_share"
    NOT_YET = "not_yet"  # it has work for hours, and a retry is to be computed soon
    LEASED = "leased"  # the host is held for a big job, and this one does not fit around it
    DISPLACES = "displaces"  # it would make the client put other work off too much
    # about one job
    SAME_HOST = "same_host"
    SAME_VOLUNTEER = "same_volunteer"
    HR_CLASS = "hr_class"
    LOST_RACE = "lost_race"

    @property
    def traits(self) -> RefusalTraits:
        return TRAITS[self]


Whys = tuple[tuple[str, str], ...]  # codes with a sentence each, as they are kept


@quick_dataclass(frozen=True, slots=True)
class Refusal:
    """Why not: `code` labels metrics and console columns, `detail` is the sentence with both numbers.

    Most refusals are only counted, so `terms` are put into `sentence` when it is read.

    >>> Refusal(RefusalCode.CPUS, "job needs {0:g} CPUs, host has {1}", (4.0, 2)).detail
    'job needs 4 CPUs, host has 2'
    >>> Refusal(RefusalCode.PLATFORM, "no {braces} are looked for without terms").detail
    'no {braces} are looked for without terms'
    >>> Refusal(RefusalCode.MEMORY, "job needs {0} of RAM, host offers {1}", (4e9, 2e9), sizes=True).detail
    'job needs 4 GB of RAM, host offers 2 GB'
    >>> Refusal(RefusalCode.TOO_SLOW, "host needs {0:length}, job allows {1:length}", (90_000.0, 86_400.0)).detail
    'host needs 1 d 1 h, job allows 1 d'
    """

    code: RefusalCode
    sentence: str
    terms: tuple[Any, ...] = ()  # Any: what the sentence's places take
    sizes: bool = False  # the terms are two numbers of bytes

    @property
    def detail(self) -> str:
        if self.sizes:
            return self.sentence.format(*both_in_words(*self.terms))
        return told(self.sentence, *self.terms) if self.terms else self.sentence


class About(Enum):
    """What a refusal lies in."""

    HOST = auto()  # its limits, platform, queue, or its owner's preferences: other jobs would not be sent either
    PROJECT = auto()  # switched off by its operators
    JOBS = auto()  # those in the job array: others might be sent


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalTraits:
    """What a refusal code says to people, and what the services do about it."""

    meaning: str  # to the volunteer
    remedy: str  # what the volunteer can do
    about: About = About.JOBS
    advice: str = ""  # to operators whose work is refused for this reason by most hosts
    in_full: bool = False  # the volunteer reads the operators' sentence, as a notice: its numbers differ per host
    known_to_client: bool = False  # the client did not ask for work: it gets no message
    keeps_lost_jobs: bool = False  # lost jobs are not sent again either, and stay the host's until this has passed
    wrong_platform: bool = False  # only the owner or the project can change it: the client need not call again soon
    closeness: int = 0  # an app whose versions are all refused reports the reason with the highest
    ends_when_idle: bool = False  # the host may be able to run the job when its queued work is done
    fits: bool = False  # the host can run the job, which waits for another host or for later: no back-off of its group
    by_gate_or_share: bool = False  # a job that fits was kept for other hosts by a gate, a share or its retry


_NOTHING = "Nothing to do: your client asks again by itself."
_ADD_VERSION = "Add a version of the app for the platforms that ask."
TRAITS: Mapping[RefusalCode, RefusalTraits] = {
    RefusalCode.NO_NEW_TASKS: RefusalTraits(
        meaning="This computer is set to take no new tasks.",
        remedy="In the client: the project's “Allow new tasks”.",
        about=About.HOST,
        known_to_client=True,
    ),
    RefusalCode.NO_SLOTS: RefusalTraits(meaning="There is no job waiting at the moment.", remedy=_NOTHING),
    RefusalCode.PROJECT_DOWN: RefusalTraits(
        meaning="The project hands out no work at the moment.",
        remedy="Results are taken all the same.",
        about=About.PROJECT,
        keeps_lost_jobs=True,
    ),
    RefusalCode.DAILY_QUOTA: RefusalTraits(
        meaning="The computer has had its share of jobs for today.",
        remedy="The share grows with every good result, and shrinks with failures: look at your results.",
        about=About.HOST,
        closeness=3,
    ),
    RefusalCode.IN_PROGRESS_LIMIT: RefusalTraits(
        meaning="The computer has as many jobs in progress as it may have.",
        remedy="It gets more as it finishes some. The most you want is in your preferences.",
        about=About.HOST,
    ),
    RefusalCode.REQUEST_LIMIT: RefusalTraits(
        meaning="There were more jobs than one call may look at.", remedy=_NOTHING
    ),
    RefusalCode.ANONYMOUS_PLATFORM: RefusalTraits(
        meaning="This computer is set up to run programs of its own (app_info.xml).",
        remedy="Remove that file from the project's folder to get the project's programs.",
        about=About.HOST,
        wrong_platform=True,
    ),
    RefusalCode.CLOCK_SKEW: RefusalTraits(
        meaning="This computer's clock is wrong: the client would drop every job as overdue.",
        remedy="Set the date, the time and the time zone right. The client gets work again at its next call.",
        about=About.HOST,
        in_full=True,
        keeps_lost_jobs=True,
    ),
    RefusalCode.NO_APP_VERSION: RefusalTraits(
        meaning="There is no program for these processors.",
        remedy="The project may add one.",
        about=About.HOST,
        advice=_ADD_VERSION,
        wrong_platform=True,
    ),
    RefusalCode.PLATFORM: RefusalTraits(
        meaning="There is no program for this kind of computer.",
        remedy="The project may add one.",
        about=About.HOST,
        advice=_ADD_VERSION,
        wrong_platform=True,
        closeness=1,
    ),
    RefusalCode.PLAN_CLASS: RefusalTraits(
        meaning="The computer lacks something that the program needs.",
        remedy="What it is stands beside it.",
        about=About.HOST,
        advice="Hosts lack what the plan class asks for; loosen it, or add a version for the CPU.",
        closeness=2,
    ),
    RefusalCode.APP_NOT_SELECTED: RefusalTraits(
        meaning="The work that waits is for an application you did not choose.",
        remedy="Choose more applications in your preferences.",
        about=About.HOST,
        advice="Volunteers have not chosen the app.",
    ),
    RefusalCode.BETA: RefusalTraits(
        meaning="The work that waits is for an application that is being tested.",
        remedy="Take test applications in your preferences, if you like.",
        about=About.HOST,
        advice="The app is marked beta, and few volunteers take beta work.",
    ),
    RefusalCode.NO_GPU: RefusalTraits(
        meaning="You keep your GPUs for yourself.",
        remedy="Lend them in your preferences, if you like.",
        about=About.HOST,
        advice="Volunteers keep their GPUs for others, or have none.",
    ),
    RefusalCode.NO_CPU: RefusalTraits(
        meaning="You keep your CPUs for yourself.",
        remedy="Lend them in your preferences, if you like.",
        about=About.HOST,
        advice="Volunteers keep their CPUs for others; a version for GPUs would be taken.",
    ),
    RefusalCode.MEMORY: RefusalTraits(
        meaning="The jobs that wait need more memory than the client may use.",
        remedy="Let the client use more memory, or wait for smaller jobs.",
        advice="Jobs ask for more memory than hosts lend; ask for less.",
    ),
    RefusalCode.DISK: RefusalTraits(
        meaning="The jobs that wait need more disk than the client may use.",
        remedy="Let the client use more disk, or wait for smaller jobs.",
        advice="Jobs ask for more disk than hosts lend; ask for less.",
    ),
    RefusalCode.CPUS: RefusalTraits(
        meaning="The jobs that wait need more CPUs at once than this computer lends one.",
        remedy="Wait for smaller jobs. The most CPUs of one job are in your preferences.",
        advice="Jobs ask for more CPUs than hosts have; ask for fewer.",
    ),
    RefusalCode.TOO_SLOW: RefusalTraits(
        meaning="The jobs that wait could not be back in time.",
        remedy="It helps if the computer is on for longer, or has less other work waiting.",
        advice="Hosts cannot return it within the delay bound; allow more time (more than deadline.min_slack_s in any "
        "case), or make jobs smaller.",
        ends_when_idle=True,
    ),
    RefusalCode.BELOW_GATE: RefusalTraits(
        meaning="The jobs that wait are kept for computers that are faster or more reliable so far.",
        remedy="Good results in time raise a computer's rank. Other work comes to all.",
        advice="It waits for better hosts; look what a lower threshold would do.",
        fits=True,
        by_gate_or_share=True,
    ),
    RefusalCode.NEWCOMER_SHARE: RefusalTraits(
        meaning="The last jobs are kept for new and for idle computers, and this one has work.",
        remedy=_NOTHING,
        fits=True,
        by_gate_or_share=True,
    ),
    RefusalCode.NOT_YET: RefusalTraits(
        meaning="The computer has work for hours, and what waits goes to computers that can start on it soon.",
        remedy=_NOTHING,
        about=About.HOST,
        ends_when_idle=True,
        fits=True,
        by_gate_or_share=True,
    ),
    RefusalCode.LEASED: RefusalTraits(
        meaning="The computer is being kept free for a large job.", remedy=_NOTHING, fits=True
    ),
    RefusalCode.DISPLACES: RefusalTraits(
        meaning="The job would have pushed other work of yours back too far.", remedy=_NOTHING, fits=True
    ),
    RefusalCode.SAME_HOST: RefusalTraits(
        meaning="The jobs that wait are checks of results this computer made itself.",
        remedy=_NOTHING,
        advice="It waits for another host: these have had the job. More hosts help, or "
        "`muster app set NAME --several-per-host`.",
    ),
    RefusalCode.SAME_VOLUNTEER: RefusalTraits(
        meaning="The jobs that wait are checks of results your computers made.",
        remedy=_NOTHING,
        advice="It waits for another volunteer: these have had the job. More volunteers help, or "
        "`muster app set NAME --one-per-volunteer never`.",
    ),
    RefusalCode.HR_CLASS: RefusalTraits(
        meaning="The jobs that wait are for another kind of computer.",
        remedy=_NOTHING,
        advice="The job's other results came from another kind of machine; it waits for one like those.",
    ),
    RefusalCode.LOST_RACE: RefusalTraits(meaning="Other computers were a moment faster.", remedy=_NOTHING),
}


def codes_where(has: Callable[[RefusalTraits], bool]) -> frozenset[RefusalCode]:
    """Return the codes whose traits fulfil a condition.

    >>> [code.value for code in codes_where(lambda traits: traits.known_to_client)]
    ['no_new_tasks']
    """
    return frozenset(code for code, traits in TRAITS.items() if has(traits))


def traits_of(code: str) -> RefusalTraits | None:
    """Return the traits of a stored code; None if another version of this program stored it."""
    return TRAITS[RefusalCode(code)] if code in list(RefusalCode) else None
