"""Which instances were taken from the array while the outcome of their dispatch may still be open."""

from __future__ import annotations

from collections import Counter, deque

from domain.jobs import Ready
from domain.quick import quick_dataclass
from domain.units import BatchId, HostId, InstanceId, JobId, Seconds, VolunteerId

IN_FLIGHT_S = Seconds(60.0)  # a dispatch is written or given up well within this


@quick_dataclass(frozen=True, slots=True)
class Taken:
    """An instance on its way to a host. `taken_s` is on the monotonic clock."""

    ready: Ready
    host_id: HostId
    volunteer_id: VolunteerId
    taken_s: Seconds


class InFlight:
    """Instances that must not be read again yet.

    An instance leaves when its dispatch is known to be committed or lost, when it is given back, or when it is
    older than IN_FLIGHT_S and the database was asked what became of it.
    """

    def __init__(self) -> None:
        self._taken: dict[InstanceId, Taken] = {}  # oldest first
        self._doubtful: dict[InstanceId, Taken] = {}  # given back while there was no room
        self._confirmed: dict[InstanceId, Taken] = {}  # settled, but rows read before may still name them
        self._returned: deque[Taken] = deque()  # given back, oldest first
        self._of_batch: Counter[BatchId] = Counter()

    def __len__(self) -> int:
        return len(self._taken) + len(self._doubtful) + len(self._confirmed)

    def __contains__(self, instance_id: InstanceId) -> bool:
        return instance_id in self._taken or instance_id in self._doubtful or instance_id in self._confirmed

    def of_batch(self, batch_id: BatchId) -> int:
        """How many instances of a batch are in flight."""
        return self._of_batch[batch_id]

    def add(self, taken: Taken) -> None:
        self.settle(taken.ready.instance_id)
        self._taken[taken.ready.instance_id] = taken
        self._of_batch[taken.ready.batch_id] += 1

    def give_back(self, instance_id: InstanceId, now_s: Seconds, *, room: bool) -> Taken | None:
        """The instance that comes back; None when it is not in flight.

        Without room in the array it stays here until the database is asked about it.
        """
        taken = self._taken.pop(instance_id, None)
        if taken is None:
            return None
        self._returned.append(Taken(taken.ready, taken.host_id, taken.volunteer_id, now_s))
        if room:
            self._leave(taken)
        else:
            self._doubtful[instance_id] = taken
        return taken

    def due(self, now_s: Seconds, limit: int) -> list[Taken]:
        """At most `limit` instances the database should be asked about."""
        found = list(self._doubtful.values())[:limit]
        for taken in self._taken.values():
            if len(found) >= limit or taken.taken_s > now_s - IN_FLIGHT_S:
                break
            found.append(taken)
        return found

    def confirm(self, instance_id: InstanceId) -> Taken | None:
        """The instance's fate is known, but it must be remembered a little longer; None when it is not in flight."""
        taken = self._taken.pop(instance_id, None) or self._doubtful.pop(instance_id, None)
        if taken is not None:
            self._confirmed[instance_id] = taken
        return taken

    def confirmed(self) -> list[InstanceId]:
        """Instances whose fate is known."""
        return list(self._confirmed)

    def settle(self, instance_id: InstanceId) -> Taken | None:
        """Forget an instance; None when it is not in flight any more."""
        taken = self._taken.pop(instance_id, None) or self._doubtful.pop(instance_id, None)
        taken = taken or self._confirmed.pop(instance_id, None)
        if taken is not None:
            self._leave(taken)
        return taken

    def stale_notes(self, now_s: Seconds) -> list[tuple[JobId, HostId, VolunteerId]]:
        """Hosts whose dispatch came back IN_FLIGHT_S ago: they may be tried with that job again.

        Not at once: the reason may be that the host has a sibling, which only the database knew.
        """
        stale = []
        while self._returned and self._returned[0].taken_s <= now_s - IN_FLIGHT_S:
            taken = self._returned.popleft()
            stale.append((taken.ready.job_id, taken.host_id, taken.volunteer_id))
        return stale

    def _leave(self, taken: Taken) -> None:
        self._of_batch[taken.ready.batch_id] -= 1
        if not self._of_batch[taken.ready.batch_id]:
            del self._of_batch[taken.ready.batch_id]
