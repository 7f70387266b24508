"""Shows one batch: progress, forecasts, why it waits, and its jobs. It updates live if JavaScript is enabled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aiohttp import web

from administration.access.who import person_of, present
from administration.explain.service import Explain
from administration.forecasts.service import ForecastViews
from administration.forecasts.words import holds_in_words, not_shown, terms_in_words
from administration.restrictions import in_words
from administration.results import sees_results
from console.charts import Chart, Trace, at_ms, band, bar_of, line, time_axis, upright
from console.places import sentence, standings
from console.restrictions import restrictions_of
from domain.access import Role
from domain.batches import BatchState
from domain.errors import InvalidInputError
from domain.forecasts import ForecastPoint, ForecastState, Method, state_of
from domain.jobs import InstanceState
from domain.ordering import ServiceLevel
from domain.restrictions import Restricted, pause_of
from domain.settings import Settings
from domain.units import BatchId, Instant, JobId, Seconds
from priority.charging import queues
from web.handlers import LARGEST_ID, Pages, PageServices, get, hosts_asked, id_of, whole_number
from web.moments import length, percent, relative, stamp
from web.rendering import Crumb, RenderedPage

SHARES = (0, 20, 40, 60, 80, 100)
ROWS = 20  # rows per table
LOOKS, LEAST_S = 2, 60.0  # the first forecast is expected within LOOKS estimator intervals, at least LEAST_S


def progress_chart(shown: Document, told: Sequence[ForecastPoint], now: float) -> Chart:
    """Return the chart of finished jobs, with the actual end, or the forecast end shaded from q50 to q90.

    `shown` is the batch's document with its latest forecasts (administration/forecasts); `told` has all displayable
    forecasts in chronological order.
    """
    ended_at = shown["ended_at"]
    seen_at = now if ended_at is None else ended_at
    over = [(shown["created_at"], 0.0), *((one.made_at, one.over_fraction) for one in told if one.made_at < seen_at)]
    over.append((seen_at, _over(shown)))
    standing = told[-1] if told and shown["completion_q50_at"] is not None else None
    marks, shaded = _marks(shown, standing)
    drawn = [upright(at_ms(at), hue, name, level=1.0 - 0.08 * place) for place, (name, at, hue) in enumerate(marks)]
    x, y = [at_ms(at) for at, _ in over], [round(100.0 * share, 2) for _, share in over]
    return Chart(
        "progress",
        "Progress",
        _summary(shown, standing, now),
        ("when", "jobs finished"),
        [(stamp(at), percent(share, 1)) for at, share in reversed(over[-ROWS:])],
        (line("jobs finished", x, y, "--c3", mode="lines+markers", marker={"size": 4, "color": "--c3"}),),
        {
            "xaxis": time_axis(),
            "yaxis": {
                "range": [0, 122],  # leaves space for labels above the lines
                "tickvals": SHARES,
                "ticktext": [f"{share} %" for share in SHARES],
                "title": {"text": "jobs finished"},
            },
            "shapes": [*shaded, *(shape for shape, _ in drawn)],
            "annotations": [label for _, label in drawn],
            "showlegend": False,
        },
        height=300,
    )


def forecasts_chart(
    shown: Document, told: Sequence[ForecastPoint], now: float, *, delay_bound_s: Seconds
) -> Chart | None:
    """Return the chart of forecast ends over time, q50 to q90, or None without a displayable forecast.

    The last forecast extends to now or to the end of the batch. The table lists the latest displayable forecasts.
    """
    seen_at = now if shown["ended_at"] is None else shown["ended_at"]
    points = [one for one in told if one.made_at <= seen_at]
    if not points:
        return None
    last, total = points[-1], max(1, shown["jobs_total"])
    listed = [one for one in shown["forecasts"] if _is_shown(one, delay_bound_s)]
    x = [*(at_ms(one.made_at) for one in points), at_ms(seen_at)]
    about = [*(at_ms(one.q50_at) for one in points), at_ms(last.q50_at)]
    latest = [*(at_ms(one.q90_at) for one in points), at_ms(last.q90_at)]
    over = [*(percent(one.over_fraction) for one in points), percent(_over(shown))]
    told_with = {"customdata": over, "hovertemplate": "%{y|%Y-%m-%d %H:%M}, %{customdata} of the jobs finished"}
    levels = [("deadline", shown["deadline_at"], "--bad"), ("ended", shown["ended_at"], "--c3")]
    return Chart(
        "forecasts",
        "Forecast history",
        "Forecast end of the batch at each time, from expected (q50) to latest (q90). "
        "A level band means accurate forecasts; a rising band means that forecasts were too early.",
        ("when", "jobs finished", "expected (q50)", "latest (q90)", "C(B)"),
        [_row(one, total) for one in reversed(listed[-ROWS:])],
        (
            *band("between", x, about, latest, "--c1"),
            line("expected (q50)", x, about, "--c1", **told_with),
            line("latest (q90)", x, latest, "--c4", line={"color": "--c4", "width": 1.5}, **told_with),
            *(_level(name, x, at, hue) for name, at, hue in levels if at is not None),
        ),
        {"xaxis": time_axis(), "yaxis": {"type": "date"}},
        height=300,
    )


def until_forecast(shown: Document, now: float, *, look_s: Seconds, timer_s: Seconds) -> str:
    """Return, in words, when a batch without a displayable forecast can expect one.

    >>> fresh = {"ended_at": None, "created_at": 100.0, "forecasts": []}
    >>> until_forecast(fresh, 103.0, look_s=300.0, timer_s=900.0).partition(": ")[2]
    'expect the first forecast within 10 min of the submission.'
    """
    if shown["ended_at"] is not None:
        return "The batch ended before its first forecast."
    if shown["forecasts"]:
        because = shown["forecasts"][-1]["method_because"]
        return (
            f"The last forecast ({because}) is too uncertain to show. Expect the next one when results arrive, and "
            f"within {length(timer_s)} at the latest."
        )
    looks = f"The estimator checks for new batches every {length(look_s)}"
    waited_s, most_s = now - shown["created_at"], max(LEAST_S, LOOKS * look_s)
    if waited_s <= most_s:
        return f"No forecast yet. {looks}: expect the first forecast within {length(most_s)} of the submission."
    return (
        f"No forecast {length(waited_s)} after the submission. {looks}; check the estimator on the overview, "
        "under Periodic tasks."
    )


def _over(counts: Document) -> float:
    return float((counts["jobs_validated"] + counts["jobs_failed"]) / max(1, counts["jobs_total"]))


def _level(name: str, x: Sequence[float], at: float, hue: str) -> Trace:
    """Return a horizontal line at an instant."""
    return line(name, [x[0], x[-1]], [at_ms(at)] * 2, hue, line={"color": hue, "width": 1.5, "dash": "dash"})


def _marks(shown: Document, last: ForecastPoint | None) -> tuple[list[tuple[str, float, str]], list[Trace]]:
    """Return the vertical marks of the progress chart: the end, or the forecast end with q50 to q90 shaded."""
    marks: list[tuple[str, float, str]] = []
    shaded: list[Trace] = []
    if shown["ended_at"] is not None:
        marks.append(("ended", shown["ended_at"], "--c3"))
    elif last is not None:
        marks += [("expected", last.q50_at, "--c1"), ("latest", last.q90_at, "--c4")]
        area = {"type": "rect", "x0": at_ms(last.q50_at), "x1": at_ms(last.q90_at), "y0": 0, "y1": 1}
        shaded.append({**area, "yref": "paper", "line": {"width": 0}, "fillcolor": "--c1/0.14", "layer": "below"})
    if shown["deadline_at"] is not None:
        marks.append(("deadline", shown["deadline_at"], "--bad"))
    return marks, shaded


def _summary(shown: Document, last: ForecastPoint | None, now: float) -> str:
    over = percent(_over(shown))
    if shown["ended_at"] is not None:
        return f"The batch ended {relative(shown['ended_at'], now)}; {over} of its jobs were finished."
    if last is None:
        return f"{over} of the jobs are finished, {length(now - shown['created_at'])} after the submission."
    about, latest = relative(last.q50_at, now), relative(last.q90_at, now)
    return f"{over} of the jobs are finished; expected end {about}, latest end {latest} (shaded)."


def _is_shown(one: Document, delay_bound_s: Seconds) -> bool:
    return one["q50_at"] is not None and state_of(_point(one), delay_bound_s) is ForecastState.SHOWN


def _point(one: Document) -> ForecastPoint:
    return ForecastPoint(one["made_at"], one["q50_at"], one["q90_at"], Method(one["method"]), 0.0)


def _row(one: Document, total: int) -> tuple[str, ...]:
    return (
        stamp(one["made_at"]),
        percent((one["jobs_validated"] + one["jobs_failed"]) / total, 1),
        stamp(one["q50_at"]),
        stamp(one["q90_at"]),
        f"{stamp(one['completion_at'])}, {one['change']}",
    )


LIVE_S = 3
FORECASTS = 20  # rows in the table
SPANS = 120  # points in the chart
JOBS = 50
FIRST_INSTANCES = 10
LOOK = 2000  # maximum number of jobs read to fill a page of jobs in one state
STATES = ("all", "open", "valid", "failed", "cancelled")
Document = Mapping[str, Any]  # Any: a JSON document


class BatchPages(Pages[PageServices]):
    """Pages about one batch, why it waits, and its jobs."""

    def __init__(self, services: PageServices, api: str) -> None:
        """`api` is the path of the API, for links to results."""
        super().__init__(services)
        self._api = api
        self._forecasts = ForecastViews(services.store, services.clock)
        self._explain = Explain(services.store, services.clock)

    @get("/batches/{id}", "batch")
    async def show(self, request: web.Request) -> RenderedPage:
        batch_id = BatchId(id_of(request))
        store = self._services.store
        batch = await store.views.batch(batch_id)
        shown: Document = await self._forecasts.of_batch(batch_id, limit=FORECASTS)
        submitter = await store.views.submitter_name(batch.submitter_id)
        account = await store.views.account_name(batch.account_id)
        ahead = await store.insight.work_ahead(batch_id)
        classes = await store.views.classes_of_batch(batch_id)
        curve = await store.forecasts.curve(batch_id, spans=SPANS)
        delay_bound_s = max((one.delay_bound_s for one in classes), default=Seconds(0.0))
        told = [one for one in curve if state_of(one, delay_bound_s) is ForecastState.SHOWN]
        first = await store.listings.instances(batch_id, tuple(InstanceState), after=None, limit=FIRST_INSTANCES + 1)
        standing = (await standings(store.ordering_rules, [batch_id]))[batch_id]
        since = Instant(self._services.clock.now() - self._settings.ranking.active_s)
        short = (await store.insight.short([batch_id], active_since=since)).get(batch_id)
        shown = {**shown, "at_risk": short.reason if short is not None else shown["at_risk"]}
        last = shown["forecasts"][-1] if shown["forecasts"] else None
        person, counts = person_of(request), batch.counts
        now, estimator = self._services.clock.now(), self._settings.estimator
        restrictions = await restrictions_of(store)
        paused = pause_of(restrictions, batch)
        values: dict[str, object] = {
            "batch": batch,
            "bar": bar_of(counts.jobs_total, counts.jobs_validated, counts.jobs_failed, counts.in_progress),
            "shown": shown,
            "last": last,
            "over": progress_chart(shown, told, now),
            "went": forecasts_chart(shown, told, now, delay_bound_s=delay_bound_s),
            "until_forecast": until_forecast(shown, now, look_s=estimator.look_s, timer_s=estimator.timer_s),
            "not_shown": not_shown(ForecastState(shown["forecast_state"])),
            "holds": last["holds"] if last else [],
            "terms": list(terms_in_words(last["terms"])) if last else [],
            "hold_words": list(holds_in_words(last["holds"])) if last else [],
            "submitter": submitter,
            "account": account,
            "ahead": ahead,
            "standing": standing,
            "stands": sentence(standing, now),
            "classes": classes,
            "instances": first[:FIRST_INSTANCES],
            "more_instances": len(first) > FIRST_INSTANCES,
            "results": f"{self._api}/batches/{batch_id}/outputs"
            if sees_results(present(request), batch.submitter_id)
            else None,
            "paused": None if paused is None else in_words(paused, self._services.catalogue.apps),
            "restricted": restrictions.get((Restricted.BATCH, str(batch_id))),
            "operates": present(request).may(Role.OPERATOR),
            "may": person is not None and person.may(Role.SUBMITTER) and person.owns(batch.submitter_id),
            "levels": [level.value for level in ServiceLevel],
            "queues": sorted(queues(self._settings.ordering.queues)),
        }
        every_s = LIVE_S if batch.state is BatchState.ACTIVE else 0
        return RenderedPage(
            "batch.html",
            batch.name or f"Batch {batch_id}",
            "batches",
            (Crumb("batches", "Batches"),),
            values,
            charts=True,
            every_s=every_s,
        )

    @property
    def _settings(self) -> Settings:
        return self._services.catalogue.settings

    @get("/batches/{id}/why", "batch_why", asks=("hosts",))
    async def why(self, request: web.Request) -> RenderedPage:
        """Show dry runs for the hosts with the latest requests."""
        batch_id = BatchId(id_of(request))
        shown: Document = await self._explain.batch(batch_id, hosts=hosts_asked(request.query))
        standing = (await standings(self._services.store.ordering_rules, [batch_id]))[batch_id]
        name = shown["name"] or f"Batch {batch_id}"
        crumbs = (Crumb("batches", "Batches"), Crumb(f"batches/{batch_id}", name))
        stands = sentence(standing, self._services.clock.now())
        values = {"shown": shown, "name": name, "standing": standing, "stands": stands}
        return RenderedPage("batch_why.html", "What holds it back", "batches", crumbs, values)

    @get("/batches/{id}/jobs", "batch_jobs", asks=("state", "after"))
    async def jobs(self, request: web.Request) -> RenderedPage:
        """List the batch's jobs in order of id, all or in one state."""
        batch_id = BatchId(id_of(request))
        state = request.query.get("state", "all")
        if state not in STATES:
            raise InvalidInputError("state", "one of " + ", ".join(STATES), state)
        batch = await self._services.store.views.batch(batch_id)
        after = whole_number(request.query["after"], "after", 1, LARGEST_ID) if "after" in request.query else None
        values: dict[str, object] = {"batch": batch, "state": state, "states": STATES}
        values |= await self._chosen(batch_id, state, JobId(after) if after is not None else None)
        name = batch.name or f"Batch {batch_id}"
        crumbs = (Crumb("batches", "Batches"), Crumb(f"batches/{batch_id}", name))
        return RenderedPage("jobs.html", "Jobs", "batches", crumbs, values)

    async def _chosen(self, batch_id: BatchId, state: str, after: JobId | None) -> dict[str, object]:
        """Return a page of jobs. With a state filter, at most LOOK jobs are read, and the next page continues there."""
        look = JOBS if state == "all" else LOOK
        found = list(await self._services.store.views.jobs(batch_id, limit=look + 1, after=after))
        looked = found[:look]
        chosen = [job for job in looked if state in ("all", job.state.value)]
        last = chosen[JOBS - 1].job_id if len(chosen) >= JOBS else looked[-1].job_id if looked else None
        more = len(found) > look or len(chosen) > JOBS
        page: Sequence[object] = chosen[:JOBS]
        return {"jobs": page, "next": last if more else None, "looked": len(looked), "after": after}
