"""What does each process of a node say of itself? A few figures every 10 s, for people who look at the whole cluster.

They are kept in one row per process: `muster up` may have many workers on many machines, and a page is made by one.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import structlog

from domain.apps import CPU
from domain.catalogue import CatalogueSource
from domain.clock import Clock
from domain.errors import UnavailableError
from domain.listings import ProcessReport
from domain.units import AppId, Instant, Seconds, later
from feeder.array import JobArray
from feeder.groups import GroupKey
from feeder.rotation import Unrunnable
from operations.counters import RequestCounters
from operations.duty import Duty
from operations.failed_requests import FailedRequests, failures_of
from operations.request_ids import PageCounters

TELL_EVERY_S = Seconds(10.0)
KEPT = 61  # looks: ten minutes
RATES_OVER = 6  # looks: a minute
SILENT_S = Seconds(35.0)  # three times and a bit: such a process is gone
FORGOTTEN_S = Seconds(86_400.0)  # so long what a process said last is kept
MOST_UNRUNNABLE = 200  # told of, longest first
MOST_TAKEN = 2_000  # told of, latest first
MOST_HOSTS = 5_000  # told of by id, of the work that waits longest; of the rest there are counts

Document = Mapping[str, Any]  # Any: a JSON document

log = structlog.get_logger()


class Reports(Protocol):
    async def note(self, name: str, kind: str, report: Mapping[str, object], *, now: Instant) -> None: ...

    async def since(self, at: Instant) -> Sequence[ProcessReport]: ...


class WorkerPulse:
    """Figures of a request worker."""

    kind = "worker"

    def __init__(
        self,
        counters: RequestCounters,
        pages: PageCounters,
        array: JobArray,
        unrunnable: Callable[[], Sequence[Unrunnable]],
        source: CatalogueSource,
        clock: Clock,
        *,
        folder: str,
    ) -> None:
        """`folder` is the mark of the node's `files/`."""
        self._counters = counters
        self._pages = pages
        self._folder = folder
        self._array = array
        self._unrunnable = unrunnable
        self._source = source
        self._clock = clock
        self._started_at = clock.now()
        self._looks: deque[tuple[Instant, Counter[str], float]] = deque(maxlen=KEPT)
        self._refusals: deque[Counter[str]] = deque(maxlen=KEPT)
        self._failed = FailedRequests(self._started_at)

    def resume(self, earlier: Document) -> None:
        """Go on with what a worker of the same name told last."""
        if "failed" in earlier:
            self._failed.resume(earlier["failed"])

    def report(self) -> dict[str, object]:
        """As JSON. Rates are per second over the last minute, refusals of the last ten minutes."""
        now = self._clock.now()
        totals = Counter(self._counters.totals)
        self._looks.append((now, totals, self._counters.took_s))
        self._refusals.append(Counter({code.value: count for code, count in self._counters.refusals.items()}))
        self._failed.look(failures_of(totals, self._pages.replies), now)
        before_at, before, before_took_s = self._looks[max(0, len(self._looks) - 1 - RATES_OVER)]
        cool_off_s = self._source.catalogue().settings.feeder.cool_off_s
        lately, past_s = totals - before, max(now - before_at, 1e-9)
        answered = lately["requests"]
        return {
            "started_at": self._started_at,
            "files": self._folder,
            "totals": dict(sorted(totals.items())),
            "per_s": {name: lately[name] / past_s for name in ("requests", "sent", "reports")},
            "took_s": (self._counters.took_s - before_took_s) / answered if answered else None,
            "failed": self._failed.as_json(),
            "refusals": dict((self._refusals[-1] - self._refusals[0]).most_common()),
            "history": [
                [at, one["requests"], one["sent"], sum(count for name, count in one.items() if "status_" in name)]
                for at, one, _ in self._looks
            ],
            "slots": len(self._array),
            "slots_most": self._source.catalogue().settings.feeder.slots,
            "partitions": partitions(self._array, self._source, self._clock.monotonic()),
            "cool_off_s": cool_off_s,
            "unrunnable": unrunnable_as_json(self._unrunnable()),
            **taken_as_json(self._array.rotation.taken(), since=later(now, -cool_off_s)),
        }


def partitions(array: JobArray, source: CatalogueSource, now_s: Seconds) -> list[dict[str, object]]:
    """Slots by app and kind, with the processor types they can be run on and how many requests asked for these."""
    catalogue, mix = source.catalogue(), array.mix.weights(now_s=now_s)
    slots: dict[AppId, Counter[bool]] = {app_id: Counter() for app_id in catalogue.current}
    for group in array.each_group():
        slots.setdefault(group.batch.app_id, Counter())[group.urgent] += len(group)
    names = {app_id: app.name for app_id, app in catalogue.apps.items()}
    return [
        {
            "app": names.get(app_id, str(app_id)),
            "processor_type": kind,
            "urgent": counted[True],
            "fresh": counted[False],
            "asked": mix.get(kind, 0.0),
        }
        for app_id, counted in sorted(slots.items())
        for kind in sorted(catalogue.processor_types(app_id)) or [CPU]
    ]


