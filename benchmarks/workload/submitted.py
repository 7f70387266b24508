"""Converts a log's jobs to batches with a submitter, a time, and the number and length of their jobs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from domain.batches import Account
from domain.ordered_work import LeafId
from domain.units import AccountId, BatchId, Instant, Seconds, SubmitterId
from simulator.swf import FLOP_PER_S, LoggedJob

ROOT = AccountId(1)
FIRST_GROUP = 2


@dataclass(frozen=True, slots=True)
class Submitted:
    """One batch of `jobs` single-processor jobs of `run_s` each, for which the submitter estimates `estimate_s`."""

    batch_id: BatchId
    leaf: LeafId
    at: Instant
    jobs: int
    run_s: Seconds
    estimate_s: Seconds
    logged_wait_s: float | None = None

    @property
    def job_flop(self) -> float:
        return self.estimate_s * FLOP_PER_S


@dataclass(frozen=True, slots=True)
class Workload:
    """Batches in order of submission, and their submitters, which are users in accounts for the log's groups."""

    batches: Sequence[Submitted]
    accounts: Sequence[Account]
    leaves: Sequence[LeafId]

    @property
    def work_s(self) -> float:
        """Return the processor seconds of all jobs."""
        return sum(one.jobs * one.run_s for one in self.batches)

    @property
    def length_s(self) -> float:
        """Return the time from the first submission to the last."""
        return self.batches[-1].at - self.batches[0].at if self.batches else 0.0


def workload_of(jobs: Iterable[LoggedJob], *, until_s: float) -> Workload:
    """Convert the log's jobs that were submitted within `until_s` of the first to batches.

    A job of p processors is a batch of p jobs. Estimates are the requested run times, if the log has them.

    >>> workload_of([LoggedJob(1, 50.0, 600.0, 4, 7, 2, asked_s=900.0)], until_s=10.0).batches[0].estimate_s
    900.0
    """
    batches = list[Submitted]()
    groups: dict[int, AccountId] = {}
    leaves: dict[LeafId, None] = {}
    first_s: float | None = None
    for job in sorted(jobs, key=lambda one: one.submitted_s):
        first_s = job.submitted_s if first_s is None else first_s
        if job.submitted_s - first_s > until_s:
            break
        account = groups.setdefault(job.group, AccountId(FIRST_GROUP + len(groups)))
        leaf = (SubmitterId(job.user), account)
        leaves[leaf] = None
        estimate_s = job.asked_s if job.asked_s else job.run_s
        batches.append(
            Submitted(
                BatchId(len(batches) + 1),
                leaf,
                Instant(job.submitted_s - first_s),
                job.processors,
                Seconds(job.run_s),
                Seconds(estimate_s),
                job.waited_s,
            )
        )
    accounts = [Account(ROOT, "root"), *(Account(one, f"group{name}", ROOT) for name, one in groups.items())]
    return Workload(batches, accounts, list(leaves))
