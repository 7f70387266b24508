"""How soon may a host call again? Satisfies the scheduler's RequestLimit.

A bucket belongs to an account key and a host id together, so nobody without the key can use up a host's.
"""

from __future__ import annotations

from collections.abc import Callable

from domain.settings import ServerSettings
from domain.units import Seconds
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
