"""Turns facts about the project into a list of items that need attention, worst first. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from administration.access.who import Person
from administration.apps import LostVersion
from administration.explain.verdict import counted
from administration.forecasts.service import BatchEnd, end_of, waits_for_results
from administration.forecasts.words import end_in_words, is_severe, risk_in_words
from administration.show import shown
from administration.stopped import Stopped
from administration.unschedulable import RefusedByAll
from domain.access import Right
from domain.apps import AppVersion
from domain.attention import (
    FAILED_FRACTION,
    FAILED_JOBS,
    LOOKED_AT,
    FailingApp,
    FailingHost,
    FailingVersion,
    HostContacts,
    Upkeep,
    by_app,
    nearly_all_fail,
    worst_first,
)
from domain.batches import Batch, BatchCounts, BatchState
from domain.forecasts import ForecastRecord, risk_of
from domain.formatting import age_in_words, in_words, roughly, size_in_words
from domain.hosts import host_in_words
from domain.insight import Short
from domain.ordering import ServiceLevel
from domain.refusals import About, RefusalCode, traits_of
from domain.restrictions import Restricted, Restriction, pause_of
from domain.units import AppId, BatchId, Instant, Seconds, SubmitterId
from domain.views import ProcessReport
from muster_client import shapes

Document = Mapping[str, Any]  # Any: a JSON document

HOST_RESULTS, NAMED_HOSTS = 10, 5  # a host fails if at least half of so many results of a day did; hosts in a sentence
SILENT_HOSTS, SILENT_FRACTION = 5, 0.2  # of the hosts active in the last week
FULL_FRACTION, ALMOST_FULL_FRACTION = 0.03, 0.1  # free space of a disk
LATE_S = Seconds(60.0)  # a periodic task may be late by this much
HALF = 0.5
CLONE_HELPS = frozenset({RefusalCode.MEMORY, RefusalCode.DISK, RefusalCode.TOO_SLOW})  # a clone may need less


class AttentionKind(StrEnum):
    """Kinds of items, the most urgent first among items of one severity."""

    NO_BACKGROUND = "no_background"
    OVERDUE_TASK = "overdue_task"
    DISK = "disk"
    MISSED = "missed"
    AT_RISK = "at_risk"
    STUCK = "stuck"
    UNSCHEDULABLE = "unschedulable"
    FAILING_VERSION = "failing_version"
    FAILING_BATCH = "failing_batch"
    FAILING_HOSTS = "failing_hosts"
    FAILING_TASK = "failing_task"
    VALIDATION = "validation"
    SILENT_HOSTS = "silent_hosts"
    BACKUP = "backup"


ORDER = {kind: place for place, kind in enumerate(AttentionKind)}


@dataclass(frozen=True, slots=True)
class Remedy:
    """What may help. `link`: page of the console where it is done, below its root; "" if it is done elsewhere.

    `right`: what it requires; with SUBMIT, the batch must also be the user's own. `command`: the same as a command.
    """

    words: str
    link: str = ""
    right: Right = Right.READ
    command: str = ""


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to look at. `severe`: users are affected now. `link`: page of the console, below its root, about the
    subject; `why`: the page that explains it, or "".

    `figures` are the numbers of the sentence. `weight` orders items of one kind, largest first. `submitter_id`: the
    owner of the batch.
    """

    kind: AttentionKind
    severe: bool
    subject: str
    link: str
    sentence: str
    remedies: Sequence[Remedy]
    since_at: Instant | None = None
    figures: Mapping[str, float] = field(default_factory=dict)
    batch_id: BatchId | None = None
    weight: float = 0.0
    why: str = ""
    submitter_id: SubmitterId | None = None

    def remedies_for(self, person: Person) -> Sequence[Remedy]:
        """Return the remedies that the user may apply. The owner of a batch also sees what operators could do."""
        owns = self.submitter_id is None or person.owns(self.submitter_id)
        may = [one for one in self.remedies if one.right in person.rights and (one.right is not Right.SUBMIT or owns)]
        asks = [one.words for one in self.remedies if one.right is Right.OPERATE not in person.rights]
        asked = [Remedy(f"ask an operator: {', or '.join(asks)}")] if asks and self.submitter_id and owns else []
        return [*may[:2], *asked, *may[2:]]


