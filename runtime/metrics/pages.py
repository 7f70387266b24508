"""What a monitoring system and a load balancer ask: /metrics, /healthz, /readyz and /duties.

/healthz says that the process answers at all: when it does not, start it anew. /readyz says whether it can do what it
is for, with the reasons why not: send requests elsewhere meanwhile. /duties says which background duties no node does
in time: alert an operator. A load balancer must not ask that: duties are the cluster's, and it would drop every node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec
from aiohttp import web

from administration.access.addresses import Networks, address_of
from domain.clock import Clock
from domain.formatting import in_words
from domain.units import Instant, Seconds
from feeder.refill import Refill
from runtime.metrics.board import Board
from runtime.metrics.catalogue import DUTY_OVERDUE
from runtime.metrics.exposition import exposition
from runtime.metrics.readings import FRESH_S, Reading, together

KEPT_S = Seconds(1.0)  # an answer serves for so long, whoever asks
ARRAY_STALE_S = Seconds(30.0)

Troubles = Callable[[], Mapping[str, str]]  # by what is in trouble, a sentence that says how
Refuses = Callable[[web.Request], str | None]  # why somebody may not read metrics; None: who asks may


class StatusPages:
    """The pages of one process, about its whole node. Without `refuses` anybody reads metrics."""

    def __init__(self, board: Board, troubles: Troubles, clock: Clock, *, refuses: Refuses | None = None) -> None:
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
        """What the node's processes measured, put together; at most a few seconds old. 403 for who may not read it."""
        refusal = self._refuses(request) if self._refuses is not None else None
        if refusal is not None:
            return web.Response(status=403, text=f"{refusal}\n")
        body, content_type = self._text(request.headers.get("Accept", ""))
        return web.Response(body=body, headers={"Content-Type": content_type})

    async def health(self, request: web.Request) -> web.Response:
        return _json(200, {"healthy": True})

    async def readiness(self, request: web.Request) -> web.Response:
        """200, or 503 with a reason for each thing that is in trouble."""
        troubles = dict(self._troubles())
        return _json(503 if troubles else 200, {"ready": not troubles, "troubles": troubles})

    async def duties(self, request: web.Request) -> web.Response:
        """200, or 503 with a reason for each duty that no process of the cluster does in time."""
        troubles = duty_troubles(self._board.all(), self._clock.now())
        return _json(503 if troubles else 200, {"in_time": not troubles, "troubles": troubles})

    def _text(self, accept: str) -> tuple[bytes, str]:
        asked_s = self._clock.monotonic()
        accept = "openmetrics" if "openmetrics" in accept else ""  # two kinds of answer to keep, whatever is asked
        kept = self._kept.get(accept)
        if kept is None or asked_s - kept[0] >= KEPT_S:
            wanted = "application/openmetrics-text; version=1.0.0" if accept else ""
            kept = (asked_s, *exposition(self._board.all(), self._clock.now(), wanted))
            self._kept[accept] = kept
        return kept[1], kept[2]


class Readers:
    """Who may read metrics on a port that is open to everybody: the networks that `listed()` has at the moment."""

    def __init__(self, listed: Callable[[], str]) -> None:
        self._listed = listed
        self._networks = Networks(setting="server.metrics_networks")

    def refusal(self, request: web.Request) -> str | None:
        """None, or why whoever asks may not."""
        listed, address = self._listed(), address_of(request)
        self._networks.follow(listed)
        if self._networks.has(address):
            return None
        return f"metrics are for {listed or 'nobody'} here (server.metrics_networks), and this is {address}"


def worker_troubles(refuses: str | None, last_refill: Refill | None, now: Instant) -> dict[str, str]:
    """What keeps a request worker from giving out work: its database or clock, or an array nobody fills. Pure."""
    troubles = {"work": refuses} if refuses is not None else {}
    if last_refill is None:
        troubles["job array"] = "it was never filled"
    elif (age_s := now - last_refill.started_at) > ARRAY_STALE_S:
        troubles["job array"] = f"it was last filled {in_words(age_s)} ago, expected every few seconds"
    return troubles


def node_troubles(ready: Mapping[str, bool], heard_at: Mapping[str, float], now: Instant) -> dict[str, str]:
    """Which of a node's processes do not run, or say nothing? Pure.

    >>> node_troubles({"worker 0": False, "background": True}, {"background": 0.0}, Instant(20.0))
    {'worker 0': 'it does not run, or is not ready yet', 'background': 'it has said nothing for 20 s'}
    """
    troubles: dict[str, str] = {}
    for name, is_ready in ready.items():
        if not is_ready:
            troubles[name] = "it does not run, or is not ready yet"
        elif name in heard_at and (silent_s := now - heard_at[name]) > FRESH_S:
            troubles[name] = f"it has said nothing for {in_words(silent_s)}"
    return troubles


def duty_troubles(readings: Sequence[Reading], now: Instant) -> dict[str, str]:
    """Which duties are overdue, as the workers of this node last read it. Pure.

    >>> late_s = [("sweeper", 0.0), ("gates", 70.0)]
    >>> taken = tuple((DUTY_OVERDUE.name, (duty,), (late,)) for duty, late in late_s)
    >>> duty_troubles([Reading("worker 0", 0.0, taken)], Instant(2.0))
    {'gates': 'it should have been done 70 s ago'}
    """
    found = together(readings, now).get(DUTY_OVERDUE)
    if found is None:
        return {"duties": "no worker of this node knows of any duty"}
    late = {labels[0]: Seconds(value[0]) for labels, value in sorted(found.items()) if value[0] > 0.0}
    return {duty: f"it should have been done {in_words(late_s)} ago" for duty, late_s in late.items()}


def _json(status: int, value: object) -> web.Response:
    return web.Response(status=status, body=msgspec.json.encode(value), content_type="application/json")
