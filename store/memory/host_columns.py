"""Hosts and their app versions in tables of numbers, for whoever looks at all of them at once."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from domain.hosts import Host, HostAppVersion
from domain.units import AppVersionId, HostId
from store.binary_copy import Table
from store.memory.kept_table import KeptTable
from store.memory.rows import StoredHost

NAN = float("nan")
Pair = tuple[HostId, AppVersionId]

HOST_COLUMNS: tuple[tuple[str, str], ...] = (
    ("last_rpc_at", "f8"),
    ("flop_per_s", "f8"),
    ("ncpus", "f8"),
    ("ram_bytes", "f8"),
    ("disk_free_bytes", "f8"),
    ("cpu_fraction", "f8"),
)
# NaN where nothing is known.
HAV_COLUMNS: tuple[tuple[str, str], ...] = (
    ("host_id", "i4"),
    ("volunteer_id", "i4"),
    ("app_version_id", "i4"),
    ("consecutive_valid", "i4"),
    ("failed", "?"),
    ("clean_since_at", "f8"),
    ("stats_at", "f8"),
    ("relaxed_n", "f8"),
    ("relaxed_sum", "f8"),
    ("tight_n", "f8"),
    ("tight_sum", "f8"),
    ("tight_sum_sq", "f8"),
    ("tight_missed_n", "f8"),
    ("log_n", "i8"),
    ("log_sum", "f8"),
    ("log_sum_sq", "f8"),
    ("n_error", "i8"),
    ("n_timeout", "i8"),
    ("n_due", "i8"),
    ("s_per_flop", "f8"),
    ("last_rpc_at", "f8"),
    ("rpc_interval_s", "f8"),
    ("cpu_fraction", "f8"),
    ("gpu_fraction", "f8"),
)


class HostColumns:
    """Tables of `hosts`, brought up to date when they are read. `changed` is what was touched since."""

    def __init__(self, hosts: Mapping[HostId, StoredHost]) -> None:
        self.changed: set[HostId] = set()
        self._hosts = hosts
        self._host_places: dict[HostId, int] = {}
        self._places: dict[Pair, int] = {}
        self._of_hosts = KeptTable(HOST_COLUMNS)
        self._of_havs = KeptTable(HAV_COLUMNS)

    def of_hosts(self) -> Table:
        """HOST_COLUMNS of every host, as they are now, in the order in which they came."""
        self._update()
        return self._of_hosts.rows

    def of_versions(self, versions: Collection[AppVersionId]) -> Table:
        """HAV_COLUMNS of every host with a row of these versions, in no order that means anything; a copy."""
        self._update()
        rows = self._of_havs.rows
        return rows[np.isin(rows["app_version_id"], np.array(sorted(versions), "i4"))]

    def of_pairs(self, pairs: Collection[Pair]) -> tuple[Table, list[Pair]]:
        """HAV_COLUMNS of those of the pairs that have a row, a copy; and the others."""
        self._update()
        places = self._places
        known = [places[pair] for pair in pairs if pair in places]
        return self._of_havs.rows[np.array(known, "i8")], [pair for pair in pairs if pair not in places]

    def _update(self) -> None:
        if not self.changed:
            return
        changed = [self._hosts[host_id] for host_id in sorted(self.changed)]
        self.changed.clear()
        host_places = self._host_places
        self._of_hosts.write(
            [host_places.setdefault(stored.host.host_id, len(host_places)) for stored in changed],
            [_host(stored.host) for stored in changed],
        )
        havs = [(stored, row) for stored in changed for row in stored.havs.values()]
        places = self._places
        self._of_havs.write(
            [places.setdefault((row.host_id, row.app_version_id), len(places)) for _, row in havs],
            [_hav(stored.host, stored.rpc_interval_s, row) for stored, row in havs],
        )


def _host(host: Host) -> tuple[object, ...]:
    """The fields of HOST_COLUMNS."""
    about = (host.ram_bytes, host.disk_free_bytes, host.cpu_availability_fraction)
    return (host.last_rpc_at, host.flop_per_s, host.ncpus, *about)


def _hav(host: Host, rpc_interval_s: float | None, row: HostAppVersion) -> tuple[object, ...]:
    """The fields of HAV_COLUMNS."""
    relaxed, tight = row.relaxed, row.tight
    return (
        row.host_id,
        host.volunteer_id,
        row.app_version_id,
        row.consecutive_valid,
        row.failed_last,
        NAN if row.clean_since_at is None else row.clean_since_at,
        relaxed.at,
        relaxed.n,
        relaxed.total,
        tight.n,
        tight.total,
        tight.total_sq,
        row.tight_missed_n,
        row.log_n,
        row.log_sum,
        row.log_sum_sq,
        row.n_error,
        row.n_timeout,
        row.n_due,
        row.speed.mean if row.speed.n > 0 else NAN,
        host.last_rpc_at,
        NAN if rpc_interval_s is None else rpc_interval_s,
        host.cpu_availability_fraction,
        host.gpu_availability_fraction,
    )
