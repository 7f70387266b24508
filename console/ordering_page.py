"""Shows the order of batches: the terms' contributions, shares compared with usage, and the form to change weights.

The form contains each setting's value at the time it was loaded. Only fields that the user changed are saved, and a
setting that another user has changed since is not overwritten.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any
from urllib.parse import urlencode

from aiohttp import web

from administration.access.who import admit, present
from administration.changes import Changes, recorded, subject_of
from administration.ordering.history import UNITS, UsageReports, as_csv, columns_of
from administration.ordering.places import Urgent, sent_first
from administration.ordering.priorities import (
    KEYS,
    SECTION,
    Priorities,
    ordering_changes,
    weights_in_force,
)
from administration.ordering.sharing import Sharing
from administration.stopped import stopped_of
from console.charts import Chart, hue
from console.drawing import Axis, BarSeries, RowPlot
from console.places import (
    RANKED,
    PlaceShown,
    because,
    first_at,
    first_now,
    first_s_of,
    first_sent,
    instant_of,
    name_of,
    rule_of,
    short,
    standings,
    term,
    tier_name,
    tier_of,
    total,
    total_name,
    weightiest,
)
from domain.access import Role
from domain.batches import FIRST_PLACE, Batch, BatchState, place_of
from domain.errors import ConflictError, InvalidInputError
from domain.ordering import Breakdown
from domain.ordering_settings import OrderingSettings
from domain.settings import meaning_of
from domain.units import BatchId, Instant
from domain.views import ListedBatch
from muster_client import shapes
from priority.policies import POLICIES
from web.csv_export import is_csv
from web.handlers import LARGEST_ID, Fields, Pages, PageServices, fields_of, get, post, reason_of, typed, whole_number
from web.moments import number, plural
from web.rendering import Crumb, RenderedPage

BRIEF = 60  # maximum number of characters of a value shown in an error
WAS = "was."  # prefix of the field that contains a setting's value when the form was loaded
GROUPS: Mapping[str, Sequence[str]] = {  # settings by group (a policy, or settings shared by several policies)
    "multifactor": (
        *("wait_weight", "fairshare_weight", "level_weight", "queue_weight", "size_weight", "user_weight"),
        *("max_wait_s", "size_favours"),
    ),
    "components": ("components", "soft_limits", "xfactor_min_s", "target_wait_s", "target_xfactor"),
    "equal_access": ("bypass_weight", "equal_among"),
    "logical_time": ("let_rule",),
    "queues": ("queues", "queue_hosts", "accrual"),
    "fair-share": ("fairshare", "half_life_s", "damping_factor", "usage_weights", "targets"),
}
SAID = {
    "multifactor": "points = sum of weight × factor; factors range from 0 to 1, user priority from -1 to 1",
    "components": "points = sum of weight × value, with Moab's names and Maui's formulas",
    "equal_access": "the submitter with the least work in progress goes first",
    "logical_time": "smallest rank value first",
    "queues": "values count in sums; under equal_access their tiers count",
    "fair-share": "definition and decay of usage",
}


@dataclass(frozen=True, slots=True)
class Field:
    """A form field for one setting. Without `choices` it takes a number or text, see `kind`. `was` is the current value
    if it differs.
    """

    key: str
    name: str
    value: object
    was: object
    meaning: str
    expected: str
    choices: tuple[str, ...]

    @property
    def kind(self) -> str:
        return "number" if isinstance(self.value, (int, float)) else "text"

    @property
    def text(self) -> str:
        """Return the value as text for the field."""
        return text_of(self.value)

    @property
    def was_text(self) -> str:
        return text_of(self.was)

    @property
    def is_changed(self) -> bool:
        return self.value != self.was


@dataclass(frozen=True, slots=True)
class SettingGroup:
    """Settings of one policy, or shared by several. `in_force`: the selected policy uses them."""

    name: str
    said: str
    in_force: bool
    fields: tuple[Field, ...]


def groups_of(present: Mapping[str, object], changes: Mapping[str, object]) -> list[SettingGroup]:
    """Return fields by group with the changes applied; the groups of the selected policy come first.

    >>> [first, *_] = groups_of({f"ordering.{one.name}": one.default for one in fields(OrderingSettings)}, {})
    >>> first.name, first.in_force, [one.key for one in first.fields]
    ('logical_time', True, ['ordering.let_rule'])
    """
    policy = str(changes.get("ordering.policy", present["ordering.policy"]))
    meta = {one.name: one.metadata for one in fields(OrderingSettings)}
    made = [
        SettingGroup(
            name,
            SAID[name],
            name == policy or name not in POLICIES,
            tuple(_field(one, meta[one], present, changes) for one in names),
        )
        for name, names in GROUPS.items()
    ]
    return sorted(made, key=lambda one: one.name != policy)


def text_of(value: object) -> str:
    """Return a setting's value as text that parses to the same value.

    >>> text_of(10_000.0), text_of(0.1 + 0.2), text_of("fifo")
    ('10000', '0.30000000000000004', 'fifo')
    """
    brief = f"{value:.12g}" if isinstance(value, float) else str(value)
    return repr(value) if isinstance(value, float) and float(brief) != value else brief


def was_of(present: Mapping[str, object], keys: Iterable[str]) -> dict[str, str]:
    """Return the hidden fields with each setting's current value.

    >>> was_of({"ordering.wait_weight": 5.0}, ["ordering.wait_weight"])
    {'was.ordering.wait_weight': '5'}
    """
    return {WAS + key: text_of(present[key]) for key in keys}


def asked_of(form: Fields, present: Mapping[str, object]) -> Changes:
    """Return the settings that the user changed in the form; without hidden fields, those that differ from now.

    Settings that already have the requested value are omitted. Raises InvalidInputError if none is left or a value is
    invalid, and ConflictError for a setting changed both in the form and, since it was loaded, by another user.
    """
    asked: dict[str, object] = {}
    for key, text in form.items():
        if key not in KEYS or not (text.strip() or isinstance(present[key], str)):  # a list of words may be empty
            continue
        value, now = typed(present[key], text.strip()), present[key]
        was = typed(now, form[WAS + key].strip()) if WAS + key in form else now
        if value in (was, now):
            continue
        if was != now:
            raise ConflictError(
                f"{key}: changed from {_brief(was)} to {_brief(now)} by another user since the form was made"
            )
        asked[key] = value
    if not asked:
        raise InvalidInputError("ordering", "at least one changed value", "none")
    return ordering_changes(asked.items())


def _brief(value: object) -> str:
    text = text_of(value) or "(empty)"
    return text if len(text) <= BRIEF else f"{text[: BRIEF - 3]}..."


def _field(
    name: str, meta: Mapping[str, Any], present: Mapping[str, object], changes: Mapping[str, object]
) -> Field:  # Any: of the declaration
    key = SECTION + name
    was = present[key]
    return Field(key, name, changes.get(key, was), was, meaning_of(key), meta["expected"], meta["names"])


REPORT = ("by", "first_day", "last_day", "account", "submitter")  # the query of a report of usage
BY = ("account", "submitter", "account,submitter", *UNITS, *(f"{unit},account" for unit in UNITS))
MOST_SHOWN = 1000  # rows of a report; all are in the CSV
SHOWN = 30
LIVE_S = 10
NEIGHBOURS = 7
PREVIEWED = 100
OWN = "ordering.policy"


def _rows(labels: Sequence[str], series: Mapping[str, Sequence[float]], axis: Axis, *, stacked: bool = True) -> RowPlot:
    return RowPlot(
        labels, [BarSeries(name, of, hue(place)) for place, (name, of) in enumerate(series.items())], axis, stacked
    )


def contributions_chart(
    breakdowns: Sequence[Breakdown], names: Mapping[int, str], first: Collection[int] = ()
) -> Chart | None:
    """Return the chart of each term's contribution per batch, stacked; None if no policy gives points."""
    shown = [one for one in breakdowns if instant_of(one) is None and any(part.points for part in one.components)]
    terms = list(dict.fromkeys(part.name for one in shown for part in one.components if part.points))
    if not shown:
        return None
    labels = _labels(shown, names)
    return Chart(
        "contributions",
        "Contribution of each term",
        f"{_head(shown, first)}; points by term.",
        ("batch", *terms, "total"),
        [
            (label, *(number(_points(one, term), 1) for term in terms), number(one.total, 1))
            for label, one in zip(labels, shown, strict=True)
        ],
        _rows(labels, {term: [_points(one, term) for one in shown] for term in terms}, Axis("points")),
    )


