"""Facts about the project that an operator may have to act on, as read from the store. Values only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from domain.units import AppVersionId, BatchId, HostId, Instant

LOOKED_AT = 10_000  # latest failures, and jobs to settle, that are read
FAILURES, FAILING_HOSTS, FAILING_FRACTION = 20, 3, 0.25  # a version is failing from this many in the last day


@dataclass(frozen=True, slots=True)
class BatchesInNeed:
    """Active batches late, at risk or with failing jobs, earliest deadline first, at most as many as asked for.

    `found` is the number of all of them.
    """

    batch_ids: Sequence[BatchId] = ()
    found: int = 0


@dataclass(frozen=True, slots=True)
class FailingVersion:
    """A version with recent `failures`: `failing` of the `hosts` that used it recently have failed last."""

    app_version_id: AppVersionId
    app: str
    platform: str
    version_num: int
    plan_class: str
    failures: int
    hosts: int
    failing: int

    @property
    def is_failing(self) -> bool:
        return self.failures >= FAILURES and self.failing >= max(FAILING_HOSTS, FAILING_FRACTION * self.hosts)

    @property
    def title(self) -> str:
        return f"{self.app} {self.version_num / 100:.2f} {self.platform} {self.plan_class}".rstrip()

    @property
    def words(self) -> str:
        return (
            f"the latest result of {self.failing} of the {self.hosts} hosts that used it in the last day failed; "
            f"{self.failures} failures in all"
        )


@dataclass(frozen=True, slots=True)
class FailingHost:
    """A host that is not banned, and most of whose recent `results` are `failures`."""

    host_id: HostId
    failures: int
    results: int
    domain_name: str = ""


@dataclass(frozen=True, slots=True)
class HostContacts:
    """The recently active hosts, and those of them that are silent for much longer than usual."""

    hosts: int = 0
    silent: int = 0


@dataclass(frozen=True, slots=True)
class Upkeep:
    """The last recorded backup and the state of validation.

    `waiting` jobs are to be settled (at most LOOKED_AT are counted); for `failing` of them comparisons failed.
    """

    backup_at: Instant | None
    installed_at: Instant
    waiting: int
    failing: int
