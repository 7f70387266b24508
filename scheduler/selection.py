"""Chooses jobs for one scheduler request: the main path.

1 one search per processor type, GPUs first          demand_of in context.py
2 stages: gated, AFAP, locality, beta, all, ...      stages.py
3 each group: checks, gate and due date              evaluation.py, once per class and request
4 slots of the group until the demand is met         with the checks of a single job, feasibility.py
5 the choice: jobs, and every refusal                the array notes refusals; nothing else is changed
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from domain.apps import ProcessorType
from domain.jobs import Ready, draw
from domain.ranking import Gate
from domain.refusals import BEHIND_GATE, Refusal, RefusalCode
from domain.units import AppId, BatchId, InstanceId, JobId
from priority.big_jobs import least_bad
from scheduler.backfill import BUSY
from scheduler.choice import Choice, Chosen, Refused, chosen_of, not_refused_by_app, refused_by_all
from scheduler.context import RemainingDemand, SchedulingContext, WorkRequest, demand_of
from scheduler.evaluation import ClassEvaluator, Evaluation
from scheduler.feasibility import after_retries, device_refusal, job_refusal, none_ready
from scheduler.gates import kept_for_newcomers
from scheduler.ports import SlotGroup, SlotSource
from scheduler.stages import GATED_ALONE, WITHOUT_SHARE, Stage, groups_of, is_afap_of, stages_of

# Search limits per request:
GROUPS_LOOKED_AT = 256  # maximum number of groups that do not fit the host, per stage and processor type
GATES_LOOKED_AT = 1024  # and of groups behind a gate that the host does not pass
SLOTS_LOOKED_AT = 64  # maximum number of slots in a group that this host may not get


class Later(Enum):
    """The reason why a group is left to a later stage."""

    UNGATED = "needs no fast host: left to a later stage"
    SHARE_USED_UP = "jobs that need a fast host have reached their share of this host: taken if no other fits"


class _Offer(Enum):
    """The result of offering a group to the host."""

    GIVEN = 1
    REFUSED = 2
    GATED = 3  # behind a gate the host does not pass, or beyond their share


# Bound once: access to an enum member costs 75 ns, and a request compares hundreds.
_GIVEN, _REFUSED, _GATED = _Offer
_UNGATED, _SHARE_USED_UP = Later
_AFAP_GATE = Gate.AFAP


def _offer_of(why: Refusal | Later) -> _Offer:
    """Return the result for a group refused before any of its slots was examined."""
    is_gate = why.code in BEHIND_GATE if isinstance(why, Refusal) else why is _SHARE_USED_UP
    return _GATED if is_gate else _REFUSED


class Trace:
    """Observes a selection, for `muster explain`. This base class, used in production, records nothing."""

    def begins(self, stage: Stage, kind: ProcessorType) -> None:
        """Record that a stage starts for one processor type."""

    def refused(self, place: int, why: Refusal | Later) -> None:
        """Record that a group was refused before any of its slots was examined."""

    def offered(
        self, place: int, given: int, passed_over: Sequence[Refusal], not_now: Sequence[Refusal | Later]
    ) -> None:
        """Slots of a group were sent or passed over; `not_now`: why its retries, or first instances, were not sent."""

    def cut_short(self) -> None:
        """Record that the stage ended at a search limit, before the last group."""


NO_TRACE = Trace()


def choose(context: SchedulingContext, array: SlotSource, trace: Trace = NO_TRACE) -> Choice:
    """Choose jobs for the host, each with a due date, and take their slots from the array.

    The cost depends on the number of groups examined until the demand is met, not on the number of slots. The array
    records groups refused for all requested processor types if none of their slots was taken.
    """
    selection = JobSelection(context, array, trace)
    for wanted in context.wants:  # 1
        search = selection.search(wanted)
        if search is not None and selection.groups:
            search.lease_first()
            for stage in selection.stages:  # 2
                search.run(stage)  # 3 and 4
            search.fill_idle()
    return selection.result()  # 5


class JobSelection:
    """The state of one request's selection: chosen jobs, and refusals by group and processor type."""

    def __init__(self, context: SchedulingContext, array: SlotSource, trace: Trace) -> None:
        self.context = context
        self.array = array
        self.trace = trace
        self.groups: Sequence[SlotGroup] = array.groups()
        self.stages = stages_of(context, self.groups)
        self.evaluator = ClassEvaluator(context)
        self.chosen: list[Chosen] = []
        self.job_ids: set[JobId] = set()
        self.served: set[ProcessorType] = set()
        self.examined: set[int] = set()  # group indexes
        self.given: set[int] = set()  # of the groups from which slots were taken
        self.refused: dict[tuple[int, ProcessorType], Refusal] = {}
        self.refused_apps: dict[tuple[AppId, ProcessorType], Refusal] = {}
        self.refused_types: list[Refused] = []

    def search(self, wanted: WorkRequest) -> TypeSearch | None:
        """Return the search for one processor type; None if the type gets no work at all."""
        kind = wanted.processor_type
        demand = device_refusal(wanted, self.context) or demand_of(wanted, self.context, sent=len(self.chosen))
        if isinstance(demand, Refusal):
            self.refused_types.append(Refused(demand, kind))
            return None
        self.served.add(kind)
        return TypeSearch(self, kind, demand)

    def result(self) -> Choice:
        """Return the chosen jobs, and why there are no more."""
        refused = list(self.refused_types)
        if not self.groups and self.served:
            refused.append(Refused(none_ready(self.context.catalogue)))
        refused += [Refused(why, kind, app_id) for (app_id, kind), why in self.refused_apps.items()]
        not_given = not_refused_by_app(self.refused, self.groups, self.refused_apps)
        by_all = refused_by_all(self.refused, len(self.served))
        noted = [(self.groups[place].key, why.code) for place, why in by_all if place not in self.given]
        if noted:
            self.array.note_refusals(noted, self.context.host.host_id)
        return Choice(tuple(self.chosen), tuple(refused), len(self.examined), not_given, self.evaluator.guard.made)