def _head(shown: Sequence[Breakdown], first: Collection[int]) -> str:
    urgent = sum(one.batch_id in first for one in shown)
    marked = f"; the first {urgent} {'is' if urgent == 1 else 'are'} sent before the order" if urgent else ""
    return (
        f"{plural(len(shown), 'batch', 'batches').capitalize()}, the one that most requests take first on top{marked}"
    )


def _labels(breakdowns: Sequence[Breakdown], names: Mapping[int, str]) -> list[str]:
    return [names.get(one.batch_id, f"#{one.batch_id}") for one in breakdowns]


def _points(one: Breakdown, term: str) -> float:
    return sum(part.points for part in one.components if part.name == term)


def without_echoes(tree: Sequence[shapes.ShareShown]) -> list[shapes.ShareShown]:
    """Return the rows of the share tree without submitters that only repeat the row of their account.

    >>> row = {"account": "lab", "submitter": None, "share_fraction": 0.5, "usage_fraction": 0.1}
    >>> [one["submitter"] for one in without_echoes([row, row | {"submitter": "lab"}, row | {"submitter": "eve"}])]
    [None, 'eve']
    """

    def repeats(row: shapes.ShareShown, above: shapes.ShareShown) -> bool:
        same = all(row[key] == above[key] for key in ("account", "share_fraction", "usage_fraction"))
        return same and row["submitter"] == row["account"] and above["submitter"] is None

    return [row for at, row in enumerate(tree) if not at or not repeats(row, tree[at - 1])]


