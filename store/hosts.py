"""Decides which changes to a host's description are written after a request. Pure.

Clients describe their computer in every request, and the description hardly ever changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

from domain.dispatch import RequestWrites
from domain.hosts import Host
from domain.units import HostId, Instant, VolunteerId
from store.rows import encoded, values_of

NEWS_FRACTION = 0.01  # minimum relative change of a measured number that is written
NEWS_SKEW_S = 60.0  # the same for a clock, in seconds; requests take minutes at most
OVERTAKEN_S = 60.0  # maximum age of a request overtaken by its host's next one; beyond that a clock was wrong


Computer = tuple[VolunteerId, str, str]  # volunteer, CPID, host name


def computer_of(host: Host) -> Computer:
    """Return the values that identify a computer across its host records."""
    return host.volunteer_id, host.host_cpid, host.domain_name


# in the order of the queries write_group and insert_host
said = values_of("rpc_seqno last_rpc_at")  # sent in each request
DESCRIPTION = (
    "host_cpid domain_name ncpus flop_per_s ram_bytes disk_free_bytes on_fraction active_fraction gpu_active_fraction"
    " platforms os_name os_version cpu_vendor cpu_model client_version coprocessors clock_skew_s software"
)
MEASURED = ("flop_per_s", "ram_bytes", "disk_free_bytes", "on_fraction", "active_fraction", "gpu_active_fraction")
_measured = attrgetter(*MEASURED)
_exact = attrgetter(*[name for name in DESCRIPTION.split() if name not in (*MEASURED, "clock_skew_s")])
description = values_of(DESCRIPTION, coprocessors=lambda host: encoded(host.coprocessors))


def is_news(host: Host, known: Host | None) -> bool:
    """Return whether a host's description differs from its record (`known`), or True if that is None.

    Numbers that clients measure continuously count as changed if they differ by 1 % or more.

    >>> from dataclasses import replace
    >>> from domain.units import HostId, VolunteerId
    >>> host = Host(HostId(1), VolunteerId(1), disk_free_bytes=1e9)
    >>> is_news(replace(host, disk_free_bytes=1.001e9, rpc_seqno=7), host)
    False
    >>> is_news(replace(host, ncpus=2), host), is_news(host, None)
    (True, True)
    """
    if known is None or known.host_id != host.host_id:
        return True
    return (
        _exact(host) != _exact(known)
        or abs(host.clock_skew_s - known.clock_skew_s) > NEWS_SKEW_S
        or any(map(_differs, _measured(host), _measured(known)))
    )


def is_overtaken(at: Instant, last_at: Instant) -> bool:
    """Return whether a description sent at `at` is older than the one recorded at `last_at`.

    A recorded time far in the future comes from a wrong clock and must not freeze the host's record.

    >>> is_overtaken(Instant(100.0), Instant(101.0)), is_overtaken(Instant(100.0), Instant(161.0))
    (True, False)
    """
    return at < last_at <= at + OVERTAKEN_S


def host_columns(writes: Sequence[RequestWrites]) -> list[list[object]]:
    """Return the first array arguments of the query write_group: an entry per host, from its latest request."""
    latest: dict[HostId, RequestWrites] = {}
    for write in writes:
        before = latest.get(write.host.host_id)
        if before is None or not is_overtaken(write.host.last_rpc_at, before.host.last_rpc_at):
            latest[write.host.host_id] = write
    return [list(column) for column in zip(*map(_line, latest.values()), strict=True)]


def _line(write: RequestWrites) -> tuple[object, ...]:
    host = write.host
    refused = encoded(write.refused) if write.refused else None
    if not is_news(host, write.known):
        return (host.host_id, *said(host), *_NOTHING_NEW, refused)
    # nested arrays are sent as JSON
    told = (encoded(value) if isinstance(value, tuple) else value for value in description(host))
    return (host.host_id, *said(host), *told, refused)


def _differs(value: float, known: float) -> bool:
    return abs(value - known) > NEWS_FRACTION * abs(known)


_NOTHING_NEW = (None,) * len(DESCRIPTION.split())