@dataclass(frozen=True, slots=True)
class AttentionFacts:
    """The facts. `last` are the latest forecasts of `batches`, `short` the limits that leave a batch without hosts,
    `stopped` the work that no active host can run and pauses, `waiting` the batches of both and those with nearly all
    failures of an app, `processes` the reports of running processes, `deadlines` those of the periodic tasks' next
    rounds. `backup_age_s`: 0 if backups are not checked. `all_sent`: those of `batches` of which only retries and
    copies wait. `first`: those that most requests take before the others, and whether level expedite would put them
    before more of these. `current`: the versions of apps that get jobs.
    """

    now: Instant
    batches: Sequence[Batch]
    last: Mapping[BatchId, ForecastRecord]
    short: Mapping[BatchId, Short]
    stopped: Stopped
    waiting: Mapping[BatchId, Batch]
    processes: Sequence[ProcessReport]
    deadlines: Mapping[str, Instant]
    versions: Sequence[FailingVersion]
    hosts: Sequence[FailingHost]
    contacts: HostContacts
    upkeep: Upkeep
    backup_age_s: Seconds
    all_sent: Collection[BatchId] = ()
    first: Mapping[BatchId, bool] = field(default_factory=dict)
    current: Mapping[AppId, Sequence[AppVersion]] = field(default_factory=dict)


def items_of(facts: AttentionFacts) -> list[Item]:
    """Return the items, severe ones first, then by kind and weight. If versions fail with nearly only one batch,
    and nearly all of its jobs fail, its item tells both.
    """
    apps = by_app(worst_first(facts.versions)).values()
    alike = {one.batch_id for one in facts.batches if nearly_all_fail(one.counts)}
    of_batch = {one.batch_id: one for one in apps if one.batch_id in alike}
    found = [
        *_batches(facts, of_batch),
        *_stuck(facts),
        *_unschedulable(facts),
        *(_failing(one, facts) for one in apps if one.batch_id not in of_batch),
        *_tasks(facts),
        *_disks(facts),
        *_failing_hosts(facts.hosts),
        *_hosts(facts.contacts),
        *_validation(facts.upkeep),
        *_backup(facts),
    ]
    return sorted(found, key=lambda one: (not one.severe, ORDER[one.kind], -one.weight, one.subject))


def counts_of(items: Iterable[Item]) -> dict[AttentionKind, int]:
    """Return the number of items of each kind, 0 included."""
    counts = dict.fromkeys(AttentionKind, 0)
    for one in items:
        counts[one.kind] += 1
    return counts


def item_as_json(one: Item, person: Person) -> shapes.AttentionItemShown:
    remedy = remedies_in_words(one.remedies_for(person))
    return shown(shapes.AttentionItemShown, one, figures=dict(one.figures), remedy=remedy)


def remedies_in_words(remedies: Sequence[Remedy]) -> str:
    """Return the remedies as a sentence, "" for none.

    >>> remedies_in_words([Remedy("read the errors"), Remedy("withdraw it", command="muster app version withdraw 4")])
    'Read the errors; withdraw it (muster app version withdraw 4).'
    """
    said = "; ".join(one.words + (f" ({one.command})" if one.command else "") for one in remedies)
    return f"{said[:1].upper()}{said[1:]}." if said else ""


def _titled(batch_id: BatchId, name: str) -> str:
    return f"batch {batch_id} {name}".rstrip()


def _of_waiting(batch_id: BatchId, facts: AttentionFacts) -> str:
    return _titled(batch_id, facts.waiting[batch_id].name if batch_id in facts.waiting else "")


