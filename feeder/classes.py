"""What the jobs of each class need, read once per class."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from domain.errors import NotFoundError
from domain.jobs import Candidate, JobClass
from domain.units import BatchId, JobClassId
from feeder.ports import WaitingWork


class Classes:
    """Job classes by id, kept while their batch has work."""

    def __init__(self, waiting: WaitingWork) -> None:
        self._waiting = waiting
        self._known: dict[JobClassId, JobClass] = {}

    async def of(self, candidates: Iterable[Candidate]) -> dict[JobClassId, JobClass]:
        """The classes of these instances. Raises NotFoundError."""
        wanted = {candidate.ready.job_class_id for candidate in candidates}
        missing = sorted(wanted - self._known.keys())
        classes = {job_class_id: self._known[job_class_id] for job_class_id in wanted - set(missing)}
        read = await self._waiting.job_classes(missing) if missing else {}
        for job_class_id in missing:
            if job_class_id not in read:
                raise NotFoundError("job class", job_class_id)
            classes[job_class_id] = self._known[job_class_id] = read[job_class_id]
        return classes

    def keep_batches(self, batch_ids: Collection[BatchId]) -> None:
        """Forget the classes of other batches."""
        for job_class_id in [key for key, known in self._known.items() if known.batch_id not in batch_ids]:
            del self._known[job_class_id]
