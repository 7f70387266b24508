"""Assembles the job array part of a worker's heartbeat, and defines maximum ages of heartbeats. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from domain.apps import CPU
from domain.catalogue import CatalogueSource
from domain.units import AppId, Instant, Seconds
from feeder.array import JobArray
from feeder.groups import GroupKey
from feeder.unschedulable import Unrunnable

SILENT_S = Seconds(35.0)  # more than three heartbeat intervals: the process is considered ended
FORGOTTEN_S = Seconds(86_400.0)  # how long a process's last heartbeat is kept
MOST_UNRUNNABLE = 200  # maximum number of groups reported, longest waiting first
MOST_TAKEN = 2_000  # maximum number of groups reported, latest first
MOST_HOSTS = 5_000  # maximum number of host ids reported, longest-waiting work first; further hosts are only counted

Document = Mapping[str, Any]  # Any: a JSON document


def partitions(array: JobArray, source: CatalogueSource, now_s: Seconds) -> list[dict[str, object]]:
    """Return slots by app and kind, with processor types and the number of requests for each of these types."""
    catalogue, mix = source.catalogue(), array.mix.weights(now_s=now_s)
    slots: dict[AppId, Counter[bool]] = {app_id: Counter() for app_id in catalogue.current}
    for group in array.each_group():
        slots.setdefault(group.batch.app_id, Counter())[group.urgent] += len(group)
    names = {app_id: app.name for app_id, app in catalogue.apps.items()}
    return [
        {
            "app": names.get(app_id, str(app_id)),
            "processor_type": kind,
            "urgent": counted[True],
            "fresh": counted[False],
            "asked": mix.get(kind, 0.0),
        }
        for app_id, counted in sorted(slots.items())
        for kind in sorted(catalogue.processor_types(app_id)) or [CPU]
    ]


def unrunnable_as_json(
    found: Sequence[Unrunnable], *, most: int = MOST_UNRUNNABLE, most_hosts: int = MOST_HOSTS
) -> list[dict[str, object]]:
    """Return unschedulable groups, longest waiting first: slots by shard, and hosts by refusal code.

    Hosts are listed by id as long as all hosts of a group fit within `most_hosts` ids in total; otherwise they are
    counted.

    >>> row = Unrunnable(7, 1, False, {3: 5}, {9: "disk", 8: "disk"}, Instant(1.0), False)
    >>> [(one["slots"], one["hosts"], one["refused_by"]) for one in unrunnable_as_json([row, row], most_hosts=3)]
    [({'3': 5}, 2, {'disk': [8, 9]}), ({'3': 5}, 2, {})]
    """
    shown = []
    for row in found[:most]:
        refused_by: dict[str, list[int]] = {}
        if row.hosts <= most_hosts:
            most_hosts -= row.hosts
            for host_id in sorted(row.refused_by):
                refused_by.setdefault(row.refused_by[host_id], []).append(host_id)
        shown.append(
            {
                "batch_id": row.batch_id,
                "job_class_id": row.job_class_id,
                "urgent": row.urgent,
                "waiting": row.waiting,
                "slots": {str(shard): count for shard, count in sorted(row.slots.items())},
                "hosts": row.hosts,
                "codes": dict(row.codes),
                "refused_by": refused_by,
                "since_at": row.since_at,
                "rotated_out": row.rotated_out,
                "more_hosts": row.more_hosts,
                "more_s": row.more_s,
            }
        )
    return shown


def taken_as_json(taken: Mapping[GroupKey, Instant], *, most: int = MOST_TAKEN) -> list[list[object]]:
    """Return when a host last took work of each group, latest first.

    >>> taken_as_json({(7, 1, False): Instant(5.0), (8, 2, True): Instant(6.0)})
    [[8, 2, True, 6.0], [7, 1, False, 5.0]]
    """
    latest = sorted(taken.items(), key=lambda item: (-item[1], item[0]))
    return [[*key, at] for key, at in latest[:most]]
