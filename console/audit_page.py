"""The audit trail: who changed what and when, by user, action, subject and day; also as CSV."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from math import inf
from urllib.parse import quote, urlencode

import msgspec
from aiohttp import web

from administration.access.people import PROJECT_NAME
from administration.access.trail import LOOKED_AT, RECENT, trail_page
from administration.access.who import admit
from administration.batch_lists import list_page
from administration.names import checked_text
from administration.ordering.history import day_of
from domain.access import ACTIONS, THROUGH, ActChoice, Role
from domain.apps import VersionState
from domain.errors import InvalidInputError
from domain.host_lists import HostChoice
from domain.hosts import host_in_words
from domain.settings import Settings
from domain.units import BatchId, HostId, Instant
from domain.views import BatchChoice, BatchSort
from web.csv_export import Row, is_csv, send_csv
from web.handlers import LARGEST_ID, LARGEST_INT, Pages, PageServices, get, whole_number
from web.moments import clock, stamp
from web.rendering import RenderedPage

PER_PAGE = 50
CHANGES = 10  # latest entries about the subject of a page
PER_ROUND = 1000  # entries that the CSV file reads at once
CSV_COLUMNS = ("act_id", "acted_at", "who", "what", "subject", "address", "detail")
FILTERS = ("who", "what", "subject", "first_day", "last_day")
BY_ID = {
    "batch": "batches",
    "job": "jobs",
    "instance": "instances",
    "host": "hosts",
    "simulation": "simulate",
    "volunteer": "volunteers",
}
BY_NAME = {"person": "people/person", "account": "accounts/account", "submitter": "accounts/submitter"}
SUBJECT = re.compile(r"(batch|host) ([0-9]{1,18})")
SETTINGS = tuple(Settings().as_mapping())  # their keys
MOST_NAMED = 50  # latest batches, and latest hosts, whose names contain the subject
ACTION_WORDS = {
    "set_app_version": "set version state",
    "set_importance": "set level",
    "invite_again": "new one-time password",
}  # others by their own name


def asked_of(query: Mapping[str, str]) -> ActChoice:
    """Parse the filters in the URL. Raises InvalidInputError."""
    who, what, subject = (checked_text(query.get(key, "").strip(), key) for key in ("who", "what", "subject"))
    since = _midnight(query, "first_day", 0, -inf)
    until = _midnight(query, "last_day", 1, inf)
    if until <= since:
        raise InvalidInputError("last_day", f"{query['first_day']} or a later day", query["last_day"])
    return ActChoice(who, what, subject, since, until)


def _midnight(query: Mapping[str, str], field: str, days: int, default: float) -> Instant:
    """Return the start of the day that is `days` after the given one (UTC), or the default without one."""
    if not query.get(field):
        return Instant(default)
    try:
        day = day_of(field, query[field]) + timedelta(days)
    except OverflowError:
        raise InvalidInputError(field, "an earlier day", query[field]) from None
    return Instant(datetime.combine(day, time(), UTC).timestamp())


def address_of(subject: str) -> str:
    """Return the address of the page about a subject, "" if there is none.

    >>> address_of("batch 7"), address_of("setting deadline.p_tight"), address_of("person a b"), address_of("app x")
    ('batches/7', 'settings/deadline.p_tight', 'people/person?name=a+b', 'apps/x')
    >>> address_of("queue bonus")
    ''
    """
    kind, _, name = subject.partition(" ")
    if kind in BY_ID and name.isascii() and name.isdigit():
        return f"{BY_ID[kind]}/{name}"
    if kind == "setting" and name.replace(".", "").replace("_", "").isalnum():
        return f"settings/{name}"
    if kind == "app" and name:
        return f"apps/{quote(name, safe='')}"
    return f"{BY_NAME[kind]}?{urlencode({'name': name})}" if kind in BY_NAME else ""


def in_words(action: str) -> str:
    """Return an action in the words of the console.

    >>> in_words("set_deadline"), in_words("set_app_version")
    ('set deadline', 'set version state')
    """
    return ACTION_WORDS.get(action, action.replace("_", " "))


def numbers_of(kind: str, subjects: Iterable[str]) -> list[int]:
    """Return the numbers of the subjects of a kind that the database may have.

    >>> numbers_of("host", ["host 7", "batch 8", "host x", "host 99999999999"])
    [7]
    """
    found = (SUBJECT.fullmatch(one) for one in subjects)
    most = LARGEST_INT if kind == "host" else LARGEST_ID
    return sorted(number for one in found if one and one[1] == kind and (number := int(one[2])) <= most)


def written(value: object, name: str = "") -> str:
    """Return a recorded value as text: lists as words, objects as JSON, times (named *_at) as dates, versions as on
    other pages.

    >>> written(["raise", "expedite"]), written({"p_tight": 0.8}), written(""), written(5.0), written(False)
    ('raise, expedite', '{"p_tight":0.8}', '(empty)', '5', 'no')
    >>> written("aborted", "state"), written(110, "version")
    ('withdrawn, instances aborted', '1.10')
    """
    match value:
        case str() if name == "state" and value in list(VersionState):
            return VersionState(value).words
        case int() if name == "version":
            return f"{value / 100:.2f}"
        case float() if name.endswith("_at"):
            return stamp(value)
        case None:
            return "(default)" if name == "value" else "(none)"
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:.12g}"
        case list() if all(isinstance(one, str) for one in value):
            return ", ".join(value) or "(none)"
        case list() | dict():
            return msgspec.json.encode(value).decode()
        case _:
            return str(value) or "(empty)"


@dataclass(frozen=True, slots=True)
class RecordedValue:
    """A recorded value; `old` is the former one, None if it is the same or was not recorded."""

    name: str
    new: str
    old: str | None = None


def values_of(detail: Mapping[str, object]) -> list[RecordedValue]:
    """Return the values of an entry. Former ones are under `was`: by name, or the one of `value`.

    >>> values_of({"level": "expedite", "was": {"level": "normal"}})
    [RecordedValue(name='level', new='expedite', old='normal')]
    >>> values_of({"values": {"p_tight": 0.8}, "was": {"p_tight": 0.9}, "why": "late"})
    [RecordedValue(name='p_tight', new='0.8', old='0.9'), RecordedValue(name='why', new='late', old=None)]
    >>> values_of({"was": {"granted_su": 10.0}})
    [RecordedValue(name='granted_su', new='(none)', old='10')]
    >>> values_of({"through": "api"})
    []
    >>> values_of({"shares": 2.0, "was": {"shares": 2.0}})
    [RecordedValue(name='shares', new='2', old=None)]
    >>> values_of({"abort": False, "why": ""})
    [RecordedValue(name='abort', new='no', old=None)]
    >>> values_of({"deadline_at": 1_800_000_000.0, "was": None})
    [RecordedValue(name='deadline_at', new='2027-01-15 08:00:00 UTC', old=None)]
    """
    several, was = detail.get("values"), detail.get("was")
    new = {**(several if isinstance(several, dict) else {}), **detail}
    new.pop(THROUGH, None)  # shown beside the author
    if isinstance(was, dict) and len(new) == 1:  # a removal
        new |= dict.fromkeys(was)
    old = was if isinstance(was, dict) else {"value": was} if "value" in detail and "was" in detail else {}
    hidden = {"was"} | ({"values"} if isinstance(several, dict) else set())
    if detail.get("why") == "":
        hidden.add("why")
    if "max_jobs" in detail:  # a ban, limit or pause, which the action says
        hidden |= {name for name in ("max_jobs", "abort") if not detail.get(name)}
    return [
        RecordedValue(name, written(value, name), written(old[name], name) if old.get(name, value) != value else None)
        for name, value in new.items()
        if name not in hidden
    ]


async def changes_of(services: PageServices, subject: str, *, since: Instant) -> Mapping[str, object]:
    """Return the values with which a page lists the latest changes of its subject."""
    found = await trail_page(services.store.access, ActChoice(subject=subject, since=since), before=None, limit=CHANGES)
    return {"trail": found, "action_words": in_words, "values_of": values_of}


class AuditPage(Pages[PageServices]):
    """The list of audit entries. Only operators may read it, as over the API."""

    @get("/audit", "audit", asks=(*FILTERS, "after", "as"))
    async def show(self, request: web.Request) -> RenderedPage | web.StreamResponse:
        admit(request, Role.OPERATOR)
        query, store = request.query, self._services.authenticator.store
        choice = asked_of(query)
        choice = replace(choice, also=await self._named(choice.subject))
        kept = {key: query[key] for key in FILTERS if query.get(key)}
        if is_csv(query):
            return await send_csv(request, "audit", CSV_COLUMNS, self._rounds(choice))
        after = whole_number(query["after"], "after", 1, LARGEST_ID) if query.get("after") else None
        found = await trail_page(store, choice, before=after, limit=PER_PAGE)
        subjects = {one for act in found.acts for one in act.target.split(", ")}
        known = self._known()
        labels = {one: f"{one} {name}" for one, (name, _) in known.items()} | await self._labels(subjects)
        offered = [name for what in await store.latest_actions(RECENT) for name in ACTIONS.get(what, (what,))]
        values: dict[str, object] = {
            "acts": found.acts,
            "actions": sorted({*offered, *([choice.what] if choice.what else [])}, key=in_words),
            "label_of": lambda subject: labels.get(subject, subject),
            "in_words": in_words,
            "query": kept,
            "clock": lambda at: clock(at, self._services.clock.now()),
            "looked_at": LOOKED_AT,
            "token_user": PROJECT_NAME,
            "only": lambda key, value: "?" + urlencode({**kept, key: value}),
            "address_of": lambda subject: known[subject][1] if subject in known else address_of(subject),
            "values_of": values_of,
            "csv": "?" + urlencode({**kept, "as": "csv"}),
            "first": "?" + urlencode(kept) if after is not None else None,
            "next": "?" + urlencode({**kept, "after": found.next_before}) if found.next_before else None,
        }
        return RenderedPage("audit.html", "Audit trail", "audit", values=values)

    def _known(self) -> Mapping[str, tuple[str, str]]:
        """Return the names and addresses of apps and app versions by subject."""
        apps, versions = self._services.catalogue.apps, self._services.catalogue.versions
        found = {f"app {app_id}": (app.name, address_of(f"app {app.name}")) for app_id, app in apps.items()}
        for number, one in versions.items():
            if one.app_id in apps:
                name, address = found[f"app {one.app_id}"]
                found[f"app version {number}"] = (f"{name} {one.title}", f"{address}/versions/{number}")
        return found

    async def _labels(self, subjects: Collection[str]) -> dict[str, str]:
        """Return the subjects of batches and hosts with their names, which are read at once."""
        store = self._services.store
        batches = [BatchId(number) for number in numbers_of("batch", subjects)]
        hosts = await self._services.host_names(HostId(number) for number in numbers_of("host", subjects))
        names = await store.listings.names(batches) if batches else {}
        labels = {f"batch {one}": f"batch {one} {name}" for one, name in names.items() if name}
        return labels | {f"host {one}": f"host {host_in_words(one, name)}" for one, name in hosts.items()}

    async def _named(self, text: str) -> tuple[str, ...]:
        """Return the subjects whose shown name contains a text: the latest batches and hosts, apps and app versions,
        settings; and all kinds of subjects whose name is the text.
        """
        if not text or SUBJECT.fullmatch(text):
            return ()
        choice, store = BatchChoice(text=text), self._services.store
        batches, _ = await list_page(store, choice, BatchSort.NEWEST, after=None, limit=MOST_NAMED)
        hosts = (await store.host_lists.hosts(HostChoice(text=text), after=None, limit=MOST_NAMED)).hosts
        known = [one for one, (name, _) in self._known().items() if text.lower() in name.lower()]
        return (
            *(f"batch {one.batch.batch_id}" for one in batches),
            *(f"host {one.host.host_id}" for one in hosts if text.lower() in one.host.domain_name.lower()),
            *known,
            *(f"setting {key}" for key in SETTINGS if text.lower() in key),
            *(f"{kind} {text}" for kind in BY_NAME),
        )

    async def _rounds(self, choice: ActChoice) -> AsyncIterator[Iterable[Row]]:
        """Yield all chosen entries for the CSV file, newest first."""
        before: int | None = None
        while True:
            page = await trail_page(self._services.authenticator.store, choice, before=before, limit=PER_ROUND)
            yield [
                {name: getattr(one, name) for name in CSV_COLUMNS if name != "subject"} | {"subject": one.target}
                for one in page.acts
            ]
            if page.next_before is None:
                return
            before = page.next_before
