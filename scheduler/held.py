"""Compares a host's jobs in progress with those listed by its client: finds lost and useless jobs. Pure.

A client lists all unfinished results. A job that it neither lists nor reports was lost, most likely with our reply; a
listed job that is no longer needed only keeps the host busy.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from domain.apps import VersionState
from domain.catalogue import Catalogue
from domain.dispatch import Report, Reported
from domain.havs import HavEvent, HavEventKind
from domain.hosts import Host
from domain.jobs import InstanceInProgress, InstanceState, instance_id_of
from domain.quick import quick_dataclass
from domain.units import AppVersionId, HostId, InstanceId, Instant, JobId
from lifecycle.states import Event, advance, host_record
from scheduler.reports import is_dead, timed_out

MOST_STRAYS = 1000  # per request; a client lists more only in case of a serious error


@quick_dataclass(frozen=True, slots=True)
class HeldReview:
    """What to do about a host's jobs. `resend` is sent again with the same due dates; `ended` are permanently lost.

    `abort` and `abort_if_not_started` name results for the client to drop. `kept` is in progress on the host after this
    request, including resent jobs. `taken_over` moves to this host from other records of the same computer; its jobs in
    progress are in `kept`. `overdue` ended here, mostly by timeout, but the client still lists them, and a success can
    still complete them.
    """

    resend: tuple[InstanceInProgress, ...] = ()
    ended: tuple[Report, ...] = ()
    abort: tuple[str, ...] = ()
    abort_if_not_started: tuple[str, ...] = ()
    kept: tuple[InstanceInProgress, ...] = ()
    taken_over: tuple[InstanceInProgress, ...] = ()
    overdue: tuple[InstanceInProgress, ...] = ()

    def moved(self, instance_ids: Collection[InstanceId]) -> HeldReview:
        """Return the review if only these were taken over: the client should drop the rest, which another host has."""
        lost = [held.name for held in self.taken_over if held.instance_id not in instance_ids]
        if not lost:
            return self
        late = tuple([name for name in self.abort_if_not_started if name not in lost])
        taken_over = tuple([held for held in self.taken_over if held.instance_id in instance_ids])
        gone = {held.instance_id for held in self.taken_over}.difference(instance_ids)
        kept = tuple([held for held in self.kept if held.instance_id not in gone])
        return replace(self, abort=(*self.abort, *lost), abort_if_not_started=late, kept=kept, taken_over=taken_over)

    def resending(self, instance_ids: Collection[InstanceId]) -> HeldReview:
        """Return the review if only these lost jobs were resent. The rest have ended since the host was read."""
        ended = {held.instance_id for held in self.resend}.difference(instance_ids)
        if not ended:
            return self
        return replace(
            self,
            resend=tuple([held for held in self.resend if held.instance_id not in ended]),
            kept=tuple([held for held in self.kept if held.instance_id not in ended]),
        )


def stray_ids(listed: Collection[str], held: Iterable[InstanceInProgress]) -> tuple[InstanceId, ...]:
    """Return the listed instances that, by the database, are not in progress on the host, at most MOST_STRAYS."""
    if not listed:
        return ()
    known = {entry.instance_id: entry.name for entry in held}
    ids = (instance_id_of(name) for name in sorted(set(listed).difference(known.values())))
    return tuple(dict.fromkeys(i for i in ids if i is not None and i not in known))[:MOST_STRAYS]


def runnable_versions(catalogue: Catalogue, host: Host) -> frozenset[AppVersionId]:
    """Return the app versions that lost jobs may be resent with: known, not withdrawn, for a platform of the host."""
    return frozenset(
        i
        for i, version in catalogue.versions.items()
        if version.platform in host.platforms and version.state not in (VersionState.WITHDRAWN, VersionState.ABORTED)
    )


def aborted_versions(catalogue: Catalogue) -> frozenset[AppVersionId]:
    """Return the app versions whose jobs in progress hosts should drop."""
    return frozenset(i for i, version in catalogue.versions.items() if version.state is VersionState.ABORTED)


def review_held(
    listed: Collection[str],
    reported: Collection[str],
    held: Iterable[InstanceInProgress],
    strays: Mapping[InstanceId, Reported | None],
    *,
    host_id: HostId,
    runnable: Collection[AppVersionId],
    aborted: Collection[AppVersionId],
    hold_back: bool,
    drop_all: bool = False,
    now: Instant,
) -> HeldReview:
    """Compare the results that the client lists and reports with the host's jobs in progress (`held`).

    A lost job is resent if it is needed, the host may run its version (`runnable`: empty if the client wants no work)
    and now + R <= due_at. Otherwise it ends at once, so that a retry is created now and not after its time-out. A job
    lost too late to be resent counts as a time-out in the host's statistics: otherwise losing jobs would leave no trace
    there. A lost job that is no longer needed does not count. `strays` are the instances of `stray_ids` as stored, None
    for those never sent to this host (`host_id`); instances of another host are taken over. `hold_back`: the server may
    not send anything now, so lost jobs wait for the next request. Listed jobs of `aborted` versions are
    aborted, and end when the client reports that. `drop_all`: the host is banned and aborts every listed job.
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
            ended.append(_lost(entry, Event.DETACHED, "lost by the client", now))
        elif now + entry.est_runtime_s > entry.due_at:
            ended.append(_lost(entry, Event.UNSTARTED, "lost by the client; too late to send it again", now))
        else:
            resend.append(entry)
            kept.append(entry)
    if drop_all:
        ours = {entry.name for entry in kept if entry.name in listed}
        ours.update(name for name in listed - reported if instance_id_of(name) in strays)
        return HeldReview(ended=tuple(ended), abort=tuple(sorted(ours)), kept=tuple(kept))
    useless = [entry.name for entry in kept if entry.name in listed and entry.no_longer_needed]
    broken = [entry.name for entry in kept if entry.name in listed and entry.app_version_id in aborted]
    names = sorted(listed - reported - {entry.name for entry in kept})
    found = _strays(names, strays, host_id)
    taken_over = found.of_others.values()
    now_held = [one.held for one in taken_over if one.state is InstanceState.IN_PROGRESS]
    return HeldReview(
        tuple(resend),
        tuple(ended),
        (*broken, *found.abort),
        (*useless, *found.late),
        (*kept, *now_held),
        tuple([one.held for one in taken_over]),
        tuple(found.overdue),
    )


