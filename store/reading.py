"""What does the database know about those who are asking? One set-based read for any number of requests."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from domain.apps import Volunteer
from domain.dispatch import Reported, RequestKey, RequestView
from domain.hosts import Host, HostAppVersion
from domain.jobs import Held
from domain.units import AppVersionId, HostId, InstanceId
from store import rows, work_rows
from store.pool import Connection
from store.queries import load

LARGEST_ID = 2**63 - 1


async def read_many(connection: Connection, keys: Sequence[RequestKey]) -> list[RequestView]:
    """One view per key, in order."""
    askers = await _askers(connection, keys)
    host_ids = sorted({host.host_id for _, host in askers.values() if host is not None})
    versions = await _versions(connection, host_ids)
    held = await _held(connection, host_ids)
    reported = await _reported(connection, keys)
    views = []
    for position, key in enumerate(keys):
        volunteer, host = askers.get(position, (None, None))
        if host is None:
            views.append(RequestView(volunteer))
            continue
        found = {i: reported[i] for i in key.instance_ids if i in reported and reported[i].held.host_id == host.host_id}
        views.append(RequestView(volunteer, host, versions[host.host_id], tuple(held[host.host_id]), found))
    return views


async def _askers(connection: Connection, keys: Sequence[RequestKey]) -> dict[int, tuple[Volunteer, Host | None]]:
    found = await connection.fetch(
        load("who_asks"),
        [key.authenticator_hash for key in keys],
        [key.host_id if 0 <= key.host_id <= LARGEST_ID else -1 for key in keys],
        [key.host_cpid for key in keys],
    )
    return {
        row["position"] - 1: (rows.volunteer(row, "v_"), None if row["host_id"] is None else rows.host(row))
        for row in found
    }


async def _versions(
    connection: Connection, host_ids: Sequence[HostId]
) -> Mapping[HostId, dict[AppVersionId, HostAppVersion]]:
    by_host: dict[HostId, dict[AppVersionId, HostAppVersion]] = defaultdict(dict)
    if host_ids:
        for row in await connection.fetch(load("versions_of_hosts"), host_ids):
            by_host[row["host_id"]][row["app_version_id"]] = rows.host_app_version(row)
    return by_host


async def _held(connection: Connection, host_ids: Sequence[HostId]) -> Mapping[HostId, list[Held]]:
    by_host: dict[HostId, list[Held]] = defaultdict(list)
    if host_ids:
        for row in await connection.fetch(load("instances_on_hosts"), host_ids):
            by_host[row["host_id"]].append(work_rows.held(row))
    return by_host


async def _reported(connection: Connection, keys: Sequence[RequestKey]) -> Mapping[InstanceId, Reported]:
    asked = sorted({instance_id for key in keys for instance_id in key.instance_ids if 0 < instance_id <= LARGEST_ID})
    if not asked:
        return {}
    return {
        row["instance_id"]: work_rows.reported(row) for row in await connection.fetch(load("instances_reported"), asked)
    }
