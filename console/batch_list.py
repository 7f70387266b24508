"""Lists batches, with filters, sort order and pages. The URL contains all choices, so that a list can be shared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from urllib.parse import urlencode

from aiohttp import web

from administration.cursors import cursor_of, place_of
from administration.forecasts.service import risk_of
from administration.forecasts.words import not_shown
from administration.names import checked_text, chosen
from console.charts import Bar, bar_of
from console.places import PlaceShown, because, standings
from console.restrictions import restrictions_of
from domain.batches import Batch, BatchState, QoS
from domain.catalogue import Catalogue
from domain.errors import InvalidInputError
from domain.forecasts import ForecastRecord, batch_state
from domain.insight import Short
from domain.restrictions import pause_of
from domain.units import BatchId, Instant
from domain.views import BatchChoice, BatchPlace, BatchSort, ListedBatch
from web.handlers import Pages, PageServices, get, whole_number
from web.rendering import RenderedPage

PER_PAGE = 50
LIVE_S = 5
SORTS = {BatchSort.NEWEST: "newest first", BatchSort.QUEUE: "order", BatchSort.DEADLINE: "deadline"}


@dataclass(frozen=True, slots=True)
class BatchLine:
    """A row of the list. `at_risk` gives the reason and the amount, `not_shown` why there is no forecast, `standing`
    the place in the order.
    """

    listed: ListedBatch
    bar: Bar
    at_risk: str | None
    not_shown: str
    standing: PlaceShown

    @property
    def batch(self) -> Batch:
        return self.listed.batch


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
        chosen(BatchState, query["state"], "state") if query.get("state") else None,
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
            risk_of(one.batch, last.get(one.batch.batch_id), short.get(one.batch.batch_id)),
            not_shown(batch_state(one.batch, last.get(one.batch.batch_id))),
            standing.get(one.batch.batch_id, PlaceShown()),
        )
        for one in found
    ]


class BatchListPage(Pages[PageServices]):
    """The list of batches."""

    @get("/batches", "batches", asks=("q", "state", "qos", "app", "sort", "after"))
    async def show(self, request: web.Request) -> RenderedPage:
        store, query = self._services.store, request.query
        asked = asked_of(query, self._services.catalogue)
        found = list(await store.listings.batches(asked.choice, asked.sort, after=asked.after, limit=PER_PAGE + 1))
        more, found = len(found) > PER_PAGE, found[:PER_PAGE]
        active = [one.batch for one in found if one.batch.ended_at is None]
        last = await store.forecasts.last([one.batch_id for one in active]) if active else {}
        standing = await standings(store.ordering_rules, [one.batch_id for one in active])
        since = Instant(self._services.clock.now() - self._services.catalogue.settings.ranking.active_s)
        short = await store.insight.short([one.batch_id for one in active], active_since=since)
        kept = {key: query[key] for key in ("q", "state", "qos", "app", "sort") if query.get(key)}
        values: dict[str, object] = {
            "rows": rows_of(found, last, standing, short),
            "pause_of": partial(pause_of, await restrictions_of(self._services.store)),
            "because": lambda row: because(row.standing.breakdown, self._services.clock.now()),
            "query": kept,
            "sorts": [(sort.value, name) for sort, name in SORTS.items()],
            "states": [state.value for state in BatchState],
            "promises": [qos.value for qos in QoS],
            "apps": sorted(app.name for app in self._services.catalogue.apps.values()),
            "first": "?" + urlencode(kept) if asked.after is not None else None,
            "next": "?" + urlencode({**kept, "after": behind(found[-1].batch, asked.number + PER_PAGE)})
            if more
            else None,
            "number": asked.number,
        }
        return RenderedPage("batches.html", "Batches", "batches", values=values, every_s=LIVE_S)
