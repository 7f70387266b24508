"""Explains what delays a batch: results that it waits for, work ahead of it, and why hosts are refused its jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from administration.attention.item import Remedy
from administration.attention.items import later_or_end
from administration.attention.service import AttentionViews
from administration.catalogue import fresh_catalogue, stale_as_json
from administration.explain.dry_run import array_of, planned_slots, sample_of, without_pauses
from administration.explain.late import (
    SendingTime,
    late_conclusion,
    late_in_words,
    requests_per_hour,
    sent_per_request,
)
from administration.explain.verdict import (
    CallingHosts,
    conclusions,
    counted,
    reasons_of,
    sample_as_json,
    ungated,
)
from administration.forecasts.service import BatchEnd, end_of
from administration.forecasts.words import cause_in_words, end_in_words
from administration.ordering.places import position, sent_first, turn_of
from administration.restrictions import in_words as restriction_in_words
from administration.show import forecast_as_json, shown
from administration.stopped import stopped_of
from administration.thresholds.preview import KeptStandings
from domain.attention import FailingVersion, by_app
from domain.batches import Batch, BatchCounts, BatchState, complete_at, is_late
from domain.catalogue import Catalogue
from domain.clock import Clock
from domain.deadline_rules import traits_of
from domain.forecasts import ForecastState
from domain.formatting import age_in_words, in_words, roughly
from domain.hosts import host_in_words
from domain.jobs import Candidate, InstanceState, JobClass, Ready
from domain.queue_hosts import hosts_of_queue
from domain.reservations import Kept, Lease
from domain.restrictions import pause_of
from domain.units import BatchId, HostId, InstanceId, Instant, JobClassId, JobId, Seconds
from domain.views import InstancePlace, ListedInstance
from feeder.supply import feed_mode
from muster_client import shapes
from store.postgres import PostgresStore

Document = Mapping[str, Any]  # Any: a JSON document


def lease_as_json(lease: Lease | None, now: Instant, *, supposed: bool = False) -> shapes.LeaseShown | None:
    """Return a host's latest lease. `holds`: it is valid. `supposed`: the host's next request would create it."""
    if lease is None:
        return None
    in_s, holds = lease.start_at - now, lease.holds(now)
    return shown(shapes.LeaseShown, lease, starts_in_s=in_s, holds=holds, supposed=supposed)


def kept_as_json(kept: Kept | None, now: Instant) -> shapes.KeptShown | None:
    """Return the slot reserved for a batch, as JSON."""
    return None if kept is None else {"since": kept.since, "for_s": now - kept.since}


def lease_in_words(lease: Document | None) -> Iterator[str]:
    """Yield one line that describes the lease, or nothing.

    >>> held = Lease(1, 2, 8.0, Instant(3600.0), 60.0, Instant(7200.0))
    >>> list(lease_in_words(lease_as_json(held, Instant(0.0))))
    ['host 2 is leased to batch 1: 8 of its processors (cpu), starting in 1 h']
    >>> list(lease_in_words(lease_as_json(held, Instant(0.0), supposed=True)))
    ['host 2 would be leased to batch 1: 8 of its processors (cpu), starting in 1 h']
    """
    if lease is None:
        return
    what = f"host {lease['host_id']}"
    if lease["holds"]:
        starts_s = lease["starts_in_s"]
        since = f"starting in {in_words(starts_s)}" if starts_s > 0 else f"started {age_in_words(-starts_s)} ago"
        processors = f"{lease['cores']:g} of its processors ({lease['processor_type']})"
        held = "would be leased" if lease["supposed"] else "is leased"
        yield f"{what} {held} to batch {lease['batch_id']}: {processors}, {since}"
    else:
        why = lease["because"] or "expired"
        yield f"{what} was leased to batch {lease['batch_id']} without effect; no new lease for a day: {why}"


def kept_in_words(kept: Document | None) -> Iterator[str]:
    """Yield one line that describes the reserved slot, or nothing."""
    if kept is not None:
        yield f"a slot of every job array has been reserved for it for {in_words(kept['for_s'])}"


MOST_READ = 200  # maximum number of instances read for the dry run from each of its two ranges
MOST_AWAITED = 1000  # maximum number of instances in progress that are read
MOST_LISTED = 20  # maximum number of these in the explanation


async def explain_batch(
    store: PostgresStore,
    clock: Clock,
    attention: AttentionViews,
    standings: KeptStandings,
    batch_id: BatchId,
) -> shapes.BatchExplained:
    """Return a batch's place, forecast and progress, and why the hosts with the latest requests are refused its jobs.

    `complete_at` is C for its strictest class. `slots`, out of `slots_total`, is the number a single worker would give
    it if it refilled its array now. `sample` is None if it has no unsent instances, and `awaited` is None unless it
    waits only for those in progress. Raises NotFoundError.
    """
    batch = await store.views.batch(batch_id)
    catalogue, stopped, known, forecasts, awaited, extras = await asyncio.gather(
        fresh_catalogue(store.applications, clock),
        stopped_of(store, clock),
        store.views.classes_of_batch(batch_id),
        store.forecasts.last([batch_id]),
        _awaited(store, batch, clock),
        store.listings.extras(batch_id),
    )
    classes = {one.job_class_id: one for one in known}
    urgent = await sent_first(store, catalogue, clock.now(), stopped.unrunnable)
    sample, slots, app_name, (because, ahead), records, places = await asyncio.gather(
        _sample(store, clock, batch, classes, catalogue, idle=stopped.group_of(batch) is not None),
        planned_slots(store.waiting, catalogue, clock),
        store.views.app_name(batch.app_id),
        turn_of(store, batch, urgent, catalogue, clock.now(), stopped.unrunnable),
        store.ordering_rules.breakdowns([batch_id]),
        store.ordering_rules.places([batch_id], catalogue.sent_apps(), without=stopped.unrunnable),
    )
    bound_s = min((one.delay_bound_s for one in classes.values()), default=Seconds(0.0))
    median_r_q_s = catalogue.median_safe_runtime_s(batch.app_id)
    now, due = clock.now(), complete_at(batch, bound_s)
    feeding = feed_mode(batch, now=now, median_r_q_s=median_r_q_s, settings=catalogue.settings)
    hold, last = hold_of(batch, catalogue), forecasts.get(batch_id)
    if sample is not None and is_late(batch.deadline_at, now) and traits_of(catalogue.settings.deadline).afap_first:
        sample = replace(sample, gated_share=1.0) if extras.retries else ungated(sample)  # retries need the gates
    at = position(batch, places[batch_id], urgent) if batch_id in places and batch.counts.unsent and not hold else None
    end = end_of(batch, last, stopped, now)
    risk, state = end.at_risk, end.forecast_state
    fails = fails_in_words(batch, app_name, await attention.failing_versions(stopped.restrictions))
    late = late_in_words(risk, "", state)
    first_unsent = batch.counts.unsent - extras.copies - extras.retries
    remedies: Sequence[Remedy] = later_or_end(batch) if risk is not None and not hold else ()
    if sample is None:
        said = [late, fails, *_nothing_waits(batch, awaited, end, now)]
    else:
        quiet = "" if state is ForecastState.MOVED else quiet_in_words(batch, first_unsent, now)  # or just resumed
        concluded = partial(
            conclusions, ahead=ahead if batch_id in places else None, blocked=hold, sent_first=because, quiet=quiet
        )
        said = concluded(sample)
        lost = stopped.lost.get(batch.app_id)
        if lost is not None and not hold:
            said = [f"None of its jobs is sent, because {lost.words}."]
        elif risk is not None and sample.takers and not hold:
            left_s = risk["deadline_at"] - now
            record = None if last is None or state is ForecastState.MOVED else forecast_as_json(last)
            time = await _sending_time(store, standings, catalogue, batch, sample, record, now)
            held = record["holds"][0]["host_ids"] if record and record["holds"] else []
            names = await store.host_lists.names([HostId(one) for one in held])
            cause = "" if record is None else cause_in_words(record, names, left_s=left_s)
            late, remedies = late_conclusion(
                batch, risk, state, time, sample, ahead, cause, now=now, is_first=batch_id in urgent
            )
            waits = concluded(sample, ahead=None, quiet="") if cause and batch_id not in urgent else ()  # for results
            said = [
                late,
                expected_in_words(end, now),
                time.words,
                fails,
                *(waits or said),
            ]
            late = ""
        said = [*said[:1], late, fails, *said[1:]] if late else said
    verdict, *facts = dict.fromkeys(filter(None, said))
    return shown(
        shapes.BatchExplained,
        batch,
        batch.counts,
        verdict=verdict if risk is not None else " ".join([verdict, *facts]),
        facts=facts if risk is not None else [],
        remedies=[shown(shapes.RemedyShown, one) for one in remedies],
        forecast_state=state.value,
        fails=fails,
        at_risk=risk,
        awaited=None if awaited is None else shown(shapes.AwaitedShown, awaited),
        computed_at=now,
        app=app_name,
        copies_unsent=extras.copies,
        retries_unsent=extras.retries,
        order=shown(
            shapes.OrderShown,
            batch,
            hold=hold,
            queue=records[batch_id]["queue"] if batch_id in records else None,
            queue_hosts=hosts_of_queue(catalogue.settings.ordering.queue_hosts, batch.queue),
            batches_ahead=ahead.batches,
            unsent_ahead=ahead.unsent,
            gated_ahead=ahead.gated,
            first_ahead=[shown(shapes.BatchAhead, one, unsent=one.counts.unsent) for one in ahead.first],
            sent_first=because,
            place=None if at is None else at.place,
            of=None if at is None else at.of,
        ),
        complete_at=due,
        complete_in_s=None if due is None else due - now,
        gate=feeding.gate.value,
        in_every_worker=feeding.everywhere,
        kept=kept_as_json(catalogue.reserved.kept.get(batch_id), now),
        lease=lease_as_json(catalogue.reserved.lease_for(batch_id, now), now),
        slots=slots.get(batch_id, 0),
        slots_total=sum(slots.values()),
        stale_cut_points=stale_as_json(catalogue),
        sample=None if sample is None else sample_as_json(sample),
    )


async def _sending_time(
    store: PostgresStore,
    standings: KeptStandings,
    catalogue: Catalogue,
    batch: Batch,
    sample: CallingHosts,
    last: Document | None,
    now: Instant,
) -> SendingTime:
    """Return how long sending takes. The least time supposes that a request takes as many jobs as lately, or as in the
    dry run if these are more.
    """
    types = [(batch.app_id, kind) for kind in sorted(catalogue.processor_types(batch.app_id))]
    (found, _), sent = await asyncio.gather(
        standings.of(types, catalogue, now=now),
        store.listings.latest(batch.batch_id, (InstanceState.IN_PROGRESS,), before=None, limit=MOST_READ),
    )
    terms = None if last is None else last["terms"]
    return SendingTime(
        batch.counts.unsent,
        terms["sending_s"] if terms else None,
        requests_per_hour(found.values()),
        max(1.0, sent_per_request(sent), sample.jobs / max(1, sample.takers)),
    )


def fails_in_words(batch: Batch, app: str, failing: Sequence[FailingVersion]) -> str:
    """Return which versions of an active batch's app fail, as Needs attention does; "" for none, or if the batch has
    valid results and no failures.
    """
    if batch.state is not BatchState.ACTIVE or (batch.counts.jobs_validated and not batch.counts.retries):
        return ""
    found = by_app(failing).get(app)
    return "" if found is None else found.words


def _nothing_waits(batch: Batch, awaited: Awaited | None, end: BatchEnd, now: Instant) -> Sequence[str]:
    """Return sentences about a batch without unsent instances."""
    if batch.state is not BatchState.ACTIVE:
        return [f"The batch is {batch.state.value}: nothing waits."]
    if awaited is not None:
        return awaited_in_words(awaited, now), expected_in_words(end, now)
    return ["No instance waits to be sent or is in progress: the validator processes the last reports."]


async def _awaited(store: PostgresStore, batch: Batch, clock: Clock) -> Awaited | None:
    """Return what a batch waits for whose instances have all been sent."""
    if batch.state is not BatchState.ACTIVE or batch.counts.unsent or not batch.counts.in_progress:
        return None
    now = clock.now()
    found = awaited_of(*await _in_progress(store, batch.batch_id, now), batch.counts, now)
    if found is None or found.hosts > NAMED_HOSTS:
        return found
    return replace(found, names=await store.host_lists.names(found.host_ids))


async def _in_progress(store: PostgresStore, batch_id: BatchId, now: Instant) -> tuple[Sequence[ListedInstance], int]:
    """Return a batch's instances in progress of open jobs, sent longest ago first, and the number of jobs' that have
    ended. Of very many, the oldest first instances and the most retried ones, of all jobs.
    """
    states, first = (InstanceState.IN_PROGRESS,), InstancePlace(0, InstanceId(0))
    found = await store.listings.instances(batch_id, states, after=None, limit=MOST_AWAITED)
    more = len(found) == MOST_AWAITED
    oldest = await store.listings.instances(batch_id, states, after=first, limit=MOST_AWAITED) if more else ()
    jobs = await store.tails.tail_jobs(batch_id, after=JobId(0), limit=MOST_AWAITED, now=now)
    by_id = {one.instance_id: one for one in (*found, *oldest)}
    held = sorted(by_id.values(), key=lambda one: (one.sent_at or 0.0, one.instance_id))
    if len(jobs) == MOST_AWAITED:
        return held, 0
    open_jobs = {one.job_id for one in jobs}
    awaited = [one for one in held if one.job_id in open_jobs]
    return awaited, len(held) - len(awaited)


def hold_of(batch: Batch, catalogue: Catalogue) -> str | None:
    """Return what blocks a batch, a pause or the limits, in words; None if it is not blocked."""
    pause = pause_of(catalogue.restrictions, batch)
    if pause is None and catalogue.settings.project.down:
        return "the project is paused"
    return batch.hold if pause is None else restriction_in_words(pause, catalogue.apps)


async def _sample(
    store: PostgresStore,
    clock: Clock,
    batch: Batch,
    classes: Mapping[JobClassId, JobClass],
    catalogue: Catalogue,
    *,
    idle: bool,
) -> CallingHosts | None:
    """Return the dry runs for a sample of hosts, None if the batch has no unsent instances. `idle`: as those whose
    verdict is that no host can run it, of hosts without jobs and work without a pause.
    """
    if batch.state is not BatchState.ACTIVE or batch.counts.unsent == 0:
        return None
    catalogue = without_pauses(catalogue) if idle else catalogue
    waiting, ids = store.waiting, [batch.batch_id]
    urgent, tail = await asyncio.gather(waiting.urgent(ids, MOST_READ), waiting.tail(ids, MOST_READ))
    array = array_of([*urgent, *tail], batch, classes, catalogue, clock)
    return await sample_of(store, array, catalogue, clock, idle=idle)


async def unable_in_words(
    store: PostgresStore, clock: Clock, batch: Batch, classes: Sequence[JobClass], catalogue: Catalogue
) -> str:
    """Return why none of the hosts with the latest requests could run the jobs of a batch that is only previewed, each
    without its jobs; "" if one could, or if no host has contacted the scheduler yet.
    """
    own = {JobClassId(n): replace(one, job_class_id=JobClassId(n)) for n, one in enumerate(classes, 1)}
    slots = [Candidate(Ready(InstanceId(n), JobId(n), batch.batch_id, n)) for n in own]
    array = array_of(slots, batch, own, catalogue, clock)
    sample = await sample_of(store, array, catalogue, clock, idle=True, is_submitted=False)
    if sample.able or not sample.hosts:
        return ""
    last = counted(sample.hosts, "host")
    return f"None of the last {last} that contacted the server can run these jobs: {reasons_of(sample.held_back)}."


QUIET_S = 120.0  # without a new job sent


def quiet_in_words(batch: Batch, first_unsent: int, now: Instant) -> str:
    """Return since when no first instance of a batch was sent; "" if one was just now, or none is unsent."""
    if first_unsent <= 0:
        return ""
    if batch.last_first_dispatch_at is None:
        return "None of its jobs has been sent yet"
    quiet_s = now - batch.last_first_dispatch_at
    return f"No new job of it has been sent for {roughly(quiet_s)}" if quiet_s >= QUIET_S else ""


NAMED_HOSTS = 3  # hosts in a sentence


@dataclass(frozen=True, slots=True)
class Awaited:
    """The instances in progress of the open jobs of a batch whose instances have all been sent, and their hosts.

    `jobs_open` of the batch's `jobs` have no valid result yet. `copies` of the instances are copies; `copied_because`
    is the reason of the first. `overdue` are past their due dates, the first since `first_due_at`. `oldest` lists those
    sent longest ago. `is_part`: more exist than were read.
    """

    jobs: int
    jobs_open: int
    instances: int
    copies: int
    copied_because: str
    host_ids: tuple[HostId, ...]
    oldest_sent_at: Instant
    first_due_at: Instant
    last_due_at: Instant
    overdue: int
    oldest: Sequence[ListedInstance]
    is_part: bool
    names: Mapping[HostId, str] = field(default_factory=dict)

    @property
    def hosts(self) -> int:
        return len(self.host_ids)


def awaited_of(read: Sequence[ListedInstance], others: int, counts: BatchCounts, now: Instant) -> Awaited | None:
    """Return what a batch waits for, from its instances in progress that were read, sent longest ago first; or None.
    `others`: instances in progress of jobs that have ended.
    """
    sent = [one.sent_at for one in read if one.sent_at is not None]
    due = [one.due_at for one in read if one.due_at is not None]
    if not sent or not due:
        return None
    hosts = tuple(sorted({one.host_id for one in read if one.host_id is not None}))
    copied = [one.copied_because for one in read if one.copied_because is not None]
    return Awaited(
        counts.jobs_total,
        counts.jobs_open,
        max(len(read), counts.in_progress - others),
        len(copied),
        copied[0] if copied else "",
        hosts,
        min(sent),
        min(due),
        max(due),
        sum(at < now for at in due),
        read[:MOST_LISTED],
        is_part=len(read) + others < counts.in_progress,
    )


def awaited_in_words(awaited: Awaited, now: Instant) -> str:
    """Return what a batch waits for: how many jobs, their instances on which hosts, the oldest since when, when due.

    >>> at = Instant(0.0), Instant(3000.0), Instant(3000.0)
    >>> one = Awaited(20, 1, 1, 0, "", (7,), *at, 1, (), False, {7: "basil"})
    >>> awaited_in_words(one, Instant(3600.0)).partition(": ")[2]
    '1 instance on host basil (7), sent 1 h ago and overdue for 10 min.'
    """
    many, oldest = awaited.instances > 1, age_in_words(now - awaited.oldest_sent_at)
    verb = "waits" if awaited.jobs_open == 1 else "wait"
    sent = f"All its jobs are sent; {awaited.jobs_open} of {counted(awaited.jobs, 'job')} {verb} for a valid result"
    what = f"{sent}: {counted(awaited.instances, 'instance')} on {_hosts(awaited)}"
    late = roughly(now - awaited.first_due_at)
    if not many:
        due = f"overdue for {late}" if awaited.overdue else f"due in {roughly(awaited.last_due_at - now)}"
        copy = f"; it is a copy: {awaited.copied_because}" if awaited.copies else ""
        return f"{what}, sent {oldest} ago and {due}{copy}."
    least, longest = "at least " if awaited.is_part else "", ", the longest" if awaited.overdue > 1 else ""
    parts = [f"{least}{counted(awaited.copies, 'copy', 'copies')}"] if awaited.copies else []
    parts += [f"{least}{awaited.overdue} overdue{longest} for {late}"] if awaited.overdue else []
    return "; ".join((f"{what}, the oldest sent {oldest} ago", *parts)) + "."


def _hosts(awaited: Awaited) -> str:
    if awaited.is_part or awaited.hosts > NAMED_HOSTS:
        return f"{'at least ' if awaited.is_part else ''}{counted(awaited.hosts, 'host')}"
    named = [host_in_words(one, awaited.names.get(one, "")) for one in awaited.host_ids]
    return f"host{'s' * (awaited.hosts > 1)} {', '.join(named)}"


def expected_in_words(end: BatchEnd, now: Instant) -> str:
    """Return when the forecast expects the batch's end; "" if no end is shown, or once its latest end has passed."""
    about, latest = end.completion_q50_at, end.completion_q90_at
    if about is None or latest is None or latest <= now:
        return ""
    when = end_in_words(about, now, provisional=end.provisional)
    return f"The forecast expects its end {when}, at the latest in {in_words(latest - now)}."
