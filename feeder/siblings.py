"""Which hosts and volunteers are known to have an instance of a job."""

from __future__ import annotations

from collections.abc import Iterable

from domain.refusals import RefusalCode
from domain.units import HostId, JobId, VolunteerId


class _Known:
    """Who has instances of one job, and how many of its instances the array still cares for."""

    __slots__ = ("hosts", "instances", "volunteers")

    def __init__(self) -> None:
        self.hosts: tuple[HostId, ...] = ()
        self.volunteers: tuple[VolunteerId, ...] = ()
        self.instances = 0


class Siblings:
    """Hosts and volunteers per job, kept while an instance of the job is in the array or in flight."""

    def __init__(self) -> None:
        self._jobs: dict[JobId, _Known] = {}

    def __len__(self) -> int:
        return len(self._jobs)

    def hold(self, job_id: JobId) -> None:
        """One more instance of the job is cared for."""
        known = self._jobs.get(job_id)
        if known is None:
            known = self._jobs[job_id] = _Known()
        known.instances += 1

    def release(self, job_id: JobId) -> None:
        """One instance less; with the last one the job is forgotten."""
        known = self._jobs[job_id]
        known.instances -= 1
        if known.instances == 0:
            del self._jobs[job_id]

    def note(self, job_id: JobId, hosts: Iterable[HostId], volunteers: Iterable[VolunteerId]) -> None:
        """Remember who has instances of a job; without effect on jobs nobody holds."""
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
        """The host turned out not to have an instance of the job."""
        known = self._jobs.get(job_id)
        if known is not None:
            known.hosts = tuple(host for host in known.hosts if host != host_id)
            known.volunteers = tuple(volunteer for volunteer in known.volunteers if volunteer != volunteer_id)

    def refusal(self, job_id: JobId, host_id: HostId, volunteer_id: VolunteerId) -> RefusalCode | None:
        """Why the job is not for this host: it or its volunteer has an instance of it; None when it may."""
        known = self._jobs.get(job_id)
        if known is None:
            return None
        if host_id in known.hosts:
            return RefusalCode.SAME_HOST
        if volunteer_id in known.volunteers:
            return RefusalCode.SAME_VOLUNTEER
        return None
