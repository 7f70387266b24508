"""The quotas that computers of an account and at an address share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from domain.quotas import KEPT_DAYS, QuotaGrant, QuotaRequest, bounds, grant, names_of
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
            used.append((name, quota.earned, quota.sent))
        found = grant(request, used, start)
        self.charge(request, found.granted)
        return found

    def _forget(self, before: int) -> None:
        """Those that nobody drew on since that day."""
        for name in [name for name, quota in self._quotas.items() if quota.day < before]:
            del self._quotas[name]

    def charge(self, request: QuotaRequest, jobs: int) -> None:
        """Count so many more jobs as sent, on the day of the request; less than 0 takes back."""
        for name in request.names:
            quota = self._quotas.get(name)
            if quota is not None and quota.day == request.day:
                quota.sent = max(0, quota.sent + jobs)

    def earn(self, added: Mapping[HostId, int], volunteers: Mapping[HostId, VolunteerId], start: int) -> None:
        """Add to the quotas of hosts what their results earned."""
        least, most = bounds(start)
        by_name: dict[str, int] = {}
        for host_id, jobs in added.items():
            for name in names_of(volunteers[host_id], self._networks.get(host_id, "")):
                by_name[name] = by_name.get(name, 0) + jobs
        for name, jobs in by_name.items():
            quota = self._quotas.get(name)
            if quota is not None:
                quota.earned = min(most, max(least, quota.earned + jobs))
