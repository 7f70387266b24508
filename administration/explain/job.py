"""Why does a job's unsent instance wait, and what became of the others?"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence

from administration.catalogue import fresh_catalogue, stale_as_json
from administration.explain.dry_run import array_of, private_feeder
from administration.explain.ports import ExplainStore
from administration.explain.sample import CallingHosts, sample_as_json, sample_of
from administration.show import shown
from domain.batches import Batch
from domain.catalogue import Catalogue
from domain.clock import Clock
from domain.jobs import Candidate, FreshRange, InstanceState
from domain.units import InstanceId, JobId, shard_of
from domain.views import InstanceRow
from muster_client import shapes

MOST_URGENT = 10_000  # of the batch that are looked through for an instance


async def explain_job(store: ExplainStore, clock: Clock, job_id: JobId, *, hosts: int) -> shapes.JobExplained:
    """The job, its instances, and why each unsent one waits. Raises NotFoundError."""
    job = await store.views.job(job_id)
    batch = await store.views.batch(job.batch_id)
    catalogue = await fresh_catalogue(store.applications, clock)
    waiting = await waiting_of(store, clock, job.instances, batch, catalogue, hosts=hosts)
    now, ahead = clock.now(), await store.insight.work_ahead(batch.batch_id)
    return shown(
        shapes.JobExplained,
        job,
        computed_at=now,
        batches_ahead=ahead.batches,
        unsent_ahead=ahead.unsent,
        waiting=waiting,
    )


async def waiting_of(
    store: ExplainStore,
    clock: Clock,
    instances: Sequence[InstanceRow],
    batch: Batch,
    catalogue: Catalogue,
    *,
    hosts: int,
) -> list[shapes.WaitingShown]:
    """Those of a batch's instances that are unsent, as the feeder reads them, and what hosts say."""
    unsent = [row for row in instances if row.state is InstanceState.UNSENT]
    held, asked = await asyncio.gather(
        _held(store, clock, [row.instance_id for row in unsent], catalogue),
        asyncio.gather(*(_asked(store, clock, row, batch, catalogue, hosts) for row in unsent)),
    )
    return [
        _waiting(row.instance_id, candidate, sample, one_per, held, catalogue)
        for row, (candidate, sample, one_per) in zip(unsent, asked, strict=True)
    ]


async def _held(
    store: ExplainStore, clock: Clock, unsent: Sequence[InstanceId], catalogue: Catalogue
) -> frozenset[InstanceId]:
    """Those a lone worker that is filled now would hold."""
    if not unsent:
        return frozenset()
    array = (await private_feeder(store.waiting, catalogue, clock)).array
    return frozenset(one for one in unsent if one in array)


async def _asked(
    store: ExplainStore, clock: Clock, row: InstanceRow, batch: Batch, catalogue: Catalogue, hosts: int
) -> tuple[Candidate | None, CallingHosts | None, str | None]:
    """The instance as it waits, what hosts say of it, and what gets one at most; None once it does not wait."""
    candidate = await _candidate(store, row, batch)
    if candidate is None:
        return None, None, None
    classes = await store.waiting.job_classes([candidate.ready.job_class_id])
    array = array_of([candidate], batch, classes, catalogue, clock)
    quorum = classes[candidate.ready.job_class_id].quorum
    one_per = catalogue.apps[batch.app_id].spread(quorum, candidate.ready.copies).one_per
    return candidate, await sample_of(store, array, catalogue, clock, most=hosts), one_per


async def _candidate(store: ExplainStore, row: InstanceRow, batch: Batch) -> Candidate | None:
    """The instance as the feeder would read it."""
    before = InstanceId(row.instance_id - 1)
    fresh = FreshRange(batch.batch_id, shard_of(row.job_id), before, 1)
    found = [*await store.waiting.fresh([fresh])]
    if not any(one.ready.instance_id == row.instance_id for one in found):
        found = [*await store.waiting.urgent([batch.batch_id], MOST_URGENT)]
    return next((one for one in found if one.ready.instance_id == row.instance_id), None)


def _waiting(
    instance_id: InstanceId,
    candidate: Candidate | None,
    sample: CallingHosts | None,
    one_per: str | None,
    held: Collection[InstanceId],
    catalogue: Catalogue,
) -> shapes.WaitingShown:
    """One unsent instance; `candidate` None: it was sent, or ended, a moment ago. `one_per` as in Spread.

    `held`: those that a lone worker that is filled now would hold.
    """
    read = None if candidate is None else candidate.ready
    return shown(
        shapes.WaitingShown,
        instance_id=instance_id,
        retries=None if read is None else read.retries,
        sibling_returned=None if read is None else read.sibling_returned,
        hr_class=None if read is None else read.hr_class,
        sibling_hosts=[] if candidate is None else list(candidate.sibling_hosts),
        one_per=one_per,
        in_array=candidate is not None and instance_id in held,
        stale_cut_points=stale_as_json(catalogue),
        sample=None if sample is None else sample_as_json(sample),
    )
