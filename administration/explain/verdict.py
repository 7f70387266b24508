"""Concludes from dry runs: how many hosts meet each condition, which value would help, and what to expect. Pure.

All numbers come from the refusals of the real decision. A suggested value is rounded to a readable one before hosts are
counted: set to it, the check passes for exactly the stated number of the evaluated hosts.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from administration.show import shown
from domain.formatting import in_words, size_in_words
from domain.insight import WorkAhead
from domain.ranking import Gate, gate_in_words
from domain.refusals import BEHIND_GATE, About, Refusal, RefusalCode, spanned
from domain.units import DAY_S, HOUR_S, MINUTE_S, HostId
from muster_client import shapes

SHARES = (0.1, 0.5, 0.9)  # of the refused hosts that a suggested value lets pass, the least change first
DIGITS = 3  # of a suggested size
STEPS_S = ((DAY_S, HOUR_S), (2.0 * MINUTE_S, MINUTE_S), (0.0, 1.0))  # from this duration on, rounded to this


@dataclass(frozen=True, slots=True)
class NamedBound:
    """A value that a check compares. `falls`: lower values let more hosts (or groups) pass.

    `says` takes the present value.
    """

    falls: bool
    words: Callable[[float], str]
    says: str


_SIZE, _COUNT = size_in_words, "{:g}".format
BOUNDS = {
    RefusalCode.MEMORY: NamedBound(True, _SIZE, "jobs ask for {} of memory"),
    RefusalCode.DISK: NamedBound(True, _SIZE, "jobs ask for {} of disk space"),
    RefusalCode.CPUS: NamedBound(True, _COUNT, "jobs ask for {} CPUs"),
    RefusalCode.TOO_SLOW: NamedBound(False, in_words, "the delay bound is {}"),
    **dict.fromkeys(BEHIND_GATE, NamedBound(True, _COUNT, "the gate {gate} is {}")),
}
OF_HOST = {  # the same checks, if the host's value changes instead
    RefusalCode.MEMORY: NamedBound(False, _SIZE, "this host offers {} of memory"),
    RefusalCode.DISK: NamedBound(False, _SIZE, "this host offers {} of disk space"),
    RefusalCode.CPUS: NamedBound(False, _COUNT, "this host offers {} CPUs"),
    **dict.fromkeys(BEHIND_GATE, NamedBound(False, "{:.3g}".format, "this host has a P of {}")),
}
GATED_SHARE = "scheduler.urgent_share_fraction"
MOST_HELPED = 4  # platforms that advice names, those of most hosts first
LEAST_ADDED = 0.1  # of the requests that take some work; a change that adds less is not suggested
KEYS = {
    RefusalCode.MEMORY: "memory_bytes",
    RefusalCode.DISK: "disk_bytes",
    RefusalCode.CPUS: "ncpus",
    RefusalCode.TOO_SLOW: "delay_bound_s",
}


@dataclass(frozen=True, slots=True)
class ComparedNumbers:
    """The numbers of a refusal: the value of `key`, a field of the job or a setting, and the host's value."""

    code: RefusalCode
    key: str
    asked: float
    has: float


def compared(refusal: Refusal) -> ComparedNumbers | None:
    """Return the numbers that a check compared; None if no single value would change the outcome.

    >>> compared(Refusal(RefusalCode.CPUS, "job needs {0:g} CPUs, host has {1}", (4.0, 2))).key
    'ncpus'
    """
    code, terms = refusal.code, refusal.terms
    match code, terms:
        case (RefusalCode.TOO_SLOW, (needed_s, _, _, _, _, bound_s)):
            return ComparedNumbers(code, KEYS[code], bound_s, needed_s)
        case (_, (_, float() as p, _, Gate() as gate, threshold, *_)):
            return ComparedNumbers(code, f"deadline.{gate.value}", threshold, p)
        case (RefusalCode.MEMORY | RefusalCode.DISK | RefusalCode.CPUS, (asked, has)):
            return ComparedNumbers(code, KEYS[code], asked, has)
        case _:
            return None


