"""Shows hosts: lists (all, slow, failing, silent, restricted), and one host with its statistics and instances."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from math import exp
from typing import Any
from urllib.parse import urlencode

from aiohttp import web

from administration.access.who import admit, present
from administration.attention.items import HOST_RESULTS
from administration.attention.service import AttentionViews
from administration.cursors import cursor_of, place_of
from administration.explain.host import explain_host
from administration.explain.words import marks_of, outcome_of
from administration.hosts import (
    SELECTED,
    WITHIN_S,
    checked_labels,
    choice_of,
    listed_as_json,
)
from administration.names import checked_text, chosen
from administration.stopped import stopped_of
from administration.thresholds.in_force import lowered_gates
from console.places import first_sent
from console.restrictions import restrictions_of
from domain.access import Role
from domain.apps import VersionState
from domain.catalogue import Catalogue
from domain.errors import InvalidInputError, NotFoundError
from domain.host_lists import LOOKED_AT, RESULTS_LOOKED_AT, HostChoice, HostKind, HostPlace, HostSort, SlowWith
from domain.hosts import HostAppVersion, host_in_words
from domain.jobs import InstanceState
from domain.ranking import Percentile, percentile, samples
from domain.refusals import BEHIND_GATE, RefusalCode, code_in_words
from domain.restrictions import Restricted, limit_of
from domain.units import DAY_S, HostId, Instant, Seconds
from domain.volunteers import ResultPlace
from lifecycle.states import NEVER_SENT
from muster_client import shapes
from web.csv_export import is_csv, send_csv
from web.handlers import LARGEST_ID, LARGEST_INT, Pages, PageServices, fields_of, get, id_of, number_of, post
from web.rendering import Crumb, RenderedPage

PER_PAGE = 50
PER_SORTED_PAGE = 200  # of a list in its own order, which the page can sort only as a whole
ALL = "all"
STATES = (ALL, *(state.value for state in InstanceState if state not in NEVER_SENT))
Document = Mapping[str, Any]  # Any: a JSON document


@dataclass(frozen=True, slots=True)
class HavRow:
    """A host's statistics for one app version."""

    app: str
    version: str
    state: VersionState
    current: bool
    hav: HostAppVersion
    percentile: Percentile | None  # None: the version is not used for new work
    flop_per_s: float | None
    relative: float | None  # turnaround as a multiple of the expected one; None without results
    inherited: str  # the number of the version whose effective results this one started with; "" for none


def havs_of(havs: Sequence[HostAppVersion], catalogue: Catalogue, now: Instant) -> list[HavRow]:
    """Return a host's statistics by app and version, latest version first."""
    rows = []
    for hav in havs:
        version = catalogue.versions.get(hav.app_version_id)
        if version is None:
            continue
        app = catalogue.apps[version.app_id].name if version.app_id in catalogue.apps else str(version.app_id)
        current = version in catalogue.current.get(version.app_id, ())
        before = None if hav.inherited_from is None else catalogue.versions.get(hav.inherited_from)
        before = before if samples(hav, now) > 0.0 else None
        relaxed, of_type = hav.relaxed.at_time(now), (version.app_id, version.processor_type)
        rows.append(
            HavRow(
                app,
                version.title,
                version.state,
                current,
                hav,
                percentile(hav, catalogue.cut_points.get(of_type), now=now, settings=catalogue.settings.ranking)
                if current
                else None,
                1.0 / hav.speed.mean if hav.speed.n > 0 and hav.speed.mean > 0 else None,
                exp(relaxed.mean) if relaxed.n > 0 else None,
                "" if before is None else f"{before.version_num / 100:.2f}",
            )
        )
    return sorted(rows, key=lambda row: (row.app, not row.current, row.version))


def state_of(text: str) -> InstanceState | None:
    """Parse the state in the URL; None means all. Raises InvalidInputError.

    >>> state_of("timed_out"), state_of("all")
    (<InstanceState.TIMED_OUT: 'timed_out'>, None)
    """
    if text not in STATES:
        raise InvalidInputError("state", "one of " + ", ".join(STATES), text)
    return None if text == ALL else InstanceState(text)


def alike(jobs: Sequence[Document]) -> list[list[Document]]:
    """Group consecutive jobs of one batch that a host would get for the same reason.

    >>> jobs = [{"batch_id": 1, "because": why} for why in ("soon", "soon", "late")]
    >>> [len(same) for same in alike(jobs)]
    [2, 1]
    """
    return [list(same) for _, same in groupby(jobs, key=lambda one: (one["batch_id"], one["because"]))]


