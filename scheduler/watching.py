"""What happened to each group of jobs while a request was decided? The decision itself, watched. Pure.

`watched` decides as `choose` does, by the same code: the walk notes what it met on its way and changes nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from domain.apps import ProcessorType
from domain.jobs import Ready
from domain.refusals import Refusal, RefusalCode
from domain.units import AppId
from scheduler.asking import Asking
from scheduler.choice import Choice
from scheduler.dispatch import Walk, choose
from scheduler.feasibility import APP_CHECKS, CLASS_CHECKS
from scheduler.need import Need
from scheduler.passes import Pass
from scheduler.ports import JobArray, SlotGroup
from scheduler.verdict import Judge, Verdict
from scheduler.versions import Best

UNGATED = "it asks for no percentile: a later pass"
SHARE_USED_UP = "urgent jobs have their share of this host: looked at again when there is nothing else"


@dataclass(frozen=True, slots=True)
class Look:
    """One look at a group, in one pass for one processor type.

    `given` slots were taken from it. `refusal` is why the group as a whole was refused, `later` why it waits for
    another pass; `passed_over` are slots this host may not have one by one, by reason with the first sentence.
    """

    processor_type: ProcessorType
    one_pass: Pass
    place: int
    given: int
    refusal: Refusal | None = None
    later: str = ""
    passed_over: tuple[tuple[RefusalCode, int, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Watched:
    """A decision and how it came about. `groups` is the whole order; a look's `place` is an index into it.

    `cut_short` names the passes that ended before the last group, because too many were looked at in vain.
    """

    choice: Choice
    groups: Sequence[SlotGroup]
    looks: tuple[Look, ...]
    cut_short: tuple[tuple[ProcessorType, Pass], ...] = ()


def watched(asking: Asking, array: JobArray) -> Watched:
    """The decision about a request, as `choose` takes it, with every look at a group."""
    walk = WatchedWalk(asking, array)
    choice = choose(asking, array, walk)
    return Watched(choice, walk.order, tuple(walk.looks), tuple(walk.cut_short))


def bests_of(asking: Asking) -> tuple[tuple[AppId, ProcessorType, Best | Refusal], ...]:
    """The version each app would be given with on each wanted processor type, before anything is given, or why none."""
    judge = Judge(asking, APP_CHECKS, CLASS_CHECKS)
    return tuple(
        (app_id, want.processor_type, judge.best(app_id, want.processor_type))
        for app_id in sorted(asking.catalogue.apps)
        for want in asking.wants
    )


@dataclass(slots=True)
class _Met:
    """What was met so far while one group was looked at."""

    refusal: Refusal | None = None
    later: str = ""
    given: int = 0
    codes: Counter[RefusalCode] = field(default_factory=Counter)
    sentences: dict[RefusalCode, str] = field(default_factory=dict)


class WatchedWalk(Walk):
    """A walk that notes every look."""

    def __init__(self, asking: Asking, array: JobArray) -> None:
        super().__init__(asking, array)
        self.looks: list[Look] = []
        self.cut_short: list[tuple[ProcessorType, Pass]] = []
        self.order = self._groups
        self._met = _Met()
        self._now_in = Pass.GATED

    def _walk(self, one_pass: Pass, kind: ProcessorType, need: Need) -> Need:
        self._now_in = one_pass
        return super()._walk(one_pass, kind, need)

    def _passed_by(self, place: int, group: SlotGroup, kind: ProcessorType) -> bool:
        if not super()._passed_by(place, group, kind):
            return False
        self.looks.append(Look(kind, self._now_in, place, 0, self._useless[group.batch.app_id]))
        return True

    def _cut_short(self, one_pass: Pass, kind: ProcessorType) -> None:
        super()._cut_short(one_pass, kind)
        self.cut_short.append((kind, one_pass))

    def _left_behind(self, one_pass: Pass, place: int, group: SlotGroup, kind: ProcessorType) -> bool:
        if not super()._left_behind(one_pass, place, group, kind):
            return False
        why = self._gated[group.batch.batch_id]
        self.looks.append(Look(kind, one_pass, place, 0, why, "" if why is not None else SHARE_USED_UP))
        return True

    def _offer(self, one_pass: Pass, place: int, group: SlotGroup, kind: ProcessorType, need: Need) -> Need:
        self._met = met = _Met()
        need = super()._offer(one_pass, place, group, kind, need)
        passed_over = tuple((code, count, met.sentences[code]) for code, count in met.codes.items())
        self.looks.append(Look(kind, one_pass, place, met.given, met.refusal, met.later, passed_over))
        return need

    def _verdict(
        self, one_pass: Pass, place: int, group: SlotGroup, kind: ProcessorType, need: Need, *, retry: bool
    ) -> Verdict | Refusal | None:
        found = super()._verdict(one_pass, place, group, kind, need, retry=retry)
        if isinstance(found, Refusal):
            self._met.refusal = found
        elif found is None:
            verdict = self._judge.verdict(place, group, kind, retry=retry)
            gated = isinstance(verdict, Verdict) and verdict.gated
            self._met.later = SHARE_USED_UP if gated else UNGATED
        return found

    def _passed_over(self, group: SlotGroup, slot: Ready) -> Refusal | None:
        refusal = super()._passed_over(group, slot)
        if refusal is not None:
            self._met.codes[refusal.code] += 1
            self._met.sentences.setdefault(refusal.code, refusal.detail)
        return refusal

    def _give(self, group: SlotGroup, slot: Ready, verdict: Verdict) -> None:
        super()._give(group, slot, verdict)
        self._met.given += 1
