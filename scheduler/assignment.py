"""Chooses jobs for a request and commits them, together with everything else the request changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import field, replace

import structlog

from domain.dispatch import AssignmentFate, RequestWrites, WriteOutcome
from domain.errors import UnavailableError
from domain.jobs import Ready
from domain.quick import quick_dataclass
from domain.refusals import RefusalCode
from domain.units import InstanceId
from scheduler.admission import kinds_of
from scheduler.choice import Choice, Refused
from scheduler.context import SchedulingContext
from scheduler.elements import JobToSend
from scheduler.messages import Reasons, counts_as_empty, kept_of
from scheduler.ports import JobSource, Ledger, SlotSource
from scheduler.quota import Draw, draw_of, quota_refusal

MOST_ROUNDS = 6  # of choosing, when everything chosen was lost to other requests; 3 left one request in 8,000 without
MOST_SEARCHED = 1000  # jobs to look for when the array has none for a host

log = structlog.get_logger()

Decide = Callable[[SchedulingContext, SlotSource], Choice]


@quick_dataclass(frozen=True, slots=True)
class Committed:
    """The jobs that were committed. `lost` counts those others were given first.

    `refusals` counts by code why there are not more; `reasons` puts it in words, when there are none at all.
    `left_out` are reports that were not written, because something else happened to their instances first; `moved` the
    instances that were taken over.
    """

    jobs: tuple[JobToSend, ...] = ()
    reasons: Reasons = field(default_factory=dict)
    refusals: Mapping[RefusalCode, int] = field(default_factory=dict)
    lost: int = 0
    left_out: frozenset[InstanceId] = frozenset()
    moved: frozenset[InstanceId] = frozenset()


@quick_dataclass(frozen=True, slots=True)
class _Charged:
    """What jobs drew on shared quotas, and how many of them were granted."""

    draw: Draw
    granted: int


class AssignmentCommitter:
    """Gives out the jobs of the array. A slot leaves it when its job is committed, or turns out to be gone."""

    def __init__(self, ledger: Ledger, array: JobSource, decide: Decide) -> None:
        self._ledger = ledger
        self._array = array
        self._decide = decide

    async def give(self, context: SchedulingContext | None, writes: RequestWrites) -> Committed:
        """Commit `writes` and, when `context` is not None, the jobs chosen for it, in one transaction.

        When every job chosen was lost to other requests it chooses again, at most MOST_ROUNDS times in all, after it
        has asked which slots beside them are gone. Raises UnavailableError when nothing was written; all slots are then
        back in the array.
        """
        if context is None:
            outcome = await self._ledger.write(writes)
            return Committed(left_out=outcome.left_out, moved=outcome.moved)
        self._array.note_request([want.processor_type for want in context.wants])
        set_aside: list[Ready] = []
        try:
            return await self._rounds(context, writes, set_aside)
        finally:
            for slot in set_aside:
                self._array.give_back(slot)

    async def _rounds(self, context: SchedulingContext, writes: RequestWrites, set_aside: list[Ready]) -> Committed:
        choice = await choice_of(context, self._array, self._decide)
        choice, charged = await self._charged(context, choice, set_aside)
        reasons = {} if choice.chosen else choice.reasons()
        outcome = await self._committed(choice, charged, reasons, writes, set_aside)
        given, first = _given(choice, reasons, outcome), outcome
        rounds = 1
        while choice.chosen and not given.jobs and rounds < MOST_ROUNDS:
            await self._array.recheck([chosen.slot for chosen in choice.chosen])
            choice = await choice_of(context, self._array, self._decide)
            try:
                choice, charged = await self._charged(context, choice, set_aside)
                reasons = {} if choice.chosen else choice.reasons()
                outcome = await self._committed(choice, charged, reasons, RequestWrites(writes.host), set_aside)
            except UnavailableError as error:  # the reports are written: the client can be answered
                log.warning("jobs not committed", host_id=writes.host.host_id, why=str(error))
                break
            given = _given(choice, reasons, outcome, lost_before=given.lost)
            rounds += 1
        if not first.left_out and not first.moved:
            return given
        return replace(given, left_out=first.left_out, moved=first.moved)

    async def _charged(
        self, context: SchedulingContext, choice: Choice, set_aside: list[Ready]
    ) -> tuple[Choice, _Charged | None]:
        """Charge the jobs to the quotas that the host shares; those that other requests have used up are set aside.

        Nothing is charged, and the database is not asked, where the host's own record covers its jobs.
        """
        draw = draw_of(context, len(choice.chosen))
        if draw is None:
            return choice, None
        try:
            grant = await self._ledger.reserve_quota(draw.request)
        except BaseException:
            set_aside.extend(chosen.slot for chosen in choice.chosen)
            raise
        most = draw.covered + grant.granted
        if most < len(choice.chosen):
            set_aside.extend(chosen.slot for chosen in choice.chosen[most:])
            refused = (*choice.refused_at_large, Refused(quota_refusal(grant)))
            choice = replace(choice, chosen=choice.chosen[:most], refused_at_large=refused)
        return choice, _Charged(draw, grant.granted)

    async def _released(self, charged: _Charged | None, given: int) -> None:
        """Take back the charge for jobs that were not given; mostly all were."""
        unused = charged.draw.unused(given, charged.granted) if charged is not None else 0
        if charged is not None and unused:
            await self._ledger.release_quota(charged.draw.request, unused)

    async def _committed(
        self,
        choice: Choice,
        charged: _Charged | None,
        reasons: Reasons,
        writes: RequestWrites,
        set_aside: list[Ready],
    ) -> WriteOutcome:
        """Write, and tell the array what became of each slot. `reasons`: why none was chosen, if none was.

        Those of jobs the host may not have (a sibling is there) are set aside for other hosts.
        """
        assignments = tuple([chosen.assignment for chosen in choice.chosen])
        refused = () if assignments else kept_of(reasons)
        chosen_for = writes.with_choice(assignments, choice.lease, refused)
        try:
            outcome = await self._ledger.write(chosen_for)
        except (Exception, asyncio.CancelledError):  # not GeneratorExit: who is closed may wait for nothing more
            set_aside.extend(chosen.slot for chosen in choice.chosen)
            await self._released(charged, 0)
            raise
        fates = outcome.fates
        sent = [i for i, fate in fates.items() if fate is AssignmentFate.SENT]
        self._array.sent(sent)
        if len(sent) < len(fates):
            self._array.lost(i for i, fate in fates.items() if fate is AssignmentFate.LOST)
            slots = {chosen.slot.instance_id: chosen.slot for chosen in choice.chosen}
            set_aside.extend(slots[i] for i, fate in fates.items() if fate is AssignmentFate.SIBLING)
            await self._released(charged, len(sent))
        return outcome


def is_to_search(choice: Choice) -> bool:
    """Whether to search the database after this choice from the array."""
    if any(one.batch.unpaid for one in choice.chosen):
        return True
    return not choice.chosen and counts_as_empty(choice.counts())


async def choice_of(context: SchedulingContext, array: SlotSource, decide: Decide) -> Choice:
    """What the array has for the host; when it has nothing, what the database has. Only the array changes.

    Work that is charged nothing is as good as nothing until the database has nothing else either.
    """
    choice = decide(context, array)
    if not is_to_search(choice):
        return choice
    kinds = kinds_of(context)
    if not kinds or not await array.search(kinds, MOST_SEARCHED):
        return choice
    for one in choice.chosen:
        array.give_back(one.slot)
    return decide(context, array)


def _given(choice: Choice, told: Reasons, outcome: WriteOutcome, *, lost_before: int = 0) -> Committed:
    """What came of a choice; `told`: why none was chosen, if none was."""
    jobs = tuple(
        [
            JobToSend(
                one.assignment, one.version, one.job_class, one.flop_per_s, outcome.sent[one.assignment.instance_id]
            )
            for one in choice.chosen
            if outcome.fates.get(one.assignment.instance_id) is AssignmentFate.SENT
        ]
    )
    lost = lost_before + len(choice.chosen) - len(jobs)
    refusals = choice.counts() if choice.chosen else {code: count for code, (count, _) in told.items()}
    reasons = {} if jobs else dict(choice.reasons() if choice.chosen else told)
    if lost:
        refusals[RefusalCode.LOST_RACE] = lost
        reasons[RefusalCode.LOST_RACE] = (lost, "other computers were given the jobs that fitted first")
    return Committed(jobs, reasons, refusals, lost)
