"""Host classes for homogeneous redundancy, with each class's speed and queue. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from domain.units import AppId, Flop, FlopPerSecond, Instant, Seconds

# Hosts of one class have the same operating system and, for type 1, the same CPU vendor.
SYSTEMS = (("windows", 1), ("linux", 2), ("darwin", 3), ("mac", 3), ("android", 4), ("freebsd", 5))
VENDORS = (("intel", 1), ("amd", 2), ("apple", 3), ("arm", 4), ("power", 5))
BY_SYSTEM_ONLY = 2  # an hr_type; all other types except 0 also compare the CPU vendor


def class_by_names(os_name: str, cpu_vendor: str, hr_type: int) -> int:
    """Return a host's class for homogeneous redundancy, 10 * system + vendor; 0 if the class is unknown.

    Type 2 compares only the operating system, type 0 compares nothing.

    >>> [class_by_names("Linux Debian", "GenuineIntel", hr_type) for hr_type in (1, 2, 0)], class_by_names("", "", 1)
    ([21, 20, 0], 0)
    """
    if hr_type == 0:
        return 0
    system = _numbered(SYSTEMS, os_name)
    vendor = 0 if hr_type == BY_SYSTEM_ONLY else _numbered(VENDORS, cpu_vendor)
    if system == 0 or (vendor == 0 and hr_type != BY_SYSTEM_ONLY):
        return 0
    return 10 * system + vendor


def _numbered(names: tuple[tuple[str, int], ...], told: str) -> int:
    lowered = told.lower()
    return next((number for name, number in names if name in lowered), 0)


@dataclass(frozen=True, slots=True)
class AlikeHosts:
    """A group of active hosts with the same description: their number, cores, speed and mean time between requests."""

    os_name: str
    cpu_vendor: str
    platforms: tuple[str, ...]
    hosts: int
    cores: float
    flop_per_s: FlopPerSecond  # sum over the hosts, availability included
    interval_s: Seconds


@dataclass(frozen=True, slots=True)
class ClassStanding:
    """The active hosts in one class that can run an app. `queued_flop` is unsent work committed to the class."""

    app_id: AppId
    hr_type: int
    hr_class: int
    hosts: int
    cores: float
    flop_per_s: FlopPerSecond
    interval_s: Seconds
    queued_flop: Flop = Flop(0.0)


@dataclass(frozen=True, slots=True)
class HostClasses:
    """All host classes as of an instant."""

    computed_at: Instant = Instant(0.0)
    standings: tuple[ClassStanding, ...] = ()


class Standings(tuple[ClassStanding, ...]):
    """The host classes of one app and redundancy type. Compared by identity, so that derived values can be cached."""

    __slots__ = ()

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other


NO_STANDINGS = Standings()


@dataclass(frozen=True, slots=True)
class ClassesByApp:
    """Host classes by app and redundancy type, used for lookups by requests."""

    of: Mapping[tuple[AppId, int], Standings] = field(default_factory=dict)

    @classmethod
    def made(cls, classes: HostClasses) -> ClassesByApp:
        """Return the classes grouped by app and type, each group sorted by class."""
        found: dict[tuple[AppId, int], list[ClassStanding]] = {}
        for one in sorted(classes.standings, key=lambda one: one.hr_class):
            found.setdefault((one.app_id, one.hr_type), []).append(one)
        return cls({key: Standings(some) for key, some in found.items()})


NO_CLASSES = ClassesByApp()
