"""Which work does every host refuse, and why? What workers met lately, by batch and kind of slot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from domain.clock import Clock
from domain.listings import ProcessReport
from domain.refusals import RefusalCode
from domain.units import BatchId, Instant, later
from operations.pulse import SILENT_S

Document = Mapping[str, Any]  # Any: a JSON document

ADVICE = {  # what to do about the most frequent reason
    RefusalCode.NO_APP_VERSION: "Add a version of the app for the platforms that ask.",
    RefusalCode.PLATFORM: "Add a version of the app for the platforms that ask.",
    RefusalCode.PLAN_CLASS: "Hosts lack what the plan class asks for; loosen it, or add a version for the CPU.",
    RefusalCode.MEMORY: "Jobs ask for more memory than hosts lend; ask for less.",
    RefusalCode.DISK: "Jobs ask for more disk than hosts lend; ask for less.",
    RefusalCode.CPUS: "Jobs ask for more CPUs than hosts have; ask for fewer.",
    RefusalCode.TOO_SLOW: "Hosts cannot return it within the delay bound; allow more time (more than "
    "deadline.min_slack_s in any case), or make jobs smaller.",
    RefusalCode.BELOW_GATE: "It waits for better hosts; look what a lower threshold would do.",
    RefusalCode.BETA: "The app is marked beta, and few volunteers take beta work.",
    RefusalCode.APP_NOT_SELECTED: "Volunteers have not chosen the app.",
    RefusalCode.NO_GPU: "Volunteers keep their GPUs for others, or have none.",
    RefusalCode.NO_CPU: "Volunteers keep their CPUs for others; a version for GPUs would be taken.",
    RefusalCode.SAME_VOLUNTEER: "The job needs another volunteer's result; more volunteers help.",
    RefusalCode.SAME_HOST: "The job needs another host's result; more hosts help.",
    RefusalCode.HR_CLASS: "The job's other results came from another kind of machine; it waits for one like those.",
}


class Reports(Protocol):
    async def since(self, at: Instant) -> Sequence[ProcessReport]: ...


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


def refused_as_json(one: Refused) -> dict[str, object]:
    """What nobody can run, with what to do about it; `codes`: how many hosts, by their latest reason."""
    return {
        "batch_id": one.batch_id,
        "job_class_id": one.job_class_id,
        "urgent": one.urgent,
        "waiting": one.waiting,
        "hosts": one.hosts,
        "codes": dict(one.codes),
        "since_at": one.since_at,
        "rotated_out": one.rotated_out,
        "advice": one.advice,
    }


async def refused_lately(reports: Reports, clock: Clock) -> list[dict[str, object]]:
    """What the workers that are there say that nobody can run, as JSON."""
    processes = await reports.since(later(clock.now(), -SILENT_S))
    return [refused_as_json(one) for one in refused_of([one for one in processes if one.kind == "worker"])]
