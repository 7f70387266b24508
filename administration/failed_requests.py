"""Counts failed requests of the last day by area and HTTP status. A process continues its predecessor's counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from domain.units import Instant

Document = Mapping[str, Any]  # Any: a JSON document
HOUR_S = 3600.0
KEPT = 24  # number of hours kept, including the current one
PREFIX = "status_"
SCHEDULER = "scheduler"
PROBES = frozenset({"healthz", "readyz", "duties"})  # on these paths, 503 is a regular response


def failures_of(totals: Mapping[str, int], replies: Mapping[tuple[str, str], int]) -> Counter[str]:
    """Return a worker's failed requests: those of the scheduler by status, and server errors of each other area.

    `totals` come from RequestCounters, `replies` from PageCounters, by area and status class.

    >>> failures_of({"requests": 9, "status_503": 2}, {("api", "5xx"): 1, ("api", "4xx"): 7, ("readyz", "5xx"): 3})
    Counter({'503': 2, 'api 5xx': 1})
    """
    failed = Counter({key.removeprefix(PREFIX): n for key, n in totals.items() if key.startswith(PREFIX)})
    for (area, status), n in replies.items():
        if status == "5xx" and area not in PROBES:
            failed[f"{area} {status}"] += n
    return failed


class FailedRequests:
    """A worker's counts, under the names used by `failures_of`, restored from its last report."""

    def __init__(self, now: Instant) -> None:
        self._since_at = now
        self._by_hour: dict[int, Counter[str]] = {}
        self._last_at: dict[str, float] = {}
        self._seen: Counter[str] = Counter()

    def resume(self, earlier: Document) -> None:
        """Continue the counts of an earlier process with the same name.

        >>> failed = FailedRequests(Instant(7200.0))
        >>> failed.resume({"since_at": 60.0, "by_hour": {"1": {"503": 2}}, "last_at": {"503": 3700.0}})
        >>> failed.update({"503": 1}, Instant(7300.0))
        >>> failed.as_json()
        {'since_at': 60.0, 'by_hour': {'1': {'503': 2}, '2': {'503': 1}}, 'last_at': {'503': 7300.0}}
        """
        self._since_at = Instant(min(self._since_at, earlier["since_at"]))
        for hour, counts in earlier["by_hour"].items():
            self._by_hour.setdefault(int(hour), Counter()).update(counts)
        for status, at in earlier["last_at"].items():
            self._last_at[status] = max(at, self._last_at.get(status, at))

    def update(self, counted: Mapping[str, int], now: Instant) -> None:
        """Add new failures; `counted` are the totals since the worker's start. Hours older than a day are removed."""
        new, self._seen = Counter(counted) - self._seen, Counter(counted)
        hour = int(now // HOUR_S)
        if new:
            self._by_hour.setdefault(hour, Counter()).update(new)
            self._last_at.update(dict.fromkeys(new, now))
        for old in [one for one in self._by_hour if one <= hour - KEPT]:
            del self._by_hour[old]

    def as_json(self) -> dict[str, object]:
        return {
            "since_at": self._since_at,
            "by_hour": {str(hour): dict(sorted(counts.items())) for hour, counts in sorted(self._by_hour.items())},
            "last_at": dict(sorted(self._last_at.items())),
        }


@dataclass(frozen=True, slots=True)
class Failed:
    """The number of requests to an area that failed with one status, over all workers, and the time of the latest."""

    area: str
    status: str
    requests: int
    last_at: Instant


@dataclass(frozen=True, slots=True)
class FailedLately:
    """Failures of the last 24 hours. `since_at`: start of counting if less than 24 hours ago, otherwise None."""

    rows: tuple[Failed, ...]
    workers: int
    since_at: Instant | None


def failed_lately(reports: Sequence[Document], *, now: Instant) -> FailedLately:
    """Sum up the `FailedRequests` JSON of workers, including workers that ended within the last day.

    >>> one = {"since_at": 0.0, "by_hour": {"1": {"503": 2}}, "last_at": {"503": 3700.0}}
    >>> failed_lately([one, one], now=Instant(7200.0)).rows
    (Failed(area='scheduler', status='503', requests=4, last_at=3700.0),)
    """
    first = int(now // HOUR_S) - KEPT
    counts: Counter[str] = Counter()
    for one in reports:
        for hour, by_name in one["by_hour"].items():
            if int(hour) > first:
                counts.update(by_name)
    rows = []
    for name, requests in counts.items():
        area, _, status = name.rpartition(" ")
        last_at = max(one["last_at"].get(name, 0.0) for one in reports)
        rows.append(Failed(area or SCHEDULER, status, requests, Instant(last_at)))
    since_at = min((one["since_at"] for one in reports), default=now)
    return FailedLately(
        tuple(sorted(rows, key=lambda row: (row.area, row.status))),
        len(reports),
        Instant(since_at) if since_at > now - KEPT * HOUR_S else None,
    )
