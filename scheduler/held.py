"""What a host was given beside what its client says it has: lost jobs, and jobs better dropped. Pure.

A client lists every unfinished result. One we gave and it neither lists nor reports was lost, most likely
with our reply; one it lists and nobody needs only keeps it busy.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from domain.catalogue import Catalogue
from domain.dispatch import Report, Reported
from domain.havs import HavEvent, HavEventKind
from domain.hosts import Host
from domain.jobs import InstanceInProgress, InstanceState, instance_id_of
from domain.quick import quick_dataclass
from domain.units import AppVersionId, HostId, InstanceId, Instant, JobId
from lifecycle.states import Event, advance, host_record
from scheduler.reports import is_dead, timed_out

MOST_STRAYS = 1000  # looked up per request; a client lists more only when something is badly wrong


@quick_dataclass(frozen=True, slots=True)
class HeldReview:
    """`resend` goes to the client once more with the due dates it had; `ended` are lost for good.

    `abort` and `abort_if_not_started` name results the client should drop. `kept` is what the host has
    in progress after this request, resent jobs included. `taken_over` moves to this host from other records of the same
    computer; what is in progress of it is in `kept`. `overdue` ended here, mostly by time-out, but the client still
    lists them and a success can still complete them.
    """

    resend: tuple[InstanceInProgress, ...] = ()
    ended: tuple[Report, ...] = ()
    abort: tuple[str, ...] = ()
    abort_if_not_started: tuple[str, ...] = ()
    kept: tuple[InstanceInProgress, ...] = ()
    taken_over: tuple[InstanceInProgress, ...] = ()
    overdue: tuple[InstanceInProgress, ...] = ()

    def moved(self, instance_ids: Collection[InstanceId]) -> HeldReview:
        """What follows when only these were taken over: another host has the others, the client should drop them."""
        lost = [held.name for held in self.taken_over if held.instance_id not in instance_ids]
        if not lost:
            return self
        late = tuple([name for name in self.abort_if_not_started if name not in lost])
        taken_over = tuple([held for held in self.taken_over if held.instance_id in instance_ids])
        gone = {held.instance_id for held in self.taken_over}.difference(instance_ids)
        kept = tuple([held for held in self.kept if held.instance_id not in gone])
        return replace(self, abort=(*self.abort, *lost), abort_if_not_started=late, kept=kept, taken_over=taken_over)

    def resending(self, instance_ids: Collection[InstanceId]) -> HeldReview:
        """What follows when only these lost jobs are sent again: the others ended since the host was read."""
        ended = {held.instance_id for held in self.resend}.difference(instance_ids)
        if not ended:
            return self
        return replace(
            self,
            resend=tuple([held for held in self.resend if held.instance_id not in ended]),
            kept=tuple([held for held in self.kept if held.instance_id not in ended]),
        )


def stray_ids(listed: Collection[str], held: Iterable[InstanceInProgress]) -> tuple[InstanceId, ...]:
    """Instances the client lists that it does not have in progress as far as we know, at most MOST_STRAYS."""
    if not listed:
        return ()
    known = {entry.instance_id: entry.name for entry in held}
    ids = (instance_id_of(name) for name in sorted(set(listed).difference(known.values())))
    return tuple(dict.fromkeys(i for i in ids if i is not None and i not in known))[:MOST_STRAYS]


def runnable_versions(catalogue: Catalogue, host: Host) -> frozenset[AppVersionId]:
    """The app versions a lost job may be sent with again: known here, for a platform the host has."""
    return frozenset(i for i, version in catalogue.versions.items() if version.platform in host.platforms)


def review_held(
    listed: Collection[str],
    reported: Collection[str],
    held: Iterable[InstanceInProgress],
    strays: Mapping[InstanceId, Reported | None],
    *,
    host_id: HostId,
    runnable: Collection[AppVersionId],
    hold_back: bool,
    now: Instant,
) -> HeldReview:
    """Compare what the client lists and reports with what the host has in progress (`held`).

    A lost job is resent if it is needed, the host may be sent its version again (`runnable`: none of them if the client
    wants no work) and now + R <= due_at. Otherwise it ends at once, so that a retry is made now and not after its
    time-out. A job lost too late to be resent counts as a time-out in the host's statistics: a host that keeps losing
    jobs would otherwise look as if it never had them. A loss that is of no use to the project does not count.
    `strays` are the instances of `stray_ids` as the database has them, None for those this host (`host_id`) was never
    given; those of another host are taken over. `hold_back`: the server may not send anything now, so lost jobs wait
    for the next request.
    """
    listed, reported, held = frozenset(listed), frozenset(reported), tuple(held)
    if not listed and not held:
        return HeldReview()
    resend: list[InstanceInProgress] = []
    ended: list[Report] = []
    kept: list[InstanceInProgress] = []
    for entry in held:
        if entry.name in reported:
            continue
        if entry.name in listed or hold_back:
            kept.append(entry)
        elif entry.no_longer_needed or entry.app_version_id not in runnable:
            ended.append(_lost(entry, Event.DETACHED, "the client no longer has it", now))
        elif now + entry.est_runtime_s > entry.due_at:
            ended.append(_lost(entry, Event.UNSTARTED, "the client no longer has it, too late to send it again", now))
        else:
            resend.append(entry)
            kept.append(entry)
    useless = [entry.name for entry in kept if entry.name in listed and entry.no_longer_needed]
    names = sorted(listed - reported - {entry.name for entry in kept})
    found = _strays(names, strays, host_id)
    taken_over = found.of_others.values()
    now_held = [one.held for one in taken_over if one.state is InstanceState.IN_PROGRESS]
    return HeldReview(
        tuple(resend),
        tuple(ended),
        tuple(found.abort),
        (*useless, *found.late),
        (*kept, *now_held),
        tuple([one.held for one in taken_over]),
        tuple(found.overdue),
    )


def _lost(entry: InstanceInProgress, event: Event, reason: str, now: Instant) -> Report:
    step = advance(InstanceState.IN_PROGRESS, event, instance_id=entry.instance_id)
    told = None if entry.no_longer_needed else _told(entry, host_record(step.instructions), now)
    return Report(
        entry.instance_id,
        job_id=entry.job_id,
        host_id=entry.host_id,
        from_state=InstanceState.IN_PROGRESS,
        to_state=step.state,
        reported_at=now,
        reason=reason,
        turnaround_sample=None if told is None else told.ln_turnaround_ratio,
        hav_event=told,
    )


def _told(entry: InstanceInProgress, kind: HavEventKind | None, now: Instant) -> HavEvent | None:
    """What the host's statistics are told of an instance that it lost."""
    if kind is None or kind is HavEventKind.TIMED_OUT:
        return None if kind is None else timed_out(entry, now)
    return HavEvent(entry.host_id, entry.app_version_id, kind, now)


class _Strays(NamedTuple):
    """Results listed that are not in progress here. `abort`: drop them; `late`: drop them unless started.

    `overdue` are the host's own that ended here. `of_others` are another host's, by job: the newest, because a host has
    one instance of a job at a time. A success could still complete either.
    """

    abort: list[str]
    late: list[str]
    overdue: list[InstanceInProgress]
    of_others: dict[JobId, Reported]


def _strays(names: Iterable[str], known: Mapping[InstanceId, Reported | None], host_id: HostId) -> _Strays:
    """Sort the results named. Names we never gave, and those that were not looked up, are left alone."""
    found = _Strays([], [], [], {})
    for name in names:
        instance_id = instance_id_of(name)
        if instance_id is None or instance_id not in known:
            continue
        stray = known[instance_id]
        if stray is None or stray.held.name != name or is_dead(stray.state):
            found.abort.append(name)
            continue
        held = stray.held
        if held.no_longer_needed:
            found.late.append(name)
        if held.host_id == host_id:
            found.overdue.append(held)
            continue
        other = found.of_others.get(held.job_id)
        if other is None or other.held.instance_id < held.instance_id:
            found.of_others[held.job_id] = stray
    return found
