"""Pages for monitoring and load balancers: /metrics, /healthz, /readyz and /duties."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version

import msgspec
from aiohttp import web

from administration.access.sign_in import Networks, address_of
from domain.clock import Clock
from domain.formatting import in_words
from domain.units import Instant, Seconds
from feeder.refill import Refill
from runtime.metrics.catalogue import DUTY_OVERDUE
from runtime.metrics.metrics_store import FRESH_S, MetricReading, MetricsStore, exposition, together

KEPT_S = Seconds(1.0)  # how long a response is cached
ARRAY_STALE_S = Seconds(30.0)

Troubles = Callable[[], Mapping[str, str]]  # a sentence per subject with a problem
Refuses = Callable[[web.Request], str | None]  # why a client may not read metrics; None if it may


class StatusPages:
    """The pages on which each process reports about its whole node. Without `refuses`, all clients may read metrics."""

    def __init__(
        self, board: MetricsStore, troubles: Troubles, clock: Clock, *, refuses: Refuses | None = None
    ) -> None:
        self._board = board
        self._troubles = troubles
        self._clock = clock
        self._refuses = refuses
        self._kept: dict[str, tuple[float, bytes, str]] = {}

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/metrics", self.metrics),
            web.get("/healthz", self.health),
            web.get("/readyz", self.readiness),
            web.get("/duties", self.duties),
        ]

    async def metrics(self, request: web.Request) -> web.Response:
        """Return the metrics of the node's processes, at most a few seconds old, or 403 without permission."""
        refusal = self._refuses(request) if self._refuses is not None else None
        if refusal is not None:
            return web.Response(status=403, text=f"{refusal}\n")
        body, content_type = self._text(request.headers.get("Accept", ""))
        return web.Response(body=body, headers={"Content-Type": content_type})

    async def health(self, request: web.Request) -> web.Response:
        return _json(200, {"healthy": True})

    async def readiness(self, request: web.Request) -> web.Response:
        """Return 200, or 503 with a reason for each problem."""
        troubles = dict(self._troubles())
        return _json(503 if troubles else 200, {"ready": not troubles, "troubles": troubles})

    async def duties(self, request: web.Request) -> web.Response:
        """Return 200, or 503 with a reason for each periodic task that is overdue in the cluster."""
        troubles = duty_troubles(self._board.all(), self._clock.now())
        return _json(503 if troubles else 200, {"in_time": not troubles, "troubles": troubles})

    def _text(self, accept: str) -> tuple[bytes, str]:
        asked_s = self._clock.monotonic()
        accept = "openmetrics" if "openmetrics" in accept else ""  # so that at most two responses are cached
        kept = self._kept.get(accept)
        if kept is None or asked_s - kept[0] >= KEPT_S:
            wanted = "application/openmetrics-text; version=1.0.0" if accept else ""
            kept = (asked_s, *exposition(self._board.all(), self._clock.now(), wanted))
            self._kept[accept] = kept
        return kept[1], kept[2]


class Readers:
    """Restricts metrics on a public port to the networks that `listed()` currently returns."""

    def __init__(self, listed: Callable[[], str]) -> None:
        self._listed = listed
        self._networks = Networks(setting="server.metrics_networks")

    def refusal(self, request: web.Request) -> str | None:
        """Return why the client may not read metrics, or None."""
        listed, address = self._listed(), address_of(request)
        self._networks.follow(listed)
        if self._networks.has(address):
            return None
        return (
            f"metrics are only for {listed or 'no network'} (server.metrics_networks); this request is from {address}"
        )


def worker_troubles(refuses: str | None, last_refill: Refill | None, now: Instant) -> dict[str, str]:
    """Return what prevents a worker from sending work: its database, its clock, or a stale job array."""
    troubles = {"work": refuses} if refuses is not None else {}
    if last_refill is None:
        troubles["job array"] = "never filled"
    elif (age_s := now - last_refill.started_at) > ARRAY_STALE_S:
        troubles["job array"] = f"last filled {in_words(age_s)} ago, expected every few seconds"
    return troubles


def node_troubles(ready: Mapping[str, bool], heard_at: Mapping[str, float], now: Instant) -> dict[str, str]:
    """Return which of a node's processes are not running or not reporting.

    >>> node_troubles({"worker 0": False, "background": True}, {"background": 0.0}, Instant(20.0))
    {'worker 0': 'not running or not ready yet', 'background': 'no report for 20 s'}
    """
    troubles: dict[str, str] = {}
    for name, is_ready in ready.items():
        if not is_ready:
            troubles[name] = "not running or not ready yet"
        elif name in heard_at and (silent_s := now - heard_at[name]) > FRESH_S:
            troubles[name] = f"no report for {in_words(silent_s)}"
    return troubles


def duty_troubles(readings: Sequence[MetricReading], now: Instant) -> dict[str, str]:
    """Return which periodic tasks are overdue, as last read by this node's workers.

    >>> late_s = [("sweeper", 0.0), ("gates", 70.0)]
    >>> taken = tuple((DUTY_OVERDUE.name, (duty,), (late,)) for duty, late in late_s)
    >>> duty_troubles([MetricReading("worker 0", 0.0, taken)], Instant(2.0))
    {'gates': 'overdue by 70 s'}
    """
    found = together(readings, now).get(DUTY_OVERDUE)
    if found is None:
        return {"duties": "no worker of this node has read the state of the periodic tasks"}
    late = {labels[0]: Seconds(value[0]) for labels, value in sorted(found.items()) if value[0] > 0.0}
    return {duty: f"overdue by {in_words(late_s)}" for duty, late_s in late.items()}


def _json(status: int, value: object) -> web.Response:
    return web.Response(status=status, body=msgspec.json.encode(value), content_type="application/json")


@cache
def muster_version() -> str:
    """Return the installed version, or "unknown" if Muster is not installed."""
    try:
        return version("muster")
    except PackageNotFoundError:
        return "unknown"
