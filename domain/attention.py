"""Facts about the project that an operator may have to act on, as read from the store. Values only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from domain.batches import BatchCounts
from domain.units import AppVersionId, BatchId, HostId, Instant

LOOKED_AT = 10_000  # latest failures, and jobs to settle, that are read
FAILED_JOBS, FAILED_FRACTION = 5, 0.1  # a batch is failing from this many failed jobs, and fraction of its ended jobs
NEARLY_ALL = 0.9  # of the ended jobs of a batch, of its errors, or of the failures of versions
NAMED = 5  # failing versions in a sentence
FAILURES, FAILING_HOSTS, FAILING_FRACTION = 20, 3, 0.25  # a version is failing from this many in the last day


def nearly_all_fail(counts: BatchCounts) -> bool:
    """Return whether all or nearly all ended jobs of a batch failed, and not only few.

    >>> all_of, some_of = (BatchCounts(jobs_failed=9, jobs_validated=valid) for valid in (1, 2))
    >>> nearly_all_fail(all_of), nearly_all_fail(some_of), nearly_all_fail(BatchCounts(jobs_failed=1))
    (True, False, False)
    """
    failed = counts.jobs_failed
    return failed >= FAILED_JOBS and failed >= NEARLY_ALL * (failed + counts.jobs_validated)


@dataclass(frozen=True, slots=True)
class BatchesInNeed:
    """Active batches late, at risk or with failing jobs, earliest deadline first, at most as many as asked for.

    `found` is the number of all of them.
    """

    batch_ids: Sequence[BatchId] = ()
    found: int = 0


@dataclass(frozen=True, slots=True)
class FailingVersion:
    """A version and its `failures` of the last day: errors and invalid results, without timeouts.

    `hosts` used it in the last day, and have a result or a timeout of it; the latest one of `failing` of them failed.
    `batch_failures` are of `batch_id`, the batch with the most failures. A `deprecated` version gets no more jobs.
    """

    app_version_id: AppVersionId
    app: str
    platform: str
    version_num: int
    plan_class: str
    failures: int
    hosts: int
    failing: int
    batch_id: BatchId
    batch_failures: int
    deprecated: bool = False

    @property
    def is_failing(self) -> bool:
        return self.failures >= FAILURES and self.failing >= max(FAILING_HOSTS, FAILING_FRACTION * self.hosts)

    @property
    def failing_fraction(self) -> float:
        return self.failing / max(1, self.hosts)

    @property
    def version(self) -> str:
        return f"{self.version_num / 100:.2f} {self.platform} {self.plan_class}".rstrip()

    @property
    def title(self) -> str:
        return f"{self.app} {self.version}"

    @property
    def words(self) -> str:
        return self.latest_of("it")

    def latest_of(self, name: str) -> str:
        """Return on how many hosts its latest result failed, with this name for the version."""
        return f"the latest result of {self.failing} of the {self.hosts} hosts that used {name} in the last day failed"


@dataclass(frozen=True, slots=True)
class FailingApp:
    """The failing versions of one app, at least one, the worst first."""

    versions: Sequence[FailingVersion]

    @property
    def batch_id(self) -> BatchId | None:
        """Return the batch that has nearly all of their failures, None if there is none.

        >>> version = AppVersionId(3), "pi", "windows_x86_64", 102, "", 340, 40, 25, BatchId(7)
        >>> [FailingApp([FailingVersion(*version, most)]).batch_id for most in (306, 305)]
        [7, None]
        """
        failures = Counter[BatchId]()
        for one in self.versions:
            failures[one.batch_id] += one.batch_failures
        [(batch_id, most)] = failures.most_common(1)
        return batch_id if most >= NEARLY_ALL * sum(one.failures for one in self.versions) else None

    @property
    def worst(self) -> FailingVersion:
        return self.versions[0]

    @property
    def latest(self) -> str:
        """Return on how many hosts the latest result of each version failed.

        >>> one = FailingVersion(AppVersionId(3), "pi", "x86_64-pc-linux-gnu", 102, "", 340, 40, 25, BatchId(7), 306)
        >>> FailingApp([one]).latest
        'the latest result of 25 of the 40 hosts that used it in the last day failed'
        >>> FailingApp([one, one]).latest.partition(", ")[0]
        'the latest result of 25 of the 40 hosts that used 1.02 x86_64-pc-linux-gnu in the last day failed'
        """
        if len(self.versions) == 1:
            return self.worst.words
        others = [f"{one.failing} of {one.hosts} for {one.version}" for one in self.versions[1:NAMED]]
        more = [f"{len(self.versions) - NAMED} more"] * (len(self.versions) > NAMED)
        return ", ".join([self.worst.latest_of(self.worst.version), *others, *more])

    @property
    def words(self) -> str:
        """Return which versions fail, and on how many hosts, as a sentence.

        >>> one = FailingVersion(AppVersionId(3), "pi", "x86_64-pc-linux-gnu", 102, "", 340, 40, 25, BatchId(7), 306)
        >>> FailingApp([one]).words.partition(": ")[0]
        'pi 1.02 x86_64-pc-linux-gnu fails'
        >>> FailingApp([one, one]).words.partition(",")[0]
        '2 versions of pi fail'
        """
        if len(self.versions) == 1:
            return f"{self.worst.title} fails: {self.worst.words}."
        told = ", ".join(f"{one.version} on {one.failing} of {one.hosts} hosts" for one in self.versions[:NAMED])
        more = ", …" * (len(self.versions) > NAMED)
        counted = "These are the hosts whose latest result failed, of those that used the version in the last day."
        return f"{len(self.versions)} versions of {self.worst.app} fail, the worst first: {told}{more}. {counted}"


def worst_first(found: Iterable[FailingVersion]) -> Sequence[FailingVersion]:
    """Return the failing ones of these versions that get jobs, those that fail on the largest fraction of their hosts
    first.
    """
    failing = (one for one in found if one.is_failing and not one.deprecated)
    return sorted(failing, key=lambda one: (-one.failing_fraction, -one.failures, one.app_version_id))


def by_app(failing: Iterable[FailingVersion]) -> Mapping[str, FailingApp]:
    """Return the failing versions by their app's name."""
    found: dict[str, list[FailingVersion]] = {}
    for one in failing:
        found.setdefault(one.app, []).append(one)
    return {app: FailingApp(some) for app, some in found.items()}


