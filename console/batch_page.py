"""Shows one batch: progress, forecasts, why it waits, and its jobs. It updates live if JavaScript is enabled."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from aiohttp import web

from administration.access.who import Person, is_operator, person_of, present
from administration.apps import lost_versions
from administration.attention.items import CLONE_HELPS, failing_of
from administration.attention.service import AttentionViews
from administration.explain.batch import fails_in_words
from administration.explain.service import Explain
from administration.explain.verdict import examples
from administration.explain.words import unsent_in_words
from administration.forecasts.service import ForecastViews
from administration.forecasts.words import (
    flag_of,
    is_severe,
    next_forecast,
    not_shown,
    risk_in_words,
    risk_tag,
    terms_in_words,
)
from administration.ordering.importance import FieldEffect, ImportanceChoices, choices_of, queue_choices
from administration.ordering.places import Urgent, at_levels, gated_share, sent_first, turn_of
from administration.ordering.priorities import Priorities
from administration.restrictions import in_words, may_resume
from administration.results import sees_results
from administration.show import job_as_json
from administration.stopped import Stopped, stopped_of
from administration.thresholds.in_force import concerning, gate_values, gates_in_words, lowered_gates
from administration.thresholds.keys import gate_meanings
from administration.thresholds.preview import goes_in_turn
from console.audit_page import changes_of
from console.batch_charts import Document, forecasts_chart, progress_chart, until_forecast
from console.charts import bar_of_batch
from console.drawing import TIME, Axis
from console.over_time import ASKS, RETRIED, asks_a_part, range_links, window_asked
from console.places import (
    PlaceShown,
    first_at,
    first_s_of,
    level_effect,
    levels_in_words,
    moves,
    sentence,
    standings,
    target_in_words,
    when_sent,
)
from console.restrictions import restrictions_of
from domain.access import Role
from domain.batches import Batch, BatchCounts, BatchState, is_late
from domain.deadline_rules import traits_of
from domain.errors import InvalidInputError
from domain.forecasts import WITHOUT_FORECAST, ForecastState, HoldKind, state_of
from domain.insight import WorkAhead
from domain.jobs import InstanceState, JobClass
from domain.ordering import PlaceInOrder, ServiceLevel
from domain.ranking import Gate
from domain.refusals import BEHIND_GATE
from domain.restrictions import Restricted, Restrictions, pause_of
from domain.samples import Window
from domain.settings import Settings
from domain.units import HOUR_S, BatchId, InstanceId, Instant, JobId, Seconds, later
from domain.views import ListedInstance, UnsentExtras
from muster_client import shapes
from store.postgres import PostgresStore
from web.csv_export import is_csv, send_csv
from web.guard import LIVE
from web.handlers import LARGEST_ID, Pages, PageServices, get, id_of, whole_number
from web.moments import length, number, stamp
from web.rendering import Crumb, RenderedPage

LIVE_S = 3
FORECASTS = 20  # rows in the table
SPANS = 120  # points in the chart
MOST_SPANS = 4000  # over the whole batch, when the chart shows a part
JOBS = 50
FIRST_INSTANCES = 10
ENDED = tuple(one for one in InstanceState if one not in (InstanceState.IN_PROGRESS, InstanceState.UNSENT))
LOOK = 2000  # maximum number of jobs read to fill a page of jobs in one state
STATES = ("all", "open", "valid", "failed", "cancelled")


def suggested_deadline(
    deadline_at: Instant | None, latest_at: Instant | None, now: Instant, *, goes_first: bool = False
) -> Instant | None:
    """Return the latest end by the present forecast, rounded up to the hour; None if unknown or before the deadline, or
    if the batch `goes_first` because its deadline is near or past: it ends later with a later one.

    >>> suggested_deadline(Instant(7200.0), Instant(7201.0), Instant(0.0))
    10800.0
    >>> suggested_deadline(Instant(7200.0), Instant(7200.0), Instant(0.0))
    >>> suggested_deadline(Instant(7200.0), None, Instant(9000.0))
    >>> suggested_deadline(Instant(7200.0), Instant(9000.0), Instant(0.0), goes_first=True)
    """
    if goes_first or deadline_at is None or latest_at is None or latest_at <= max(deadline_at, now):
        return None
    return Instant(math.ceil(latest_at / HOUR_S) * HOUR_S)


def deadline_help(standing: PlaceShown, first_s: float, effect: FieldEffect, *, is_gated: bool) -> str:
    """Say what a new deadline of a batch changes, whichever it is.

    `first_s`: how long before its deadline a batch begins to be sent first, 0 if never. `effect`: that of the deadline
    on the order. `is_gated`: it has unsent instances, and the deadline rule compares their ends with the deadline.
    """
    said, because, then = [], standing.because, standing.not_first
    if because:
        said.append(f"The batch is {because}")
    if because and first_s:
        place = f"about {number(then.place)} of {number(then.of)}" if then else "that in the order"
        stays = then is not None and standing.at is not None and then.place == standing.at.place
        place = f"its position stays {place}" if stays else f"its position becomes {place}"
        gate = f", {'and' if stays else 'but'} more hosts can take its jobs" if is_gated else ""
        said.append(f"With a deadline more than {length(first_s)} away, {place}{gate}")
    elif first_s:
        said.append(
            f"Most requests take its jobs before the order when less than {length(first_s)} remains until the deadline"
        )
    if effect.acts or not said:
        said.append(f"{effect.words[:1].upper()}{effect.words[1:]}")
    if is_gated and not (because and first_s):
        said.append("Hosts that would finish a job well before the deadline need no gate")
    return ". ".join([*said, "Instances in progress keep their due dates."])


def quorums_of(classes: Sequence[JobClass]) -> str:
    """Return the quorums of job classes in words, "" if each job needs one result."""
    found = sorted({one.quorum for one in classes})
    return "" if found in ([], [1]) else str(found[0]) if len(found) == 1 else f"{found[0]} to {found[-1]}"


LEAST_DOUBT = 0.005  # share of the uncertainty that is listed, more than 0 %
NOT_SENT = (HoldKind.NOT_SENT, HoldKind.RETRIES)


def holds_left(last: Document, counts: BatchCounts) -> Sequence[Document]:
    """Return the listed causes of delay of a forecast, without instances that were unsent then and are sent since."""
    return [
        one
        for one in last["holds"]
        if one["doubt_fraction"] >= LEAST_DOUBT and (counts.unsent or one["kind"] not in NOT_SENT)
    ]


def at_once_at(last: Document | None, about_at: float | None, now: Instant) -> Instant | None:
    """Return when a batch ends if hosts take it at once, by its latest forecast; None if that is not between now and
    `about_at`, its expected end.

    >>> last = {"made_at": 100.0, "terms": {"at_once_s": 60.0}}
    >>> [at_once_at(last, 900.0, Instant(at)) for at in (110.0, 170.0)]
    [160.0, None]
    """
    if last is None or last["terms"] is None or about_at is None:
        return None
    at = Instant(last["made_at"] + last["terms"]["at_once_s"])
    return at if now < at < about_at else None


def may_change(request: web.Request, batch: Batch) -> bool:
    person = person_of(request)
    return person is not None and person.may(Role.SUBMITTER) and person.owns(batch.submitter_id)


async def release_of(
    store: PostgresStore, batch: Batch, restrictions: Restrictions, person: Person
) -> tuple[str, str] | None:
    """Return the page where what blocks a batch is lifted, and the words of the link; None if nothing blocks it."""
    pause = pause_of(restrictions, batch)
    if pause is None or batch.ended_at is not None:
        return ("accounts/limits", "The limits") if batch.hold and batch.ended_at is None else None
    if pause.kind is Restricted.BATCH:
        may = await may_resume(store, person, batch, pause)
        return f"batches/{batch.batch_id}#restrict", "Resume the batch" if may else "The pause"
    return "restrictions", f"Resume the {pause.kind}" if person.may(Role.OPERATOR) else "The pause"


class BatchPages(Pages[PageServices]):
    """Pages about one batch, why it waits, and its jobs."""

    def __init__(self, services: PageServices, attention: AttentionViews, api: str) -> None:
        """`api` is the path of the API, for links to results."""
        super().__init__(services)
        self._api = api
        self._attention = attention
        self._forecasts = ForecastViews(services.store, services.clock)
        self._explain = Explain(services.store, services.clock, attention=attention)
        self._priorities = Priorities(services.store, services.clock)

    @get("/batches/{id}", "batch", asks=(*ASKS, RETRIED))
    async def show(self, request: web.Request) -> RenderedPage:
        batch_id = BatchId(id_of(request))
        store = self._services.store
        batch = await store.views.batch(batch_id)
        stopped = await stopped_of(store, self._services.clock)
        now = self._services.clock.now()  # later forecasts are newer than the page
        shown: Document = await self._forecasts.of_batch(batch_id, limit=FORECASTS, stopped=stopped)
        state = ForecastState(shown["forecast_state"])
        restrictions = stopped.restrictions
        paused, restricted = pause_of(restrictions, batch), restrictions.get((Restricted.BATCH, str(batch_id)))
        submitter = await store.views.submitter_name(batch.submitter_id)
        account = await store.views.account_name(batch.account_id)
        classes = await store.views.classes_of_batch(batch_id)
        urgent = await sent_first(store, self._services.catalogue, now, stopped.unrunnable)
        extras = await store.listings.extras(batch_id) if batch.counts.unsent else UnsentExtras()
        ahead = await self._ahead(batch, extras, urgent, stopped, now)
        ends_at = now if batch.ended_at is None else batch.ended_at
        part = window_asked(request.query, ends_at) if asks_a_part(request.query) else None
        whole = Window(batch.created_at, later(ends_at, 1.0))
        closer = 1.0 if part is None else max(1.0, whole.length_s / part.length_s)
        spans = round(min(MOST_SPANS, SPANS * closer))
        curve = await store.forecasts.curve(batch_id, spans=spans)
        ends = [] if batch.ended_at is None else await store.forecasts.job_ends(batch_id, most=spans)
        axis = TIME if part is None else Axis("", "time", part.from_at, part.to_at)
        delay_bound_s = max((one.delay_bound_s for one in classes), default=Seconds(0.0))
        told = [one for one in curve if state_of(one, delay_bound_s) is ForecastState.SHOWN]
        first = await self._first_instances(batch_id)
        standing = (await standings(store, [batch], urgent, self._services.catalogue.sent_apps(), stopped))[batch_id]
        since = Instant(now - self._settings.ranking.active_s)
        short = (await store.insight.short([batch_id], active_since=since)).get(batch_id)
        estimated = await store.forecasts.standing(batch_id)
        unused = state in WITHOUT_FORECAST
        last = shown["forecasts"][-1] if shown["forecasts"] and not unused else None
        holds = holds_left(last, batch.counts) if last else []
        superseded = state is ForecastState.MOVED
        estimator = self._settings.estimator
        risk = shown["at_risk"]
        fails = fails_in_words(batch, shown["app"], await self._attention.failing_versions(restrictions))
        first_s = first_s_of(self._services.catalogue, batch)
        goes_first_at = None if stopped.state_of(batch) or batch.hold else first_at(batch, first_s, now)
        values: dict[str, object] = {
            "batch": batch,
            "bar": bar_of_batch(batch),
            "shown": shown,
            "at_risk": risk,
            "tag": risk_tag(risk) if risk else "",
            "risk": risk_in_words(risk, state) if risk else "",
            "severe": is_severe(risk) if risk else False,
            "stuck": short.reason if short is not None else "",
            "refused": stopped.group_of(batch),
            "lost": stopped.lost.get(batch.app_id),
            "retries_lost": {}
            if batch.ended_at is None or not batch.counts.jobs_failed
            else await lost_versions(store.access, self._services.catalogue, {batch.app_id}),
            "last": last,
            "over": progress_chart(shown, curve, now, axis, last=told[-1] if told else None, ends=ends),
            "went": None
            if unused
            else forecasts_chart(
                shown,
                told,
                now,
                axis,
                delay_bound_s=delay_bound_s,
                moved_at=None if estimated is None else estimated.age.moved_at,
            ),
            "ranges": range_links(request.query, part or whole, ends_at, whole="whole batch"),
            "until_forecast": until_forecast(shown, now, look_s=estimator.look_s, timer_s=estimator.timer_s),
            "not_shown": not_shown(state),
            "pause": stopped.paused_of(batch, is_sent=standing.is_sent),
            "holds": holds,
            "terms": list(terms_in_words(last)) if last else [],
            "moved_at": None if estimated is None else estimated.age.moved_at,
            "superseded": superseded,
            "was_at": told[-1].q50_at if superseded and told and now < told[-1].q50_at else None,
            "renewed": ""
            if estimated is None
            else next_forecast(estimated.age, now, estimator, "new forecast" if superseded else "the next one"),
            "flag": flag_of(shown),
            "at_once_at": at_once_at(last, shown["completion_q50_at"], now)
            if ahead is not None and ahead.first and not batch.counts.in_progress
            else None,
            "fails": fails,
            "failing": failing_of(batch.counts) if batch.ended_at is None else ("", False),
            "submitter": submitter,
            "account": account,
            "turn": when_sent(standing, batch, ahead, stopped.stop_of(batch)[0]),
            "ahead": ahead,
            "standing": standing,
            "stands": sentence(standing, now) if standing.at else "",
            "classes": classes,
            "quorums": quorums_of(classes),
            "unsent": unsent_in_words(batch.counts.unsent, extras),
            "instances": first[:FIRST_INSTANCES],
            "more_instances": len(first) > FIRST_INSTANCES,
            "results": f"{self._api}/batches/{batch_id}/outputs"
            if sees_results(present(request), batch.submitter_id)
            else None,
            "table": f"{self._api}/batches/{batch_id}/results.csv",
            "paused": None if paused is None else in_words(paused, self._services.catalogue.apps),
            "restricted": restricted,
            "may_pause": await may_resume(store, present(request), batch, restricted),
            "may": may_change(request, batch),
            "queues": queue_choices(self._settings.ordering),
            "moved": "",
            "retried": whole_number(request.query.get(RETRIED, "0"), RETRIED, 0, LARGEST_ID),
            "pending": standing.is_pending(batch),
            "moving": estimated is not None and standing.moves_soon(batch, estimated.age.moved_at, now),
            "every_s": self._settings.ordering.interval_s,
            "first_at": goes_first_at,
            **await self._changes(request, batch),
        }
        if values["may"] and batch.state is BatchState.ACTIVE:
            values["choices"] = choices = await choices_of(
                store, batch, self._settings.ordering, by_operator=is_operator(request), sent_first=len(urgent)
            )
            values |= await self._levels(batch, standing, urgent, stopped, choices)
            values["deadline_help"] = deadline_help(
                standing,
                first_s,
                choices.effects["deadline"],
                is_gated=batch.counts.unsent > 0 and Gate.TIGHT in traits_of(self._settings.deadline).gates,
            )
            values["is_missed"] = is_late(batch.deadline_at, now)
            values["suggested_at"] = suggested_deadline(
                batch.deadline_at, shown["completion_q90_at"], now, goes_first=bool(standing.because)
            )
            if (said := request.query.get("said")) in ("importance", "deadline", "not_first"):
                stop = stopped.stop_of(batch)[0]
                values["moved"] = await self._moved(batch, standing, said, goes_first_at, stop)
        every_s = LIVE_S if batch.state is BatchState.ACTIVE else 0
        return RenderedPage(
            "batch.html",
            batch.name or f"Batch {batch_id}",
            "batches",
            (Crumb("batches", "Batches"),),
            values,
            charts=True,
            every_s=every_s,
            hosts=await self._services.host_names(
                [*(one.host_id for one in first), *(one for hold in holds for one in hold["host_ids"])]
            ),
        )

    async def _ahead(
        self, batch: Batch, extras: UnsentExtras, first: Urgent, stopped: Stopped, now: Instant
    ) -> WorkAhead | None:
        """Return the work before a batch's first instances; None if none of them waits, or if nothing is sent."""
        if batch.counts.unsent <= extras.copies + extras.retries or stopped.state_of(batch) or batch.hold:
            return None
        catalogue, unrunnable = self._services.catalogue, stopped.unrunnable
        return (await turn_of(self._services.store, batch, first, catalogue, now, unrunnable))[1]

    async def _changes(self, request: web.Request, batch: Batch) -> Mapping[str, object]:
        """Return the latest changes of a batch for its submitter and operators; none for others, and in live parts."""
        if not may_change(request, batch) or LIVE in request.headers:
            return {}
        return await changes_of(self._services, f"batch {batch.batch_id}", since=batch.created_at)

    async def _levels(
        self, batch: Batch, standing: PlaceShown, first: Urgent, stopped: Stopped, choices: ImportanceChoices
    ) -> Mapping[str, object]:
        """Return the levels that a form offers, with the positions that the batch would get, and what they change."""
        words: Mapping[str, str] = {}
        found: Mapping[ServiceLevel, PlaceInOrder] = {}
        if choices.by_level and standing.at is not None and standing.breakdown is not None:
            ordered_as = ServiceLevel(str(standing.record.get("level", batch.level.value)))
            apps, unrunnable = self._services.catalogue.sent_apps(), stopped.unrunnable
            found = await at_levels(self._services.store, batch, standing.at, ordered_as, first, apps, unrunnable)
            words = levels_in_words(choices.levels, found, standing.at)
        effect = choices.effects["level"].words + ". A batch cannot be moved by single places" * choices.only_ends
        said = level_effect(standing, stopped.stop_of(batch)[0], effect, idle=bool(found) and not words)
        return {"levels": words, "level_effect": said}

    async def _moved(
        self, batch: Batch, standing: PlaceShown, said: str, goes_first_at: Instant | None, stop: str
    ) -> str:
        """Say what was changed and where the batch moves. `goes_first_at`: when its deadline is near."""
        then = None if stop else (await self._priorities.foreseen([batch.batch_id])).get(batch.batch_id)
        words = "The deadline has been moved, and instances in progress keep their due dates"
        if said == "importance":
            words = f"Saved. Level {batch.level}, queue {batch.queue}, user priority {batch.user_priority}"
        pending, pass_s = standing.is_pending(batch), self._settings.ordering.interval_s
        moved = moves(standing.at, then, pass_s, pending=pending, first=standing.first, stop=stop)
        if said == "not_first" and goes_first_at and not standing.because:
            moved += f"; no longer sent first before {stamp(goes_first_at)}, when the new deadline is near"
        return f"{words}: {moved}"

    @property
    def _settings(self) -> Settings:
        return self._services.catalogue.settings

    async def _first_instances(self, batch_id: BatchId) -> Sequence[ListedInstance]:
        """Return the instances in progress, then the unsent ones, then those that ended, newest first; one more than is
        shown.
        """
        found: dict[InstanceId, ListedInstance] = {}
        listings = self._services.store.listings
        for states in ((InstanceState.IN_PROGRESS,), (InstanceState.UNSENT,), ENDED):
            if limit := max(0, FIRST_INSTANCES + 1 - len(found)):
                more = await (
                    listings.latest(batch_id, states, before=None, limit=limit)
                    if states is ENDED
                    else listings.instances(batch_id, states, after=None, limit=limit)
                )
                found |= {one.instance_id: one for one in more}
        return list(found.values())

    @get("/batches/{id}/why", "batch_why")
    async def why(self, request: web.Request) -> RenderedPage:
        """Show dry runs for the hosts with the latest requests."""
        batch_id = BatchId(id_of(request))
        shown: Document = await self._explain.batch(batch_id)
        name = shown["name"] or f"Batch {batch_id}"
        crumbs = (Crumb("batches", "Batches"), Crumb(f"batches/{batch_id}", name))
        store, catalogue, now = self._services.store, self._services.catalogue, self._services.clock.now()
        batch = await store.views.batch(batch_id)
        stopped = await stopped_of(store, self._services.clock)
        urgent, apps = await sent_first(store, catalogue, now, stopped.unrunnable), catalogue.sent_apps()
        standing = (await standings(store, [batch], urgent, apps, stopped))[batch_id]
        order, share = shown["order"], gated_share(self._settings)
        before = WorkAhead(order["batches_ahead"], order["unsent_ahead"], gated=order["gated_ahead"], gated_share=share)
        ahead = before if shown["unsent"] > shown["copies_unsent"] + shown["retries_unsent"] else None
        in_turn = goes_in_turn(batch, shown["complete_at"], self._settings.deadline, now)
        values: dict[str, Any] = {
            "shown": shown,
            "unsent": unsent_in_words(shown["unsent"], UnsentExtras(shown["copies_unsent"], shown["retries_unsent"])),
            "name": name,
            "release": await release_of(store, batch, await restrictions_of(store), present(request)),
            "standing": standing,
            "stands": sentence(standing, now) if standing.at else "",
            "turn": when_sent(standing, batch, ahead, stopped.stop_of(batch)[0]),
            "target": await self._target(batch, shown["complete_at"], now),
            "may": may_change(request, batch),
            "clone": CLONE_HELPS,
            "lowered": concerning(lowered_gates(catalogue, [batch.app_id]), shown),
            "gates": gates_in_words(gate_values(catalogue, batch.app_id)),
            "meanings": gate_meanings(),
            "in_turn": in_turn,
            "later": BEHIND_GATE if in_turn and is_late(batch.deadline_at, now) and not shown["retries_unsent"] else (),
            "lost": (await lost_versions(self._services.store.access, catalogue, [batch.app_id])).get(batch.app_id),
            "awaited": shown["awaited"] and shown["awaited"]["oldest"],
            "ahead": ahead is not None and standing.at is not None and order["first_ahead"],
        }
        hosts = await self._services.host_names(
            [*(one["host_id"] for one in values["awaited"] or ()), *examples(shown["sample"])]
        )
        return RenderedPage("batch_why.html", "What holds it back", "batches", crumbs, values, hosts=hosts)

    async def _target(self, batch: Batch, target_at: Instant | None, now: Instant) -> str:
        """Return where C comes from, "" without C."""
        if target_at is None:
            return ""
        classes = await self._services.store.views.classes_of_batch(batch.batch_id)
        return target_in_words(batch, target_at, max(one.delay_bound_s for one in classes), now)

    @get("/batches/{id}/jobs", "batch_jobs", asks=("state", "after", "as"))
    async def jobs(self, request: web.Request) -> RenderedPage | web.StreamResponse:
        """List the batch's jobs in order of id, all or in one state."""
        batch_id = BatchId(id_of(request))
        state = request.query.get("state", "all")
        if state not in STATES:
            raise InvalidInputError("state", "one of " + ", ".join(STATES), state)
        batch = await self._services.store.views.batch(batch_id)
        if is_csv(request.query):
            columns = [name for name in shapes.JobShown.__annotations__ if name != "instances"]
            return await send_csv(request, f"batch-{batch_id}-jobs", columns, self._pages(batch_id, state))
        after = whole_number(request.query["after"], "after", 1, LARGEST_ID) if "after" in request.query else None
        counts = batch.counts
        counted = {"all": counts.jobs_total, "valid": counts.jobs_validated, "failed": counts.jobs_failed}
        if batch.ended_at is None:
            counted["open"] = counts.jobs_open
        values: dict[str, object] = {
            "batch": batch,
            "state": state,
            "tabs": [(one, counted.get(one)) for one in STATES],
        }
        values |= await self._chosen(batch_id, state, JobId(after) if after is not None else None)
        name = batch.name or f"Batch {batch_id}"
        crumbs = (Crumb("batches", "Batches"), Crumb(f"batches/{batch_id}", name))
        return RenderedPage("jobs.html", "Jobs", "batches", crumbs, values)

    async def _pages(self, batch_id: BatchId, state: str) -> AsyncIterator[Sequence[shapes.JobShown]]:
        """Yield the batch's jobs in one state, or all."""
        after: JobId | None = None
        while found := await self._services.store.views.jobs(batch_id, limit=LOOK, after=after):
            yield [job_as_json(job) for job in found if state in ("all", job.state.value)]
            after = found[-1].job_id

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