def batches_of_classes(groups: Sequence[Document]) -> set[int]:
    """Return the batches of which groups have several job classes.

    >>> groups = [{"batch_id": batch, "job_class_id": one} for batch, one in ((1, 1), (1, 2), (2, 3))]
    >>> batches_of_classes(groups)
    {1}
    """
    classes = Counter(batch_id for batch_id, _ in {(one["batch_id"], one["job_class_id"]) for one in groups})
    return {batch_id for batch_id, count in classes.items() if count > 1}


MOST_ROWS = 60  # groups in the table of a dry run
FULL = "the request was full"


@dataclass(frozen=True, slots=True)
class OrderRow:
    """A group of jobs in the table of a dry run, or a batch that it leaves out, which has no app and no marks.

    `to_queue`: it helps to move the batch to another queue, or, if `by_label`, to change the host's labels.
    """

    batch_id: int
    title: str
    result: str
    whys: Sequence[str]
    helps: Sequence[str] = ()
    app: str = ""
    marks: Sequence[str] = ()
    to_queue: bool = False
    by_label: bool = False


UNRUNNABLE = "no host can run it"


def rows_of(shown: Document, unrunnable: Collection[int] = ()) -> list[OrderRow]:
    """Return the table of a dry run: the groups in the order of the request, the batches that it leaves out, and last
    the `unrunnable` batches, which no host can run.
    """
    classed = batches_of_classes(shown["groups"])
    by_label = any(one["by_label"] for one in shown["conditions"])
    rows = []
    for group in shown["groups"][:MOST_ROWS]:
        refusals, batch_id = group["refusals"], group["batch_id"]
        is_stuck = batch_id in unrunnable and not group["given"]
        to_queue = any(one["code"] == RefusalCode.QUEUE for one in refusals)
        helps = [one["help"] for one in refusals if one["help"] and one["code"] != RefusalCode.QUEUE]
        rows.append(
            OrderRow(
                batch_id,
                _title(group) + f", class {group['job_class_id']}" * (batch_id in classed),
                UNRUNNABLE if is_stuck else outcome_of(group),
                [f"others refused: {code_in_words(one['code'])}" if group["given"] else one["why"] for one in refusals]
                or ([FULL] if shown["would_get"] and not group["given"] and not is_stuck else []),
                helps,
                group["app"] or "",
                marks_of(group),
                to_queue,
                to_queue and by_label,
            )
        )
    rows += [OrderRow(one["batch_id"], _title(one), "left out", [one["why"]]) for one in shown["left_out"]]
    return sorted(rows, key=lambda one: one.batch_id in unrunnable)


def _title(one: Document) -> str:
    return f"{one['name'] or 'batch'} #{one['batch_id']}"