def failing_of(counts: BatchCounts) -> tuple[str, bool]:
    """Return how many ended jobs of a failing batch failed, in words, and whether that is severe; "" if it is not.

    >>> failing_of(BatchCounts(jobs_validated=5, jobs_failed=5)), failing_of(BatchCounts(jobs_failed=4))
    (('5 of 10 ended jobs failed', True), ('', False))
    """
    failed, ended = counts.jobs_failed, counts.jobs_validated + counts.jobs_failed
    if failed < max(FAILED_JOBS, FAILED_FRACTION * ended):
        return "", False
    return f"{failed} of {ended} ended jobs failed", failed >= HALF * ended


def _batches(facts: AttentionFacts, failing: Mapping[BatchId, FailingApp]) -> Iterator[Item]:
    """Yield the items about late and failing batches. `failing`: the failing versions, by the batch that has nearly all
    of their failures.
    """
    for batch in facts.batches:
        counts, link = batch.counts, f"batches/{batch.batch_id}"
        title, pause = _titled(batch.batch_id, batch.name), pause_of(facts.stopped.restrictions, batch)
        progress = f"{counts.jobs_open} of {counts.jobs_total} jobs are open"
        is_marked = facts.stopped.paused_of(batch, is_sent=batch.batch_id in facts.all_sent)[0]
        paused = _paused(pause) if is_marked else ""
        last = facts.last.get(batch.batch_id)
        risk, end = risk_of(batch.deadline_at, last, facts.now), end_of(batch, last, facts.stopped, facts.now)
        if risk is not None:
            told, ending = shown(shapes.RiskShown, risk), _ending(end, facts.now) if risk.missed else ""
            yield Item(
                AttentionKind.MISSED if risk.missed else AttentionKind.AT_RISK,
                is_severe(told),
                title,
                link,
                f"{risk_in_words(told, end.forecast_state)}; {progress}{ending}{paused}",
                _for_late(batch, pause, facts),
                risk.deadline_at if risk.missed else None,
                {"late_by_s": risk.late_by_s, "probability": risk.probability, "jobs_open": counts.jobs_open},
                batch.batch_id,
                risk.late_by_s if risk.missed else risk.probability,
                f"{link}/why",
                batch.submitter_id,
            )
        fails, is_failing_severely = failing_of(counts)
        if fails:
            versions = failing[batch.batch_id].versions if batch.batch_id in failing else ()
            yield Item(
                AttentionKind.FAILING_BATCH,
                is_failing_severely,
                title,
                link,
                f"{fails}{_with(versions, facts.current.get(batch.app_id, ()))}; {progress}{paused}",
                [
                    Remedy("read the errors of its failed jobs", f"{link}/errors"),
                    *_for_failing(batch, is_paused=pause is not None, failing=versions),
                ],
                figures={"jobs_failed": counts.jobs_failed, "jobs_ended": counts.jobs_validated + counts.jobs_failed},
                batch_id=batch.batch_id,
                weight=counts.jobs_failed,
                why=f"{link}/errors",
                submitter_id=batch.submitter_id,
            )


def _with(failing: Sequence[FailingVersion], current: Sequence[AppVersion]) -> str:
    """Return a clause on the versions with which a batch fails, or "". `current`: those of its app that get jobs."""
    if not failing:
        return ""
    if len(current) > 1 and {one.app_version_id for one in current} <= {one.app_version_id for one in failing}:
        return ", with every version"
    return f", with {failing[0].version if len(failing) == 1 else f'{len(failing)} versions'}"


