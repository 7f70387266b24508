"""Applications, limits on the distribution of a job's instances, and requirements of app versions. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NewType

from domain.quick import quick_dataclass
from domain.units import AppId, AppVersionId, Instant

ProcessorType = NewType("ProcessorType", str)
CPU = ProcessorType("cpu")  # all other values are the client's names for coprocessor types
NVIDIA = ProcessorType("NVIDIA")
ATI = ProcessorType("ATI")
INTEL_GPU = ProcessorType("intel_gpu")

ANONYMOUS = "anonymous"  # the platform reported by clients that use the volunteer's own executable


class OnePerVolunteer(StrEnum):
    """Which jobs of an app are limited to one instance per volunteer, over all of the volunteer's hosts."""

    QUORUM = "quorum"  # jobs with a quorum above 1
    ALWAYS = "always"
    NEVER = "never"


@quick_dataclass(frozen=True, slots=True)
class Spread:
    """The limits for one job. A limit per volunteer implies a limit per host, because a host's owner never changes.

    `per_volunteer`: at most one instance per volunteer. `per_host`: at most one instance per host; without it, a host
    can get another instance only when it has none in progress.
    """

    per_volunteer: bool
    per_host: bool

    @property
    def one_per(self) -> str | None:
        """Return who may have only one instance, "volunteer" or "host"; None if a host can get another one later."""
        return "volunteer" if self.per_volunteer else "host" if self.per_host else None


def spread_of(one_per_volunteer: OnePerVolunteer, *, one_per_host: bool, agreeing: int) -> Spread:
    """Return the limits that the app's settings set for a job that needs `agreeing` agreeing results.

    >>> spread_of(OnePerVolunteer.QUORUM, one_per_host=True, agreeing=1)
    Spread(per_volunteer=False, per_host=True)
    >>> spread_of(OnePerVolunteer.QUORUM, one_per_host=False, agreeing=2)
    Spread(per_volunteer=True, per_host=True)
    """
    per_volunteer = one_per_volunteer is OnePerVolunteer.ALWAYS or (
        one_per_volunteer is OnePerVolunteer.QUORUM and agreeing > 1
    )
    return Spread(per_volunteer, per_volunteer or one_per_host)


@dataclass(frozen=True, slots=True)
class App:
    """An application. Batches are submitted for one application."""

    app_id: AppId
    name: str
    user_friendly_name: str = ""
    beta: bool = False  # only for volunteers who opted in
    deprecated: bool = False
    # Adaptive replication: jobs sent to a host without validated results need this many copies. 0 = off.
    adaptive_copies: int = 0
    one_per_host: bool = True  # at most one instance of a job per host
    one_per_volunteer: OnePerVolunteer = OnePerVolunteer.QUORUM

    def spread(self, quorum: int, copies: int = 0) -> Spread:
        """Return the limits of jobs with this quorum. `copies` is what an earlier dispatch required (0: none)."""
        agreeing = max(quorum, self.adaptive_copies, copies)
        return spread_of(self.one_per_volunteer, one_per_host=self.one_per_host, agreeing=agreeing)


@quick_dataclass(frozen=True, slots=True)
class PlanClass:
    """Resources and requirements of a kind of app version. Each plan class uses one processor type.

    With `gpu_type` None it is a CPU version. `gpu_count` may be a fraction: at 0.5, two jobs share a GPU.
    """

    name: str
    ncpus: float = 1.0
    gpu_type: ProcessorType | None = None
    gpu_count: float = 1.0
    min_gpu_ram_bytes: float = 0.0
    min_driver_version: int = 0
    min_host_ncpus: int = 1
    min_host_ram_bytes: float = 0.0
    os_pattern: str = ""  # a regular expression searched in "os_name os_version"; empty = any
    cpu_speed_fraction: float = 1.0  # of the host's benchmark, per CPU used
    gpu_speed_fraction: float = 0.1  # of the device's peak
    needs: str = ""  # docker (or Podman), virtualbox; empty = nothing
    arguments: str = ""  # clients add them after those of the job; {ncpus} is the number of CPUs that the job uses
    all_cpus: bool = False  # a job uses all CPUs that the host offers, and at least `ncpus`

    @property
    def processor_type(self) -> ProcessorType:
        return self.gpu_type if self.gpu_type is not None else CPU


