"""Chooses jobs for a request and commits them together with all other changes of the request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import field, replace

import structlog

from domain.apps import App
from domain.dispatch import AssignmentFate, RequestWrites, WriteOutcome
from domain.errors import UnavailableError
from domain.jobs import Ready
from domain.quick import quick_dataclass
from domain.refusals import RefusalCode
from domain.units import AppId, InstanceId
from scheduler.admission import kinds_of
from scheduler.choice import Choice, Refused
from scheduler.context import SchedulingContext
from scheduler.elements import JobToSend
from scheduler.messages import Reasons, counts_as_empty, kept_of
from scheduler.ports import JobSource, Ledger, SlotSource
from scheduler.quota import Draw, draw_of, quota_refusal

MOST_ROUNDS = 6  # of choosing, if other requests take all chosen jobs; with 3 rounds, one request in 8,000 got no job
MOST_SEARCHED = 1000  # jobs to search in the database when the array has none for a host

log = structlog.get_logger()

Decide = Callable[[SchedulingContext, SlotSource], Choice]


@quick_dataclass(frozen=True, slots=True)
class Committed:
    """The committed jobs. `lost` is the number of chosen jobs that other requests took first.

    `refusals` counts by code why there are not more; `reasons` has the sentences if there are none at all. `left_out`
    are reports not written because their instances changed first; `moved` are the instances that were taken over.
    """

    jobs: tuple[JobToSend, ...] = ()
    reasons: Reasons = field(default_factory=dict)
    refusals: Mapping[RefusalCode, int] = field(default_factory=dict)
    lost: int = 0
    left_out: frozenset[InstanceId] = frozenset()
    moved: frozenset[InstanceId] = frozenset()


@quick_dataclass(frozen=True, slots=True)
class _Charged:
    """The charge to shared quotas, and the number of jobs the quotas granted."""

    draw: Draw
    granted: int


class AssignmentCommitter:
    """Commits jobs from the array. A slot leaves the array once its job is committed or no longer available."""

    def __init__(self, ledger: Ledger, array: JobSource, decide: Decide) -> None:
        self._ledger = ledger
        self._array = array
        self._decide = decide

    async def give(self, context: SchedulingContext | None, writes: RequestWrites) -> Committed:
        """Commit `writes` and, if `context` is not None, the jobs chosen for it, in one transaction.

        If other requests took all chosen jobs, it revalidates neighbouring slots and chooses again, up to MOST_ROUNDS
        times in total. Raises UnavailableError if nothing was written; all slots are then back in the array.
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
        reasons = {} if choice.chosen else choice.reasons(context.catalogue.apps)
        outcome = await self._committed(choice, charged, reasons, writes, set_aside)
        given, first = _given(choice, reasons, outcome, context.catalogue.apps), outcome
        rounds = 1
        while choice.chosen and not given.jobs and rounds < MOST_ROUNDS:
            await self._array.recheck([chosen.slot for chosen in choice.chosen])
            choice = await choice_of(context, self._array, self._decide)
            try:
                choice, charged = await self._charged(context, choice, set_aside)
                reasons = {} if choice.chosen else choice.reasons(context.catalogue.apps)
                outcome = await self._committed(choice, charged, reasons, RequestWrites(writes.host), set_aside)
            except UnavailableError as error:  # the reports are already written: the client still gets a reply
                log.warning("jobs not committed", host_id=writes.host.host_id, why=str(error))
                break
            given = _given(choice, reasons, outcome, context.catalogue.apps, lost_before=given.lost)
            rounds += 1
        if not first.left_out and not first.moved:
            return given
        return replace(given, left_out=first.left_out, moved=first.moved)

    async def _charged(
        self, context: SchedulingContext, choice: Choice, set_aside: list[Ready]
    ) -> tuple[Choice, _Charged | None]:
        """Charge the jobs to the host's shared quotas, and set aside jobs that exceed them.

        If the host's own record covers its jobs, nothing is charged and no query is made.
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
        """Return to the quotas the charge for jobs that were not sent, which is rare."""
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
        """Commit the choice and report each slot's outcome to the array. `reasons`: why no job was chosen, if none was.

        Slots of jobs that the host must not get (it has a sibling) are set aside for other hosts.
        """
        assignments = tuple([chosen.assignment for chosen in choice.chosen])
        refused = () if assignments else kept_of(reasons)
        chosen_for = writes.with_choice(assignments, choice.lease, refused)
        try:
            outcome = await self._ledger.write(chosen_for)
        except (Exception, asyncio.CancelledError):  # not GeneratorExit: a closed coroutine must not await
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
    """Return whether to search the database after this choice from the array."""
    if any(one.batch.unpaid for one in choice.chosen):
        return True
    return not choice.chosen and counts_as_empty(choice.counts())


async def choice_of(context: SchedulingContext, array: SlotSource, decide: Decide) -> Choice:
    """Choose from the array, or from the database if the array has no job for the host. Only the array is changed.

    Unpaid work counts as no job until a database search has found nothing else.
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


def _given(
    choice: Choice, no_choice: Reasons, outcome: WriteOutcome, apps: Mapping[AppId, App], *, lost_before: int = 0
) -> Committed:
    """Return the result of a committed choice. `no_choice` is the reason if no job was chosen."""
    jobs = tuple(
        [
            JobToSend(
                one.assignment,
                one.version,
                one.job_class,
                one.flop_per_s,
                outcome.sent[one.assignment.instance_id],
                one.hurry,
            )
            for one in choice.chosen
            if outcome.fates.get(one.assignment.instance_id) is AssignmentFate.SENT
        ]
    )
    lost = lost_before + len(choice.chosen) - len(jobs)
    refusals = choice.counts() if choice.chosen else {code: count for code, (count, _) in no_choice.items()}
    reasons = {} if jobs else dict(choice.reasons(apps) if choice.chosen else no_choice)
    if lost:
        refusals[RefusalCode.LOST_RACE] = lost
        reasons[RefusalCode.LOST_RACE] = (lost, "the suitable jobs were sent to other computers first")
    return Committed(jobs, reasons, refusals, lost)
