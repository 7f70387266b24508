"""Limits per host and per newcomer: how soon a host may call again, how many new computers a volunteer may bring.

Known computers are not counted.
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
    """The scheduler requests of hosts; `settings()` are those of the moment."""

    def __init__(self, buckets: Buckets, settings: Callable[[], ServerSettings]) -> None:
        self._buckets = buckets
        self._settings = settings

    def wait_s(self, authenticator: str, host_id: int) -> Seconds:
        """0: it may ask now."""
        settings = self._settings()
        return self._buckets.wait_s(
            (authenticator, host_id), per_s=settings.host_requests_per_s, burst=settings.host_burst
        )


log = structlog.get_logger()


class ArrivalCounts(Protocol):
    async def arrive(self, day: int, most: Mapping[str, int]) -> str | None:
        """Count a new host of everybody in `most`, or of nobody: then who has brought as many as it may that day."""
        ...


class NewcomerLimit:
    """Satisfies the door's NewcomerLimit. Days are those of UTC; `settings()` are those of the moment."""

    def __init__(self, arrivals: ArrivalCounts, settings: Callable[[], ServerSettings], clock: Clock) -> None:
        self._arrivals = arrivals
        self._settings = settings
        self._clock = clock
        self._proxies = Networks()

    async def admit(self, volunteer_id: VolunteerId) -> None:
        """Count a new host. Raises TooManyHostsError, and counts nothing, where there were too many today."""
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
                f"this {kind} has added as many computers today as it may in a day ({most[full]}). "
                "Your client tries again tomorrow"
            )

    def network(self) -> str:
        """Where the request of this task comes from: an address, a /64 of IPv6; empty for a trusted proxy's own."""
        self._proxies.follow(self._settings().trusted_proxies)
        address = ASKED_FROM.get()
        return network_of(address) if address and not self._proxies.has(address) else ""