DEFAULT_PLAN_CLASS = PlanClass("")


class VersionState(StrEnum):
    """Whether an app version gets jobs, and what happens to its jobs in progress."""

    OFFERED = "offered"
    DEPRECATED = "deprecated"  # gets no more jobs; jobs in progress continue, lost ones are sent again
    WITHDRAWN = "withdrawn"  # gets no more jobs; jobs in progress continue, lost ones are not sent again
    ABORTED = "aborted"  # withdrawn, and hosts are asked to drop its jobs in progress

    @property
    def words(self) -> str:
        return "withdrawn, instances aborted" if self is VersionState.ABORTED else self.value


@dataclass(frozen=True, slots=True)
class AppFile:
    """A signed file of an app version."""

    name: str  # clients identify the file by this name, which never changes
    nbytes: int
    md5: str
    signature: str  # text form, docs/protocol.md#signatures
    main_program: bool = False
    open_name: str = ""  # empty: same as `name`
    copy_file: bool = False
    executable: bool = True


@dataclass(frozen=True, slots=True)
class AppVersion:
    """The build of an app for one platform and one plan class."""

    app_version_id: AppVersionId
    app_id: AppId
    platform: str
    version_num: int
    plan_class: PlanClass = DEFAULT_PLAN_CLASS
    api_version: str = ""
    files: tuple[AppFile, ...] = ()
    state: VersionState = VersionState.OFFERED
    created_at: Instant = Instant(0.0)

    @property
    def processor_type(self) -> ProcessorType:
        return self.plan_class.processor_type

    @property
    def number(self) -> str:
        """Return the number as people write it: 1.00 for 100."""
        return f"{self.version_num / 100:.2f}"

    @property
    def title(self) -> str:
        """Return the name shown to users.

        >>> AppVersion(AppVersionId(1), AppId(1), "x86_64-pc-linux-gnu", 110).title
        '1.10 x86_64-pc-linux-gnu'
        """
        return f"{self.number} {self.platform} {self.plan_class.name}".rstrip()


@dataclass(frozen=True, slots=True)
class VersionUse:
    """What hosts did with a version since it was added: `hosts` returned a result or timed out, `recent_hosts` lately.

    `errors` include invalid results.
    """

    app_version_id: AppVersionId
    hosts: int = 0
    recent_hosts: int = 0
    valid: int = 0
    errors: int = 0
    timed_out: int = 0


def plan_of(versions: Mapping[AppVersionId, AppVersion], app_version_id: AppVersionId, ncpus: float = 1.0) -> PlanClass:
    """Return the plan class with which a version runs a job of `ncpus` CPUs; a CPU plan class if it is unknown."""
    version = versions.get(app_version_id)
    return plan_for(version.plan_class if version is not None else DEFAULT_PLAN_CLASS, ncpus)


def plan_for(plan: PlanClass, ncpus: float) -> PlanClass:
    """Return the plan class for a job that needs `ncpus` CPUs. A CPU job occupies at least that many CPUs.

    A job that needs more CPUs than the version's own plan class gets a plan class with another name, because a client
    stores one number of CPUs per version and plan class (docs/protocol.md). Names of stored plan classes contain no +.

    >>> [plan_for(plan, 8.0).name for plan in (PlanClass("avx"), PlanClass(""), PlanClass("mt", ncpus=16.0))]
    ['avx+8cpus', '+8cpus', 'mt']
    """
    if plan.gpu_type is not None or ncpus <= max(1.0, plan.ncpus):
        return plan
    return replace(plan, name=f"{plan.name}+{ncpus:g}cpus", ncpus=ncpus)


def on_host(plan: PlanClass, ncpus: int) -> PlanClass:
    """Return the plan class as it runs on a host of that many CPUs.

    >>> on_host(PlanClass("mt", all_cpus=True), 8).ncpus, on_host(PlanClass("mt", ncpus=2.0), 8).ncpus
    (8.0, 2.0)
    """
    return replace(plan, ncpus=max(plan.ncpus, float(ncpus))) if plan.all_cpus else plan
