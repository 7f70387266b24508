"""Which of the ready jobs does this host get, and by when must each be back? The main path.

1 what the host wants and may have, GPU types first   need.py
2 the groups in order, in passes                      passes.py
3 the row of checks, the gate and the due date        verdict.py, once per class and request
4 slots until the wish is covered                     each with the checks of a single job
5 refusals counted, and noted in the array            nothing else is changed
"""

from __future__ import annotations

from collections.abc import Sequence

from domain.apps import ANONYMOUS, ProcessorType
from domain.jobs import Ready, draw
from domain.ranking import Gate
from domain.refusals import Refusal, RefusalCode
from domain.settings import DeadlineRule
from domain.units import AppId, BatchId, InstanceId, JobId
from priority.big_jobs import least_bad
from scheduler.asking import Asking, Want
from scheduler.assigning import chosen_of
from scheduler.choice import Choice, Chosen, Refused, not_told_by_app, refused_by_all
from scheduler.feasibility import APP_CHECKS, CLASS_CHECKS, device_refusal
from scheduler.gates import kept_for_newcomers
from scheduler.leasing import BUSY, may_idle
from scheduler.need import Need, need_of
from scheduler.passes import WITHOUT_SHARE, Pass, groups_in, is_prompt_of, passes_of
from scheduler.ports import JobArray, SlotGroup
from scheduler.slots import after_retries, job_refusal
from scheduler.verdict import Judge, Verdict, is_gated_whole

# What is looked at in vain before the rest is left out:
GROUPS_LOOKED_AT = 256  # that do not fit the host, per pass and processor type
GATES_LOOKED_AT = 1024  # behind which the host may have no more, besides
SLOTS_LOOKED_AT = 64  # of a group, which the host may not have one by one, before going on to the next


def choose(asking: Asking, array: JobArray, walk: Walk | None = None) -> Choice:
    """Jobs for the host from the array, which loses their slots, with a due date for each.

    The cost depends on the groups, not on slots, that are looked at until the wish is covered. A group that nothing was
    taken from and that was refused for every wanted type is noted in the array. `walk`: one that is watched as it goes.
    """
    if ANONYMOUS in asking.host.platforms:
        detail = "the client runs its user's own programs (platform 'anonymous'), this project sends none for them"
        return Choice((), (Refused(Refusal(RefusalCode.ANONYMOUS_PLATFORM, detail)),), 0)
    walk = walk or Walk(asking, array)
    for want in asking.wants:
        walk.serve(want)  # steps 1 to 4
    return walk.finish()  # step 5


