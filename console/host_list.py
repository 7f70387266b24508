"""Hosts: all of them, or those that are slow, fail or are silent, page by page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from aiohttp import web

from administration.cursors import cursor_of, place_of
from administration.hosts import FAILED_WITHIN_S, SILENT_S, choice_of
from administration.names import checked_text
from domain.catalogue import Catalogue
from domain.errors import InvalidInputError
from domain.host_lists import LOOKED_AT, HostKind, HostPlace, SlowWith
from domain.units import DAY_S, Seconds
from web.desk import Desk, number_of
from web.rendering import Page

PER_PAGE = 50
SILENT_DAYS = SILENT_S / DAY_S
MOST_DAYS = 3650.0
TABS = {
    HostKind.ALL: ("all", "Volunteers' computers, the newest first."),
    HostKind.SLOW: (
        "slow",
        "In the slowest tenth of their app and processor by the last full ranking, the slowest first.",
    ),
    HostKind.FAILING: ("failing", "Errors, invalid results and time-outs of the last week, the most first."),
    HostKind.SILENT: ("silent", "They have not called for a while, the newest first. What they hold times out."),
}


@dataclass(frozen=True, slots=True)
class Asked:
    """What the address asks for. `days` is how long a silent host has not called."""

    kind: HostKind
    text: str
    days: float
    after: HostPlace | None

    @property
    def kept(self) -> dict[str, str]:
        """What links to other pages of the same list say."""
        shown = {} if self.kind is HostKind.ALL else {"show": self.kind.value}
        days = {"days": f"{self.days:g}"} if self.kind is HostKind.SILENT else {}
        return {**shown, **days, **({"q": self.text} if self.text else {})}


def asked_of(query: Mapping[str, str]) -> Asked:
    """Reads the address. Raises InvalidInputError.

    >>> asked_of({"show": "silent", "days": "2"}).kept
    {'show': 'silent', 'days': '2'}
    """
    kind, text = query.get("show", "") or HostKind.ALL, checked_text(query.get("q", "").strip(), "q")
    if kind not in list(HostKind):
        raise InvalidInputError("show", "one of " + ", ".join(HostKind), kind)
    if text and kind != HostKind.ALL:
        raise InvalidInputError("q", "nothing: a number or an e-mail is looked for among all hosts", text)
    days = number_of(query, "days", low=0.0, high=MOST_DAYS)
    if days is not None and kind != HostKind.SILENT:
        raise InvalidInputError("days", "nothing: it is asked of silent hosts", query["days"])
    after = place_of(HostPlace, query.get("after", ""))
    return Asked(HostKind(kind), text, SILENT_DAYS if days is None else days, after)


def version_of(slow: SlowWith, catalogue: Catalogue) -> tuple[str, str]:
    """The app and what its version is called; its number where it is no more."""
    version = catalogue.versions.get(slow.app_version_id)
    if version is None or version.app_id not in catalogue.apps:
        return "", f"version {slow.app_version_id}"
    return catalogue.apps[version.app_id].name, version.title


class HostListPage:
    """The list."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/hosts", self.show, name="hosts")]

    async def show(self, request: web.Request) -> web.Response:
        """A number that is looked for leads to that host, an e-mail to that volunteer's."""
        asked = asked_of(request.query)
        if asked.text.isascii() and asked.text.isdigit():
            return self._desk.go(f"hosts/{int(asked.text[:18])}")
        silent_s = Seconds(asked.days * DAY_S)
        choice = choice_of(asked.kind, now=self._desk.clock.now(), silent_s=silent_s, email=asked.text)
        found = await self._desk.store.host_lists.hosts(choice, after=asked.after, limit=PER_PAGE)
        name, about = TABS[asked.kind]
        values: dict[str, object] = {
            "found": found,
            "asked": asked,
            "kind": asked.kind.value,
            "name": name,
            "about": about,
            "kept_s": self._desk.catalogue.settings.storage.keep_ended_s,
            "failed_within_s": FAILED_WITHIN_S,
            "tabs": [(kind.value, name) for kind, (name, _) in TABS.items()],
            "looked_at": LOOKED_AT,
            "version_of": lambda slow: version_of(slow, self._desk.catalogue),
            "first": "?" + urlencode(asked.kept) if asked.after else None,
            "next": "?" + urlencode({**asked.kept, "after": cursor_of(found.after)}) if found.after else None,
        }
        return self._desk.show(request, Page("hosts.html", "Hosts", "hosts", values=values))
