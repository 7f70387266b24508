"""How do the classes of hosts alike stand, that homogeneous redundancy chooses from? Hourly.

Hosts are looked at only while jobs wait whose replicas need hosts alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from domain.apps import CPU
from domain.catalogue import Catalogue
from domain.clock import Clock
from domain.host_classes import AlikeHosts, ClassStanding, HostClasses, class_by_names
from domain.units import AppId, Flop, FlopPerSecond, Instant, Seconds
from jobs.reserving.ports import RedundantWork

Line = tuple[AppId, int]  # an app, and a type of homogeneous redundancy


class ClassLooker:
    """Once per cluster."""

    def __init__(self, work: RedundantWork, catalogue: Callable[[], Catalogue], clock: Clock) -> None:
        self._work = work
        self._catalogue = catalogue
        self._clock = clock

    async def run_once(self) -> HostClasses:
        """Look once, and note what requests go by from then on."""
        catalogue, now = self._catalogue(), self._clock.now()
        lines = await self._work.redundant_lines()
        if not lines and not catalogue.host_classes.of:
            return HostClasses(now)
        active_since = Instant(now - catalogue.settings.ranking.active_s)
        hosts = await self._work.alike_hosts(active_since=active_since) if lines else ()
        found = HostClasses(now, standings_of(lines, hosts, catalogue))
        await self._work.note_classes(found)
        return found


def standings_of(
    lines: Mapping[Line, Mapping[int, Flop]], hosts: Iterable[AlikeHosts], catalogue: Catalogue
) -> tuple[ClassStanding, ...]:
    """Every class of each app and type, of the hosts with a platform the app has a version for. Pure.

    `lines` has the unsent work that is committed to each class. Hosts whose class cannot be told are left out.
    """
    hosts = tuple(hosts)
    found = []
    for (app_id, hr_type), queued in sorted(lines.items()):
        platforms = {one.platform for one in catalogue.current.get(app_id, ()) if one.processor_type == CPU}
        platforms = platforms or {one.platform for one in catalogue.current.get(app_id, ())}
        classes: dict[int, list[AlikeHosts]] = {}
        for one in hosts:
            if platforms.intersection(one.platforms):
                classes.setdefault(class_by_names(one.os_name, one.cpu_vendor, hr_type), []).append(one)
        for hr_class, some in sorted(classes.items()):
            if hr_class:
                found.append(_standing(app_id, hr_type, hr_class, some, queued.get(hr_class, Flop(0.0))))
    return tuple(found)


def _standing(app_id: AppId, hr_type: int, hr_class: int, some: list[AlikeHosts], queued: Flop) -> ClassStanding:
    count = sum(one.hosts for one in some)
    return ClassStanding(
        app_id,
        hr_type,
        hr_class,
        count,
        sum(one.cores for one in some),
        FlopPerSecond(sum(one.flop_per_s for one in some)),
        Seconds(sum(one.interval_s * one.hosts for one in some) / count),
        queued,
    )