def _for_failing(batch: Batch, *, is_paused: bool, failing: Sequence[FailingVersion] = ()) -> list[Remedy]:
    """Return the remedies for a batch whose jobs fail. `failing`: the failing versions that its jobs used."""
    link, found = f"batches/{batch.batch_id}", list[Remedy]()
    if batch.state is BatchState.ACTIVE:
        found += [] if is_paused else [Remedy("pause the batch", f"{link}#restrict", Right.SUBMIT)]
        found.append(Remedy("end the batch if its input or command line is wrong", f"{link}/abort", Right.SUBMIT))
    if len(failing) == 1:
        page = f"apps/{failing[0].app}/versions/{failing[0].app_version_id}?state=withdrawn"
        command = f"muster app version withdraw {failing[0].app_version_id}"
        found.append(Remedy(f"withdraw {failing[0].title} if the version is wrong", page, Right.OPERATE, command))
    elif failing:
        app = failing[0].app
        found.append(Remedy(f"withdraw versions of {app} if they are wrong", f"apps/{app}", Right.OPERATE))
    return found or [Remedy("clone it with another input or command line", f"{link}/clone", Right.SUBMIT)]


def failing_alike(batch: Batch, *, is_paused: bool, failing: Sequence[FailingVersion]) -> Item:
    """Return the item about a batch nearly all of whose jobs fail with one error."""
    words, is_severe = failing_of(batch.counts)
    return Item(
        AttentionKind.FAILING_BATCH,
        is_severe,
        _titled(batch.batch_id, batch.name),
        f"batches/{batch.batch_id}",
        f"{words} (the batch has {batch.counts.jobs_total}), nearly all with one error: retries would probably fail",
        _for_failing(batch, is_paused=is_paused, failing=failing),
        batch_id=batch.batch_id,
        submitter_id=batch.submitter_id,
    )


def _ending(end: BatchEnd, now: Instant) -> str:
    """Return when a batch that missed its deadline will probably end, "" if that is not known."""
    about_at = end.completion_q50_at
    return "" if about_at is None else f", expected to end {end_in_words(about_at, now, provisional=end.provisional)}"


def _paused(pause: Restriction | None) -> str:
    """Return a clause about the pause, "" without one."""
    what = "it" if pause is None or pause.kind is Restricted.BATCH else f"its {pause.kind}"
    return "" if pause is None else f"; {what} is paused by {pause.set_by}"


def _for_late(batch: Batch, pause: Restriction | None, facts: AttentionFacts) -> list[Remedy]:
    """Return the remedies for a batch that is late, or why its level is none."""
    link, useless = f"batches/{batch.batch_id}", ""
    helps_first = facts.first.get(batch.batch_id)
    if batch.batch_id in facts.all_sent:
        useless = "all its jobs are sent"
    elif batch.level is ServiceLevel.EXPEDITE:
        useless = "it has this level already"
    elif helps_first is False:
        useless = "its place among those sent first stays"
    elif batch.deadline_at is not None and waits_for_results(
        facts.last.get(batch.batch_id), batch.deadline_at - facts.now
    ):
        useless = "it waits for results of jobs in progress"
    see = f"see what holds it back{f' (expedite would not help: {useless})' if useless else ''}"
    found = [Remedy(see, f"{link}/why")]
    if pause is not None:
        found.append(Remedy("resume it", link if pause.kind is Restricted.BATCH else "restrictions", Right.OPERATE))
    if not useless:
        found.append(Remedy("set its level to expedite", f"{link}#h-act", Right.OPERATE))
    return [*found, *later_or_end(batch)]


def later_or_end(batch: Batch) -> list[Remedy]:
    """Return the remedies for a batch that cannot meet its deadline."""
    later = Remedy("agree on a later deadline", f"batches/{batch.batch_id}#h-act", Right.SUBMIT)
    return [later, Remedy("end it", f"batches/{batch.batch_id}/abort", Right.SUBMIT)]


