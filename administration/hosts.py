"""Selects hosts for lists, and converts them to JSON for the API and the command line. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from administration.names import checked_text
from administration.show import shown
from domain.errors import InvalidInputError
from domain.host_lists import HostChoice, HostKind, HostSort, ListedHost
from domain.hosts import HostAppVersion
from domain.queue_hosts import LABEL, MOST_LABELS
from domain.units import Instant, Seconds
from muster_client import shapes


def listed_as_json(one: ListedHost) -> shapes.ListedHostShown:
    """Return a listed host, and why it is slow or failing."""
    failures = one.failures and shown(shapes.HostFailuresShown, one.failures)
    slow = one.slow and shown(shapes.SlowShown, one.slow, relative_turnaround=one.slow.relative)
    return shown(shapes.ListedHostShown, one, one.host, slow=slow, failures=failures, credit=one.credit.total)


def hav_as_json(hav: HostAppVersion, now: Instant) -> shapes.HavShown:
    """Return a host's statistics for one app version."""
    tight_n, relaxed_n = hav.tight.at_time(now).n, hav.relaxed.at_time(now).n
    return shown(shapes.HavShown, hav, tight_n=tight_n, relaxed_n=relaxed_n)


def checked_labels(labels: Sequence[str]) -> list[str]:
    """Return valid labels of a host, sorted, each once. Raises InvalidInputError.

    >>> checked_labels(["lab", "cluster", "lab"])
    ['cluster', 'lab']
    """
    found = sorted(set(labels))
    if len(found) > MOST_LABELS:
        raise InvalidInputError("labels", f"at most {MOST_LABELS} labels", len(found))
    for one in found:
        if re.fullmatch(LABEL, one) is None:
            raise InvalidInputError("labels", "1 to 64 letters, digits, _, . and -, first a letter or digit", one)
    return found


FAILED_WITHIN_S = Seconds(7 * 86400.0)  # the failures of app versions
SILENT_S = Seconds(7 * 86400.0)  # default silence of a silent host
CALLED_WITHIN_S = Seconds(86400.0)  # default for hosts without work
WITHIN_S = {HostKind.SILENT: SILENT_S, HostKind.WITHOUT_WORK: CALLED_WITHIN_S}
SELECTED = (HostKind.ALL, HostKind.WITHOUT_WORK, HostKind.SILENT)  # lists with filters and orders


def choice_of(
    kind: HostKind,
    *,
    now: Instant,
    within_s: Seconds | None = None,
    email: str = "",
    text: str = "",
    platform: str = "",
    label: str = "",
    sort: HostSort = HostSort.NEWEST,
) -> HostChoice:
    """Return the selection for a list. Silent: no request for `within_s`; without work: asked within `within_s`.

    Raises InvalidInputError if the list has no such filter.

    >>> choice_of(HostKind.SILENT, now=Instant(1000.0), within_s=Seconds(60.0)).since
    940.0
    """
    lists = {
        "volunteer": (email, (HostKind.ALL,)),
        "q": (text, SELECTED),
        "platform": (platform, SELECTED),
        "label": (label, SELECTED),
    }
    for field, (given, kinds) in lists.items():
        if checked_text(given, field) and kind not in kinds:
            raise InvalidInputError(field, f"no value: only the list of {' and '.join(kinds)} hosts has it", given)
    if sort is not HostSort.NEWEST and kind not in SELECTED:
        raise InvalidInputError("sort", f"no value: the list of {kind} hosts has its own order", sort.value)
    length_s = WITHIN_S.get(kind) if within_s is None else within_s
    since = Instant(0.0 if length_s is None else now - length_s)
    return HostChoice(kind, since, email, platform, label, sort, text)