def unrunnable_as_json(
    found: Sequence[Unrunnable], *, most: int = MOST_UNRUNNABLE, most_hosts: int = MOST_HOSTS
) -> list[dict[str, object]]:
    """Work that no host could take, longest first: its slots by shard, and the hosts by what they said.

    Hosts are named where there is still room for all of the work's, of so many ids in all; else they are only counted.

    >>> row = Unrunnable(7, 1, False, {3: 5}, {9: "disk", 8: "disk"}, Instant(1.0), False)
    >>> [(one["slots"], one["hosts"], one["refused_by"]) for one in unrunnable_as_json([row, row], most_hosts=3)]
    [({'3': 5}, 2, {'disk': [8, 9]}), ({'3': 5}, 2, {})]
    """
    shown = []
    for row in found[:most]:
        refused_by: dict[str, list[int]] = {}
        if row.hosts <= most_hosts:
            most_hosts -= row.hosts
            for host_id in sorted(row.refused_by):
                refused_by.setdefault(row.refused_by[host_id], []).append(host_id)
        shown.append(
            {
                "batch_id": row.batch_id,
                "job_class_id": row.job_class_id,
                "urgent": row.urgent,
                "waiting": row.waiting,
                "slots": {str(shard): count for shard, count in sorted(row.slots.items())},
                "hosts": row.hosts,
                "codes": dict(row.codes),
                "refused_by": refused_by,
                "since_at": row.since_at,
                "rotated_out": row.rotated_out,
            }
        )
    return shown


def taken_as_json(taken: Mapping[GroupKey, Instant], *, since: Instant, most: int = MOST_TAKEN) -> dict[str, object]:
    """When a host last took work of each kind, the latest first; whether some that was taken `since` is left out.

    >>> taken = {(7, 1, False): Instant(5.0), (8, 2, True): Instant(6.0)}
    >>> taken_as_json(taken, since=Instant(4.0))
    {'taken': [[8, 2, True, 6.0], [7, 1, False, 5.0]], 'taken_cut': False}
    >>> [taken_as_json(taken, since=Instant(at), most=1)["taken_cut"] for at in (5.0, 5.5)]
    [True, False]
    """
    latest = sorted(taken.items(), key=lambda item: (-item[1], item[0]))
    return {
        "taken": [[*key, at] for key, at in latest[:most]],
        "taken_cut": any(at >= since for _, at in latest[most : most + 1]),
    }


class BackgroundPulse:
    """Figures of a background process: its duties' last rounds, and by when the next are to be done."""

    kind = "background"

    def __init__(self, duties: Iterable[Duty], clock: Clock) -> None:
        self._duties = tuple(duties)
        self._started_at = clock.now()

    def resume(self, earlier: Document) -> None:
        """Duties are counted anew."""

    def report(self) -> dict[str, object]:
        """As JSON."""
        return {
            "started_at": self._started_at,
            "duties": [
                {
                    "name": duty.name,
                    "mine": duty.is_mine,
                    "rounds": duty.runs,
                    "failures": duty.failures,
                    "done_at": duty.ran_at,
                    "took_s": duty.took_s,
                    "failed_at": duty.failed_at,
                    "failure": duty.failure,
                    "deadline_at": duty.deadline_at,
                }
                for duty in self._duties
            ],
        }


class Pulse(Protocol):
    kind: str

    def resume(self, earlier: Document) -> None: ...

    def report(self) -> dict[str, object]: ...


class PulseTeller:
    """Writes what a process says of itself, again and again; a database that is away is waited for."""

    def __init__(self, name: str, pulse: Pulse, reports: Reports, clock: Clock) -> None:
        self.failures = 0
        self._name = name
        self._pulse = pulse
        self._reports = reports
        self._clock = clock
        self._resumed = False

    async def tell_once(self) -> None:
        """Raises UnavailableError."""
        if not self._resumed:
            for earlier in await self._reports.since(later(self._clock.now(), -FORGOTTEN_S)):
                if earlier.name == self._name:
                    self._pulse.resume(earlier.report)
            self._resumed = True
        await self._reports.note(self._name, self._pulse.kind, self._pulse.report(), now=self._clock.now())

    async def run(self) -> None:
        while True:
            try:
                await self.tell_once()
            except UnavailableError as error:
                log.warning("nothing told of this process", why=str(error))
            except Exception:
                self.failures += 1
                log.exception("nothing told of this process", failures=self.failures)  # what it tells of goes on
            await self._clock.sleep(TELL_EVERY_S)
