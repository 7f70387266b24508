"""Turns facts about the project into a list of items that need attention, worst first. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from administration.apps import LostVersion
from administration.attention.item import HALF, ORDER, AttentionFacts, AttentionKind, Item, Remedy
from administration.attention.upkeep import upkeep_items
from administration.forecasts.service import BatchEnd, end_of, waits_for_results
from administration.forecasts.words import end_in_words, is_severe, risk_in_words
from administration.show import shown
from administration.unschedulable import RefusedByAll
from domain.access import Right
from domain.apps import AppVersion
from domain.attention import (
    FAILED_FRACTION,
    FAILED_JOBS,
    FailingApp,
    FailingHost,
    FailingVersion,
    by_app,
    nearly_all_fail,
    worst_first,
)
from domain.batches import Batch, BatchCounts, BatchState
from domain.forecasts import risk_of
from domain.formatting import in_words
from domain.hosts import host_in_words
from domain.ordering import ServiceLevel
from domain.refusals import About, RefusalCode, traits_of
from domain.restrictions import Restricted, Restriction, pause_of
from domain.units import BatchId, Instant
from muster_client import shapes

HOST_RESULTS = 10  # a host fails if at least half of so many results of a day did
CLONE_HELPS = frozenset({RefusalCode.MEMORY, RefusalCode.DISK, RefusalCode.TOO_SLOW})  # a clone may need less


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
        *_failing_hosts(facts.hosts),
        *upkeep_items(facts),
    ]
    return sorted(found, key=lambda one: (not one.severe, ORDER[one.kind], -one.weight, one.subject))


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
    """Return the remedies for a batch that is late."""
    link, left_s = f"batches/{batch.batch_id}", (batch.deadline_at or facts.now) - facts.now
    is_useless = (
        batch.batch_id in facts.all_sent
        or batch.level is ServiceLevel.EXPEDITE
        or facts.first.get(batch.batch_id) is False
        or (batch.deadline_at is not None and waits_for_results(facts.last.get(batch.batch_id), left_s))
    )
    found = [Remedy("see what holds it back", f"{link}/why")]
    if pause is not None:
        found.append(Remedy("resume it", link if pause.kind is Restricted.BATCH else "restrictions", Right.OPERATE))
    if not is_useless:
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
    worst = hosts[0]
    name = host_in_words(worst.host_id, worst.domain_name)
    each = ((one.failures, one.results, one.of_versions) for one in hosts)
    failures, results, of_versions = map(sum, zip(*each, strict=True))
    of = f", {worst.of_versions} of them with versions that fail" if worst.of_versions else ""
    fails = "host fails half of its" if len(hosts) == 1 else "hosts fail half of their"
    yield Item(
        AttentionKind.FAILING_HOSTS,
        False,
        f"{len(hosts)} {fails} results or more",
        "hosts?show=failing",
        f"{name}, {'the worst, ' * (len(hosts) > 1)}failed {worst.failures} of {worst.results} in the last day{of}",
        [
            Remedy(f"read the results of {name}", f"hosts/{worst.host_id}#h-sent"),
            Remedy("see these hosts", "hosts?show=failing"),
            Remedy(f"ban host {name}", f"hosts/{worst.host_id}#restrict", Right.OPERATE),
        ],
        figures={"hosts": len(hosts), "failures": failures, "results": results, "of_versions": of_versions},
        weight=failures,
    )