@dataclass(frozen=True, slots=True)
class FailingHost:
    """A host that is not banned, with its `results` since an instant, valid or failed. At least half of them failed,
    judged without those of versions that fail on half of their hosts; `of_versions` of the failures are of these.

    The failures are errors, invalid results and timeouts. `last_at`: the report of the last one, or the end of its
    grace period.
    """

    host_id: HostId
    failures: int
    results: int
    domain_name: str = ""
    errors: int = 0
    invalid: int = 0
    timed_out: int = 0
    last_at: Instant = Instant(0.0)
    since: Instant = Instant(0.0)
    of_versions: int = 0


@dataclass(frozen=True, slots=True)
class HostContacts:
    """The recently active hosts, and those of them that are silent for much longer than usual.

    `last_at`: the latest request of any host. `usual_per_s`: requests of all hosts until then.
    """

    hosts: int = 0
    silent: int = 0
    last_at: Instant = Instant(0.0)
    usual_per_s: float = 0.0

    def missed(self, now: Instant) -> float:
        """Return how many requests are usual in the time since the latest one.

        >>> HostContacts(2, 0, Instant(100.0), 0.5).missed(Instant(160.0))
        30.0
        """
        return max(0.0, now - self.last_at) * self.usual_per_s


@dataclass(frozen=True, slots=True)
class Upkeep:
    """The last recorded backup and the state of validation.

    `waiting` jobs are to be settled (at most LOOKED_AT are counted); for `failing` of them comparisons failed.
    """

    backup_at: Instant | None
    installed_at: Instant
    waiting: int
    failing: int
