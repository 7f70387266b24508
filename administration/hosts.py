"""Selects hosts for lists, and converts them to JSON for the API and the command line. Pure."""

from __future__ import annotations

from administration.show import shown
from domain.host_lists import HostChoice, HostKind, HostList, ListedHost
from domain.hosts import HostAppVersion
from domain.units import Instant, Seconds
from muster_client import shapes


def listed_as_json(one: ListedHost, since: Instant | None = None) -> shapes.ListedHostShown:
    """Return a listed host and why it is slow or failing. `since` is the start of counting failures."""
    failures = one.failures and shown(shapes.FailuresShown, one.failures, since=since)
    slow = one.slow and shown(shapes.SlowShown, one.slow, relative_turnaround=one.slow.relative)
    return shown(shapes.ListedHostShown, one, one.host, slow=slow, failures=failures, credit=one.credit.total)


def hav_as_json(hav: HostAppVersion, now: Instant) -> shapes.HavShown:
    """Return a host's statistics for one app version."""
    tight_n, relaxed_n = hav.tight.at_time(now).n, hav.relaxed.at_time(now).n
    return shown(shapes.HavShown, hav, tight_n=tight_n, relaxed_n=relaxed_n)


FAILED_WITHIN_S = Seconds(7 * 86400.0)
SILENT_S = Seconds(7 * 86400.0)  # default silence of a silent host


def choice_of(kind: HostKind, *, now: Instant, silent_s: Seconds = SILENT_S, email: str = "") -> HostChoice:
    """Return the selection for a list. Failing: within the last week; silent: no request for `silent_s`.

    >>> choice_of(HostKind.SILENT, now=Instant(1000.0), silent_s=Seconds(60.0)).since
    940.0
    """
    since = {HostKind.FAILING: now - FAILED_WITHIN_S, HostKind.SILENT: now - silent_s}.get(kind, 0.0)
    return HostChoice(kind, Instant(since), email)


def counted_since(page: HostList, choice: HostChoice) -> Instant | None:
    """Return when the counting of failures starts for failing hosts, None for other lists.

    It is later than in `choice` if there were more failures than can be read. Failures in batches that ended more than
    `storage.keep_ended_s` ago are in the history and not counted.

    >>> choice = HostChoice(HostKind.FAILING, Instant(100.0))
    >>> counted_since(HostList([]), choice), counted_since(HostList([], since=Instant(150.0)), choice)
    (100.0, 150.0)
    """
    if choice.kind is not HostKind.FAILING:
        return None
    return choice.since if page.since is None else page.since