class HostPages(Pages[PageServices]):
    """Pages about one host, and a dry run for it."""

    @get("/hosts/{id}", "host", asks=("state", "after"))
    async def host(self, request: web.Request) -> RenderedPage:
        host_id, state = HostId(id_of(request, LARGEST_INT)), state_of(request.query.get("state", ALL))
        after = place_of(ResultPlace, request.query.get("after", ""))
        store, now = self._services.store, self._services.clock.now()
        host, havs = await store.views.host(host_id)
        own = await store.volunteer_views.host(host.volunteer_id, host_id)
        caller = await store.insight.caller(host_id)
        listed = await store.host_lists.listed([host_id])
        sent = await store.host_lists.instances(host_id, host.volunteer_id, state=state, after=after, limit=PER_PAGE)
        batches = sorted({one.batch_id for one in sent.instances})
        chosen = ALL if state is None else state.value
        values: dict[str, object] = {
            "host": host,
            "havs": havs_of(havs, self._services.catalogue, now),
            "in_progress": listed[host_id].in_progress,
            "own": own,
            "restricted": (await restrictions_of(store)).get((Restricted.HOST, str(host_id))),
            "may": present(request).may(Role.OPERATOR),
            "refused_at": own.refused_at,
            "refused": own.refused,
            "sent": sent.instances,
            "batches": {one.batch_id: one for one in (await store.views.batches_with(batches) if batches else ())},
            "state": chosen,
            "states": STATES,
            "looked_at": RESULTS_LOOKED_AT,
            "first": urlencode({"state": chosen}) if after else None,
            "next": urlencode({"state": chosen, "after": cursor_of(sent.after)}) if sent.after else None,
            "per_hour": caller.usual_per_hour,
            "availability": host.cpu_availability_fraction,
        }
        return RenderedPage(
            "host.html", f"Host {host_in_words(host_id, host.domain_name)}", "hosts", (Crumb("hosts", "Hosts"),), values
        )

    @post("/hosts/{id}/labels", "host_labels", form="host", edits=True)
    async def set_labels(self, request: web.Request) -> web.Response:
        """Replace the labels, which queues may require of hosts."""
        admit(request, Role.OPERATOR)
        host_id, store = HostId(id_of(request, LARGEST_INT)), self._services.store
        labels = checked_labels((await fields_of(request)).get("labels", "").replace(",", " ").split())
        was = (await store.views.host(host_id))[0].labels
        await store.ordering_rules.set_host_labels(host_id, labels)
        told = {"labels": labels, "was": {"labels": list(was)}}
        await self._services.authenticator.note(request, "set_host_labels", f"host {host_id}", **told)
        return self._services.go(f"hosts/{host_id}", "saved")

    @get("/hosts/{id}/why", "host_why")
    async def why(self, request: web.Request) -> RenderedPage:
        """Show a dry run: the jobs that the host would get now, and the refusals."""
        host_id = HostId(id_of(request, LARGEST_INT))
        services = self._services
        shown: Document = await explain_host(services.store, services.clock, services.array, host_id)
        lowered = lowered_gates(services.catalogue, services.catalogue.current)
        asked = {(one["app"], one["processor_type"]) for one in shown["standing"] if "refused" not in one}
        gated = any(one["code"] in BEHIND_GATE for one in shown["conditions"])
        lowered = [one for one in lowered if gated and (one.app, one.processor_type) in asked]
        title = host_in_words(host_id, shown["host"]["domain_name"])
        crumbs = (Crumb("hosts", "Hosts"), Crumb(f"hosts/{host_id}", f"Host {title}"))
        values = {
            "shown": shown,
            "given": alike(shown["would_get"]),
            "lowered": lowered,
            "title": title,
            "names": {group["batch_id"]: group["name"] for group in shown["groups"]},
            "first_sent": first_sent(services.catalogue.settings),
            "rows": rows_of(shown, (await stopped_of(services.store, services.clock)).unrunnable),
            "more": max(0, shown["groups_total"] - MOST_ROWS),
        }
        return RenderedPage("host_why.html", "Dry run", "hosts", crumbs, values)


PER_READ = 500  # rows of a CSV file that are read at once
CSV_COLUMNS = [name for name in shapes.ListedHostShown.__annotations__ if name not in ("slow", "failures")]
MORE_COLUMNS = {
    HostKind.SLOW: [*shapes.SlowShown.__annotations__],
    HostKind.FAILING: [*shapes.HostFailuresShown.__annotations__],
}
DATED = {HostKind.SILENT: "No contact for (days)", HostKind.WITHOUT_WORK: "Called in the last (days)"}
MOST_DAYS = 3650.0
TABS = {
    HostKind.ALL: ("all", "Volunteers' computers."),
    HostKind.WITHOUT_WORK: (
        "without work",
        "Hosts that call but have no job in progress.",
    ),
    HostKind.SLOW: (
        "slow",
        (
            "The slowest tenth by turnaround score for their app and processor in the last full ranking, "
            "slowest first. Missed due dates worsen the score; the column Turnaround does not include them."
        ),
    ),
    HostKind.FAILING: (
        "failing",
        (
            f"The hosts that Needs attention counts: of {HOST_RESULTS} or more results of the last day, at least half "
            "failed, judged without versions that fail on half of their hosts."
        ),
    ),
    HostKind.SILENT: ("silent", "Hosts without recent contact. Their instances will time out."),
    HostKind.RESTRICTED: ("banned or limited", "Hosts that are banned or limited, or whose volunteer is."),
}


@dataclass(frozen=True, slots=True)
class HostListChoice:
    """Parameters of a list. `days`: a silent host has not contacted the server for this long, or a host without work
    has asked within this time.
    """

    kind: HostKind
    text: str
    days: float
    after: HostPlace | None
    platform: str = ""
    label: str = ""
    sort: HostSort = HostSort.NEWEST

    @property
    def kept(self) -> dict[str, str]:
        """Return the query parameters that links to other pages of the list must keep."""
        shown = {} if self.kind is HostKind.ALL else {"show": self.kind.value}
        days = {"days": f"{self.days:g}"} if self.kind in DATED else {}
        sort = "" if self.sort is HostSort.NEWEST else self.sort.value
        more = {"q": self.text, "platform": self.platform, "label": self.label, "sort": sort}
        return {**shown, **days, **{key: text for key, text in more.items() if text}}

    def tab(self, kind: str) -> str:
        """Return the query of the link to another list, with the filters and the order that it has, too."""
        if kind in SELECTED and self.kind in SELECTED:
            return self.link(show="" if kind == HostKind.ALL else kind, days="")
        return "?" + urlencode({"show": kind} if kind != HostKind.ALL else {})

    def link(self, **changes: str) -> str:
        """Return the query of a link that keeps the filters, with changes."""
        return "?" + urlencode({key: text for key, text in {**self.kept, **changes}.items() if text})


