"""Which work does every host refuse, and why? What workers met lately, by batch and kind of slot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from domain.errors import NotFoundError
from domain.listings import ProcessReport
from domain.refusals import RefusalCode
from domain.units import BatchId, Instant, later
from operations.console.desk import Desk
from operations.console.rendering import Page
from operations.pulse import SILENT_S

LIVE_S = 10
MOST_BATCHES = 50
Document = Mapping[str, Any]  # Any: a JSON document

ADVICE = {  # what to do about the most frequent reason
    RefusalCode.NO_APP_VERSION: "Add a version of the app for the platforms that ask.",
    RefusalCode.PLATFORM: "Add a version of the app for the platforms that ask.",
    RefusalCode.PLAN_CLASS: "Hosts lack what the plan class asks for; loosen it, or add a version for the CPU.",
    RefusalCode.MEMORY: "Jobs ask for more memory than hosts lend; ask for less.",
    RefusalCode.DISK: "Jobs ask for more disk than hosts lend; ask for less.",
    RefusalCode.CPUS: "Jobs ask for more CPUs than hosts have; ask for fewer.",
    RefusalCode.TOO_SLOW: "Hosts cannot return it within the delay bound; allow more time, or make jobs smaller.",
    RefusalCode.BELOW_GATE: "It waits for better hosts; look what a lower threshold would do.",
    RefusalCode.BETA: "The app is marked beta, and few volunteers take beta work.",
    RefusalCode.APP_NOT_SELECTED: "Volunteers have not chosen the app.",
    RefusalCode.NO_GPU: "Volunteers keep their GPUs for others, or have none.",
    RefusalCode.SAME_VOLUNTEER: "The job needs another volunteer's result; more volunteers help.",
    RefusalCode.SAME_HOST: "The job needs another host's result; more hosts help.",
    RefusalCode.HR_CLASS: "The job's other results came from another kind of machine; it waits for one like those.",
}


@dataclass(frozen=True, slots=True)
class Refused:
    """A kind of slot of a batch. `codes` count hosts by their latest reason, in the worker that met most of them."""

    batch_id: BatchId
    job_class_id: int
    urgent: bool
    waiting: int
    hosts: int
    codes: Sequence[tuple[str, int]]
    since_at: Instant
    rotated_out: bool

    @property
    def advice(self) -> str:
        """What to do about the most frequent reason."""
        first = self.codes[0][0] if self.codes else ""
        return ADVICE.get(RefusalCode(first), "") if first in list(RefusalCode) else ""


def refused_of(workers: Sequence[ProcessReport]) -> list[Refused]:
    """What workers refused alike, once, the longest first: a host calls any worker, so the fullest count is told.

    >>> row = {"batch_id": 7, "job_class_id": 1, "urgent": False, "waiting": 5, "codes": {"disk": 3}, "since_at": 10.0,
    ...        "hosts": 3, "rotated_out": False}
    >>> more = row | {"codes": {"disk": 4, "cpus": 5}, "hosts": 9, "since_at": 12.0}
    >>> reports = [ProcessReport("a", "worker", 0.0, {"unrunnable": [one]}) for one in (row, more)]
    >>> [(one.batch_id, one.hosts, one.codes, one.since_at) for one in refused_of(reports)]
    [(7, 9, (('cpus', 5), ('disk', 4)), 10.0)]
    """
    found: dict[tuple[int, int, bool], Refused] = {}
    for worker in workers:
        report: Document = worker.report
        for row in report["unrunnable"]:
            key = (row["batch_id"], row["job_class_id"], row["urgent"])
            known = found.get(key)
            codes = tuple(sorted(row["codes"].items(), key=lambda item: (-item[1], item[0])))
            fuller = known is None or row["hosts"] > known.hosts
            found[key] = Refused(
                BatchId(row["batch_id"]),
                row["job_class_id"],
                row["urgent"],
                max(row["waiting"], known.waiting if known else 0),
                row["hosts"] if fuller or known is None else known.hosts,
                codes if fuller or known is None else known.codes,
                Instant(min(row["since_at"], known.since_at if known else row["since_at"])),
                row["rotated_out"] or (known is not None and known.rotated_out),
            )
    return sorted(found.values(), key=lambda one: (one.since_at, one.batch_id, one.job_class_id, one.urgent))


class NobodyPage:
    """The report."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/nobody", self.show, name="nobody")]

    async def show(self, request: web.Request) -> web.Response:
        now, store = self._desk.clock.now(), self._desk.store
        processes = await store.process_reports.since(later(now, -SILENT_S))
        refused = refused_of([one for one in processes if one.kind == "worker"])
        batches = {}
        for batch_id in list(dict.fromkeys(one.batch_id for one in refused))[:MOST_BATCHES]:
            try:
                batches[batch_id] = await store.views.batch(batch_id)
            except NotFoundError:
                continue
        ranking = self._desk.catalogue.settings.feeder
        values: dict[str, object] = {"refused": refused, "batches": batches, "feeder": ranking}
        return self._desk.show(request, Page("nobody.html", "Nobody can run", "nobody", values=values, every_s=LIVE_S))
