"""Builds every explanation as a JSON object, for the command line and the API."""

from __future__ import annotations

from administration.explain.batch import explain_batch
from administration.explain.host import explain_host
from administration.explain.job import explain_instance, explain_job
from administration.explain.sample import SAMPLE_HOSTS
from domain.clock import Clock
from domain.units import BatchId, HostId, InstanceId, JobId
from feeder.array import JobArray
from muster_client import shapes
from store.postgres import PostgresStore


class Explain:
    """Runs scheduling decisions dry. Changes neither the database nor a worker's array.

    In a worker, `live` is its job array, on which hosts' dry runs decide. Every method raises NotFoundError.
    """

    def __init__(self, store: PostgresStore, clock: Clock, live: JobArray | None = None) -> None:
        self._store = store
        self._clock = clock
        self._live = live

    async def host(self, host_id: HostId) -> shapes.HostExplained:
        """Return what the host would be sent if it called now, and why not more."""
        return await explain_host(self._store, self._clock, self._live, host_id)

    async def batch(self, batch_id: BatchId, *, hosts: int = SAMPLE_HOSTS) -> shapes.BatchExplained:
        """Return what delays the batch, by a dry run for the `hosts` that called last."""
        return await explain_batch(self._store, self._clock, batch_id, hosts=hosts)

    async def job(self, job_id: JobId, *, hosts: int = SAMPLE_HOSTS) -> shapes.JobExplained:
        """Return why the job's unsent instances wait."""
        return await explain_job(self._store, self._clock, job_id, hosts=hosts)

    async def instance(self, instance_id: InstanceId, *, hosts: int = SAMPLE_HOSTS) -> shapes.InstanceExplained:
        """Return how the instance's due date was set, its outcome, or why it waits."""
        return await explain_instance(self._store, self._clock, instance_id, hosts=hosts)