def _stuck(facts: AttentionFacts) -> Iterator[Item]:
    for batch_id, short in facts.short.items():
        option = "--one-per-volunteer never" if short.one_per == "volunteer" else "--several-per-host"
        batch, link = facts.waiting.get(batch_id), f"batches/{batch_id}"
        yield Item(
            AttentionKind.STUCK,
            True,
            _of_waiting(batch_id, facts),
            link,
            short.reason,
            [
                Remedy(f"wait for {short.waits_for}", f"{link}/why"),
                Remedy("allow its app more instances of a job", "apps", Right.OPERATE, f"muster app set NAME {option}"),
            ],
            figures={"jobs": short.jobs, "agreeing": short.agreeing, "hosts": short.hosts},
            batch_id=batch_id,
            weight=short.jobs,
            why=f"{link}/why",
            submitter_id=None if batch is None else batch.submitter_id,
        )


def _unschedulable(facts: AttentionFacts) -> Iterator[Item]:
    """Yield one item per batch: its class with the most waiting slots. It is severe if the batch has a deadline."""
    for batch_id, one in facts.stopped.refused.items():
        batch = facts.waiting.get(batch_id)
        lost = facts.stopped.lost.get(batch.app_id) if batch is not None and one.lost else None
        pause = None if batch is None else pause_of(facts.stopped.restrictions, batch)
        since, why = in_words(max(0.0, facts.now - one.since_at)), f"batches/{batch_id}/why"
        refused = f"no host has taken any of {one.waiting} instances for {since}; now none of {one.judged} can run them"
        yield Item(
            AttentionKind.UNSCHEDULABLE,
            batch is not None and batch.deadline_at is not None,
            _of_waiting(batch_id, facts),
            f"batches/{batch_id}",
            f"{one.said if one.lost else f'{refused}: {one.reasons}'}{_paused(pause)}",
            [
                Remedy(f"see {'which value would help' if one.has_value else 'what holds it back'}", why),
                *_for_unschedulable(one, lost),
                Remedy("end it", f"batches/{batch_id}/abort", Right.SUBMIT),
            ],
            one.since_at,
            {"waiting": one.waiting, "hosts": one.hosts},
            batch_id,
            one.waiting,
            "unschedulable",
            None if batch is None else batch.submitter_id,
        )


def _for_unschedulable(one: RefusedByAll, lost: LostVersion | None) -> list[Remedy]:
    link = f"batches/{one.batch_id}"
    if lost is not None:
        return [Remedy(lost.remedy, lost.link, Right.OPERATE)]
    if one.queue_needs and one.codes and one.codes[0][0] == RefusalCode.QUEUE:
        return [
            Remedy(
                f"label hosts to meet {one.queue_needs}",
                "hosts",
                Right.OPERATE,
                "muster host set ID --label",
            ),
            Remedy(
                "move it to another queue", f"{link}#h-act", Right.SUBMIT, f"muster batch set {one.batch_id} --queue"
            ),
        ]
    traits, advice = traits_of(one.codes[0][0]) if one.codes else None, one.advice.rstrip(".")
    if traits is None or not advice:
        return []
    if one.codes[0][0] in CLONE_HELPS:
        return [Remedy("clone it with other requirements", f"{link}/clone", Right.SUBMIT)]
    at = ("apps", Right.OPERATE) if traits.about is About.HOST else (f"{link}/why", Right.SUBMIT)
    return [Remedy(f"{advice[:1].lower()}{advice[1:]}", *at)]


