"""Refusals: why a host gets no job. A code for machines, a sentence for operators, and wording for volunteers. Pure.

Operators see the sentence with both numbers (`Refusal.detail`). Clients' messages and the volunteers' pages use
PLAIN_REASONS: what it means, and what the volunteer can do.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from domain.formatting import both_in_words, told
from domain.quick import quick_dataclass


class RefusalCode(StrEnum):
    """Every reason for which a job is not sent to a host, or a host gets no work at all."""

    # about the whole request
    NO_WORK_WANTED = "no_work_wanted"
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


_NOTHING = "Nothing to do: your client asks again by itself."
PLAIN_REASONS: Mapping[RefusalCode, tuple[str, str]] = {
    RefusalCode.NO_WORK_WANTED: ("Your client did not ask for work.", "It asks when its queue runs low."),
    RefusalCode.NO_NEW_TASKS: (
        "This computer is set to take no new tasks.",
        "In the client: the project's “Allow new tasks”.",
    ),
    RefusalCode.NO_SLOTS: ("There is no job waiting at the moment.", _NOTHING),
    RefusalCode.PROJECT_DOWN: ("The project hands out no work at the moment.", "Results are taken all the same."),
    RefusalCode.DAILY_QUOTA: (
        "The computer has had its share of jobs for today.",
        "The share grows with every good result, and shrinks with failures: look at your results.",
    ),
    RefusalCode.IN_PROGRESS_LIMIT: (
        "The computer has as many jobs in progress as it may have.",
        "It gets more as it finishes some. The most you want is in your preferences.",
    ),
    RefusalCode.REQUEST_LIMIT: ("There were more jobs than one call may look at.", _NOTHING),
    RefusalCode.ANONYMOUS_PLATFORM: (
        "This computer is set up to run programs of its own (app_info.xml).",
        "Remove that file from the project's folder to get the project's programs.",
    ),
    RefusalCode.CLOCK_SKEW: (
        "This computer's clock is wrong: the client would drop every job as overdue.",
        "Set the date, the time and the time zone right. The client gets work again at its next call.",
    ),
    RefusalCode.NO_APP_VERSION: ("There is no program for these processors.", "The project may add one."),
    RefusalCode.PLATFORM: ("There is no program for this kind of computer.", "The project may add one."),
    RefusalCode.PLAN_CLASS: ("The computer lacks something that the program needs.", "What it is stands beside it."),
    RefusalCode.APP_NOT_SELECTED: (
        "The work that waits is for an application you did not choose.",
        "Choose more applications in your preferences.",
    ),
    RefusalCode.BETA: (
        "The work that waits is for an application that is being tested.",
        "Take test applications in your preferences, if you like.",
    ),
    RefusalCode.NO_GPU: ("You keep your GPUs for yourself.", "Lend them in your preferences, if you like."),
    RefusalCode.NO_CPU: ("You keep your CPUs for yourself.", "Lend them in your preferences, if you like."),
    RefusalCode.MEMORY: (
        "The jobs that wait need more memory than the client may use.",
        "Let the client use more memory, or wait for smaller jobs.",
    ),
    RefusalCode.DISK: (
        "The jobs that wait need more disk than the client may use.",
        "Let the client use more disk, or wait for smaller jobs.",
    ),
    RefusalCode.CPUS: (
        "The jobs that wait need more CPUs at once than this computer lends one.",
        "Wait for smaller jobs. The most CPUs of one job are in your preferences.",
    ),
    RefusalCode.TOO_SLOW: (
        "The jobs that wait could not be back in time.",
        "It helps if the computer is on for longer, or has less other work waiting.",
    ),
    RefusalCode.BELOW_GATE: (
        "The jobs that wait are urgent, and kept for computers that are faster or more reliable so far.",
        "Good results in time raise a computer's rank. Other work comes to all.",
    ),
    RefusalCode.NEWCOMER_SHARE: (
        "The last jobs are kept for new and for idle computers, and this one has work.",
        _NOTHING,
    ),
    RefusalCode.NOT_YET: (
        "The computer has work for hours, and what waits goes to computers that can start on it soon.",
        _NOTHING,
    ),
    RefusalCode.LEASED: ("The computer is being kept free for a large job.", _NOTHING),
    RefusalCode.DISPLACES: ("The job would have pushed other work of yours back too far.", _NOTHING),
    RefusalCode.SAME_HOST: ("The jobs that wait are checks of results this computer made itself.", _NOTHING),
    RefusalCode.SAME_VOLUNTEER: ("The jobs that wait are checks of results your computers made.", _NOTHING),
    RefusalCode.HR_CLASS: ("The jobs that wait are for another kind of computer.", _NOTHING),
    RefusalCode.LOST_RACE: ("Other computers were a moment faster.", _NOTHING),
}
