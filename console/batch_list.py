"""Lists batches, with filters, sort order and pages. The URL contains all choices, so that a list can be shared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from aiohttp import web

from administration.attention.service import AttentionViews
from administration.cursors import cursor_of, place_of
from administration.forecasts.service import risk_as_json
from administration.forecasts.words import not_shown, risk_in_words
from administration.names import checked_text, chosen
from console.charts import Bar, bar_of
from console.places import PlaceShown, because, standings
from domain.batches import Batch, BatchState, QoS
from domain.catalogue import Catalogue
from domain.errors import InvalidInputError
from domain.forecasts import ForecastRecord, batch_state
from domain.formatting import roughly
from domain.insight import Short
from domain.units import BatchId, Instant
from domain.views import BatchChoice, BatchPlace, BatchSort, ListedBatch
from muster_client.shapes import RiskShown
from web.handlers import Pages, PageServices, get, whole_number
from web.rendering import RenderedPage

PER_PAGE = 50
ATTENTION = "attention"  # in place of a state: the batches that need attention
LIVE_S = 5
SORTS = {BatchSort.NEWEST: "newest first", BatchSort.QUEUE: "order", BatchSort.DEADLINE: "deadline"}


@dataclass(frozen=True, slots=True)
class BatchLine:
    """A row of the list. `stuck` explains which hosts it waits for, `not_shown` why there is no forecast, `standing` is
    the place in the order.
    """

    listed: ListedBatch
    bar: Bar
    at_risk: RiskShown | None
    stuck: str | None
    not_shown: str
    standing: PlaceShown

    @property
    def batch(self) -> Batch:
        return self.listed.batch

    @property
    def late(self) -> str:
        return roughly(self.at_risk["late_by_s"]) if self.at_risk else ""

    @property
    def risk(self) -> str:
        return risk_in_words(self.at_risk) if self.at_risk else ""


@dataclass(frozen=True, slots=True)
class BatchListChoice:
    """The filters, sort order and page in the URL."""

    choice: BatchChoice
    sort: BatchSort
    after: BatchPlace | None
    number: int  # number of rows before this page


def asked_of(query: Mapping[str, str], catalogue: Catalogue) -> BatchListChoice:
    """Parse the query of the URL. Raises InvalidInputError."""
    apps = {app.name: app_id for app_id, app in catalogue.apps.items()}
    app = query.get("app", "")
    if app and app not in apps:
        raise InvalidInputError("app", "the name of an app, or empty for all", app)
    sort = chosen(BatchSort, query.get("sort", "") or BatchSort.NEWEST, "sort")
    choice = BatchChoice(
        chosen(BatchState, query["state"], "state") if query.get("state", "") not in ("", ATTENTION) else None,
        chosen(QoS, query["qos"], "qos") if query.get("qos") else None,
        apps.get(app),
        text=checked_text(query.get("q", "").strip(), "q"),
    )
    after, number = where_on(query.get("after", ""))
    return BatchListChoice(choice, sort, after, number)


def where_on(text: str) -> tuple[BatchPlace | None, int]:
    """Parse the cursor in the URL and the number of rows before it. Raises InvalidInputError.

    >>> where_on("")
    (None, 0)
    >>> where_on("50~7~0~1.5~0.0")
    (BatchPlace(batch_id=7, order_tier=0, order_key=1.5, deadline_at=0.0), 50)
    """
    if not text:
        return None, 0
    number, _, place = text.partition("~")
    return place_of(BatchPlace, place or text), whole_number(number, "after", 0, 2**40)


def behind(batch: Batch, number: int) -> str:
    """Return the cursor for the page that follows a batch."""
    place = BatchPlace(batch.batch_id, batch.order_tier, batch.order_key, batch.deadline_at or Instant(0.0))
    return f"{number}~{cursor_of(place)}"


def rows_of(
    found: Sequence[ListedBatch],
    last: Mapping[BatchId, ForecastRecord],
    standing: Mapping[BatchId, PlaceShown],
    short: Mapping[BatchId, Short],
    now: Instant,
) -> list[BatchLine]:
    """Return the rows of the list."""
    return [
        BatchLine(
            one,
            bar_of(
                one.batch.counts.jobs_total,
                one.batch.counts.jobs_validated,
                one.batch.counts.jobs_failed,
                one.batch.counts.in_progress,
            ),
            risk_as_json(one.batch, last.get(one.batch.batch_id), now=now),
            short[one.batch.batch_id].reason if one.batch.batch_id in short else None,
            not_shown(batch_state(one.batch, last.get(one.batch.batch_id))),
            standing.get(one.batch.batch_id, PlaceShown()),
        )
        for one in found
    ]


class BatchListPage(Pages[PageServices]):
    """The list of batches."""

    def __init__(self, services: PageServices, attention: AttentionViews) -> None:
        super().__init__(services)
        self._attention = attention

    @get("/batches", "batches", asks=("q", "state", "qos", "app", "sort", "after"))
    async def show(self, request: web.Request) -> RenderedPage:
        store, query = self._services.store, request.query
        asked = asked_of(query, self._services.catalogue)
        choice = asked.choice
        if query.get("state") == ATTENTION:
            choice = replace(choice, ids=tuple(sorted((await self._attention.now()).batch_ids)))
        found = list(await store.listings.batches(choice, asked.sort, after=asked.after, limit=PER_PAGE + 1))
        more, found = len(found) > PER_PAGE, found[:PER_PAGE]
        active = [one.batch for one in found if one.batch.ended_at is None]
        last = await store.forecasts.last([one.batch_id for one in active]) if active else {}
        standing = await standings(store.ordering_rules, [one.batch_id for one in active])
        now = self._services.clock.now()
        since = Instant(now - self._services.catalogue.settings.ranking.active_s)
        short = await store.insight.short([one.batch_id for one in active], active_since=since)
        kept = {key: query[key] for key in ("q", "state", "qos", "app", "sort") if query.get(key)}
        values: dict[str, object] = {
            "rows": rows_of(found, last, standing, short, now),
            "because": lambda row: because(row.standing.breakdown, now),
            "query": kept,
            "sorts": [(sort.value, name) for sort, name in SORTS.items()],
            "states": [ATTENTION, *(state.value for state in BatchState)],
            "promises": [qos.value for qos in QoS],
            "apps": sorted(app.name for app in self._services.catalogue.apps.values()),
            "first": "?" + urlencode(kept) if asked.after is not None else None,
            "next": "?" + urlencode({**kept, "after": behind(found[-1].batch, asked.number + PER_PAGE)})
            if more
            else None,
            "number": asked.number,
        }
        return RenderedPage("batches.html", "Batches", "batches", values=values, every_s=LIVE_S)