def asked_of(query: Mapping[str, str]) -> HostListChoice:
    """Parse the query in the URL. Raises InvalidInputError.

    >>> asked_of({"show": "silent", "days": "2"}).kept
    {'show': 'silent', 'days': '2'}
    """
    kind = chosen(HostKind, query.get("show", "") or HostKind.ALL, "show")
    text = checked_text(query.get("q", "").strip(), "q")
    days = number_of(query, "days", low=0.0, high=MOST_DAYS)
    if days is not None and kind not in DATED:
        raise InvalidInputError(
            "days", "no value: only the lists of silent hosts and of those without work have it", days
        )
    days = WITHIN_S.get(kind, DAY_S) / DAY_S if days is None else days
    after = place_of(HostPlace, query.get("after", ""))
    sort = chosen(HostSort, query.get("sort", "") or HostSort.NEWEST, "sort")
    platform, label = (query.get(name, "").strip() for name in ("platform", "label"))
    return HostListChoice(kind, text, days, after, platform, label, sort)


def version_of(slow: SlowWith, catalogue: Catalogue) -> tuple[str, str]:
    """Return the names of the app and of the version; the version's number if the version was removed."""
    version = catalogue.versions.get(slow.app_version_id)
    if version is None or version.app_id not in catalogue.apps:
        return "", f"version {slow.app_version_id}"
    return catalogue.apps[version.app_id].name, version.title


class HostListPage(Pages[PageServices]):
    """Pages with lists of hosts."""

    def __init__(self, services: PageServices, attention: AttentionViews) -> None:
        super().__init__(services)
        self._attention = attention

    @get("/hosts", "hosts", asks=("show", "q", "days", "platform", "label", "sort", "after", "as"))
    async def show(self, request: web.Request) -> RenderedPage | web.StreamResponse:
        """Show a list. A search for the number of a host opens that host."""
        asked, as_csv = asked_of(request.query), is_csv(request.query)
        if not as_csv and asked.text.isascii() and asked.text.isdigit():
            with suppress(NotFoundError):
                await self._services.store.views.host(HostId(min(LARGEST_ID, int(asked.text))))
                return self._services.go(f"hosts/{int(asked.text)}")
        choice = choice_of(
            asked.kind,
            now=self._services.clock.now(),
            within_s=Seconds(asked.days * DAY_S) if asked.kind in DATED else None,
            text=asked.text,
            platform=asked.platform,
            label=asked.label,
            sort=asked.sort,
        )
        if as_csv:
            columns = [*CSV_COLUMNS, *MORE_COLUMNS.get(asked.kind, ())]
            name = "hosts" if asked.kind is HostKind.ALL else f"{asked.kind}-hosts"
            return await send_csv(request, name, columns, self._pages(replace(choice, sort=HostSort.NEWEST)))
        limit = PER_PAGE if asked.kind in SELECTED else PER_SORTED_PAGE
        found = await self._attention.hosts(choice, after=asked.after, limit=limit)
        name, about = TABS[asked.kind]
        values: dict[str, object] = {
            "found": found,
            "restriction_of": partial(
                limit_of, await restrictions_of(self._services.store) if asked.kind is HostKind.RESTRICTED else {}
            ),
            "asked": asked,
            "kind": asked.kind.value,
            "selected": asked.kind in SELECTED,
            "dated": DATED.get(asked.kind),
            "name": name,
            "about": about,
            "tabs": [(kind.value, name) for kind, (name, _) in TABS.items()],
            "looked_at": LOOKED_AT,
            "version_of": lambda slow: version_of(slow, self._services.catalogue),
            "first": asked.link() if asked.after else None,
            "next": asked.link(after=cursor_of(found.after)) if found.after else None,
        }
        return RenderedPage("hosts.html", "Hosts", "hosts", values=values)

    async def _pages(self, choice: HostChoice) -> AsyncIterator[Sequence[Mapping[str, object]]]:
        """Yield the whole list, as the API shows it. Other orders than by id would read all hosts for each page."""
        after = None
        while True:
            found = await self._attention.hosts(choice, after=after, limit=PER_READ)
            shown = map(listed_as_json, found.hosts)
            yield [{**one, **(one["slow"] or {}), **(one["failures"] or {})} for one in shown]
            if (after := found.after) is None:
                return
