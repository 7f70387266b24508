"""Explains what delays a batch: work ahead of it, reserved capacity, and why hosts are refused its jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import Any

from administration.catalogue import fresh_catalogue, stale_as_json
from administration.explain.dry_run import array_of, planned_slots
from administration.explain.sample import sample_of
from administration.explain.verdict import CallingHosts, conclusion, counted, sample_as_json
from administration.restrictions import in_words as restriction_in_words
from administration.show import shown
from domain.batches import Batch, BatchState, QoS, complete_at
from domain.catalogue import Catalogue
from domain.clock import Clock
from domain.formatting import in_words
from domain.insight import WorkAhead
from domain.jobs import JobClass
from domain.queue_hosts import hosts_of_queue
from domain.refusals import RefusalCode
from domain.reservations import Kept, Lease
from domain.restrictions import pause_of
from domain.units import BatchId, Instant, JobClassId, Seconds
from feeder.supply import feed_mode, going_first
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
        since = f"starting in {in_words(starts_s)}" if starts_s > 0 else f"started {in_words(-starts_s)} ago"
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


MOST_AHEAD = 1000  # batches searched for those that are sent first
MOST_READ = 200  # maximum number of instances read for the dry run from each of its two ranges


async def explain_batch(store: PostgresStore, clock: Clock, batch_id: BatchId, *, hosts: int) -> shapes.BatchExplained:
    """Return a batch's place, forecast and progress, and why the hosts with the latest requests are refused its jobs.

    `complete_at` is C for its strictest class. `slots`, out of `slots_total`, is the number a single worker would give
    it if it refilled its array now. `sample` is None if it has no unsent instances. Raises NotFoundError.
    """
    batch = await store.views.batch(batch_id)
    catalogue, known = await asyncio.gather(
        fresh_catalogue(store.applications, clock), store.views.classes_of_batch(batch_id)
    )
    classes = {one.job_class_id: one for one in known}
    sample, slots, app_name, (ahead, first), records = await asyncio.gather(
        _sample(store, clock, batch, classes, catalogue, hosts),
        planned_slots(store.waiting, catalogue, clock),
        store.views.app_name(batch.app_id),
        ahead_of(store, batch, catalogue, clock.now()),
        store.ordering_rules.breakdowns([batch_id]),
    )
    bound_s = min((one.delay_bound_s for one in classes.values()), default=Seconds(0.0))
    median_r_q_s = catalogue.median_safe_runtime_s(batch.app_id)
    now, due = clock.now(), complete_at(batch, bound_s)
    feeding = feed_mode(batch, now=now, median_r_q_s=median_r_q_s, settings=catalogue.settings.feeder)
    return shown(
        shapes.BatchExplained,
        batch,
        batch.counts,
        verdict=_nothing_waits(batch)
        if sample is None
        else conclusion(sample, ahead, blocked=hold_of(batch, catalogue), sent_first=first),
        computed_at=now,
        app=app_name,
        order=shown(
            shapes.OrderShown,
            batch,
            hold=hold_of(batch, catalogue),
            queue=records[batch_id]["queue"] if batch_id in records else None,
            queue_hosts=hosts_of_queue(catalogue.settings.ordering.queue_hosts, batch.queue),
            batches_ahead=ahead.batches,
            unsent_ahead=ahead.unsent,
            sent_first=first,
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


def _nothing_waits(batch: Batch) -> str:
    if batch.state is not BatchState.ACTIVE:
        return f"The batch is {batch.state.value}: nothing waits."
    if batch.counts.in_progress:
        sent = counted(batch.counts.in_progress, "instance")
        return f"No instance waits to be sent; hosts have {sent} in progress."
    return "No instance waits to be sent or is in progress: the validator processes the last reports."


def sent_first(batch: Batch, catalogue: Catalogue, now: Instant) -> str | None:
    """Return why most requests take the batch before the order (decision 49); None if they do not."""
    if batch.batch_id not in going_first([batch], catalogue, now):
        return None
    return "it is to be done as fast as possible" if batch.qos is QoS.AFAP else "its deadline is near"


async def ahead_of(
    store: PostgresStore, batch: Batch, catalogue: Catalogue, now: Instant
) -> tuple[WorkAhead, str | None]:
    """Return the work before a batch, and why most requests take it before the order. Work before the order waits only
    for batches that are ahead and taken before the order, too.
    """
    first = sent_first(batch, catalogue, now)
    if first is None:
        return await store.insight.work_ahead(batch.batch_id), None
    ready = await store.waiting.ready_batches(MOST_AHEAD)
    earlier = list(takewhile(lambda one: one.batch_id != batch.batch_id, ready))
    urgent = going_first(earlier, catalogue, now)
    return WorkAhead(len(urgent), sum(one.counts.unsent for one in earlier if one.batch_id in urgent)), first


def hold_of(batch: Batch, catalogue: Catalogue) -> str | None:
    """Return what blocks a batch: a pause, with its code, or the limits; None if it is not blocked."""
    pause = pause_of(catalogue.restrictions, batch)
    return batch.hold if pause is None else f"{RefusalCode.PAUSED}: {restriction_in_words(pause, catalogue.apps)}"


async def _sample(
    store: PostgresStore,
    clock: Clock,
    batch: Batch,
    classes: Mapping[JobClassId, JobClass],
    catalogue: Catalogue,
    hosts: int,
) -> CallingHosts | None:
    """Return the dry runs for a sample of hosts, None if the batch has no unsent instances."""
    if batch.state is not BatchState.ACTIVE or batch.counts.unsent == 0:
        return None
    waiting, ids = store.waiting, [batch.batch_id]
    urgent, tail = await asyncio.gather(waiting.urgent(ids, MOST_READ), waiting.tail(ids, MOST_READ))
    array = array_of([*urgent, *tail], batch, classes, catalogue, clock)
    return await sample_of(store, array, catalogue, clock, most=hosts)