def _failing(found: FailingApp, facts: AttentionFacts) -> Item:
    """Return the item about the failing versions of an app, which is also for the owner of the batch they fail with."""
    one, all_ = found.worst, found.versions
    app, version = f"apps/{one.app}", f"apps/{one.app}/versions/{one.app_version_id}"
    errors, figures = f"{version}#h-errors", {"hosts": one.hosts, "hosts_failing": one.failing}
    if len(all_) == 1:
        subject, link, read = one.title, version, "read its errors"
        command = f"muster app version withdraw {one.app_version_id}"
        withdraw = Remedy("withdraw the version", f"{version}?state=withdrawn", Right.OPERATE, command)
    else:
        subject, link, read = f"{len(all_)} versions of {one.app}", app, f"read the errors of {one.version}"
        withdraw, figures = Remedy("withdraw versions", app, Right.OPERATE), {"versions": len(all_), **figures}
    batch = facts.waiting.get(found.batch_id) if found.batch_id else None
    of = "" if batch is None else f"nearly all failures are of {_titled(batch.batch_id, batch.name)}; "
    remedies = [Remedy(read, errors), withdraw]
    if batch is not None:
        is_paused = pause_of(facts.stopped.restrictions, batch) is not None
        first = Remedy("read the errors of this batch", f"batches/{batch.batch_id}/errors")
        remedies = [first, *_for_failing(batch, is_paused=is_paused, failing=all_)]
    return Item(
        AttentionKind.FAILING_VERSION,
        one.failing >= HALF * one.hosts,
        subject,
        link,
        f"{of}{found.latest}",
        remedies,
        figures={**figures, "failures": one.failures},
        batch_id=found.batch_id,
        weight=one.failing_fraction,
        why=errors,
        submitter_id=None if batch is None else batch.submitter_id,
    )


def _failing_hosts(hosts: Sequence[FailingHost]) -> Iterator[Item]:
    if not hosts:
        return
    rates = [f" with {one.failures} of {one.results}" if len(hosts) > 1 else "" for one in hosts]
    names = [host_in_words(one.host_id, one.domain_name) for one in hosts[:NAMED_HOSTS]]
    named = ", ".join(map("".join, zip(names, rates, strict=False))) + ", …" * (len(hosts) > NAMED_HOSTS)
    each = ((one.failures, one.results, one.of_versions) for one in hosts)
    failures, results, of_versions = map(sum, zip(*each, strict=True))
    of = f", {of_versions} of them of versions that fail on half of their hosts" if of_versions else ""
    yield Item(
        AttentionKind.FAILING_HOSTS,
        False,
        f"{counted(len(hosts), 'host')} {'fails' if len(hosts) == 1 else 'fail'} half of the results or more: {named}",
        "hosts?show=failing",
        f"{failures} of {results} results of the last day failed{of}",
        [
            Remedy(f"read the results of {names[0]}, the worst, with their errors", f"hosts/{hosts[0].host_id}#h-sent"),
            Remedy("see these hosts", "hosts?show=failing"),
            Remedy(f"ban host {names[0]}", f"hosts/{hosts[0].host_id}#restrict", Right.OPERATE),
        ],
        figures={"hosts": len(hosts), "failures": failures, "results": results},
        weight=failures,
    )


def _tasks(facts: AttentionFacts) -> Iterator[Item]:
    background = [one for one in facts.processes if one.kind == "background"]
    if not background:
        yield Item(
            AttentionKind.NO_BACKGROUND,
            True,
            "background process",
            "",
            "no background process reports: results are not validated, and instances do not time out",
            [Remedy("start the background process, or read its log", "", Right.OPERATE, "muster up")],
        )
        return
    late = {name: facts.now - at for name, at in facts.deadlines.items() if facts.now - at > LATE_S}
    for name, late_s in late.items():
        yield Item(
            AttentionKind.OVERDUE_TASK,
            True,
            f"periodic task {name}",
            "",
            f"overdue by {roughly(late_s)}",
            [Remedy("search the logs of the background processes for its name", "", Right.OPERATE)],
            facts.deadlines[name],
            {"late_by_s": late_s},
            weight=late_s,
        )
    for process in background:
        report: Document = process.report
        for duty in report["duties"]:
            failed_at, done_at = duty["failed_at"], duty["done_at"]
            if duty["mine"] and duty["name"] not in late and failed_at is not None and failed_at > (done_at or 0.0):
                yield Item(
                    AttentionKind.FAILING_TASK,
                    False,
                    f"periodic task {duty['name']}",
                    "",
                    f"its last round failed {age_in_words(facts.now - failed_at)} ago: {duty['failure']}",
                    [Remedy("read the whole error in the logs of the background processes", "", Right.OPERATE)],
                    failed_at,
                    {"failures": duty["failures"]},
                    weight=duty["failures"],
                )


