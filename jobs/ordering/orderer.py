"""The ordering of batches as a background duty: read, look, charge, move, explain."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from domain.catalogue import Catalogue
from domain.clock import Clock
from domain.ordered_work import OrderingView, OrderNotes, Reference
from domain.ordering_settings import OrderingSettings
from domain.units import DAY_S, HOUR_S, BatchId, Instant, Seconds
from jobs.ordering.charges import wants_sample
from jobs.ordering.look import Look, look
from jobs.ordering.ports import OrderedWork

ACTIVE_HOST_S = 7 * DAY_S  # hosts that called within this are what hosts are like
REFERENCE_S = HOUR_S  # between two looks at all of them
MOST_SAMPLED = 100  # batches whose results are looked at, per ordering
EXPLAINED_AT_ONCE = 200  # breakdowns made between two looks at the other duties

NEW = OrderNotes()


@dataclass(frozen=True, slots=True)
class OrderingReport:
    """What one ordering did. `late`: another one came first, and nothing was written."""

    policy: str
    batches: int
    moved: int
    held: int
    charged: int  # submitters whose usage changed
    explained: int
    took_s: Seconds
    late: bool = False


class Orderer:
    """Orders all batches anew by the policy of the moment. Once per cluster; a second one at once does no harm."""

    def __init__(self, work: OrderedWork, catalogue: Callable[[], Catalogue], clock: Clock) -> None:
        self._work = work
        self._catalogue = catalogue
        self._clock = clock
        self._explained_by: OrderingSettings | None = None  # the settings of the last ordering that was explained

    async def run_once(self) -> OrderingReport:
        """One ordering. Charges are written first: a place that is not written is found again by the next one."""
        now, started_s, catalogue = self._clock.now(), self._clock.monotonic(), self._catalogue()
        view = await self._work.view()
        reference = await self._reference(view, now)
        sampled = await self._sampled(view)
        ordering = catalogue.settings.ordering
        anew = ordering != self._explained_by
        found = await asyncio.to_thread(
            look, view, reference=reference, catalogue=catalogue, sampled=sampled, now=now, anew=anew
        )
        late = await self._work.charge(found.charges) is None
        moved = 0 if late else await self._work.move(found.places)
        explained = 0 if late else await self._explain(found, now)
        self._explained_by = None if late else ordering
        return OrderingReport(
            ordering.policy,
            found.batches,
            moved,
            found.held,
            len(found.charges.usage),
            explained,
            Seconds(self._clock.monotonic() - started_s),
            late,
        )

    async def _reference(self, view: OrderingView, now: Instant) -> Reference:
        """The one that is kept, or what hosts are like now."""
        if view.reference is not None and 0.0 <= now - view.reference.at < REFERENCE_S:
            return view.reference
        return await self._work.reference(active_since=Instant(now - ACTIVE_HOST_S), now=now)

    async def _sampled(self, view: OrderingView) -> Mapping[BatchId, Sequence[float]]:
        """What jobs took of their estimates, of some batches that have more results than when that was last seen."""
        wanted = islice((one for one in view.batches if wants_sample(one, one.notes or NEW)), MOST_SAMPLED)
        batch_ids = [one.batch.batch_id for one in wanted]
        found = await self._work.used_fractions(batch_ids) if batch_ids else {}
        return {batch_id: found.get(batch_id, ()) for batch_id in batch_ids}

    async def _explain(self, found: Look, now: Instant) -> int:
        """Keep the breakdowns of what moved, some at a time: other duties share this process."""
        for start in range(0, len(found.explained), EXPLAINED_AT_ONCE):
            some = found.explained[start : start + EXPLAINED_AT_ONCE]
            await self._work.explain(await asyncio.to_thread(found.records, some), now=now)
        return len(found.explained)
