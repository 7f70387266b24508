"""Volunteers' computers: which ones a list is asked for, and as JSON for the API and the command line. Pure."""

from __future__ import annotations

from administration.ports import HostLists
from domain.host_lists import HostChoice, HostKind, HostList, ListedHost
from domain.hosts import Host, HostAppVersion
from domain.ranking import StoredPercentile
from domain.units import Instant, Seconds
from domain.views import ListedInProgress


def host_as_json(host: Host) -> dict[str, object]:
    """A host without what identifies its owner's machine to the project."""
    return {
        "host_id": host.host_id,
        "volunteer_id": host.volunteer_id,
        "domain_name": host.domain_name,
        "created_at": host.created_at,
        "last_rpc_at": host.last_rpc_at,
        "ncpus": host.ncpus,
        "flop_per_s": host.flop_per_s,
        "ram_bytes": host.ram_bytes,
        "disk_free_bytes": host.disk_free_bytes,
        "on_fraction": host.on_fraction,
        "active_fraction": host.active_fraction,
        "platforms": list(host.platforms),
        "os_name": host.os_name,
        "os_version": host.os_version,
        "cpu_vendor": host.cpu_vendor,
        "cpu_model": host.cpu_model,
        "client_version": host.client_version,
        "coprocessors": [
            {
                "type": one.type,
                "count": one.count,
                "peak_flop_per_s": one.peak_flop_per_s,
                "ram_bytes": one.ram_bytes,
                "driver_version": one.driver_version,
            }
            for one in host.coprocessors
        ],
    }


def listed_as_json(one: ListedHost, since: Instant | None = None) -> dict[str, object]:
    """A host of a list, with what it has and did; what makes it slow or failing where it is listed as such.

    `since` is when the failures of failing ones are counted from.
    """
    slow, failures = one.slow, one.failures
    return {
        **host_as_json(one.host),
        "in_progress": one.in_progress,
        "n_valid": one.n_valid,
        "n_error": one.n_error,
        "n_timeout": one.n_timeout,
        "slow": slow and {"app_version_id": slow.app_version_id, "x": slow.x, "relative_turnaround": slow.relative},
        "failures": failures
        and {
            "errors": failures.errors,
            "invalid": failures.invalid,
            "timed_out": failures.timed_out,
            "last_at": failures.last_at,
            "since": since,
        },
    }


def hav_as_json(hav: HostAppVersion, now: Instant) -> dict[str, object]:
    """What is known of a host with one app version."""
    return {
        "app_version_id": hav.app_version_id,
        "consecutive_valid": hav.consecutive_valid,
        "quota_per_day": hav.quota_per_day,
        "sent_today": hav.sent_today,
        "n_valid": hav.n_valid,
        "n_error": hav.n_error,
        "n_timeout": hav.n_timeout,
        "n_due": hav.n_due,
        "tight_n": hav.tight.at_time(now).n,
        "relaxed_n": hav.relaxed.at_time(now).n,
    }


def held_as_json(one: ListedInProgress) -> dict[str, object]:
    """An instance that a host has in progress."""
    return {
        "instance_id": one.instance_id,
        "job_id": one.job_id,
        "batch_id": one.batch_id,
        "app": one.app,
        "sent_at": one.sent_at,
        "due_at": one.due_at,
        "est_runtime_s": one.est_runtime_s,
        "tight": one.tight,
    }


def percentile_as_json(one: StoredPercentile) -> dict[str, object]:
    """Where a host stands with one app version: `p` = min(x, y), None for a newcomer."""
    return {"app_version_id": one.app_version_id, "p": one.p, "x": one.x, "y": one.y}


PAGE = 1000
FAILED_WITHIN_S = Seconds(7 * 86400.0)
SILENT_S = Seconds(7 * 86400.0)  # unless told


def choice_of(kind: HostKind, *, now: Instant, silent_s: Seconds = SILENT_S, email: str = "") -> HostChoice:
    """Failing hosts are those of the last week, silent ones those that did not call for `silent_s`.

    >>> choice_of(HostKind.SILENT, now=Instant(1000.0), silent_s=Seconds(60.0)).since
    940.0
    """
    since = {HostKind.FAILING: now - FAILED_WITHIN_S, HostKind.SILENT: now - silent_s}.get(kind, 0.0)
    return HostChoice(kind, Instant(since), email)


def counted_since(page: HostList, choice: HostChoice) -> Instant | None:
    """Since when the failures of failing hosts are counted; None of a list that counts none.

    Later than the choice says where there were more than are looked at. Those of batches that ended longer than
    `storage.keep_ended_s` ago are in the history, and not counted.

    >>> choice = HostChoice(HostKind.FAILING, Instant(100.0))
    >>> counted_since(HostList([]), choice), counted_since(HostList([], since=Instant(150.0)), choice)
    (100.0, 150.0)
    """
    if choice.kind is not HostKind.FAILING:
        return None
    return choice.since if page.since is None else page.since


async def first_hosts(lists: HostLists, choice: HostChoice, limit: int) -> HostList:
    """The first `limit` of a list, read page by page."""
    page = first = await lists.hosts(choice, after=None, limit=min(limit, PAGE))
    found = list(page.hosts)
    while page.after is not None and len(found) < limit:
        page = await lists.hosts(choice, after=page.after, limit=min(limit - len(found), PAGE))
        found += page.hosts
    return HostList(found, page.after, first.since)