def _disks(facts: AttentionFacts) -> Iterator[Item]:
    disks: dict[tuple[str, str], Document] = {}
    for one in facts.processes:
        node, report = one.name.partition(": ")[0], one.report
        found: Any = report.get("disks", ())
        disks |= {(node, disk["path"]): disk for disk in found}
    for (node, path), disk in disks.items():
        free_fraction = disk["free_bytes"] / max(1.0, disk["total_bytes"])
        if free_fraction < ALMOST_FULL_FRACTION:
            free, total = size_in_words(disk["free_bytes"]), size_in_words(disk["total_bytes"])
            yield Item(
                AttentionKind.DISK,
                free_fraction < FULL_FRACTION,
                f"disk of {path} on {node}",
                "",
                f"{free} of {total} free ({100 * free_fraction:.1f} %)",
                [
                    Remedy("purge ended batches", "settings?q=storage", Right.OPERATE, "muster purge"),
                    Remedy("move files to a bucket, or enlarge the disk", "manual/operating", Right.OPERATE),
                ],
                figures={"free_bytes": disk["free_bytes"], "total_bytes": disk["total_bytes"]},
                weight=1.0 - free_fraction,
            )


def _hosts(contacts: HostContacts) -> Iterator[Item]:
    if contacts.silent >= max(SILENT_HOSTS, SILENT_FRACTION * contacts.hosts):
        yield Item(
            AttentionKind.SILENT_HOSTS,
            contacts.silent >= HALF * contacts.hosts,
            "hosts",
            "hosts?show=silent&days=1",
            f"{contacts.silent} of the {contacts.hosts} hosts active in the last week have not called for more than a "
            "day and three of their usual intervals",
            [
                Remedy("see these hosts", "hosts?show=silent&days=1"),
                Remedy(
                    "check that clients reach the project's URL: name service, certificate, front end",
                    "settings/project.url",
                    Right.OPERATE,
                ),
            ],
            figures={"hosts": contacts.hosts, "silent": contacts.silent},
            weight=contacts.silent,
        )


def _validation(upkeep: Upkeep) -> Iterator[Item]:
    waiting = f"{'more than ' if upkeep.waiting >= LOOKED_AT else ''}{upkeep.waiting} jobs wait for validation"
    if upkeep.failing or upkeep.waiting >= LOOKED_AT:
        failing = f"comparing the results of {upkeep.failing} jobs failed repeatedly"
        yield Item(
            AttentionKind.VALIDATION,
            False,
            "validation",
            "",
            f"{failing}; {waiting}" if upkeep.failing else waiting,
            [
                Remedy("read the errors in the log of the background process", "", Right.OPERATE),
                Remedy("look for missing outputs", "", Right.OPERATE, "muster check"),
            ],
            figures={"failing": upkeep.failing, "waiting": upkeep.waiting},
        )


def _backup(facts: AttentionFacts) -> Iterator[Item]:
    upkeep, most_s = facts.upkeep, facts.backup_age_s
    age_s = facts.now - (upkeep.installed_at if upkeep.backup_at is None else upkeep.backup_at)
    if 0.0 < most_s < age_s:
        age = "no backup is recorded" if upkeep.backup_at is None else f"the last backup is {roughly(age_s)} old"
        yield Item(
            AttentionKind.BACKUP,
            False,
            "backup",
            "manual/operating",
            f"{age}; expected every {roughly(most_s)} (storage.backup_age_s)",
            [Remedy("run deploy/backup.sh, or record the backups of another tool", "manual/operating", Right.OPERATE)],
            upkeep.backup_at,
            {"age_s": age_s},
        )
