"""Records what happened to each group of jobs during a selection, for `muster explain`. Pure.

`traced` runs the same code as `choose`; the trace only observes it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from domain.apps import CPU, ProcessorType
from domain.refusals import Refusal, RefusalCode
from domain.units import AppId
from scheduler.choice import Choice
from scheduler.context import SchedulingContext
from scheduler.evaluation import ClassEvaluator
from scheduler.ports import SlotGroup, SlotSource
from scheduler.selection import Later, Trace, choose
from scheduler.stages import Stage, groups_of, stages_of
from scheduler.versions import Best


@dataclass(frozen=True, slots=True)
class TraceStep:
    """One evaluation of a group, in one stage for one processor type.

    `given` is the number of slots taken from it. `refusal` is why the whole group was refused, `later` why it waits for
    another stage; `passed_over` counts the slots that this host may not get, by code with the first sentence.
    """

    processor_type: ProcessorType
    stage: Stage
    place: int
    given: int
    refusal: Refusal | None = None
    later: str = ""
    passed_over: tuple[tuple[RefusalCode, int, str], ...] = ()


@dataclass(frozen=True, slots=True)
class DecisionTrace:
    """A decision with its steps. `groups` is the whole order; a step's `place` is an index into it.

    `cut_short` lists the stages that ended at a search limit, before the last group.
    """

    choice: Choice
    groups: Sequence[SlotGroup]
    steps: tuple[TraceStep, ...]
    cut_short: tuple[tuple[ProcessorType, Stage], ...] = ()


def traced(context: SchedulingContext, array: SlotSource) -> DecisionTrace:
    """Make the same decision about a request as `choose`, recording each evaluation of a group."""
    groups, recorder = array.groups(), _Recorder()
    choice = choose(context, array, recorder)
    return DecisionTrace(choice, groups, tuple(recorder.steps), tuple(recorder.cut))


def stages_by_group(context: SchedulingContext, found: DecisionTrace) -> Mapping[int, Sequence[Stage]]:
    """Return the stages in which the request searches each group, by its index, in the sequence of the request.

    The GATED stage counts only for those from which it sends jobs.
    """
    evaluator, groups, by_group = ClassEvaluator(context), found.groups, dict[int, list[Stage]]()
    gated = {step.place for step in found.steps if step.stage is Stage.GATED and step.given}
    for want in context.wants:
        for stage in (Stage.LEASED, *stages_of(context, groups)):
            for place, _ in groups_of(stage, groups, context, evaluator, want.processor_type):
                if stage is not Stage.GATED or place in gated:
                    by_group.setdefault(place, []).append(stage)
    for place in range(len(groups)):  # those that no stage sends to this host
        by_group.setdefault(place, [])
    return {place: tuple(dict.fromkeys(stages)) for place, stages in by_group.items()}


BestOfApp = tuple[AppId, ProcessorType, Best | Refusal]


def bests_of(context: SchedulingContext, app_ids: Iterable[AppId]) -> tuple[BestOfApp, ...]:
    """Return the best version of these apps on each requested processor type, or why there is none."""
    evaluator = ClassEvaluator(context)
    return tuple(
        (app_id, want.processor_type, evaluator.best(app_id, want.processor_type))
        for app_id in sorted(context.catalogue.apps.keys() & app_ids)
        for want in context.wants
    )


class _Recorder(Trace):
    def __init__(self) -> None:
        self.steps: list[TraceStep] = []
        self.cut: list[tuple[ProcessorType, Stage]] = []
        self._at: tuple[ProcessorType, Stage] = (CPU, Stage.ALL)

    def begins(self, stage: Stage, kind: ProcessorType) -> None:
        self._at = (kind, stage)

    def refused(self, place: int, why: Refusal | Later) -> None:
        self.offered(place, 0, (), (why,))

    def offered(
        self, place: int, given: int, passed_over: Sequence[Refusal], not_now: Sequence[Refusal | Later]
    ) -> None:
        refusal, later = None, ""
        for one in not_now:
            if isinstance(one, Later):
                later = one.value
            else:
                refusal = one
        firsts = {one.code: one.detail for one in reversed(passed_over)}
        counts = Counter(one.code for one in passed_over)
        seen = tuple((code, count, firsts[code]) for code, count in counts.items())
        self.steps.append(TraceStep(*self._at, place, given, refusal, later, seen))

    def cut_short(self) -> None:
        self.cut.append(self._at)
