"""The quotas that computers of an account and at an address share, and how many new hosts they brought today."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from domain.quotas import KEPT_DAYS, QuotaGrant, QuotaRequest, SharedQuota, grants, moved, names_of
from domain.units import HostId, VolunteerId


@dataclass(slots=True)
class _Quota:
    day: int
    earned: int = 0
    sent: int = 0


class SharedQuotas:
    """As store/quotas.py has them in PostgreSQL."""

    def __init__(self) -> None:
        self._quotas: dict[str, _Quota] = {}
        self._networks: dict[HostId, str] = {}
        self._last_day = 0

    def network(self, host_id: HostId) -> str:
        """Where the host last drew on them."""
        return self._networks.get(host_id, "")

    def drawn_on(self, volunteer_id: VolunteerId, network: str) -> tuple[SharedQuota, ...]:
        """The quotas of an account and an address, as far as they were drawn on."""
        return tuple(
            [
                SharedQuota(name, quota.earned, quota.day, quota.sent)
                for name in names_of(volunteer_id, network)
                if (quota := self._quotas.get(name)) is not None
            ]
        )

    def reserve(self, request: QuotaRequest, start: int) -> QuotaGrant:
        """Charge what the quotas allow, and note where the host asked from."""
        self._networks[request.host_id] = request.network
        if request.day > self._last_day:
            self._forget(request.day - KEPT_DAYS)
            self._last_day = request.day
        used = []
        for name in request.names:
            quota = self._quotas.setdefault(name, _Quota(request.day))
            if quota.day < request.day:
                quota.day, quota.sent = request.day, 0
            used.append(SharedQuota(name, quota.earned, quota.day, quota.sent))
        [found], charges = grants([request], used, start)
        for name, jobs in charges.items():
            self._quotas[name].sent += jobs
        return found

    def _forget(self, before: int) -> None:
        """Those that no host drew on since that day."""
        for name in [name for name, quota in self._quotas.items() if quota.day < before]:
            del self._quotas[name]

    def release(self, request: QuotaRequest, unused: int) -> None:
        """Count so many fewer jobs as sent on the day of the request."""
        for name in request.names:
            quota = self._quotas.get(name)
            if quota is not None and quota.day == request.day:
                quota.sent = max(0, quota.sent - unused)

    def earn(self, added: Mapping[HostId, int], volunteers: Mapping[HostId, VolunteerId], start: int) -> None:
        """Move the quotas of hosts' accounts and addresses by what their results earned."""
        changes = [(volunteers[host_id], self.network(host_id), jobs) for host_id, jobs in added.items()]
        names = {name for volunteer_id, network, _ in changes for name in names_of(volunteer_id, network)}
        known = {name: self._quotas[name].earned for name in names if name in self._quotas}
        for name, earned in moved(known, changes, start).items():
            self._quotas[name].earned = earned
