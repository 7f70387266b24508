"""Lists batches, with filters, sort order and pages. The URL contains all choices, so that a list can be shared."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from aiohttp import web

from administration.access.who import present
from administration.attention.item import Item
from administration.attention.items import failing_of
from administration.attention.service import AttentionViews
from administration.batch_lists import LOOKED_AT, batch_choice, list_page
from administration.batches import Batches
from administration.cursors import cursor_of, place_of
from administration.explain.batch import fails_in_words
from administration.forecasts.service import BatchEnd, end_of
from administration.forecasts.words import is_severe, not_shown, risk_in_words, risk_tag
from administration.names import chosen
from administration.ordering.importance import choices_for, queue_choices
from administration.ordering.places import sent_first
from administration.stopped import Stopped
from console.charts import Bar, bar_of_batch
from console.places import PlaceShown, because, standings, when_sent
from domain.access import Role
from domain.batches import Batch, BatchState, QoS
from domain.errors import InvalidInputError
from domain.forecasts import ForecastRecord
from domain.insight import Short
from domain.units import BatchId, Instant
from domain.views import BatchChoice, BatchPlace, BatchSort, ListedBatch
from muster_client import shapes
from store.postgres import PostgresStore
from web.csv_export import Row, is_csv, send_csv
from web.handlers import Pages, PageServices, get, whole_number
from web.rendering import RenderedPage

PER_PAGE = 50
PER_READ = 500  # rows of a CSV file that are read at once
LIVE_S = 5
SORTS = {
    BatchSort.NEWEST: "newest first",
    BatchSort.OLDEST: "oldest first",
    BatchSort.ORDER: "order",
    BatchSort.ORDER_DOWN: "order, last first",
    BatchSort.EXPECTED_END: "expected end",
    BatchSort.EXPECTED_END_DOWN: "expected end, latest first",
    BatchSort.LATEST_END: "latest end",
    BatchSort.LATEST_END_DOWN: "latest end, latest first",
    BatchSort.DEADLINE: "deadline",
    BatchSort.DEADLINE_DOWN: "deadline, latest first",
    BatchSort.FAILED_DOWN: "failed jobs, most first",
    BatchSort.FAILED: "failed jobs, fewest first",
}
ATTENTION, AT_RISK, BLOCKED, FAILED = "attention", "at_risk", "blocked", "failed_jobs"
TABS = ("", "active", ATTENTION, AT_RISK, BLOCKED, FAILED, "complete", "aborted")
NARROWING = ("q", "qos", "app", "submitter", "account", "queue")
TAB_NAMES = {"": "all", ATTENTION: "needs attention", AT_RISK: "missed or at risk", BLOCKED: "blocked by a limit"}
FILTERS = ("state", *NARROWING, "sort")
RISK = ("late_by_s", "probability")  # fields of `at_risk` with a column each
CSV_COLUMNS = (*(one for one in shapes.BatchShown.__annotations__ if one != "at_risk"), *RISK)
ASKS = (*FILTERS, "after", "as")


@dataclass(frozen=True, slots=True)
class BatchLine:
    """A row of the list. `stuck` explains which hosts it waits for, and `unschedulable` why no host can run its jobs.
    `standing` is the place in the order, `fails` which version of its app fails, `items` what needs attention.
    """

    listed: ListedBatch
    bar: Bar
    end: BatchEnd
    stuck: str | None
    unschedulable: str | None
    standing: PlaceShown
    fails: str = ""
    items: Sequence[Item] = ()

    @property
    def batch(self) -> Batch:
        return self.listed.batch

    @property
    def tag(self) -> str:
        return risk_tag(self.end.at_risk) if self.end.at_risk else ""

    @property
    def risk(self) -> str:
        return risk_in_words(self.end.at_risk, self.end.forecast_state) if self.end.at_risk else ""

    @property
    def severe(self) -> bool:
        return self.end.at_risk is not None and is_severe(self.end.at_risk)

    @property
    def failing(self) -> tuple[str, bool]:
        return failing_of(self.batch.counts) if self.batch.ended_at is None else ("", False)

    @property
    def not_shown(self) -> str:
        return not_shown(self.end.forecast_state)


async def asked_of(query: Mapping[str, str], store: PostgresStore, now: Instant) -> tuple[BatchChoice, BatchSort]:
    """Parse the filters and the order in the URL. Raises InvalidInputError."""
    sort = chosen(BatchSort, query.get("sort", "") or BatchSort.NEWEST, "sort")
    if (tab := query.get("state", "")) not in TABS:
        raise InvalidInputError("state", "one of " + ", ".join(TABS[1:]), tab)
    choice = await batch_choice(
        store,
        sort,
        state=BatchState(tab) if tab in list(BatchState) else None,
        qos=chosen(QoS, query["qos"], "qos") if query.get("qos") else None,
        at_risk_at=now if tab == AT_RISK else None,
        blocked=tab == BLOCKED,
        failed=tab == FAILED,
        text=query.get("q", ""),
        **{name: query.get(name, "") for name in ("app", "submitter", "account", "queue")},
    )
    return choice, sort


def kept_of(query: Mapping[str, str], **changes: str) -> str:
    """Return the query of a link that keeps the filters, with changes.

    >>> kept_of({"state": "active", "sort": "order", "after": "7"}, sort="-order")
    '?state=active&sort=-order'
    """
    values = {
        key: {**query, **changes}.get(key, "") for key in (*FILTERS, "after", "as") if key in FILTERS or key in changes
    }
    return "?" + urlencode({key: value for key, value in values.items() if value})


def _link_of(query: Mapping[str, str], changes: Mapping[str, str]) -> str:
    """Return the query of a link on the list, never an empty one, which would show submitters only their own."""
    kept = kept_of(query, **changes)
    return kept if kept != "?" else "?submitter="


def where_on(text: str) -> tuple[BatchPlace | None, int]:
    """Parse the cursor in the URL and the number of rows before it. Raises InvalidInputError.

    >>> where_on("")
    (None, 0)
    >>> where_on("50~7~0.0~1.5")
    (BatchPlace(batch_id=7, first=0.0, second=1.5), 50)
    """
    if not text:
        return None, 0
    number, _, place = text.partition("~")
    return place_of(BatchPlace, place or text), whole_number(number, "after", 0, 2**40)


def rows_of(
    found: Sequence[ListedBatch],
    last: Mapping[BatchId, ForecastRecord],
    standing: Mapping[BatchId, PlaceShown],
    short: Mapping[BatchId, Short],
    stopped: Stopped,
    fails: Mapping[BatchId, str],
    items: Sequence[Item],
    now: Instant,
) -> list[BatchLine]:
    """Return the rows of the list. `fails`: which versions fail, by batch."""
    return [
        BatchLine(
            one,
            bar_of_batch(one.batch),
            end_of(one.batch, last.get(one.batch.batch_id), stopped, now),
            short[one.batch.batch_id].reason if one.batch.batch_id in short else None,
            None if (group := stopped.group_of(one.batch)) is None else group.reason,
            standing.get(one.batch.batch_id, PlaceShown()),
            fails.get(one.batch.batch_id, ""),
            [item for item in items if item.batch_id == one.batch.batch_id],
        )
        for one in found
    ]


class BatchListPage(Pages[PageServices]):
    """The list of batches."""

    def __init__(self, services: PageServices, batches: Batches, attention: AttentionViews) -> None:
        super().__init__(services)
        self._batches = batches
        self._attention = attention

    @get("/batches", "batches", asks=ASKS)
    async def show(self, request: web.Request) -> RenderedPage | web.StreamResponse:
        store, query, person = self._services.store, request.query, present(request)
        now = self._services.clock.now()
        own = "" if person.submitter_id is None else await store.views.submitter_name(person.submitter_id)
        if own and not person.may(Role.OPERATOR) and request.method == "GET" and not query.keys() & {*ASKS}:
            return self._services.go_to("batches", query.get("said", ""), submitter=own)
        choice, sort = await asked_of(query, store, now)
        attention = await self._attention.now()
        if query.get("state") == ATTENTION:
            choice = replace(choice, ids=tuple(sorted(attention.batch_ids)))
        if is_csv(query):
            return await send_csv(request, "batches", CSV_COLUMNS, self._pages(choice, sort))
        after, number = where_on(query.get("after", ""))
        not_sent, stopped = attention.stopped.not_sent, attention.stopped
        urgent = await sent_first(store, self._services.catalogue, now, stopped.unrunnable)
        found, end = await list_page(store, choice, sort, after=after, limit=PER_PAGE, not_sent=not_sent, first=urgent)
        active = [one.batch for one in found if one.batch.ended_at is None]
        last = await store.forecasts.last([one.batch_id for one in active]) if active else {}
        standing = await standings(store, active, urgent, self._services.catalogue.sent_apps(), stopped)
        since = Instant(now - self._services.catalogue.settings.ranking.active_s)
        short = await store.insight.short([one.batch_id for one in active], active_since=since)
        fails = {one.batch.batch_id: fails_in_words(one.batch, one.app, attention.failing) for one in found}
        counts = await store.listings.counts(choice, now, attention.batch_ids)
        settings = self._services.catalogue.settings.ordering
        choices = await choices_for(store, person, settings, sent_first=len(urgent))
        numbers = {"active": counts.active, AT_RISK: counts.at_risk, BLOCKED: counts.blocked}
        numbers[ATTENTION] = counts.attention + (0 if any(query.get(key) for key in NARROWING) else attention.left_out)
        values: dict[str, object] = {
            "rows": rows_of(found, last, standing, short, attention.stopped, fails, attention.items, now),
            "pause_of": lambda row: stopped.paused_of(row.batch, is_sent=row.standing.is_sent),
            "because": lambda row: because(row.standing.breakdown, now),
            "turn": lambda row: when_sent(row.standing, row.batch, None, stopped.stop_of(row.batch)[0]),
            "may": lambda batch: (
                (batch.ended_at is None or batch.counts.jobs_failed)
                and person.may(Role.SUBMITTER)
                and person.owns(batch.submitter_id)
            ),
            "query": {key: query[key] for key in FILTERS if query.get(key)},
            "link": lambda **changes: _link_of(query, changes),
            "sort": sort,
            "sorts": [(one.value, name) for one, name in SORTS.items()],
            "tabs": [(one, TAB_NAMES.get(one, one.replace("_", " ")), numbers.get(one)) for one in TABS],
            "promises": list(QoS),
            "apps": sorted(app.name for app in self._services.catalogue.apps.values()),
            "submitters": sorted(one.name for one in await store.people.submitters()),
            "queues": queue_choices(settings),
            "own": own,
            "levels": choices.levels,
            "effects": choices.effects,
            "queue_acts": choices.effects["queue"].acts or bool(settings.queue_hosts),
            "next": None if end is None else f"{number + len(found)}~{cursor_of(end)}",
            "number": number,
            "looked_at": LOOKED_AT,
        }
        return RenderedPage("batches.html", "Batches", "batches", values=values, every_s=LIVE_S)

    async def _pages(self, choice: BatchChoice, sort: BatchSort) -> AsyncIterator[Sequence[Row]]:
        """Yield the whole list, as the API shows it, with the risk in columns."""
        after = None
        while True:
            page, after = await self._batches.listed(choice, sort, after=after, limit=PER_READ)
            yield [{**one, **(one["at_risk"] or {}), "deadline_at": one["deadline_at"]} for one in page]
            if after is None:
                return
