"""Raises events: batches that ended, are at risk or missed their deadline, failing apps, and stuck work."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from administration.heartbeats import SILENT_S
from administration.unschedulable import RefusedByAll, by_batch, refused_lately
from domain.batches import Batch
from domain.clock import Clock
from domain.notifications import WINDOW_S, AppFailures, BatchNews, EventKind, RaisedEvent
from domain.refusals import RefusalCode
from domain.settings import Settings
from domain.units import Instant, later
from store.notifications import FailureWindow
from store.postgres import PostgresStore

EVERY_S = 20.0
MOST_BATCH_IDS = 20  # named in an event


class EventWatch:
    """Looks for events. Each one is raised once, because its key is stored; a repeated round raises nothing again."""

    def __init__(self, store: PostgresStore, settings: Callable[[], Settings], clock: Clock) -> None:
        self._whole = store
        self._store = store.notifications
        self._settings = settings
        self._clock = clock

    async def run_once(self) -> None:
        now = self._clock.now()
        ended, endangered = await self._store.batch_news(now)
        await self._store.raise_events([_of_batch(one, now) for one in (*ended, *endangered)])
        await self._store.raise_events(await self._stuck(now))
        window = await self._store.window()
        if window is not None and 0.0 <= now - window.since_at < WINDOW_S:
            return
        failing = () if window is None else await self._failing(Instant(window.since_at))
        known = () if window is None else window.failing
        await self._store.raise_events([_of_app(one, now) for one in failing if one.app not in known])
        await self._store.begin_window(FailureWindow(now, [one.app for one in failing]), now=now)

    async def _failing(self, since: Instant) -> Sequence[AppFailures]:
        found = await self._store.app_failures(since)
        return [one for one in found if one.is_failing(self._settings().notifications)]

    async def _stuck(self, now: Instant) -> Sequence[RaisedEvent]:
        """Return events about unschedulable work. An app without a version is one only after the length of a back-off,
        because its next version may follow at once.
        """
        judging = await self._whole.process_reports.since(later(now, -SILENT_S), kind="background")
        found = await refused_lately(self._whole, self._clock, judging)
        before_at = later(now, -self._settings().feeder.cool_off_s)
        events = []
        for batch_id, one in by_batch(found.groups).items():
            batch = found.batches[batch_id]
            lost_at = found.lost[batch.app_id].since_at if one.lost else None
            if not one.lost or (one.since_at if lost_at is None else lost_at) <= before_at:
                events.append(_of_stuck(one, batch, now, lost_at))
        return events


def _of_batch(news: BatchNews, now: Instant) -> RaisedEvent:
    kind = EventKind(news.key.partition(" ")[0])
    shown = {
        "batch": news.name,
        "app": news.app,
        "submitter": news.submitter,
        "state": news.state,
        "jobs_total": news.jobs_total,
        "jobs_validated": news.jobs_validated,
        "jobs_failed": news.jobs_failed,
        "ended_at": news.ended_at,
        "deadline_at": news.deadline_at,
        "q50_at": news.q50_at,
        "q90_at": news.q90_at,
    }
    return RaisedEvent(news.key, kind, now, shown, news.batch_id, (news.submitter_id,))


def _of_app(found: AppFailures, now: Instant) -> RaisedEvent:
    shown = {
        "app": found.app,
        "failures": found.failures,
        "results": found.results,
        "hosts": found.hosts,
        "batch_ids": found.batch_ids[:MOST_BATCH_IDS],
    }
    key = f"{EventKind.APP_FAILING.value} {found.app} {now:.0f}"
    return RaisedEvent(key, EventKind.APP_FAILING, now, shown, None, found.submitter_ids)


def _of_stuck(refused: RefusedByAll, batch: Batch, now: Instant, lost_at: Instant | None) -> RaisedEvent:
    """Return the event. `lost_at`: when the app of the batch lost its version, so that each loss is one event."""
    code = RefusalCode.NO_APP_VERSION.value if refused.lost else refused.codes[0][0] if refused.codes else "unknown"
    shown = {"batch": batch.name, "code": code, "waiting": refused.waiting, "hosts": refused.hosts}
    key = f"{EventKind.WORK_STUCK.value} {batch.batch_id} {code}" + ("" if lost_at is None else f" {lost_at:.0f}")
    return RaisedEvent(key, EventKind.WORK_STUCK, now, shown, batch.batch_id, (batch.submitter_id,))
