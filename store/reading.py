"""What does the database know about those who are asking? Two set-based reads for any number of requests.

Who asks, with the host's app versions; then what those hosts have in progress, which is also what they mostly
report. Only a report of something else is looked up apart.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import asyncpg

from domain.dispatch import Reported, RequestKey, RequestView
from domain.hosts import Host, HostAppVersion
from domain.jobs import InstanceInProgress
from domain.quotas import SharedQuota
from domain.units import AppVersionId, HostId, InstanceId, VolunteerId
from domain.volunteers import Volunteer
from store import rows, work_rows
from store.pool import Connection
from store.queries import load

LARGEST_ID = 2**63 - 1

Computer = tuple[VolunteerId, str, str]  # volunteer, CPID, the computer's name


@dataclass(frozen=True, slots=True)
class Asker:
    """Who sends a request."""

    volunteer: Volunteer
    host: Host | None = None
    versions: Mapping[AppVersionId, HostAppVersion] = field(default_factory=dict)
    network: str = ""
    quotas: tuple[SharedQuota, ...] = ()


def computer_of(host: Host) -> Computer:
    """What a computer is known by, whatever record it has."""
    return host.volunteer_id, host.host_cpid, host.domain_name


async def read_many(connection: Connection, keys: Sequence[RequestKey]) -> list[RequestView]:
    """One view per key, in order."""
    askers = await _askers(connection, keys)
    wanted = {instance_id for key in keys for instance_id in key.instance_ids if 0 < instance_id <= LARGEST_ID}
    held, reported = await _held(connection, askers.values(), wanted)
    others = wanted - reported.keys()
    computers = {asker.host.host_id: computer_of(asker.host) for asker in askers.values() if asker.host is not None}
    if others:
        for row in await connection.fetch(load("instances_reported"), sorted(others)):
            reported[row["instance_id"]] = work_rows.reported(row)
            computers[row["host_id"]] = (row["volunteer_id"], row["host_cpid"], row["domain_name"])
    return [_view(askers.get(position), key, held, reported, computers) for position, key in enumerate(keys)]


def _view(
    asker: Asker | None,
    key: RequestKey,
    held: Mapping[HostId, Sequence[InstanceInProgress]],
    reported: Mapping[InstanceId, Reported],
    computers: Mapping[HostId, Computer],
) -> RequestView:
    if asker is None:
        return RequestView()
    if asker.host is None:
        return RequestView(asker.volunteer, network=asker.network, quotas=asker.quotas)
    host = asker.host
    computer = computer_of(host)
    found = {
        i: reported[i]
        for i in key.instance_ids
        if i in reported
        and (
            reported[i].held.host_id == host.host_id
            or (key.of_computer and computers.get(reported[i].held.host_id) == computer)
        )
    }
    of_host = tuple(held.get(host.host_id, ()))
    return RequestView(asker.volunteer, host, asker.versions, of_host, found, asker.network, asker.quotas)


async def _askers(connection: Connection, keys: Sequence[RequestKey]) -> dict[int, Asker]:
    found = await connection.fetch(
        load("who_asks"),
        [key.authenticator_hash for key in keys],
        [key.host_id if 0 <= key.host_id <= LARGEST_ID else -1 for key in keys],
        [key.host_cpid for key in keys],
        [key.network for key in keys],
    )
    return {row["position"] - 1: _asker(row) for row in found}


def _asker(row: asyncpg.Record) -> Asker:
    volunteer, network = rows.volunteer(row, "v_"), row["asked_network"]
    quotas = tuple([SharedQuota(one["name"], one["earned"], one["day"], one["sent"]) for one in row["quotas"]])
    if row["host_id"] is None:
        return Asker(volunteer, network=network, quotas=quotas)
    versions = {hav["app_version_id"]: rows.host_app_version(hav) for hav in row["versions"]}
    return Asker(volunteer, rows.host(row), versions, network, quotas)


async def _held(
    connection: Connection, askers: Collection[Asker], wanted: Collection[InstanceId]
) -> tuple[Mapping[HostId, Sequence[InstanceInProgress]], dict[InstanceId, Reported]]:
    """What the askers' hosts have in progress, and those of it that are `wanted` as what is reported."""
    host_ids = sorted({asker.host.host_id for asker in askers if asker.host is not None})
    held: dict[HostId, list[InstanceInProgress]] = defaultdict(list)
    reported: dict[InstanceId, Reported] = {}
    if host_ids:
        for row in await connection.fetch(load("instances_on_hosts"), host_ids):
            entry = work_rows.held(row)
            held[entry.host_id].append(entry)
            if entry.instance_id in wanted:
                reported[entry.instance_id] = work_rows.reported(row, entry)
    return held, reported