def wait_s(refusal: Refusal) -> float | None:
    """Return the seconds until the host could get the job without any change: infinity if unknown, None for never.

    >>> slow = "host needs {0} ({2} of {1} + {4} {3}), the delay bound is {5}"
    >>> busy = (50.0, "queued work", 20.0, "runtime", 30.0, 40.0)
    >>> wait_s(Refusal(RefusalCode.TOO_SLOW, slow, busy)), wait_s(Refusal(RefusalCode.PLATFORM, "no version"))
    (10.0, None)
    """
    match refusal.code, refusal.terms:
        case (RefusalCode.TOO_SLOW, (needed_s, _, _, _, own_s, bound_s)):
            return max(0.0, needed_s - bound_s) if own_s <= bound_s else None
        case (RefusalCode.TOO_SLOW, (queue_s, runtime_s, until_due_s)):
            return float(queue_s) if runtime_s <= until_due_s else None
        case (RefusalCode.NOT_YET | RefusalCode.BUSY_BELOW_GATE, (*_, queue_s, most_s)):
            return float(queue_s - most_s)
        case (code, _) if code in ENDS_BY_ITSELF:
            return math.inf
        case _:
            return None


ENDS_BY_ITSELF = {
    *(RefusalCode.IN_PROGRESS_LIMIT, RefusalCode.DAILY_QUOTA, RefusalCode.NEWCOMER_SHARE),
    *(RefusalCode.NOT_YET, RefusalCode.LEASED, RefusalCode.DISPLACES),
}


# ------------------------------------------------------------------ the value that would help


@dataclass(frozen=True, slots=True)
class Option:
    """A value, and how many of the refused hosts (or groups) pass the check with it."""

    value: float
    passes: int


@dataclass(frozen=True, slots=True)
class Suggestion:
    """Values of `key` that let more hosts pass a check, least change first, and the same as a sentence.

    `asked` is the value in force, `set_to` the stored one, which is higher while a gate is lowered.
    """

    key: str
    asked: float
    options: tuple[Option, ...]
    words: str
    set_to: float


def rounded(code: RefusalCode, value: float, *, down: bool) -> float:
    """Return a readable value.

    >>> rounded(RefusalCode.MEMORY, 67_403_522_048.0, down=True), rounded(RefusalCode.TOO_SLOW, 90_061.0, down=False)
    (67400000000.0, 93600.0)
    >>> rounded(RefusalCode.BELOW_GATE, 0.4567, down=True), rounded(RefusalCode.CPUS, 8.0, down=True)
    (0.45, 8.0)
    """
    match code:
        case RefusalCode.TOO_SLOW:
            per = 1.0 / next(step for least_s, step in STEPS_S if value >= least_s)
        case RefusalCode.BELOW_GATE | RefusalCode.BUSY_BELOW_GATE:
            per = 100.0
        case RefusalCode.CPUS:
            per = 1.0
        case _:
            per = 1.0 / 10.0 ** max(0, math.floor(math.log10(value)) - DIGITS + 1)
    return (math.floor(value * per) if down else math.ceil(value * per)) / per


def options_of(code: RefusalCode, ends: Sequence[float], *, falls: bool) -> tuple[Option, ...]:
    """Return up to three values with their numbers of hosts.

    `ends` has the value from which on each refused host passes: every value below it (`falls`) or above it does.

    >>> options_of(RefusalCode.CPUS, [2.0, 2.0, 4.0, 8.0], falls=True)
    (Option(value=8.0, passes=1), Option(value=4.0, passes=2), Option(value=2.0, passes=4))
    """
    usable = sorted((value for value in ends if value > 0.0 and math.isfinite(value)), reverse=falls)
    if not usable:
        return ()
    chosen = [usable[math.ceil(share * len(usable)) - 1] for share in SHARES]
    values = dict.fromkeys(rounded(code, end, down=falls) for end in chosen)
    found = [Option(value, sum(one >= value if falls else one <= value for one in ends)) for value in values]
    return tuple(one for one in found if one.passes)


