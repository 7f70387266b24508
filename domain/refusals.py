"""Why something was not given: a code for machines and a sentence for people."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from domain.lengths import told
from domain.quick import quick_dataclass
from domain.sizes import both_in_words


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
