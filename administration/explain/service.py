"""Returns explanations as JSON objects, for the command line and the API."""

from __future__ import annotations

from administration.attention.service import AttentionViews
from administration.explain.batch import explain_batch
from administration.explain.host import explain_host
from administration.explain.job import explain_instance, explain_job
from administration.thresholds.preview import KeptStandings
from domain.clock import Clock
from domain.units import BatchId, HostId, InstanceId, JobId
from feeder.array import JobArray
from muster_client import shapes
from store.postgres import PostgresStore


class Explain:
    """Makes scheduling decisions as dry runs. Changes neither the database nor a worker's array.

    In a worker, `live` is its job array, which dry runs for hosts use. All methods raise NotFoundError. `attention`
    keeps which versions fail, which explanations of batches say.
    """

    def __init__(
        self, store: PostgresStore, clock: Clock, live: JobArray | None = None, *, attention: AttentionViews
    ) -> None:
        self._store = store
        self._clock = clock
        self._live = live
        self._attention = attention
        self._standings = KeptStandings(store.insight)

    async def host(self, host_id: HostId) -> shapes.HostExplained:
        """Return which jobs the host would get if it contacted the server now, and why not more."""
        return await explain_host(self._store, self._clock, self._live, host_id)

    async def batch(self, batch_id: BatchId) -> shapes.BatchExplained:
        """Return what delays the batch, using dry runs for the hosts with the latest requests."""
        return await explain_batch(self._store, self._clock, self._attention, self._standings, batch_id)

    async def job(self, job_id: JobId) -> shapes.JobExplained:
        """Return why the job's unsent instances wait."""
        return await explain_job(self._store, self._clock, job_id)

    async def instance(self, instance_id: InstanceId) -> shapes.InstanceExplained:
        """Return how the instance's due date was set, and its outcome or why it waits."""
        return await explain_instance(self._store, self._clock, instance_id)