@dataclass(slots=True)
class SearchState:
    """The groups, batches and apps that a search need not offer again, with the reasons."""

    groups: set[int] = field(default_factory=set)  # indexes of groups from which nothing more is sent
    batches: dict[BatchId, Refusal | Later] = field(default_factory=dict)  # of one gate, not passed or used up
    apps: dict[AppId, Refusal] = field(default_factory=dict)  # apps from which nothing is sent
    afap_apps: set[AppId] = field(default_factory=set)  # apps whose AFAP jobs are all gated for this host
    share_used_up: bool = False  # gated jobs have reached their share of these processors

    def reopen(self) -> None:
        """Evaluate all groups of usable apps again."""
        self.groups.clear()
        self.batches.clear()


class TypeSearch:
    """Searches jobs for one processor type."""

    def __init__(self, selection: JobSelection, kind: ProcessorType, demand: RemainingDemand) -> None:
        self._selection = selection
        self._evaluator = selection.evaluator
        self._trace = selection.trace
        self._kind = kind
        self._demand = demand
        self._state = SearchState()
        settings = selection.context.catalogue.settings
        self._shares = self._evaluator.traits.shares_gated
        self._gated_share = settings.scheduler.urgent_share_fraction if self._shares else 1.0

    def lease_first(self) -> None:
        """Send a leased host one job of the lease's batch, if one is ready."""
        if self._evaluator.guard.lease is None:
            return
        demand = self._demand
        one = self._demand = demand.allowing(min(1, demand.jobs))
        self._search(Stage.LEASED)
        if self._demand is one:
            self._demand = demand
        else:
            self._evaluator.guard.lease = None  # the host gets the job for which it was leased
            self._demand = self._demand.allowing(demand.jobs - 1)

    def run(self, stage: Stage) -> None:
        """Search one stage if work is still wanted; LEFT_OVER only if the share of gated jobs is used up."""
        if self._demand.open and (self._state.share_used_up or stage is not Stage.LEFT_OVER):
            self._search(stage)

    def fill_idle(self) -> None:
        """Fill processors that are idle because nothing fits around a lease, unless the lease begins soon.

        The share of gated jobs does not count, because nothing else is left for these processors.
        """
        guard, kind = self._evaluator.guard, self._kind
        if not guard.held_back or guard.may_idle(kind):
            return
        self._demand = self._demand.of_idle()
        self._trace.begins(Stage.LEASED, kind)
        for place in least_bad((place, s) for (place, of_kind), s in guard.held_back.items() if of_kind == kind):
            if self._demand.open:
                self._evaluator.fill_with(place, kind)
                self._selection.refused.pop((place, kind), None)
                self._offer(Stage.LEASED, place, self._selection.groups[place])

    def _search(self, stage: Stage) -> None:
        """Offer the groups of a stage that are not closed, until the demand is met or a search limit is reached."""
        selection, state = self._selection, self._state
        closed, batches, useless, afap_apps = state.groups, state.batches, state.apps, state.afap_apps
        refused = gates = 0
        self._trace.begins(stage, self._kind)
        for place, group in groups_of(stage, selection.groups, selection.context, self._evaluator, self._kind):
            if place in closed:
                continue
            if batches and group.batch.batch_id in batches and self._skip_gated_batch(stage, place, group):
                continue
            if useless and group.batch.app_id in useless:
                if self._skip_useless_app(place, group):
                    continue
                return
            if afap_apps and stage not in WITHOUT_SHARE and is_afap_of(afap_apps, group):
                continue
            offer = self._offer(stage, place, group)
            if (offer is _GIVEN and not self._demand.open) or (state.share_used_up and stage is Stage.GATED):
                return
            if offer is not _GIVEN and group.batch.app_id not in useless:
                is_gate = offer is _GATED
                refused, gates = refused + (not is_gate), gates + is_gate
                if refused == GROUPS_LOOKED_AT or gates == GATES_LOOKED_AT:
                    self._cut_short(stage)
                    return

    def _skip_gated_batch(self, stage: Stage, place: int, group: SlotGroup) -> bool:
        """Return whether to skip a group without evaluation, because one gate applies to all jobs of its batch."""
        why = self._state.batches[group.batch.batch_id]
        if isinstance(why, Refusal):
            self._close(place, why)
        elif group.urgent or stage is Stage.LEFT_OVER:
            return False
        self._trace.refused(place, why)
        return True

    def _skip_useless_app(self, place: int, group: SlotGroup) -> bool:
        """Return whether to continue after a group whose app has no jobs for the host: False if no app has any."""
        why = self._state.apps[group.batch.app_id]
        if len(self._state.groups) < GROUPS_LOOKED_AT:
            self._close(place, why)
            self._trace.refused(place, why)
            return True
        apps = self._selection.context.catalogue.apps
        goes_on = not all(isinstance(self._evaluator.best(app_id, self._kind), Refusal) for app_id in apps)
        if goes_on:
            self._trace.refused(place, why)
        return goes_on

    def _close(self, place: int, why: Refusal) -> None:
        self._selection.examined.add(place)
        self._state.groups.add(place)
        self._selection.refused[place, self._kind] = why

    def _cut_short(self, stage: Stage) -> None:
        """Record that a search limit ended the stage."""
        selection, kind = self._selection, self._kind
        self._trace.cut_short()
        if stage is Stage.ALL and len(selection.groups) > len(selection.examined):
            sentence = "none of the first {0} of {1} job classes fits; search limit reached"
            refusal = Refusal(RefusalCode.REQUEST_LIMIT, sentence, (len(selection.examined), len(selection.groups)))
            selection.refused_types.append(Refused(refusal, kind))

    def _offer(self, stage: Stage, place: int, group: SlotGroup) -> _Offer:
        """Send slots of one group while they are wanted and the host may get them."""
        selection, context = self._selection, self._selection.context
        known: Evaluation | None = None  # of the first slot; without one, no slot is examined
        if not group.urgent:
            first = self._evaluate(stage, place, group, retry=False)
            if not isinstance(first, Evaluation):
                self._trace.refused(place, first)
                return _offer_of(first)
            known = first
        slots = group.slots()
        taken: list[Ready] = []
        passed_over: list[Refusal] = []
        not_now: list[Refusal | Later] = []  # why its retries, or its first instances, are not sent
        at = 0
        while at < len(slots) and len(passed_over) < SLOTS_LOOKED_AT and self._demand.open:
            slot = slots[at]
            found = known or self._evaluate(stage, place, group, retry=slot.retries > 0)
            if not isinstance(found, Evaluation):
                not_now.append(found)
                at = after_retries(slots) if slot.retries > 0 else len(slots)
                continue
            at += 1
            why = job_refusal(slot, group, context, selection.array, in_reply=selection.job_ids)
            if why is not None:
                passed_over.append(why)
                continue
            self._give(group, slot, found)
            known = None  # the host is busier now
            taken.append(slot)
        for slot in taken:
            selection.array.take(slot, context.host.host_id, context.volunteer.volunteer_id)
        self._trace.offered(place, len(taken), passed_over, not_now)
        if taken:
            selection.given.add(place)
            return _GIVEN
        return self._not_given(place, passed_over, not_now)

    def _not_given(self, place: int, passed_over: Sequence[Refusal], not_now: Sequence[Refusal | Later]) -> _Offer:
        """Return the result for a group whose slots were examined without sending any."""
        offer, waits = _REFUSED, False
        for why in not_now:
            waits = waits or isinstance(why, Later)
            offer = _offer_of(why) if offer is _REFUSED else offer
        if passed_over:
            self._selection.refused.setdefault((place, self._kind), passed_over[-1])
        elif not waits:
            self._state.groups.add(place)
        return offer

    def _give(self, group: SlotGroup, slot: Ready, evaluation: Evaluation) -> None:
        """Add a job to the reply. If this uses up its version's quota, every group is evaluated again."""
        selection, evaluator = self._selection, self._evaluator
        selection.chosen.append(chosen_of(selection.context, group, slot, evaluation, rng=evaluator.rng))
        selection.job_ids.add(slot.job_id)
        if evaluator.given(evaluation, group.job_class):
            self._state.reopen()
        usage, runtime_s = evaluation.usable.usage, evaluation.runtime_s
        self._demand = self._demand.after(usage, runtime_s, gated=evaluation.gated)

    def _evaluate(self, stage: Stage, place: int, group: SlotGroup, *, retry: bool) -> Evaluation | Refusal | Later:
        """Evaluate the group's first instances or retries, if this stage may send them."""
        context = self._selection.context
        self._selection.examined.add(place)
        found = self._evaluator.evaluate(place, group, self._kind, retry=retry)
        if isinstance(found, Refusal):
            self._note(place, group, found)
            if found.code in BEHIND_GATE:
                self._behind_gate(group, found)
            elif found.code in BUSY and context.catalogue.reserved.kept:
                self._evaluator.promise(group, self._kind, retry=retry)
            return found
        if not found.gated:
            if stage in GATED_ALONE:
                return _UNGATED
            if self._demand.instances > 0.0 or group.urgent or not self._shares:
                return found
            fraction = context.catalogue.settings.scheduler.newcomer_fraction
            kept = kept_for_newcomers(group.batch, found.percentile, fraction)
            if kept is not None:
                self._note(place, group, kept)
            return kept or found
        if stage in WITHOUT_SHARE or self._demand.has_room_for_gated(
            found.usable.usage, found.runtime_s, self._gated_share, draw(InstanceId(context.seed))
        ):
            return found
        self._state.share_used_up = True
        if found.due.gate is _AFAP_GATE:
            self._state.afap_apps.add(group.batch.app_id)
        self._behind_gate(group, _SHARE_USED_UP)
        return _SHARE_USED_UP

    def _behind_gate(self, group: SlotGroup, why: Refusal | Later) -> None:
        """Record that a gate excludes the host from a whole batch, if the gate is the same for all its jobs."""
        if not group.urgent and self._evaluator.is_gated_whole(group.batch, refused=isinstance(why, Refusal)):
            self._state.batches[group.batch.batch_id] = why

    def _note(self, place: int, group: SlotGroup, why: Refusal) -> None:
        """Record the refusal of a class. A refusal of the whole app is reported once."""
        selection, kind, app_id = self._selection, self._kind, group.batch.app_id
        selection.refused[place, kind] = why
        is_of_app = self._evaluator.bests.get((app_id, kind)) is why
        if is_of_app or not group.urgent:
            self._state.groups.add(place)
        if is_of_app:
            selection.refused_apps[app_id, kind] = self._state.apps[app_id] = why
