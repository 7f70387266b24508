"""Says why nothing of a batch is sent: no host can run its jobs, its app has no version, or it is paused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from administration.apps import LostVersion
from administration.heartbeats import SILENT_S
from administration.unschedulable import (
    RefusedByAll,
    about,
    by_batch,
    lost_apps,
    unschedulable_of,
    without_version,
)
from domain.batches import Batch
from domain.clock import Clock
from domain.forecasts import ForecastState
from domain.restrictions import Restricted, Restrictions, pause_of
from domain.units import AppId, BatchId, later
from domain.views import NotSent
from store.postgres import PostgresStore


@dataclass(frozen=True, slots=True)
class Stopped:
    """Why nothing of batches is sent: work judged to be unschedulable, each batch with its largest group, pauses, and
    the apps without a version for new work (`lost`). `down`: the project is paused. `unrunnable`: batches of whose
    unsent instances no host can run any.
    """

    refused: Mapping[BatchId, RefusedByAll] = field(default_factory=dict)
    restrictions: Restrictions = field(default_factory=dict)
    down: bool = False
    lost: Mapping[AppId, LostVersion] = field(default_factory=dict)
    unrunnable: Collection[BatchId] = frozenset()

    @property
    def not_sent(self) -> NotSent:
        """Return the same for lists of batches, without the reasons.

        >>> from domain.restrictions import Restriction
        >>> from domain.units import Instant
        >>> paused = Restriction(Restricted.APP, "3", 0, "broken", "root", Instant(0.0))
        >>> Stopped(restrictions={(Restricted.APP, "3"): paused}, down=True).not_sent
        NotSent(all=True, batch_ids=[], app_ids=[3], queues=[])
        """
        paused = {kind: [one for found, one in self.restrictions if found is kind] for kind in Restricted}
        return NotSent(
            self.down,
            [*self.refused, *(BatchId(int(one)) for one in paused[Restricted.BATCH])],
            [*self.lost, *(AppId(int(one)) for one in paused[Restricted.APP])],
            paused[Restricted.QUEUE],
        )

    def group_of(self, batch: Batch) -> RefusedByAll | None:
        """Return the largest group of a batch that no host can run, None if there is none."""
        lost = self.lost.get(batch.app_id)
        if lost is not None and batch.ended_at is None and batch.counts.unsent:
            return without_version(batch, lost)
        return self.refused.get(batch.batch_id)

    def pause_of(self, batch: Batch) -> tuple[str, str]:
        """Return what is paused about a batch with unsent instances, and the reason; ("", "") if nothing is.

        A pause stops sending only. A batch whose instances have all been sent continues.

        >>> from dataclasses import replace
        >>> from domain.batches import BatchCounts
        >>> from domain.units import Instant
        >>> sent = Batch(1, 7, 1, 1, "", "afap", "active", Instant(0.0), 0, 0.0, Instant(0.0))
        >>> unsent = replace(sent, counts=BatchCounts(unsent=5))
        >>> [found.pause_of(one)[0] for found in (Stopped(down=True), Stopped()) for one in (unsent, sent)]
        ['project paused', '', '', '']
        """
        if not batch.counts.unsent or batch.ended_at is not None:
            return "", ""
        found = pause_of(self.restrictions, batch)
        if found is not None:
            return "paused" if found.kind is Restricted.BATCH else f"{found.kind} paused", found.why
        return ("project paused", "No host gets work.") if self.down else ("", "")

    def paused_of(self, batch: Batch, *, is_sent: bool) -> tuple[str, str]:
        """Return the pause that an active batch is shown with, and its reason; ("", "") for none: its own, or one that
        keeps jobs from being sent for the first time. `is_sent`: each job was sent at least once.

        >>> from domain.batches import BatchCounts
        >>> from domain.restrictions import Restriction
        >>> from domain.units import Instant
        >>> some = {"counts": BatchCounts(unsent=5)}
        >>> one = Batch(1, 7, 1, 3, "", "afap", "active", Instant(0.0), 0, 0.0, Instant(0.0), **some)
        >>> pauses = {key: Restriction(*key, 0, "", "", Instant(0.0)) for key in [(Restricted.BATCH, "1")]}
        >>> [found.paused_of(one, is_sent=True)[0] for found in (Stopped(restrictions=pauses), Stopped(down=True))]
        ['paused', '']
        >>> Stopped(down=True).paused_of(one, is_sent=False)[0]
        'project paused'
        """
        own = self.restrictions.get((Restricted.BATCH, str(batch.batch_id)))
        if own is not None and batch.ended_at is None:
            return "paused", own.why
        return ("", "") if is_sent else self.pause_of(batch)

    def stop_of(self, batch: Batch) -> tuple[str, str]:
        """Return in a few words what keeps an active batch from being sent, and the reason; ("", "") if nothing does.

        >>> from dataclasses import replace
        >>> from domain.batches import BatchCounts
        >>> from domain.units import Instant
        >>> some = {"hold": "5 jobs at most", "counts": BatchCounts(unsent=5)}
        >>> one = Batch(1, 7, 1, 1, "", "afap", "active", Instant(0.0), 0, 0.0, Instant(0.0), **some)
        >>> Stopped().stop_of(one), Stopped(down=True).stop_of(one)[0]
        (('blocked by a limit', '5 jobs at most'), 'project paused')
        >>> part = RefusedByAll(BatchId(1), 1, False, 2, 3, (("disk", 3),), Instant(0.0), False, active_hosts=3)
        >>> [Stopped({1: part}, unrunnable=ids).stop_of(replace(one, hold=None))[0] for ids in ([], [1])]
        ['', 'no host can run it']
        """
        group, pause = self.group_of(batch), self.pause_of(batch)
        if group is not None and (group.lost or batch.batch_id in self.unrunnable):
            return "no host can run it", group.reason
        return ("blocked by a limit", batch.hold) if batch.hold and not pause[0] else pause

    def state_of(self, batch: Batch) -> ForecastState | None:
        """Return why no end of an active batch is forecast, None if nothing stops it.

        A pause does not hide that no host can run the jobs: they would not be sent without it either.
        """
        if self.group_of(batch) is not None:
            return ForecastState.UNSCHEDULABLE
        return ForecastState.PAUSED if self.pause_of(batch)[0] else None


NOTHING_STOPPED = Stopped()


async def stopped_of(store: PostgresStore, clock: Clock) -> Stopped:
    """Return what stops batches now."""
    now = clock.now()
    restrictions = {(one.kind, one.name): one for one in await store.restrictions.restrictions()}
    is_down = await store.settings.project_pause() is not None
    judged = unschedulable_of(await store.process_reports.since(later(now, -SILENT_S), kind="background"))
    batches = await store.views.batches_with(sorted({one.batch_id for one in judged})) if judged else []
    refused = about(judged, batches)
    lost = await lost_apps(store, clock)
    return Stopped(by_batch(refused), restrictions, is_down, lost, unrunnable_of(refused, batches))


def unrunnable_of(refused: Iterable[RefusedByAll], batches: Iterable[Batch]) -> Collection[BatchId]:
    """Return the batches all of whose unsent instances are in these groups."""
    waiting = Counter[BatchId]()
    for one in refused:
        waiting[one.batch_id] += one.waiting
    return {one.batch_id for one in batches if 0 < one.counts.unsent <= waiting[one.batch_id]}
