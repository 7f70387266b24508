"""Reasons for refusing a host a job: a code, a sentence for operators and a text for volunteers. Pure.

Operators see the sentence with both numbers (`Refusal.detail`). `TRAITS`, one entry per code, defines all other texts
and behaviour of a code; sets of codes used elsewhere are derived from it (`codes_where`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from typing import Any

from domain.formatting import both_in_words, told
from domain.quick import quick_dataclass


class RefusalCode(StrEnum):
    """All reasons why the server does not send a job to a host, or sends the host no work at all."""

    # for the whole request
    NO_NEW_TASKS = "no_new_tasks"
    NO_SLOTS = "no_slots"
    PROJECT_DOWN = "project_down"
    BANNED = "banned"  # the host or its volunteer, by operators
    PAUSED = "paused"  # an app, a queue or a batch, by operators
    DAILY_QUOTA = "daily_quota"
    IN_PROGRESS_LIMIT = "in_progress_limit"
    REQUEST_LIMIT = "request_limit"
    ANONYMOUS_PLATFORM = "anonymous_platform"
    CLOCK_SKEW = "clock_skew"
    # for one app
    NO_APP_VERSION = "no_app_version"
    PLATFORM = "platform"
    PLAN_CLASS = "plan_class"
    APP_NOT_SELECTED = "app_not_selected"
    BETA = "beta"
    NO_GPU = "no_gpu"
    NO_CPU = "no_cpu"
    # about a class of jobs
    QUEUE = "queue"
    MEMORY = "memory"
    DISK = "disk"
    CPUS = "cpus"
    TOO_SLOW = "too_slow"
    BELOW_GATE = "below_gate"
    NO_RANK = "no_rank"  # the host has too few results of the app for a percentile, and the job is behind a gate
    BUSY_BELOW_GATE = "busy_below_gate"  # the host passes no gate; with less queued work it needs none
    NEWCOMER_SHARE = "newcomer_share"
    NOT_YET = "not_yet"  # the host already has hours of work, and the retry should start soon
    LEASED = "leased"  # the host is leased to a big job, and this job does not fit around the lease
    DISPLACES = "displaces"  # the client would delay its other jobs too much
    # for one job
    SAME_HOST = "same_host"
    SAME_VOLUNTEER = "same_volunteer"
    HR_CLASS = "hr_class"
    LOST_RACE = "lost_race"

    @property
    def traits(self) -> RefusalTraits:
        return TRAITS[self]


Whys = tuple[tuple[str, str], ...]  # codes and their sentences, as stored


class Need(Enum):
    """How a refusal writes its two terms, what a job needs and what the host has."""

    BYTES = auto()
    NUMBER = auto()


@quick_dataclass(frozen=True, slots=True)
class Refusal:
    """A reason for refusal. `code` labels metrics and console columns; `detail` is the sentence with both numbers.

    Most refusals are only counted, so `sentence` is formatted with `terms` only when `detail` is read. With a `need`,
    the terms are what the job needs and what the host has, and the sentence continues "job needs". `figures` is a
    sentence of the same terms for tables: only the numbers that decide.

    >>> Refusal(RefusalCode.CPUS, "{0} CPUs, host has {1}", (4.0, 2), Need.NUMBER).detail
    'job needs 4 CPUs, host has 2'
    >>> Refusal(RefusalCode.PLATFORM, "without terms {braces} stay").detail
    'without terms {braces} stay'
    >>> Refusal(RefusalCode.MEMORY, "{0} of RAM, host offers {1}", (4e9, 2e9), Need.BYTES).detail
    'job needs 4 GB of RAM, host offers 2 GB'
    >>> Refusal(RefusalCode.TOO_SLOW, "host needs {0:length}, job allows {1:length}", (90_000.0, 86_400.0)).detail
    'host needs 1 d 1 h, job allows 1 d'
    """

    code: RefusalCode
    sentence: str
    terms: tuple[Any, ...] = ()  # Any: values for the placeholders
    need: Need | None = None
    figures: str = ""

    @property
    def detail(self) -> str:
        if self.need is not None:
            return f"job needs {self.sentence.format(*self.written())}"
        return told(self.sentence, *self.terms) if self.terms else self.sentence

    @property
    def brief(self) -> str:
        """Return the numbers that decide; `detail` if it has only these.

        >>> Refusal(RefusalCode.NOT_YET, "{0} is full, limit {1}", ("ada", 3), figures="limit {1}").brief
        'limit 3'
        """
        return told(self.figures, *self.terms) if self.figures else self.detail

    def written(self) -> tuple[str, str]:
        """Return the need and what the host has, in words."""
        needed, has = self.terms
        return both_in_words(needed, has) if self.need is Need.BYTES else (f"{needed:g}", f"{has:g}")


def spanned(refusals: Sequence[Refusal]) -> str:
    """Return one sentence for refusals with the same code: that of the first one, with the smallest to the largest need
    if they compare needs with what the host has.

    >>> needs = [Refusal(RefusalCode.CPUS, "{0} CPUs, host has {1}", (n, 2), Need.NUMBER) for n in (64.0, 4.0, 8.0)]
    >>> spanned(needs), spanned(needs[:1])
    ('jobs need 4 to 64 CPUs, host has 2', 'job needs 64 CPUs, host has 2')
    """
    first = refusals[0]
    if first.need is None:
        return first.detail
    alike = [one for one in refusals if one.sentence == first.sentence]
    least, most = (kind(alike, key=lambda one: one.terms[0]) for kind in (min, max))
    if least.terms[0] == most.terms[0]:
        return first.detail
    needed, has = least.written()
    return f"jobs need {first.sentence.format(f'{needed} to {most.written()[0]}', has)}"


class About(Enum):
    """What a refusal is about, which decides whether other jobs are refused as well."""

    HOST = auto()  # host limits, platform, queue or the owner's preferences: other jobs are refused as well
    PROJECT = auto()  # the operators disabled work distribution
    JOBS = auto()  # the jobs in the array: other jobs might be sent


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalTraits:
    """The texts shown for a refusal code, and how services treat the code."""

    meaning: str  # for the volunteer
    of_hosts: str  # for operators, after a number of refused hosts
    remedy: str = "No action needed: your client asks again automatically."  # what the volunteer can do
    about: About = About.JOBS
    advice: str = ""  # for operators, when most hosts refuse work for this reason
    in_full: bool = False  # volunteers get the operators' sentence as a notice, because its numbers differ per host
    known_to_client: bool = False  # the client requested no work, so it gets no message
    keeps_lost_jobs: bool = (
        False  # lost jobs are not resent either; they remain assigned to the host until the condition ends
    )
    wrong_platform: bool = False  # only the owner or the project can change it, so the client can wait longer
    closeness: int = 0  # if all versions of an app are refused, the reason with the highest value is reported
    ends_when_idle: bool = False  # the host may be able to run the job once its queue is empty
    fits: bool = False  # the host can run the job, but the job is reserved or deferred; its group does not back off
    by_gate_or_share: bool = False  # the job fits, but a gate, a share or its retry reserves it for other hosts

    def of(self, hosts: int) -> str:
        """Return `of_hosts` with its verb in the number of hosts.

        >>> [RefusalCode(code).traits.of(1) for code in ("banned", "daily_quota", "no_cpu")]
        ['is banned', 'has used up its daily quota', 'allows no work on CPUs']
        """
        verb, _, rest = self.of_hosts.partition(" ")
        if hosts != 1:
            return self.of_hosts
        return f"{SINGULAR.get(verb, verb + 's')} {rest}".replace(" their ", " its ")


SINGULAR = {"are": "is", "have": "has", "do": "does"} | {one: one for one in ("cannot", "found", "lost", "reached")}

_ADD_VERSION = "Add an app version for the platforms of these hosts (muster app version add)."
TRAITS: Mapping[RefusalCode, RefusalTraits] = {
    RefusalCode.NO_NEW_TASKS: RefusalTraits(
        meaning="This computer is set to accept no new tasks.",
        of_hosts="accept no new tasks",
        remedy="Select “Allow new tasks” for the project in the client.",
        about=About.HOST,
        known_to_client=True,
    ),
    RefusalCode.NO_SLOTS: RefusalTraits(
        meaning="No jobs are available at the moment.", of_hosts="found no job ready to be sent"
    ),
    RefusalCode.PROJECT_DOWN: RefusalTraits(
        meaning="The project is not sending work at the moment.",
        of_hosts="get no work while the project sends none",
        remedy="Finished results are still accepted.",
        about=About.PROJECT,
        keeps_lost_jobs=True,
    ),
    RefusalCode.BANNED: RefusalTraits(
        meaning="The project's operators have stopped sending work to this computer.",
        of_hosts="are banned",
        remedy="Finished results are still accepted. Ask the project about the reason.",
        about=About.HOST,
        in_full=True,
        keeps_lost_jobs=True,
    ),
    RefusalCode.PAUSED: RefusalTraits(
        meaning="The project has paused some of its work, and no other jobs are available at the moment.",
        of_hosts="get no paused work",
        advice="Operators paused this work: `muster resume`.",
    ),
    RefusalCode.DAILY_QUOTA: RefusalTraits(
        meaning="This computer has reached its daily quota of jobs.",
        of_hosts="have used up their daily quota",
        remedy="The quota grows with every valid result and shrinks with failures: check your results.",
        about=About.HOST,
        advice="Quotas start again at midnight UTC, grow with valid results and shrink with failures. "
        "`scheduler.daily_quota` and `scheduler.shared_quota_start` limit them.",
        closeness=3,
    ),
    RefusalCode.IN_PROGRESS_LIMIT: RefusalTraits(
        meaning="This computer has reached its limit of jobs in progress.",
        of_hosts="have reached their limit of jobs in progress",
        remedy="It gets more jobs as it finishes current ones. You can set a lower limit in your preferences.",
        about=About.HOST,
        advice="Hosts get jobs again when they finish some of theirs. `scheduler.in_progress_per_cpu`, "
        "`scheduler.in_progress_per_gpu`, volunteers and operators limit them.",
    ),
    RefusalCode.REQUEST_LIMIT: RefusalTraits(
        meaning="The search limit was reached before a suitable job was found.",
        of_hosts="reached the search limit of a request",
    ),
    RefusalCode.ANONYMOUS_PLATFORM: RefusalTraits(
        meaning="This computer is configured to run its own programs (app_info.xml).",
        of_hosts="run their own programs",
        remedy="Remove app_info.xml from the project's directory to use the project's programs.",
        about=About.HOST,
        wrong_platform=True,
    ),
    RefusalCode.CLOCK_SKEW: RefusalTraits(
        meaning="This computer's clock is wrong: the client would discard every job as overdue.",
        of_hosts="have a wrong clock",
        remedy="Correct the date, time and time zone. The client can get work again at its next request.",
        about=About.HOST,
        in_full=True,
        keeps_lost_jobs=True,
    ),
    RefusalCode.NO_APP_VERSION: RefusalTraits(
        meaning="There is no program for this computer's available processors.",
        of_hosts="have no processor for which the app has a version",
        remedy="The project may add one later.",
        about=About.HOST,
        advice=_ADD_VERSION,
        wrong_platform=True,
    ),
    RefusalCode.PLATFORM: RefusalTraits(
        meaning="There is no program for this kind of computer.",
        of_hosts="have a platform for which the app has no version",
        remedy="The project may add one later.",
        about=About.HOST,
        advice=_ADD_VERSION,
        wrong_platform=True,
        closeness=1,
    ),
    RefusalCode.PLAN_CLASS: RefusalTraits(
        meaning="This computer does not meet the program's requirements.",
        of_hosts="do not meet the plan class",
        remedy="The missing requirement is shown next to the reason.",
        about=About.HOST,
        advice="Hosts do not meet the plan class; relax its requirements, or add a CPU version.",
        closeness=2,
    ),
    RefusalCode.APP_NOT_SELECTED: RefusalTraits(
        meaning="The available jobs belong to applications you have not selected.",
        of_hosts="have not selected the app",
        remedy="Select more applications in your preferences.",
        about=About.HOST,
        advice="Volunteers have not selected the app.",
    ),
    RefusalCode.BETA: RefusalTraits(
        meaning="The available jobs belong to a test application.",
        of_hosts="do not accept beta apps",
        remedy="You can allow test applications in your preferences.",
        about=About.HOST,
        advice="The app is marked beta, and few volunteers accept beta work.",
    ),
    RefusalCode.NO_GPU: RefusalTraits(
        meaning="Your preferences do not allow jobs on GPUs.",
        of_hosts="allow no work on GPUs",
        remedy="You can allow them in your preferences.",
        about=About.HOST,
        advice="Volunteers have no GPUs or do not allow their use.",
    ),
    RefusalCode.NO_CPU: RefusalTraits(
        meaning="Your preferences do not allow jobs on CPUs.",
        of_hosts="allow no work on CPUs",
        remedy="You can allow them in your preferences.",
        about=About.HOST,
        advice="Volunteers do not allow jobs on their CPUs; add a GPU version.",
    ),
    RefusalCode.QUEUE: RefusalTraits(
        meaning="The available jobs are for other computers.",
        of_hosts="do not meet the conditions of the queue",
        advice="Label hosts, on their pages or with `muster host set ID --label`, move the batch, on its page or with "
        "`muster batch set ID --queue`, or change `ordering.queue_hosts`.",
    ),
    RefusalCode.MEMORY: RefusalTraits(
        meaning="The available jobs need more memory than your client is allowed to use.",
        of_hosts="have too little memory",
        remedy="Allow the client to use more memory, or wait for smaller jobs.",
        advice="Jobs need more memory than hosts offer: submit them again with less, and end "
        "this batch: submitted jobs cannot be changed.",
    ),
    RefusalCode.DISK: RefusalTraits(
        meaning="The available jobs need more disk space than your client is allowed to use.",
        of_hosts="have too little disk space",
        remedy="Allow the client to use more disk space, or wait for smaller jobs.",
        advice="Jobs need more disk space than hosts offer: submit them again with less, and end "
        "this batch: submitted jobs cannot be changed.",
    ),
    RefusalCode.CPUS: RefusalTraits(
        meaning="The available jobs need more CPUs than this computer may use for one job.",
        of_hosts="have too few CPUs",
        remedy="Wait for smaller jobs, or check the maximum CPUs per job in your preferences.",
        advice="Jobs need more CPUs than hosts have: submit them again with fewer, and end "
        "this batch: submitted jobs cannot be changed.",
    ),
    RefusalCode.TOO_SLOW: RefusalTraits(
        meaning="This computer could not finish the available jobs in time.",
        of_hosts="cannot finish in time",
        remedy="Leave the computer on longer, or reduce its other queued work.",
        advice="Hosts cannot finish within the delay bound; raise it (it must exceed deadline.min_slack_s), "
        "or make jobs smaller.",
        ends_when_idle=True,
    ),
    RefusalCode.BELOW_GATE: RefusalTraits(
        meaning="The available jobs are reserved for computers that have been faster or more reliable.",
        of_hosts="are below the gate",
        remedy="Returning valid results on time raises a computer's rank. Other work goes to all computers.",
        advice="These jobs wait for better-ranked hosts; check what a lower threshold would change.",
        fits=True,
        by_gate_or_share=True,
    ),
    RefusalCode.NO_RANK: RefusalTraits(
        meaning="The available jobs are reserved for computers that have returned results of this application.",
        of_hosts="have no rank for the app yet",
        remedy="The first valid results give a computer a rank. Other work goes to all computers.",
        advice="Hosts get a rank with `ranking.min_samples` results of the app. A lower threshold does not help them.",
        fits=True,
        by_gate_or_share=True,
    ),
    RefusalCode.BUSY_BELOW_GATE: RefusalTraits(
        meaning="The available jobs go to computers that can finish them soon, and this computer already has work.",
        of_hosts="have too much queued work to finish soon",
        advice="These hosts get the jobs once they have less queued work. A lower threshold gives ranked ones the jobs "
        "now, behind their other work.",
        ends_when_idle=True,
        fits=True,
        by_gate_or_share=True,
    ),
    RefusalCode.NEWCOMER_SHARE: RefusalTraits(
        meaning="The last jobs are reserved for new and idle computers, and this computer already has work.",
        of_hosts="have no idle processor for the reserved last jobs",
        advice="Lower `scheduler.newcomer_fraction` to let ranked hosts buffer the last jobs.",
        fits=True,
        by_gate_or_share=True,
    ),
    RefusalCode.NOT_YET: RefusalTraits(
        meaning="This computer already has hours of work; the available jobs go to computers that can start them soon.",
        of_hosts="have too much work to start a retry or copy soon",
        about=About.HOST,
        advice="Hosts get retries and copies once they have less queued work.",
        ends_when_idle=True,
        fits=True,
        by_gate_or_share=True,
    ),
    RefusalCode.LEASED: RefusalTraits(
        meaning="This computer is reserved for a large job.",
        of_hosts="are leased to a big job",
        advice="The lease ends. Lower `ordering.reservation_age_s`, or set `ordering.reservation_slots` to 0.",
        fits=True,
    ),
    RefusalCode.DISPLACES: RefusalTraits(
        meaning="The job would have delayed this computer's other work too much.",
        of_hosts="have other work that the job would delay",
        advice="Raise `ordering.displace_factor`, or set `ordering.displace` to false.",
        fits=True,
    ),
    RefusalCode.SAME_HOST: RefusalTraits(
        meaning="The available jobs check results that this computer returned.",
        of_hosts="have already had an instance of the job",
        advice="The jobs need hosts that have not already received an instance. Add hosts, or allow repeats with "
        "`muster app set NAME --several-per-host`.",
    ),
    RefusalCode.SAME_VOLUNTEER: RefusalTraits(
        meaning="The available jobs check results that your computers returned.",
        of_hosts="belong to a volunteer who has already had an instance of the job",
        advice="The jobs need volunteers who have not already received an instance. Recruit volunteers, or allow "
        "repeats with `muster app set NAME --one-per-volunteer never`.",
    ),
    RefusalCode.HR_CLASS: RefusalTraits(
        meaning="The available jobs are for a different kind of computer.",
        of_hosts="are in another host class",
        advice="The job's other results came from a different class of hosts; it waits for that class.",
    ),
    RefusalCode.LOST_RACE: RefusalTraits(
        meaning="Other computers got the available jobs first.", of_hosts="lost the jobs to other hosts"
    ),
}


BEHIND_GATE = frozenset({RefusalCode.BELOW_GATE, RefusalCode.NO_RANK, RefusalCode.BUSY_BELOW_GATE})


def codes_where(has: Callable[[RefusalTraits], bool]) -> frozenset[RefusalCode]:
    """Return the codes with traits that match a condition.

    >>> [code.value for code in codes_where(lambda traits: traits.known_to_client)]
    ['no_new_tasks']
    """
    return frozenset(code for code, traits in TRAITS.items() if has(traits))


def traits_of(code: str) -> RefusalTraits | None:
    """Return the traits of a stored code; None if it was stored by another version of Muster that knew other codes."""
    return TRAITS[RefusalCode(code)] if code in list(RefusalCode) else None


def code_in_words(code: str) -> str:
    """Return what a stored code says about a host; the code itself if this version does not know it.

    >>> code_in_words("below_gate"), code_in_words("of_another_version")
    ('is below the gate', 'of another version')
    """
    traits = traits_of(code)
    return code.replace("_", " ") if traits is None else traits.of(1)
