"""Tracks instances in flight (taken, but not yet committed), and which hosts have an instance of each job."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable

from domain.jobs import Ready
from domain.quick import quick_dataclass
from domain.refusals import RefusalCode
from domain.units import BatchId, HostId, InstanceId, JobId, Seconds, VolunteerId

IN_FLIGHT_S = Seconds(60.0)  # a dispatch is committed or abandoned well within this time


@quick_dataclass(frozen=True, slots=True)
class Taken:
    """An instance being sent to a host. `taken_s` is a monotonic time."""

    ready: Ready
    host_id: HostId
    volunteer_id: VolunteerId
    taken_s: Seconds


class InFlight:
    """Instances that must not be read again for the time being.

    An instance leaves when its dispatch is known to be committed or lost, when it is given back, or when it was
    revalidated in the database after IN_FLIGHT_S.
    """

    def __init__(self) -> None:
        self._taken: dict[InstanceId, Taken] = {}  # oldest first
        self._doubtful: dict[InstanceId, Taken] = {}  # given back while the array was full
        self._confirmed: dict[InstanceId, Taken] = {}  # dispatched or lost, but rows read earlier may contain them
        self._returned: deque[Taken] = deque()  # given back, oldest first
        self._of_batch: Counter[BatchId] = Counter()

    def __len__(self) -> int:
        return len(self._taken) + len(self._doubtful) + len(self._confirmed)

    def __contains__(self, instance_id: InstanceId) -> bool:
        return instance_id in self._taken or instance_id in self._doubtful or instance_id in self._confirmed

    def of_batch(self, batch_id: BatchId) -> int:
        """Return the number of a batch's instances in flight."""
        return self._of_batch[batch_id]

    def add(self, taken: Taken) -> None:
        self.remove(taken.ready.instance_id)
        self._taken[taken.ready.instance_id] = taken
        self._of_batch[taken.ready.batch_id] += 1

    def give_back(self, instance_id: InstanceId, now_s: Seconds, *, room: bool) -> Taken | None:
        """Return the instance given back, or None if it was not in flight.

        If the array is full, the instance remains in flight until it is revalidated.
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
        """Return at most `limit` instances to be revalidated in the database."""
        found = list(self._doubtful.values())[:limit]
        for taken in self._taken.values():
            if len(found) >= limit or taken.taken_s > now_s - IN_FLIGHT_S:
                break
            found.append(taken)
        return found

    def confirm(self, instance_id: InstanceId) -> Taken | None:
        """Record that the instance's outcome is known, but keep the instance for now. Return None if not in flight."""
        taken = self._taken.pop(instance_id, None) or self._doubtful.pop(instance_id, None)
        if taken is not None:
            self._confirmed[instance_id] = taken
        return taken

    def confirmed(self) -> list[InstanceId]:
        """Return the instances whose outcome is known."""
        return list(self._confirmed)

    def remove(self, instance_id: InstanceId) -> Taken | None:
        """Forget an instance and return it, or None if it is no longer in flight."""
        taken = self._taken.pop(instance_id, None) or self._doubtful.pop(instance_id, None)
        taken = taken or self._confirmed.pop(instance_id, None)
        if taken is not None:
            self._leave(taken)
        return taken

    def stale_notes(self, now_s: Seconds) -> list[tuple[JobId, HostId, VolunteerId]]:
        """Return the hosts whose dispatch was given back IN_FLIGHT_S ago, which may get that job again.

        They must wait, because the host may have a sibling that only the database knows of.
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


class _Known:
    """The hosts with instances of one job, and the reference count of the job."""

    __slots__ = ("hosts", "instances", "volunteers")

    def __init__(self) -> None:
        self.hosts: tuple[HostId, ...] = ()
        self.volunteers: tuple[VolunteerId, ...] = ()
        self.instances = 0


class SiblingIndex:
    """Index of hosts and volunteers by job, kept while an instance of the job is in the array or in flight."""

    def __init__(self) -> None:
        self._jobs: dict[JobId, _Known] = {}

    def __len__(self) -> int:
        return len(self._jobs)

    def hold(self, job_id: JobId) -> None:
        """Increment the job's reference count."""
        known = self._jobs.get(job_id)
        if known is None:
            known = self._jobs[job_id] = _Known()
        known.instances += 1

    def release(self, job_id: JobId) -> None:
        """Decrement the job's reference count, and forget the job when it reaches 0."""
        known = self._jobs[job_id]
        known.instances -= 1
        if known.instances == 0:
            del self._jobs[job_id]

    def note(self, job_id: JobId, hosts: Iterable[HostId], volunteers: Iterable[VolunteerId]) -> None:
        """Record hosts that have instances of a job. Ignored for jobs without references."""
        known = self._jobs.get(job_id)
        if known is None:
            return
        new_hosts = tuple(host for host in hosts if host not in known.hosts)
        new_volunteers = tuple(volunteer for volunteer in volunteers if volunteer not in known.volunteers)
        if new_hosts:
            known.hosts += new_hosts
        if new_volunteers:
            known.volunteers += new_volunteers

    def forget(self, job_id: JobId, host_id: HostId, volunteer_id: VolunteerId) -> None:
        """Remove a host that does not have an instance of the job after all."""
        known = self._jobs.get(job_id)
        if known is not None:
            known.hosts = tuple(host for host in known.hosts if host != host_id)
            known.volunteers = tuple(volunteer for volunteer in known.volunteers if volunteer != volunteer_id)

    def refusal(self, job_id: JobId, host_id: HostId, volunteer_id: VolunteerId) -> RefusalCode | None:
        """Return why the host may not get the job (it or its volunteer has an instance), or None if it may."""
        known = self._jobs.get(job_id)
        if known is None:
            return None
        if host_id in known.hosts:
            return RefusalCode.SAME_HOST
        if volunteer_id in known.volunteers:
            return RefusalCode.SAME_VOLUNTEER
        return None
