"""Which hosts does somebody ask for, and where does their list go on?"""

from __future__ import annotations

from math import isfinite

from domain.errors import InvalidInputError
from domain.host_lists import HostChoice, HostKind, HostList, HostPlace
from domain.units import AppVersionId, HostId, Instant, Seconds
from operations.ports import HostLists

PAGE = 1000
MOST_ID = 2**31 - 1
FAILED_WITHIN_S = Seconds(7 * 86400.0)
SILENT_S = Seconds(7 * 86400.0)  # unless told


def choice_of(kind: HostKind, *, now: Instant, silent_s: Seconds = SILENT_S, email: str = "") -> HostChoice:
    """Failing hosts are those of the last week, silent ones those that did not call for `silent_s`.

    >>> choice_of(HostKind.SILENT, now=Instant(1000.0), silent_s=Seconds(60.0)).since
    940.0
    """
    since = {HostKind.FAILING: now - FAILED_WITHIN_S, HostKind.SILENT: now - silent_s}.get(kind, 0.0)
    return HostChoice(kind, Instant(since), email)


def place_of(text: str) -> HostPlace | None:
    """Where a list goes on, as its address has it. Raises InvalidInputError.

    >>> place_of("7~0.5~3"), place_of("")
    (HostPlace(host_id=7, key=0.5, app_version_id=3), None)
    """
    if not text:
        return None
    try:
        host_id, key, version_id = text.split("~")
        place = HostPlace(HostId(int(host_id)), float(key), AppVersionId(int(version_id)))
        known = isfinite(place.key) and 0.0 <= place.key <= MOST_ID and 0 <= place.app_version_id <= MOST_ID
        if not (known and 0 < place.host_id <= MOST_ID):
            raise ValueError
    except ValueError:
        raise InvalidInputError("after", "where a list goes on, as its link has it", text) from None
    return place


def address_of(place: HostPlace) -> str:
    """The other way.

    >>> address_of(HostPlace(HostId(7), 0.5, AppVersionId(3)))
    '7~0.5~3'
    """
    return f"{place.host_id}~{float(place.key)!r}~{place.app_version_id}"


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