def suggestion_of(
    refused: Sequence[Iterable[Refusal]], settings: Mapping[str, Any] | None = None, *, is_submitted: bool = True
) -> Suggestion | None:
    """Return which value would help, given each host's refusals by one check. Of several, the closest counts.

    Gates differ by job; only the gate that refuses most hosts is considered. `settings` has the stored values.
    Submitted jobs cannot be changed, unlike those of a preview (`is_submitted` false) and settings.
    """
    found = [list(filter(None, map(compared, one))) for one in refused]
    keys = [host[0].key for host in found if host]
    if not keys:
        return None
    key = max(sorted(set(keys)), key=keys.count)
    hosts = [ours for host in found if (ours := [one for one in host if one.key == key])]
    code = hosts[0][0].code
    bound = BOUNDS[code]
    least, closest = (min, max) if bound.falls else (max, min)
    asked = least(one.asked for host in hosts for one in host)
    options = options_of(code, [closest(one.has for one in host) for host in hosts], falls=bound.falls)
    if not options:
        return None
    change = f"{'lower' if bound.falls else 'raise'} {key}"
    if is_submitted and key == KEYS.get(code):
        what = "them again with at most" if bound.falls else "the jobs again with a delay bound of at least"
        change = f"submit {what} {bound.words(options[0].value)}"
    set_to = asked if settings is None else settings.get(key, asked)
    present = bound.words(asked) if set_to == asked else gate_in_words(asked, set_to)
    says = bound.says.format(present, gate=key.partition(".")[2])
    return Suggestion(key, asked, options, f"{_in_words(bound, says, options, 'host')}: {change}", set_to)


def _in_words(bound: NamedBound, says: str, options: Sequence[Option], one: str) -> str:
    """Say the present value, and how many would pass with which other value."""
    first, *more = options
    others = "".join(f", {option.passes} with {bound.words(option.value)}" for option in more)
    takes = "would take a host with" if one == "group" else "would pass with"
    with_first = f"{counted(first.passes, one)} {takes} {bound.words(first.value)}"
    return f"{says}; {with_first}{others}"


