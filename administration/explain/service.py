"""Every explanation as one JSON object, for the command line and the API."""

from __future__ import annotations

from administration.explain.batch import explain_batch
from administration.explain.host import explain_host
from administration.explain.job import explain_instance, explain_job
from administration.explain.sample import SAMPLE_HOSTS
from administration.ports import ExplainStore
from domain.clock import Clock
from domain.units import BatchId, HostId, InstanceId, JobId
from feeder.array import JobArray
from muster_client import shapes


class Explain:
    """The real decision, run dry. Nothing is changed, neither in the database nor in a worker's array.

    In a worker, `live` is its job array: a host's dry run decides on it. Every method raises NotFoundError.
    """

    def __init__(self, store: ExplainStore, clock: Clock, live: JobArray | None = None) -> None:
        self._store = store
        self._clock = clock
        self._live = live

    async def host(self, host_id: HostId) -> shapes.HostExplained:
        """What the host would be given if it called now, and why not more."""
        return await explain_host(self._store, self._clock, self._live, host_id)

    async def batch(self, batch_id: BatchId, *, hosts: int = SAMPLE_HOSTS) -> shapes.BatchExplained:
        """What holds the batch back; so many hosts that called last are asked."""
        return await explain_batch(self._store, self._clock, batch_id, hosts=hosts)

    async def job(self, job_id: JobId, *, hosts: int = SAMPLE_HOSTS) -> shapes.JobExplained:
        """Why the job's unsent instances wait; likewise."""
        return await explain_job(self._store, self._clock, job_id, hosts=hosts)

    async def instance(self, instance_id: InstanceId, *, hosts: int = SAMPLE_HOSTS) -> shapes.InstanceExplained:
        """How the instance's due date came about, and what became of it; likewise why it waits, if it does."""
        return await explain_instance(self._store, self._clock, instance_id, hosts=hosts)
