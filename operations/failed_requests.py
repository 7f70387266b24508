"""Which requests failed in the last day, by hour and HTTP status? A process goes on where the one before it ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from domain.units import Instant

Document = Mapping[str, Any]  # Any: a JSON document
HOUR_S = 3600.0
KEPT = 24  # hours, the present one too
PREFIX = "status_"


class FailedRequests:
    """Counts of a worker. What it was started with last is in its report, and read back from there."""

    def __init__(self, now: Instant) -> None:
        self._since_at = now
        self._by_hour: dict[int, Counter[str]] = {}
        self._last_at: dict[str, float] = {}
        self._seen: Counter[str] = Counter()

    def resume(self, earlier: Document) -> None:
        """Go on with what a process of the same name counted before this one.

        >>> failed = FailedRequests(Instant(7200.0))
        >>> failed.resume({"since_at": 60.0, "by_hour": {"1": {"503": 2}}, "last_at": {"503": 3700.0}})
        >>> failed.look({"status_503": 1}, Instant(7300.0))
        >>> failed.as_json()
        {'since_at': 60.0, 'by_hour': {'1': {'503': 2}, '2': {'503': 1}}, 'last_at': {'503': 7300.0}}
        """
        self._since_at = Instant(min(self._since_at, earlier["since_at"]))
        for hour, counts in earlier["by_hour"].items():
            self._by_hour.setdefault(int(hour), Counter()).update(counts)
        for status, at in earlier["last_at"].items():
            self._last_at[status] = max(at, self._last_at.get(status, at))

    def look(self, totals: Mapping[str, int], now: Instant) -> None:
        """Put what failed since the last look into the present hour, and forget what is older than a day."""
        counted = Counter({key.removeprefix(PREFIX): n for key, n in totals.items() if key.startswith(PREFIX)})
        new, self._seen = counted - self._seen, counted
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
    """Requests of all workers that were answered with a status, and when the last of them was."""

    status: str
    requests: int
    last_at: Instant


@dataclass(frozen=True, slots=True)
class FailedLately:
    """What failed in the last 24 hours, by status. `since_at`: counted since then only, None: all that time."""

    rows: tuple[Failed, ...]
    since_at: Instant | None


def failed_lately(reports: Iterable[Document], *, now: Instant) -> FailedLately:
    """What workers count together, those that ended within a day too.

    >>> one = {"failed": {"since_at": 0.0, "by_hour": {"1": {"503": 2}}, "last_at": {"503": 3700.0}}}
    >>> failed_lately([one, one], now=Instant(7200.0))
    FailedLately(rows=(Failed(status='503', requests=4, last_at=3700.0),), since_at=0.0)
    """
    told = [one["failed"] for one in reports if "failed" in one]
    first = int(now // HOUR_S) - KEPT
    counts: Counter[str] = Counter()
    for one in told:
        for hour, by_status in one["by_hour"].items():
            if int(hour) > first:
                counts.update(by_status)
    rows = tuple(
        Failed(status, counts[status], Instant(max(one["last_at"].get(status, 0.0) for one in told)))
        for status in sorted(counts)
    )
    since_at = min((one["since_at"] for one in told), default=now)
    return FailedLately(rows, Instant(since_at) if since_at > now - KEPT * HOUR_S else None)
