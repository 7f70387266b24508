"""The pages for monitoring and load balancers: /metrics, /healthz, /readyz and /duties; what each process measures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version

import msgspec
from aiohttp import web

from administration.access.sign_in import Networks, address_of
from administration.catalogue import CatalogueCache
from domain.clock import Clock
from domain.formatting import in_words
from domain.units import Instant, Seconds
from feeder.refill import Refill
from feeder.service import Feeder
from runtime.counters import RefillCounters, RequestCounters
from runtime.guards import ClockCheck, NodePauses
from runtime.logs import PageCounters
from runtime.metrics import sources
from runtime.metrics.catalogue import DUTY_OVERDUE
from runtime.metrics.cluster import Cluster
from runtime.metrics.metrics_store import FRESH_S, MetricReading, MetricsStore, exposition, together
from runtime.metrics.sources import Reporter
from runtime.periodic_tasks import DutyWatch, PeriodicTask
from store.locks import PostgresShards
from store.postgres import PostgresStore

KEPT_S = Seconds(1.0)  # an answer serves for so long, whoever asks
ARRAY_STALE_S = Seconds(30.0)

Troubles = Callable[[], Mapping[str, str]]  # by what is in trouble, a sentence that says how
Refuses = Callable[[web.Request], str | None]  # why somebody may not read metrics; None: who asks may


class StatusPages:
    """The pages of one process, about its whole node. Without `refuses` anybody reads metrics."""

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


def duty_troubles(readings: Sequence[MetricReading], now: Instant) -> dict[str, str]:
    """Which duties are overdue, as the workers of this node last read it. Pure.

    >>> late_s = [("sweeper", 0.0), ("gates", 70.0)]
    >>> taken = tuple((DUTY_OVERDUE.name, (duty,), (late,)) for duty, late in late_s)
    >>> duty_troubles([MetricReading("worker 0", 0.0, taken)], Instant(2.0))
    {'gates': 'it should have been done 70 s ago'}
    """
    found = together(readings, now).get(DUTY_OVERDUE)
    if found is None:
        return {"duties": "no worker of this node knows of any duty"}
    late = {labels[0]: Seconds(value[0]) for labels, value in sorted(found.items()) if value[0] > 0.0}
    return {duty: f"it should have been done {in_words(late_s)} ago" for duty, late_s in late.items()}


def _json(status: int, value: object) -> web.Response:
    return web.Response(status=status, body=msgspec.json.encode(value), content_type="application/json")


@cache
def muster_version() -> str:
    """As installed; "unknown" of a copy that is not."""
    try:
        return version("muster")
    except PackageNotFoundError:
        return "unknown"


class WorkerStatus:
    """What a request worker measures, and the pages that tell it."""

    def __init__(
        self,
        name: str,
        board: MetricsStore,
        *,
        store: PostgresStore,
        shards: PostgresShards,
        feeder: Feeder,
        catalogue: CatalogueCache,
        clock_check: ClockCheck,
        pauses: NodePauses,
        requests: RequestCounters,
        refills: RefillCounters,
        pages: PageCounters,
        watch: DutyWatch,
        clock: Clock,
    ) -> None:
        self.watch = watch
        self.reporter = Reporter(
            name,
            board,
            (
                sources.of_process(clock.now(), muster_version()),
                lambda: sources.of_requests(requests),
                lambda: sources.of_pages(pages),
                lambda: sources.of_array(feeder, catalogue.catalogue()),
                lambda: sources.of_refills(feeder, refills, clock.now()),
                lambda: sources.of_cut_points(catalogue.catalogue(), clock.now()),
                lambda: sources.of_store(store.figures),
                lambda: sources.of_overdue(watch),
                lambda: sources.of_node(pauses, clock_check, shards, clock.now()),
            ),
            clock,
        )
        self.pages = StatusPages(
            board,
            lambda: worker_troubles(pauses.refuse_work_because(clock.now()), feeder.last, clock.now()),
            clock,
            refuses=Readers(lambda: catalogue.catalogue().settings.server.metrics_networks).refusal,
        )


class BackgroundStatus:
    """What the background process measures, of itself and of the whole project."""

    def __init__(
        self, board: MetricsStore, *, store: PostgresStore, duties: Sequence[PeriodicTask], clock: Clock
    ) -> None:
        self.cluster = Cluster(store.insight, store.listings, store.generations, store.forecasts, store.figures, clock)
        self.reporter = Reporter(
            "background",
            board,
            (
                sources.of_process(clock.now(), muster_version()),
                lambda: sources.of_duties(duties),
                lambda: sources.of_store(store.figures),
                self.cluster.samples,
            ),
            clock,
        )