def shares_chart(rows: Sequence[shapes.ShareShown]) -> Chart | None:
    """Return the chart of each submitter's share and usage, or None without any usage."""
    leaves = [row for row in rows if row["submitter"] is not None]
    if not any(row["usage_fraction"] for row in leaves):
        return None
    shown = sorted(
        leaves, key=lambda row: (-max(row["share_fraction"], row["usage_fraction"]), row["submitter"] or "")
    )[:20]
    labels = [
        row["account"] if row["submitter"] == row["account"] else f"{row['submitter']} ({row['account']})"
        for row in shown
    ]
    return Chart(
        "shares",
        "Shares against usage",
        f"Fractions of the total, for the {len(shown)} largest of {len(leaves)} submitters; usage decays.",
        ("submitter", "entitled", "used"),
        [
            (label, f"{100 * row['share_fraction']:.1f} %", f"{100 * row['usage_fraction']:.1f} %")
            for label, row in zip(labels, shown, strict=True)
        ],
        _rows(
            labels,
            {
                "entitled": [100 * row["share_fraction"] for row in shown],
                "used": [100 * row["usage_fraction"] for row in shown],
            },
            Axis(unit=" %"),
            stacked=False,
        ),
    )


class OrderingPages(Pages[PageServices]):
    """Pages for the order, the shares, and setting changes with a preview."""

    def __init__(self, services: PageServices) -> None:
        super().__init__(services)
        self._priorities = Priorities(services.store, services.clock)
        self._sharing = Sharing(services.store, services.clock)
        self._reports = UsageReports(services.store, services.clock)

    @get("/ordering", "ordering", asks=("batch",))
    async def show(self, request: web.Request) -> RenderedPage:
        given = request.query.get("batch")
        batch_id = BatchId(whole_number(given, "batch", 1, LARGEST_ID)) if given else None
        store, now = self._services.store, self._services.clock.now()
        stopped, apps = await stopped_of(store, self._services.clock), self._services.catalogue.sent_apps()
        first = await sent_first(store, self._services.catalogue, now, stopped.unrunnable)
        found, is_whole = await self._neighbours(batch_id, first)
        places = await standings(store, [row.batch for row in found], first, apps, stopped)
        rows = [row for row in found if places[row.batch.batch_id].at is not None or stopped.stop_of(row.batch)[0]]
        shown = [places[row.batch.batch_id].breakdown for row in rows]
        breakdowns = [one for one in shown if one is not None]
        names = {int(row.batch.batch_id): name_of(row.batch.batch_id, row.batch.name) for row in rows}
        tree = await self._sharing.show()
        settings = await self._services.store.settings.in_force()
        order = contributions_chart(breakdowns, names, first)
        charts = {"order": order, "shares": shares_chart(tree)}
        values: dict[str, object] = {
            "rows": sorted(rows, key=lambda row: places[row.batch.batch_id].at is None),
            "places": places,
            "moving": await self._moving([row.batch for row in rows], places, now),
            "stop_of": stopped.stop_of,
            "first_at": lambda batch: first_at(batch, first_s_of(self._services.catalogue, batch), now),
            "one": batch_id,
            "is_whole": is_whole,
            "names": names,
            "every_s": settings.ordering.interval_s,
            "first_sent": first_sent(settings),
            "short": short,
            "may": lambda batch: present(request).may(Role.SUBMITTER) and present(request).owns(batch.submitter_id),
            "tier_name": tier_name,
            "tier_of": tier_of,
            "tree": without_echoes(tree),
            "windows": await self._sharing.windows(),
            "charts": charts,
            "weights": weights_in_force(settings),
            "rule": rule_of(settings.ordering.policy),
            "is_ranked": all(one.policy == RANKED for one in breakdowns),
            "total_name": total_name(breakdowns),
            "total": lambda one: total(one, now),
            "weightiest": weightiest,
            "because": lambda one: because(one, now),
            "term": term,
            "timed": lambda one: instant_of(one) is not None,
            "points": any(instant_of(one) is None for one in breakdowns),
            **_form(settings.as_mapping(), {}),
            "trail": [change for change in await store.settings.setting_changes(200) if change.key in KEYS][:10],
        }
        return RenderedPage(
            "ordering.html", "Ordering", "ordering", values=values, charts=any(charts.values()), every_s=LIVE_S
        )

    async def _moving(
        self, batches: Sequence[Batch], places: Mapping[BatchId, PlaceShown], now: Instant
    ) -> Collection[BatchId]:
        """Return the changed batches to which the next ordering may give another position."""
        found = set[BatchId]()
        for batch in batches:
            standing = places[batch.batch_id]
            if standing.is_pending(batch):
                estimated = await self._services.store.forecasts.standing(batch.batch_id)
                if estimated is not None and standing.moves_soon(batch, estimated.age.moved_at, now):
                    found.add(batch.batch_id)
        return found

    async def _neighbours(self, batch_id: BatchId | None, first: Urgent) -> tuple[Sequence[ListedBatch], bool]:
        """Return the batches that requests take first, or one with NEIGHBOURS on both sides if there are more than
        SHOWN. Return whether these are all.
        """
        store = self._services.store
        _, rest = await store.ordering_rules.around(FIRST_PLACE, SHOWN + 1, without=first)
        batch = None if batch_id is None else await store.views.batch(batch_id)
        shown, is_whole = [*first, *rest], len(first) + len(rest) <= SHOWN
        if batch is None or is_whole or batch.state is not BatchState.ACTIVE or not batch.counts.unsent:
            return await store.listings.listed(shown[:SHOWN]), is_whole
        if batch.batch_id in first:
            start = max(0, first[batch.batch_id].ahead.batches - NEIGHBOURS)
            return await store.listings.listed(shown[start:][:SHOWN]), False
        before, after = await store.ordering_rules.around(place_of(batch), NEIGHBOURS, without=first)
        around = [*[*first, *before][-NEIGHBOURS:], batch.batch_id, *after]
        return await store.listings.listed(around), False

    @get("/ordering/usage", "usage_history", asks=(*REPORT, "as"), form="usage_history")
    async def usage_history(self, request: web.Request) -> RenderedPage | web.Response:
        """Show the history of usage, by default of this month by account, or send it as CSV."""
        asked = {key: text for key in REPORT if (text := request.query.get(key, "").strip())}
        found = await self._reports.report(**asked)
        if is_csv(request.query):
            name = f"usage-{found['first_day']}-{found['last_day']}.csv"
            headers = {"Content-Disposition": f'attachment; filename="{name}"'}
            return web.Response(text=as_csv(found), content_type="text/csv", headers=headers)
        accounts = [one.name for one in await self._services.store.people.accounts()]
        values: dict[str, object] = {
            "found": found,
            "asked": asked,
            "accounts": accounts,
            "by": BY,
            "rows": [columns_of(row, found["by"]) for row in found["usage"][:MOST_SHOWN]],
            "query": urlencode({**asked, "as": "csv"}),
        }
        crumbs = (Crumb("ordering", "Ordering"),)
        return RenderedPage("usage.html", "Usage", "ordering", crumbs, values)

    @get("/ordering/preview", "ordering_preview", asks=KEYS, form="show")
    async def preview(self, request: web.Request) -> RenderedPage | web.Response:
        """Preview changes given in the URL, which can be shared. Without changes, redirect to the order."""
        return await self._preview(request, request.query) if request.query else self._services.go("ordering")

    @post("/ordering/preview", "ordering_preview_of_form", form="show")
    async def preview_of_form(self, request: web.Request) -> RenderedPage:
        """Preview changes from a form, because these may exceed the length of a URL. Saves nothing."""
        return await self._preview(request, await fields_of(request))

    async def _preview(self, request: web.Request, fields: Fields) -> RenderedPage:
        """Return the page with each batch's place after the changes."""
        present, now = (await self._services.store.settings.in_force()).as_mapping(), self._services.clock.now()
        changes = asked_of(fields, present)
        found = await self._priorities.preview(changes, limit=PREVIEWED)
        ids = [BatchId(one["batch"]) for one in found.shown["places"]] + [one.batch_id for one in found.reasons]
        names = await self._names(ids)
        first = await first_now(self._services)
        before, after = (contributions_chart(one, names, first) for one in (found.reasons, found.would_be_reasons))
        charts = [
            replace(chart, key=key, title=f"{chart.title}, {when}")
            for key, when, chart in (("after", "after the change", after), ("before", "as it is", before))
            if chart is not None
        ]
        reasons = {one.batch_id: one for one in found.would_be_reasons}
        values: dict[str, object] = {
            "shown": found.shown,
            "names": names,
            "charts": charts,
            "because": lambda batch_id: because(reasons[batch_id], now) if batch_id in reasons else None,
            "changes": [*changes.items(), *was_of(present, changes).items()],
            "may": admit(request, Role.VIEWER).may(Role.OPERATOR),
            **_form(present, changes),
        }
        crumbs = (Crumb("ordering", "Ordering"),)
        return RenderedPage("ordering_preview.html", "Preview", "ordering", crumbs, values, bool(charts))

    @post("/ordering", "ordering_save", form="preview_of_form", edits=True)
    async def save(self, request: web.Request) -> web.Response:
        person = admit(request, Role.OPERATOR)
        fields = await fields_of(request)
        why = reason_of(fields)
        changes = asked_of(fields, (await self._services.store.settings.in_force()).as_mapping())
        changed = await self._priorities.set(changes, who=person.name, why=why)
        await self._services.authenticator.note(
            request, "set_ordering", subject_of(changes), why=why, **recorded(changed)
        )
        return self._services.go("ordering", "order")

    async def _names(self, ids: Sequence[BatchId]) -> dict[int, str]:
        known = await self._services.store.listings.names(ids)
        return {int(batch_id): name_of(batch_id, name) for batch_id, name in known.items()}


def _form(present: Mapping[str, object], changes: Changes) -> dict[str, object]:
    """Return the values for the form on the preview page."""
    return {
        "policy": changes.get(OWN, present[OWN]),
        "policy_was": text_of(present[OWN]),
        "policies": sorted(POLICIES),
        "groups": groups_of(present, changes),
    }
