"""Limits by host and network: a host's request rate, and new computers per day of a volunteer or network.

Known computers do not count as new.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import structlog

from administration.access.sign_in import ASKED_FROM, Networks, network_of
from domain.clock import Clock
from domain.errors import TooManyHostsError
from domain.settings import ServerSettings
from domain.units import DAY_S, Seconds, VolunteerId
from web.rate_limit import Buckets


class HostLimit:
    """Limits the scheduler requests of each host; `settings()` returns the current settings."""

    def __init__(self, buckets: Buckets, settings: Callable[[], ServerSettings]) -> None:
        self._buckets = buckets
        self._settings = settings

    def wait_s(self, authenticator: str, host_id: int) -> Seconds:
        """Return the seconds to wait; 0 means that the host may send a request now."""
        settings = self._settings()
        return self._buckets.wait_s(
            (authenticator, host_id), per_s=settings.host_requests_per_s, burst=settings.host_burst
        )


log = structlog.get_logger()


class ArrivalCounts(Protocol):
    async def arrive(self, day: int, most: Mapping[str, int]) -> str | None:
        """Count a new host under each key in `most`, or return the first key at its limit and count nothing."""
        ...


class NewcomerLimit:
    """Limits new hosts per day (UTC). `settings()` returns the current settings."""

    def __init__(self, arrivals: ArrivalCounts, settings: Callable[[], ServerSettings], clock: Clock) -> None:
        self._arrivals = arrivals
        self._settings = settings
        self._clock = clock
        self._proxies = Networks()

    async def admit(self, volunteer_id: VolunteerId) -> None:
        """Count a new host. Raises TooManyHostsError, without counting, if there were too many today."""
        settings = self._settings()
        most = {f"volunteer {volunteer_id}": settings.volunteer_new_hosts} if settings.volunteer_new_hosts else {}
        address, network = ASKED_FROM.get(), self.network()
        if network and settings.address_new_hosts:
            most[f"address {network}"] = settings.address_new_hosts
        if not most:
            return
        full = await self._arrivals.arrive(int(self._clock.now() // DAY_S), most)
        if full is not None:
            log.info("too many new hosts", volunteer_id=volunteer_id, address=address, full=full, most=most[full])
            kind = "account" if full.startswith("volunteer") else "address"
            raise TooManyHostsError(
                f"this {kind} has reached its limit of new computers per day ({most[full]}). "
                "Your client tries again tomorrow"
            )

    def network(self) -> str:
        """Return the network of the current request: an IPv4 address or IPv6 /64, empty for a trusted proxy."""
        self._proxies.follow(self._settings().trusted_proxies)
        address = ASKED_FROM.get()
        return network_of(address) if address and not self._proxies.has(address) else ""