def counted(count: int, one: str, many: str = "") -> str:
    """Return a number of things.

    >>> counted(1, "host"), counted(2, "batch", "batches"), counted(16523, "job")
    ('1 host', '2 batches', '16\u202f523 jobs')
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}".replace(",", "\u202f")


# ------------------------------------------------------------------ one host


@dataclass(frozen=True, slots=True)
class ClassCondition:
    """The groups of jobs that one check refuses a host, the sentence of most of them, and what would help.

    `help`: the words of the suggestion, or other advice; "" for none.
    """

    code: RefusalCode
    groups: int
    why: str
    suggestion: Suggestion | None
    help: str


def class_conditions(refused: Iterable[Sequence[Refusal]]) -> tuple[ClassCondition, ...]:
    """Return the conditions of a host, most frequent first. `refused` has the refusals of each group."""
    by_code: dict[RefusalCode, list[Refusal]] = {}
    for ours in refused:
        for code, why in {one.code: one for one in ours}.items():
            by_code.setdefault(code, []).append(why)
    rows = []
    for code, whys in by_code.items():
        needs = all(one.need for one in whys)
        said = spanned(whys) if needs else Counter(why.detail for why in whys).most_common(1)[0][0]
        suggestion = _of_host(whys)
        rows.append(ClassCondition(code, len(whys), said, suggestion, _help(suggestion, whys)))
    return tuple(sorted(rows, key=lambda row: (-row.groups, row.code)))


def _help(suggestion: Suggestion | None, refusals: Sequence[Refusal]) -> str:
    """Return what would help against refusals by one check.

    >>> sentence = "app {0} has no version for {2}, only for {1}"
    >>> terms = ("linux", "a, b", ("a", "b"))
    >>> apps = [Refusal(RefusalCode.PLATFORM, sentence, (app, *terms)) for app in ("sieve", "pi", "pi")]
    >>> _help(None, apps)
    'a version of pi or sieve for a or b'
    """
    if suggestion is not None:
        return suggestion.words
    match refusals[0].code, refusals[0].terms:
        case (RefusalCode.PLATFORM, (_, _, _, (_, *_))):
            names = sorted({str(one.terms[0]) for one in refusals if one.terms})
            reported = Counter(name for one in refusals for name in one.terms[3:4] and one.terms[3])
            platforms = " or ".join(str(name) for name, _ in reported.most_common(MOST_HELPED))
            return f"a version of {' or '.join(names)} for {platforms}"
        case (code, _):
            return code.traits.advice


def _of_host(refusals: Sequence[Refusal]) -> Suggestion | None:
    found = [one for one in map(compared, refusals) if one is not None and one.code in OF_HOST]
    if not found:
        return None
    code, has = found[0].code, max(one.has for one in found)
    options, bound = options_of(code, [one.asked for one in found], falls=False), OF_HOST[code]
    words = _in_words(bound, bound.says.format(bound.words(has)), options, "group") if options else ""
    return Suggestion(found[0].key, has, options, words, has) if options else None


def host_conclusion(
    host: str, answer: HostAnswer, conditions: Sequence[ClassCondition], *, batches: int, groups: int
) -> str:
    """Return one sentence: how many jobs of how many batches the host would get, or why it gets none.

    >>> host_conclusion("swan (7)", HostAnswer(7, 1.0, 0, 0.0, ()), (), batches=0, groups=0)
    'Host swan (7) would get nothing: no job is ready to be sent.'
    """
    if answer.jobs:
        jobs, of = counted(answer.jobs, "job"), counted(batches, "batch", "batches")
        busy = f", but is busy for about {in_words(answer.free_s)}" if answer.free_s > 0.0 else ""
        return f"Host {host} would get {jobs} of {of} if it asked for work now{busy}."
    if answer.refusals:
        first_of_all = answer.refusals[0]
        if first_of_all.code is RefusalCode.BANNED:  # its sentence is for the volunteer
            return f"Host {host} is banned: {first_of_all.terms[-1]}."
        return f"Host {host} gets no work: {first_of_all.detail}."
    if not conditions:
        why = "no job is ready to be sent" if not groups else "no group of jobs was evaluated"
        return f"Host {host} would get nothing: {why}."
    first, of = conditions[0], f"{counted(groups, 'group')} of jobs"
    return f"Host {host} would get nothing: {first.why} (this condition refuses {first.groups} of {of})."


# ------------------------------------------------------------------ hosts


@dataclass(frozen=True, slots=True)
class HostAnswer:
    """What a host would get: `jobs`, which start `free_s` from now, or none, for these reasons. `shared`: the jobs are
    limited to the share of the host's jobs that may be behind a gate.
    """

    host_id: int
    calls_per_hour: float
    jobs: int
    free_s: float
    refusals: tuple[Refusal, ...]
    shared: bool = False

    @property
    def wait_s(self) -> float | None:
        """Seconds until a refused host could get a job without any change (`wait_s`)."""
        return min((wait for one in self.refusals if (wait := wait_s(one)) is not None), default=None)


@dataclass(frozen=True, slots=True)
class Condition:
    """The hosts that would get no job because of one check. A host with several reasons counts in each.

    `example` is the reason of one of them in full, `example_brief` only its numbers.
    """

    code: RefusalCode
    hosts: int
    calls_per_hour: float
    example: str
    example_brief: str
    example_host_id: int
    suggestion: Suggestion | None
    help: str

    @property
    def of_hosts(self) -> str:
        return self.code.traits.of(self.hosts)


@dataclass(frozen=True, slots=True)
class CallingHosts:
    """What the sampled hosts would get of some work, each evaluated on its own, and their request rate.

    `takers` hosts would get `jobs` jobs in total, if each was the first to request work; `idle` of them could start
    now. `waiting` hosts get none now but could later, without any change. `free_s`: until the first taker or, without
    takers, the first waiting host is free; None if unknown. `gated_share`: the share of a host's jobs to which most
    takers limit the work because it is behind a gate; 1 if they do not.
    """

    hosts: int
    calls_per_hour: float
    takers: int
    takers_calls_per_hour: float
    jobs: int
    idle: int
    waiting: int
    free_s: float | None
    held_back: tuple[Condition, ...]
    gated_share: float = 1.0

    @property
    def able(self) -> bool:
        """Return whether one of the hosts could run the work: now, later, or once nothing reserves it for others."""
        traits = [one.code.traits for one in self.held_back]
        return bool(self.takers or self.waiting) or any(one.fits or one.about is About.PROJECT for one in traits)


LATER = (
    "A later deadline: hosts that would finish a job well before it need no gate, but the batch may lose its place "
    "among those sent first."
)
HELPS_LATE = {  # hosts get first instances of a late batch
    RefusalCode.BELOW_GATE: f"{LATER} A lower p_afap is not suggested: hosts below it would postpone other work, and "
    "the batch would wait for the slowest of them.",
    RefusalCode.NO_RANK: f"{LATER} {RefusalCode.NO_RANK.traits.advice}",
    RefusalCode.BUSY_BELOW_GATE: f"{LATER} With less queued work they need none now.",
}


def ungated(sample: CallingHosts) -> CallingHosts:
    """Return the sample of a batch past its deadline, whose first instances only slow or busy hosts need a gate for.

    A lower gate would give them to these hosts, as tight jobs, which no longer helps the batch (decision 84).
    """
    held_back = tuple(
        replace(one, suggestion=None, help=HELPS_LATE[one.code]) if one.code in BEHIND_GATE else one
        for one in sample.held_back
    )
    return replace(sample, gated_share=1.0, held_back=held_back)


def calling_hosts(
    answers: Sequence[HostAnswer], settings: Mapping[str, Any] | None = None, *, is_submitted: bool = True
) -> CallingHosts:
    """Return the figures of a sample, its conditions most frequent first. `settings` has the stored values;
    `is_submitted`: as for `suggestion_of`.
    """
    taking = [one for one in answers if one.jobs]
    refused = [one for one in answers if not one.jobs]
    waits = [wait for one in refused if (wait := one.wait_s) is not None]
    free_s = min([one.free_s for one in taking] or waits, default=math.inf)
    is_shared = 2 * sum(one.shared for one in taking) > len(taking)
    return CallingHosts(
        len(answers),
        sum(one.calls_per_hour for one in answers),
        len(taking),
        sum(one.calls_per_hour for one in taking),
        sum(one.jobs for one in taking),
        sum(one.free_s <= 0.0 for one in taking),
        len(waits),
        free_s if math.isfinite(free_s) else None,
        _conditions(refused, settings, sum(one.calls_per_hour for one in taking), is_submitted=is_submitted),
        settings[GATED_SHARE] if is_shared and settings is not None else 1.0,
    )


def _conditions(
    refused: Sequence[HostAnswer], settings: Mapping[str, Any] | None, taken_per_hour: float, *, is_submitted: bool
) -> tuple[Condition, ...]:
    """Return the conditions of refused hosts. `taken_per_hour`: requests per hour of the hosts that take the work."""
    by_code: dict[RefusalCode, list[tuple[HostAnswer, list[Refusal]]]] = {}
    for host in refused:
        for code in dict.fromkeys(one.code for one in host.refusals):
            by_code.setdefault(code, []).append((host, [one for one in host.refusals if one.code is code]))
    rows = []
    for code, hosts in by_code.items():
        rate, (first, whys) = sum(host.calls_per_hour for host, _ in hosts), hosts[0]
        would_help = suggestion_of([why for _, why in hosts], settings, is_submitted=is_submitted)
        suggestion = _worthwhile(would_help, hosts, taken_per_hour)
        told = _help(suggestion, [one for _, why in hosts for one in why])
        brief = spanned(whys) if whys[0].need else whys[0].brief
        rows.append(Condition(code, len(hosts), rate, spanned(whys), brief, first.host_id, suggestion, told))
    return tuple(sorted(rows, key=lambda row: (-row.calls_per_hour, -row.hosts, row.code)))


def _worthwhile(
    found: Suggestion | None, hosts: Sequence[tuple[HostAnswer, Sequence[Refusal]]], taken_per_hour: float
) -> Suggestion | None:
    """Return a suggestion without values if all hosts together would add few requests to those that take the work."""
    adds = sum(host.calls_per_hour for host, _ in hosts)
    if found is None or adds >= LEAST_ADDED * taken_per_hour:
        return found
    words = f"little: all these hosts would add {adds:.1f} requests per hour to {taken_per_hour:.1f}"
    return replace(found, options=(), words=words)


def conclusion(
    sample: CallingHosts,
    ahead: WorkAhead,
    *,
    blocked: str | None = None,
    sent_first: str | None = None,
    quiet: str = "",
) -> str:
    """Return why the work waits, for work with unsent instances, in one paragraph (`conclusions`).

    >>> none = CallingHosts(0, 0.0, 0, 0.0, 0, 0, 0, None, ())
    >>> conclusion(none, WorkAhead())
    'No host has contacted the scheduler yet.'
    """
    return " ".join(conclusions(sample, ahead, blocked=blocked, sent_first=sent_first, quiet=quiet))


def conclusions(
    sample: CallingHosts,
    ahead: WorkAhead | None,
    *,
    blocked: str | None = None,
    sent_first: str | None = None,
    quiet: str = "",
) -> list[str]:
    """Return why the work waits as sentences, the most important first. `ahead` is None if all its first instances are
    sent.

    `sent_first`: why most requests take the batch before the order (administration/ordering/places.py). `quiet`: that
    none of its jobs was sent lately, "" if some were.

    >>> able = CallingHosts(9, 8.0, 9, 8.0, 9, 9, 0, None, ())
    >>> conclusions(able, WorkAhead(1, 41), quiet="No job was sent for 4 min")[0]
    'No job was sent for 4 min, because 1 batch goes before it on hosts that can run both.'
    >>> busy = CallingHosts(167, 80.0, 0, 0.0, 0, 0, 47, 12_000.0, ())
    >>> conclusions(busy, WorkAhead())
    ['47 of 167 hosts could run its jobs; all of them are busy, the first for another 3 h 20 min.']
    """
    if blocked:
        return [f"None of its jobs is sent while it is blocked: {blocked}."]
    if not sample.hosts:
        return ["No host has contacted the scheduler yet."]
    if not sample.takers and not sample.waiting:
        return [f"None of {counted(sample.hosts, 'host')} can run its jobs: {reasons_of(sample.held_back)}."]
    if not sample.takers and sample.free_s is None:
        return [f"None of {counted(sample.hosts, 'host')} can run its jobs now: {reasons_of(sample.held_back)}."]
    able, first = sample.takers or sample.waiting, "" if sample.free_s is None else in_words(sample.free_s)
    fast = "are fast enough" if _are_some_slow(sample) else "could run its jobs"
    start = f"{able} of {counted(sample.hosts, 'host')} {fast if able < sample.hosts else 'could run its jobs'}"
    if not sample.idle:
        return [f"{start}; all of them are busy{f', the first for another {first}' if first else ''}."]
    said = [f"{start}; {sample.idle} could start one now"]
    first_reason = next((one for one in sample.held_back[:1] if 2 * one.hosts > sample.hosts), None)
    causes = (
        [f"{first_reason.hosts} of {counted(sample.hosts, 'host')} {first_reason.of_hosts}"] if first_reason else []
    )
    causes += [ahead_in_words(ahead)] if ahead is not None and ahead.unsent else []
    if quiet and causes:
        said.insert(0, f"{quiet}, because {' and '.join(causes)}")
    elif ahead is None:
        said = [said[0]]
    elif sent_first and not ahead.unsent:
        said = [f"{said[0]}, and it is {sent_first}"]
    else:
        said = [f"{said[0]}, {'but' if ahead.unsent else 'and'} {start_in_words(ahead)}"]
    return [f"{one}." for one in said]


def start_in_words(ahead: WorkAhead) -> str:
    """Return how many batches go before one, and what that means for the start of its jobs.

    >>> start_in_words(WorkAhead())
    'no other batch goes before it: hosts that may run its jobs get them with their next requests'
    >>> start_in_words(WorkAhead(1000, 4711, is_part=True)).partition(",")[0]
    'at least 1\\u202f000 batches go before it on hosts that can run both'
    >>> start_in_words(WorkAhead(2, 2433, gated=2400)).partition("; ")[2]
    'some of their jobs only go to hosts above a gate; hosts below it get its jobs without waiting for these'
    >>> start_in_words(WorkAhead(1, 240, gated=240, gated_share=0.5)).split("; ")[1]
    'their jobs only go to hosts above a gate, as at most 50 % of their jobs (scheduler.urgent_share_fraction)'
    """
    if not ahead.unsent:
        return "no other batch goes before it: hosts that may run its jobs get them with their next requests"
    if not ahead.gated:
        return ahead_in_words(ahead)
    those = "their jobs" if ahead.gated == ahead.unsent else "some of their jobs"
    share = f"{100.0 * ahead.gated_share:.3g} %"
    most = f", as at most {share} of their jobs ({GATED_SHARE})" if ahead.gated_share < 1.0 else ""
    wait = "hosts below it get its jobs without waiting for these"
    return f"{ahead_in_words(ahead)}; {those} only go to hosts above a gate{most}; {wait}"


def ahead_in_words(ahead: WorkAhead) -> str:
    """Return how many batches go before one. Their unsent instances are not counted: those of other apps, or above a
    gate, delay it less than their number suggests.
    """
    what = counted(ahead.batches, "batch goes", "batches go")
    return f"{'at least ' if ahead.is_part else ''}{what} before it on hosts that can run both"


def _are_some_slow(sample: CallingHosts) -> bool:
    """Return whether most refused hosts could not finish in time, even if they were idle."""
    return bool(sample.held_back) and sample.held_back[0].code is RefusalCode.TOO_SLOW


def reasons_of(conditions: Sequence[Condition]) -> str:
    """Return the two most frequent conditions, the first with the value that would help."""
    first, *more = conditions
    if first.suggestion is not None and not more:
        return first.suggestion.words
    helps = "" if first.suggestion is None else f" ({first.suggestion.words})"
    return f"{first.hosts} {first.of_hosts}{helps}" + "".join(f", {one.hosts} {one.of_hosts}" for one in more[:1])


def examples(sample: Mapping[str, Any] | None) -> list[HostId]:
    """Return the hosts that a sample in JSON names as examples."""
    return [] if sample is None else [one["example_host_id"] for one in sample["held_back"]]


def sample_as_json(sample: CallingHosts) -> shapes.SampleShown:
    """Return the sample as JSON, most frequent reason first."""
    rate = round(sample.calls_per_hour, 3)
    takers_rate = round(sample.takers_calls_per_hour, 3)
    held_back = [shown(shapes.HeldBack, one, calls_per_hour=round(one.calls_per_hour, 3)) for one in sample.held_back]
    would_take = shapes.WouldTake(
        hosts=sample.takers, calls_per_hour=takers_rate, jobs=sample.jobs, idle_hosts=sample.idle
    )
    return shown(shapes.SampleShown, sample, calls_per_hour=rate, would_take=would_take, held_back=held_back)
