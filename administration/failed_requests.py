"""Which requests failed in the last day, by area and HTTP status? A process goes on where the one before it ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from domain.units import Instant

Document = Mapping[str, Any]  # Any: a JSON document
HOUR_S = 3600.0
KEPT = 24  # hours, the present one too
PREFIX = "status_"
SCHEDULER = "scheduler"
PROBES = frozenset({"healthz", "readyz", "duties"})  # their 503 is an answer, no failure


def failures_of(totals: Mapping[str, int], replies: Mapping[tuple[str, str], int]) -> Counter[str]:
    """A worker's requests that failed: the scheduler's by status, those of each other area that the server failed at.

    `totals` are those of RequestCounters, `replies` those of PageCounters, by area and class of status.

    >>> failures_of({"requests": 9, "status_503": 2}, {("api", "5xx"): 1, ("api", "4xx"): 7, ("readyz", "5xx"): 3})
    Counter({'503': 2, 'api 5xx': 1})
    """
    failed = Counter({key.removeprefix(PREFIX): n for key, n in totals.items() if key.startswith(PREFIX)})
    for (area, status), n in replies.items():
        if status == "5xx" and area not in PROBES:
            failed[f"{area} {status}"] += n
    return failed


class FailedRequests:
    """Counts of a worker, as `failures_of` names them. What a worker counted is read back from its report."""

    def __init__(self, now: Instant) -> None:
        self._since_at = now
        self._by_hour: dict[int, Counter[str]] = {}
        self._last_at: dict[str, float] = {}
        self._seen: Counter[str] = Counter()

    def resume(self, earlier: Document) -> None:
        """Go on with what a process of the same name counted before this one.

        >>> failed = FailedRequests(Instant(7200.0))
        >>> failed.resume({"since_at": 60.0, "by_hour": {"1": {"503": 2}}, "last_at": {"503": 3700.0}})
        >>> failed.look({"503": 1}, Instant(7300.0))
        >>> failed.as_json()
        {'since_at': 60.0, 'by_hour': {'1': {'503': 2}, '2': {'503': 1}}, 'last_at': {'503': 7300.0}}
        """
        self._since_at = Instant(min(self._since_at, earlier["since_at"]))
        for hour, counts in earlier["by_hour"].items():
            self._by_hour.setdefault(int(hour), Counter()).update(counts)
        for status, at in earlier["last_at"].items():
            self._last_at[status] = max(at, self._last_at.get(status, at))

    def look(self, counted: Mapping[str, int], now: Instant) -> None:
        """Put what failed since the last look into the present hour, and forget what is older than a day.

        `counted` are all failures since the worker's start.
        """
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
    """Requests of all workers to an area that were answered with a status, and when the last of them was."""

    area: str
    status: str
    requests: int
    last_at: Instant


@dataclass(frozen=True, slots=True)
class FailedLately:
    """What failed in the last 24 hours, by area and status, as so many workers count it.

    `since_at`: counted since then only, None: all that time.
    """

    rows: tuple[Failed, ...]
    workers: int
    since_at: Instant | None


def failed_lately(told: Sequence[Document], *, now: Instant) -> FailedLately:
    """What workers count together, those that ended within a day too: what each `FailedRequests` says as JSON.

    >>> one = {"since_at": 0.0, "by_hour": {"1": {"503": 2}}, "last_at": {"503": 3700.0}}
    >>> failed_lately([one, one], now=Instant(7200.0)).rows
    (Failed(area='scheduler', status='503', requests=4, last_at=3700.0),)
    """
    first = int(now // HOUR_S) - KEPT
    counts: Counter[str] = Counter()
    for one in told:
        for hour, by_name in one["by_hour"].items():
            if int(hour) > first:
                counts.update(by_name)
    rows = []
    for name, requests in counts.items():
        area, _, status = name.rpartition(" ")
        last_at = max(one["last_at"].get(name, 0.0) for one in told)
        rows.append(Failed(area or SCHEDULER, status, requests, Instant(last_at)))
    since_at = min((one["since_at"] for one in told), default=now)
    return FailedLately(
        tuple(sorted(rows, key=lambda row: (row.area, row.status))),
        len(told),
        Instant(since_at) if since_at > now - KEPT * HOUR_S else None,
    )