def _lost(entry: InstanceInProgress, event: Event, reason: str, now: Instant) -> Report:
    step = advance(InstanceState.IN_PROGRESS, event, instance_id=entry.instance_id)
    hav_event = None if entry.no_longer_needed else _hav_event(entry, host_record(step.instructions), now)
    return Report(
        entry.instance_id,
        job_id=entry.job_id,
        host_id=entry.host_id,
        from_state=InstanceState.IN_PROGRESS,
        to_state=step.state,
        reported_at=now,
        reason=reason,
        turnaround_sample=None if hav_event is None else hav_event.ln_turnaround_ratio,
        hav_event=hav_event,
    )


def _hav_event(entry: InstanceInProgress, kind: HavEventKind | None, now: Instant) -> HavEvent | None:
    """Return the statistics event for an instance that the host lost."""
    if kind is None or kind is HavEventKind.TIMED_OUT:
        return None if kind is None else timed_out(entry, now)
    return HavEvent(entry.host_id, entry.app_version_id, kind, now)


class _Strays(NamedTuple):
    """Listed results that are not in progress here. `abort`: to be dropped; `late`: to be dropped unless started.

    `overdue` are the host's own instances that ended here. `of_others` are instances of another host, by job (the
    newest, because a host has one instance of a job at a time). A success could still complete either.
    """

    abort: list[str]
    late: list[str]
    overdue: list[InstanceInProgress]
    of_others: dict[JobId, Reported]


def _strays(names: Iterable[str], known: Mapping[InstanceId, Reported | None], host_id: HostId) -> _Strays:
    """Classify the named results. Names that this server never issued, or that were not read, are ignored."""
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
