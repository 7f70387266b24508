"""Computes the figures of a run: waits, slowdowns, and fairness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from benchmarks.workload.pulling import Went
from domain.ordered_work import LeafId

SLOWDOWN_FROM_S = 10.0  # shorter jobs count as this long, as is usual for bounded slowdown


def fair_parts(wanted: Mapping[LeafId, int], processors: int) -> dict[LeafId, float]:
    """Return max-min fair shares: at most each submitter's demand, with the rest shared equally among the others.

    >>> fair_parts({(1, 1): 1, (2, 1): 8, (3, 1): 9}, 11)
    {(1, 1): 1.0, (2, 1): 5.0, (3, 1): 5.0}
    """
    parts: dict[LeafId, float] = {}
    left = float(processors)
    by_want = sorted(wanted.items(), key=lambda item: item[1])
    for place, (leaf, jobs) in enumerate(by_want):
        parts[leaf] = min(float(jobs), left / (len(by_want) - place))
        left -= parts[leaf]
    return parts


def jain(values: Sequence[float]) -> float:
    """Return Jain's index, (sum x)^2 / (n sum x^2): 1 if all values are equal, 1/n if all but one are 0.

    >>> jain([1.0, 1.0, 1.0, 1.0]), jain([1.0, 0.0])
    (1.0, 0.5)
    """
    squares = sum(one * one for one in values)
    return sum(values) ** 2 / (len(values) * squares) if squares > 0.0 else 1.0


class Fairness:
    """Ratios of service to the fair share, sampled while jobs wait. All submitters have equal shares."""

    def __init__(self, processors: int) -> None:
        self._processors = processors
        self._due: dict[LeafId, float] = {}
        self._got: dict[LeafId, float] = {}
        self._most = 0.0
        self._looks = 0

    def look(self, running: Mapping[LeafId, int], waiting: Mapping[LeafId, int]) -> None:
        """Sample the ratio of running jobs to the fair share for each submitter with demand, and the largest share."""
        wanted = {leaf: jobs + waiting.get(leaf, 0) for leaf, jobs in running.items() if jobs + waiting.get(leaf, 0)}
        wanted |= {leaf: jobs for leaf, jobs in waiting.items() if leaf not in wanted}
        for leaf, part in fair_parts(wanted, self._processors).items():
            self._due[leaf] = self._due.get(leaf, 0.0) + part
            self._got[leaf] = self._got.get(leaf, 0.0) + min(part, running.get(leaf, 0))
        self._most += max(running.values(), default=0) / self._processors
        self._looks += 1

    def figures(self) -> dict[str, float | int]:
        """Return Jain's index, the mean and the lowest tenth of the submitters' fractions of their fair shares."""
        got = [self._got[leaf] / due for leaf, due in self._due.items() if due > 0.0]
        return {
            "jain_service": round(jain(got), 4),
            "service_of_fair_part_mean": round(float(np.mean(got)), 4) if got else 1.0,
            "service_of_fair_part_p10": round(float(np.percentile(got, 10)), 4) if got else 1.0,
            "largest_submitters_part": round(self._most / self._looks, 4) if self._looks else 0.0,
            "looks_while_jobs_waited": self._looks,
        }


def waits(went: Sequence[Went]) -> dict[str, float | int]:
    """Return waits in seconds, from submission until a batch's last job was sent, and bounded slowdowns."""
    waited = np.array([one.last_sent_at - one.submitted.at for one in went])
    slow = np.array([max(1.0, _slowdown(one)) for one in went])
    by_submitter = _means_by_submitter(went, waited)
    return {
        "batches": len(went),
        "wait_mean_s": round(float(waited.mean()), 1),
        "wait_median_s": round(float(np.median(waited)), 1),
        "wait_p95_s": round(float(np.percentile(waited, 95)), 1),
        "wait_max_s": round(float(waited.max()), 1),
        "slowdown_mean": round(float(slow.mean()), 2),
        "slowdown_median": round(float(np.median(slow)), 3),
        "slowdown_p95": round(float(np.percentile(slow, 95)), 2),
        "submitters_wait_mean_s": round(float(np.mean(by_submitter)), 1),
        "submitters_wait_median_s": round(float(np.median(by_submitter)), 1),
    }


def logged(went: Sequence[Went]) -> dict[str, float | int]:
    """Return the waits in the log itself, in which jobs get all their processors at the same time."""
    known = np.array([one.submitted.logged_wait_s for one in went if one.submitted.logged_wait_s is not None])
    if not len(known):
        return {"batches": 0}
    return {
        "batches": len(known),
        "wait_mean_s": round(float(known.mean()), 1),
        "wait_median_s": round(float(np.median(known)), 1),
        "wait_p95_s": round(float(np.percentile(known, 95)), 1),
    }


def _slowdown(one: Went) -> float:
    return (one.done_at - one.submitted.at) / max(one.submitted.run_s, SLOWDOWN_FROM_S)


def _means_by_submitter(went: Sequence[Went], waited: np.ndarray) -> list[float]:
    sums: dict[LeafId, list[float]] = {}
    for one, wait in zip(went, waited, strict=True):
        sums.setdefault(one.submitted.leaf, []).append(float(wait))
    return [sum(every) / len(every) for every in sums.values()]