class Walk:
    """One request's way through the array."""

    def __init__(self, asking: Asking, array: JobArray) -> None:
        self._asking = asking
        self._array = array
        self._groups: Sequence[SlotGroup] = array.groups()
        self._passes = passes_of(asking, self._groups)
        self._judge = Judge(asking, APP_CHECKS, CLASS_CHECKS)
        self._kept = asking.catalogue.reserved.kept
        self._scheduler = asking.catalogue.settings.scheduler
        self._is_muster = asking.catalogue.settings.deadline.rule is DeadlineRule.MUSTER  # others know no shares
        self._urgent_share = self._scheduler.urgent_share_fraction if self._is_muster else 1.0
        self._chosen: list[Chosen] = []
        self._jobs: set[JobId] = set()
        self._served: set[ProcessorType] = set()
        self._looked_at: set[int] = set()  # places of groups
        self._closed: set[int] = set()  # of those, what these processors get nothing more of
        self._refused_urgent: set[int] = set()  # urgent groups these processors may have no slot of
        self._useless: dict[AppId, Refusal] = {}  # apps these processors get nothing of
        self._gated: dict[BatchId, Refusal | None] = {}  # batches that are gated whole; None: no room for urgent jobs
        self._at_gate = False  # the group looked at last is behind one
        self._crowded: set[AppId] = set()  # apps whose AFAP jobs are all urgent for this host, which has its share
        self._share_used_up = False  # urgent jobs have their share of what these processors get
        self._given: set[int] = set()  # of those, what something was taken from
        self._refused: dict[tuple[int, ProcessorType], Refusal] = {}
        self._refused_apps: dict[tuple[AppId, ProcessorType], Refusal] = {}
        self._refused_types: list[Refused] = []

    def serve(self, want: Want) -> None:
        """Jobs for the processors of one type until the wish is covered or a limit reached."""
        kind = want.processor_type
        refusal = device_refusal(want, self._asking)
        need = refusal or need_of(want, self._asking, sent=len(self._chosen))
        if isinstance(need, Refusal):
            self._refused_types.append(Refused(need, kind))
            return
        self._served.add(kind)
        if not self._groups:
            return
        for of_last_type in (self._closed, self._refused_urgent, self._useless, self._gated, self._crowded):
            of_last_type.clear()
        self._share_used_up = False
        if self._judge.held is not None:
            need = self._leased_first(kind, need)
        for one_pass in self._passes:
            if need.open and (one_pass is not Pass.LEFT_OVER or self._share_used_up):
                need = self._walk(one_pass, kind, need)
        if self._judge.held_back:
            self._fill_idle(kind, need)

    def _leased_first(self, kind: ProcessorType, need: Need) -> Need:
        """One job of the batch the host is held for, if there is one for it now; what is still wanted."""
        one = need.allowing(min(1, need.jobs))
        left = self._walk(Pass.LEASED, kind, one)
        if left is one:
            return need
        self._judge.release()
        return left.allowing(need.jobs - 1)

    def _fill_idle(self, kind: ProcessorType, need: Need) -> None:
        """Fill idle processors that nothing fits on around a lease, unless the lease begins soon.

        The share of urgent jobs does not count: nothing else is left for these processors.
        """
        held = self._judge.held
        if held is None or held.processor_type != kind or may_idle(held, self._asking):
            return
        idle = need.of_idle()
        for place in least_bad((place, s) for (place, of_kind), s in self._judge.held_back.items() if of_kind == kind):
            if idle.open:
                self._judge.fill_with(place, kind)
                self._refused.pop((place, kind), None)
                idle = self._offer(Pass.LEASED, place, self._groups[place], kind, idle)

    def _walk(self, one_pass: Pass, kind: ProcessorType, need: Need) -> Need:
        """One pass over the groups that it looks at and that are not closed; what is still wanted."""
        closed, useless, gated, refused = self._closed, self._useless, self._gated, self._refused_urgent
        fruitless = gates = 0
        for place, group in groups_in(one_pass, self._groups, self._asking, self._judge, kind):
            if place in closed or place in refused:
                continue
            if gated and group.batch.batch_id in gated and self._left_behind(one_pass, place, group, kind):
                continue
            if useless and group.batch.app_id in useless:
                if self._passed_by(place, group, kind):
                    continue
                return need
            if self._crowded and one_pass not in WITHOUT_SHARE and is_prompt_of(self._crowded, group):
                continue
            before, self._at_gate = need, False
            need = self._offer(one_pass, place, group, kind, need)
            if not need.open or (self._share_used_up and one_pass is Pass.GATED):
                return need
            if need is before and group.batch.app_id not in useless:
                fruitless, gates = fruitless + (not self._at_gate), gates + self._at_gate
                if fruitless == GROUPS_LOOKED_AT or gates == GATES_LOOKED_AT:
                    self._cut_short(one_pass, kind)
                    return need
        return need

    def _left_behind(self, one_pass: Pass, place: int, group: SlotGroup, kind: ProcessorType) -> bool:
        """Whether to pass by a group of a batch that is gated whole: it needs no look of its own."""
        why = self._gated[group.batch.batch_id]
        if why is None:
            return one_pass is not Pass.LEFT_OVER and not group.urgent
        self._looked_at.add(place)
        self._closed.add(place)
        self._refused[place, kind] = why
        return True

    def _passed_by(self, place: int, group: SlotGroup, kind: ProcessorType) -> bool:
        """Whether to go on behind a group of an app the host gets nothing of: not when every app is such a one."""
        if len(self._closed) < GROUPS_LOOKED_AT:
            self._looked_at.add(place)
            self._closed.add(place)
            self._refused[place, kind] = self._useless[group.batch.app_id]
            return True
        apps = self._asking.catalogue.apps
        return not all(isinstance(self._judge.best(app_id, kind), Refusal) for app_id in apps)

    def _cut_short(self, one_pass: Pass, kind: ProcessorType) -> None:
        """Say that there are more groups than were looked at."""
        if one_pass is Pass.ALL and len(self._groups) > len(self._looked_at):
            sentence = "looked at {0} of {1} kinds of jobs, which do not fit; the others were left out"
            refusal = Refusal(RefusalCode.REQUEST_LIMIT, sentence, (len(self._looked_at), len(self._groups)))
            self._refused_types.append(Refused(refusal, kind))

    def finish(self) -> Choice:
        """What was chosen, and why the rest was not."""
        refused = list(self._refused_types)
        if not self._groups and self._served:
            refused.append(Refused(Refusal(RefusalCode.NO_SLOTS, "no job is ready to be sent at the moment")))
        refused += [Refused(why, kind, app_id) for (app_id, kind), why in self._refused_apps.items()]
        not_given = not_told_by_app(self._refused, self._groups, self._refused_apps)
        self._note_in_array()
        return Choice(tuple(self._chosen), tuple(refused), len(self._looked_at), not_given, self._judge.made)

    def _note_in_array(self) -> None:
        """Tell the array which groups were of no use to this host, on any of its processors."""
        for place, why in refused_by_all(self._refused, len(self._served)):
            if place not in self._given:
                self._array.note_refusal(self._groups[place], self._asking.host.host_id, why.code)

    def _offer(self, one_pass: Pass, place: int, group: SlotGroup, kind: ProcessorType, need: Need) -> Need:
        """Take slots of one group while they are wanted and the host may have them; what is still wanted."""
        known: Verdict | None = None  # the first slot's verdict; no need to look at slots if there is none
        if not group.urgent:
            first = self._verdict(one_pass, place, group, kind, need, retry=False)
            if not isinstance(first, Verdict):
                return need
            known = first
        slots = group.slots()
        taken: list[Ready] = []
        passed_over: Refusal | None = None
        refused = True  # every slot, by its class
        at = looked_at = 0
        while at < len(slots) and looked_at < SLOTS_LOOKED_AT and need.open:
            slot = slots[at]
            verdict = known or self._verdict(one_pass, place, group, kind, need, retry=slot.retries > 0)
            if not isinstance(verdict, Verdict):
                refused = refused and verdict is not None
                at = after_retries(slots) if slot.retries > 0 else len(slots)
                continue
            refused = False
            at += 1
            why = self._passed_over(group, slot)
            if why is not None:
                passed_over = why
                looked_at += 1
                continue
            self._give(group, slot, verdict)
            known = None  # the host is busier now
            taken.append(slot)
            need = need.after(verdict.usable.usage, verdict.runtime_s, urgent=verdict.gated)
        if refused:
            self._refused_urgent.add(place)
        for slot in taken:
            self._array.take(slot, self._asking.host.host_id, self._asking.volunteer.volunteer_id)
        if taken:
            self._given.add(place)
        elif passed_over is not None:
            self._refused.setdefault((place, kind), passed_over)
        return need

    def _passed_over(self, group: SlotGroup, slot: Ready) -> Refusal | None:
        """Why this host may not have the job of a slot whose class it may have; None when it may."""
        return job_refusal(slot, group, self._asking, self._array, in_reply=self._jobs)

    def _verdict(
        self, one_pass: Pass, place: int, group: SlotGroup, kind: ProcessorType, need: Need, *, retry: bool
    ) -> Verdict | Refusal | None:
        """The class's verdict; None when it waits for a later pass."""
        self._looked_at.add(place)
        found = self._judge.verdict(place, group, kind, retry=retry)
        if isinstance(found, Refusal):
            self._note(place, group, kind, found)
            if found.code is RefusalCode.BELOW_GATE:
                self._behind_gate(group, found)
            elif self._kept and found.code in BUSY:
                self._judge.promise(group, kind, retry=retry)
            return found
        if not found.gated:
            if one_pass is Pass.GATED or one_pass is Pass.LEFT_OVER:
                return None
            if need.instances > 0.0 or group.urgent or not self._is_muster:
                return found
            kept = kept_for_newcomers(group.batch, found.standing, self._scheduler.newcomer_fraction)
            if kept is not None:
                self._note(place, group, kind, kept)
            return kept or found
        has_room = one_pass in WITHOUT_SHARE or need.has_room_for_urgent(
            found.usable.usage, found.runtime_s, self._urgent_share, draw(InstanceId(self._asking.seed))
        )
        if not has_room:
            self._share_used_up = True
            if found.due.gate is Gate.AFAP:
                self._crowded.add(group.batch.app_id)
            self._behind_gate(group, None)
            return None
        return found

    def _behind_gate(self, group: SlotGroup, why: Refusal | None) -> None:
        """Remember that the host may have no job of a group now; nor of its whole batch, where that is alike."""
        self._at_gate = True
        if not group.urgent and is_gated_whole(group.batch, self._asking, refused=why is not None):
            self._gated[group.batch.batch_id] = why

    def _note(self, place: int, group: SlotGroup, kind: ProcessorType, why: Refusal) -> None:
        """Remember a class's refusal; one of the whole app is told once."""
        self._refused[place, kind] = why
        if not group.urgent:
            self._closed.add(place)
        app_id = group.batch.app_id
        if self._judge.bests.get((app_id, kind)) is why:
            self._closed.add(place)
            self._refused_apps[app_id, kind] = self._useless[app_id] = why

    def _give(self, group: SlotGroup, slot: Ready, verdict: Verdict) -> None:
        """Put a job in the reply."""
        self._chosen.append(chosen_of(self._asking, group, slot, verdict, rng=lambda: self._judge.rng))
        self._jobs.add(slot.job_id)
        if self._judge.sent(verdict, group.job_class):
            self._closed.clear()
            self._refused_urgent.clear()
            self._gated.clear()
