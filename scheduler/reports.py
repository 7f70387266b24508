"""Processes the reports of a request and selects the acknowledgements. Pure. docs/protocol.md#reports.

All reported results are acknowledged, even unknown ones, because a client repeats a result until then. Only instances
sent to the requesting host change state, so a result that an application's output smuggles into a request has no
effect.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from domain.dispatch import Report, Reported, ReportedResult, Trickle, TrickleFate
from domain.havs import HavEvent, HavEventKind
from domain.hosts import Host
from domain.jobs import InstanceInProgress, InstanceState, instance_id_of
from domain.quick import quick_dataclass
from domain.settings import FileSettings
from domain.units import InstanceId, Instant
from lifecycle.outcome import judge_report
from lifecycle.states import Event, advance, allows, host_record
from lifecycle.turnaround import censored_sample, yardstick_s
from scheduler import sanity
from wire.messages import SchedulerRequest

MOST_STDERR_CHARS = 65_536  # the client sends the last 63 KB
SUCCESS_STDERR_CHARS = 2_000  # the end of the standard error of a result that claims success
MOST_REASON_CHARS = 500


@quick_dataclass(frozen=True, slots=True)
class ReportsTaken:
    """The state changes to write (`reports`), and the names to acknowledge once these are written (`acks`)."""

    reports: tuple[Report, ...] = ()
    acks: tuple[str, ...] = ()

    def acks_without(self, left_out: frozenset[InstanceId]) -> tuple[str, ...]:
        """Return the names to acknowledge if the changes of the `left_out` instances were not written.

        >>> ReportsTaken(acks=("pi_1_1_1", "pi_1_2_2")).acks_without(frozenset({2}))
        ('pi_1_1_1',)
        """
        return tuple([name for name in self.acks if instance_id_of(name) not in left_out]) if left_out else self.acks


def reported_ids(results: Iterable[ReportedResult]) -> tuple[InstanceId, ...]:
    """Return the instances that the results name, without duplicates; names this server never issued are skipped.

    >>> reported_ids([ReportedResult("pi_3_41_77", 5, 0), ReportedResult("fake_0x", 5, 0)])
    (77,)
    """
    ids = [instance_id_of(result.name) for result in results]
    return tuple(dict.fromkeys([i for i in ids if i is not None]))


def take_reports(
    results: Iterable[ReportedResult],
    reported: Mapping[InstanceId, Reported],
    host: Host,
    counts: Callable[[Report], bool] = lambda _: True,
    *,
    now: Instant,
) -> ReportsTaken:
    """Process all results in a request that arrived at `now` from `host`.

    A repeated report, a report that cannot change anything any more, and one that does not count are acknowledged
    without a step.
    """
    by_name: dict[str, ReportedResult] = {}
    for result in results:
        if result.name:
            by_name.setdefault(result.name, result)
    known = {one.held.name: one for one in reported.values()}
    judged = [_report(result, known[name], host, now) for name, result in by_name.items() if name in known]
    steps = [one for one in judged if one is not None and counts(one)]
    return ReportsTaken(tuple(steps), tuple(by_name))


def _report(result: ReportedResult, known: Reported, host: Host, now: Instant) -> Report | None:
    judgement = judge_report(result, known.outputs, known.uploads)
    held, happened = known.held, judgement.event
    if happened is Event.SERVER_ABORTED and not held.no_longer_needed:
        happened = Event.USER_ABORTED  # the server never aborts a job that is still needed
    if not allows(known.state, happened):
        return None
    step = advance(known.state, happened, instance_id=held.instance_id)
    record = host_record(step.instructions)
    event = None if record is None else _hav_event(known, record, now)
    most = SUCCESS_STDERR_CHARS if step.state is InstanceState.REPORTED else MOST_STDERR_CHARS
    elapsed_s, cpu_s = sanity.run_times(result, turnaround_s=now - held.sent_at, ncpus=host.ncpus)
    return Report(
        held.instance_id,
        job_id=held.job_id,
        host_id=held.host_id,
        from_state=known.state,
        to_state=step.state,
        reported_at=now,
        elapsed_s=elapsed_s,
        cpu_s=cpu_s,
        exit_status=int(sanity.clamped(result.exit_status, -sanity.MOST_INT, sanity.MOST_INT)),
        reason=sanity.text(judgement.reason, MOST_REASON_CHARS),
        stderr=sanity.text(result.stderr[-most:], most),
        turnaround_sample=_sample_left(known, event),
        hav_event=event,
        reported_before_at=known.reported_at,
    )


def _hav_event(known: Reported, kind: HavEventKind, now: Instant) -> HavEvent:
    """Return the statistics event for a report. A success counts only after validation.

    After an error, the censored sample of a timeout remains, because it is still the only bound known for the
    turnaround. A job that the client gave up unstarted counts as a timeout and adds such a sample, too.
    """
    held = known.held
    if kind is HavEventKind.TIMED_OUT:
        return timed_out(held, now)
    return HavEvent(
        held.host_id,
        held.app_version_id,
        kind,
        now,
        tight=held.tight,
        replaces=known.turnaround_sample,
        replaces_at=None if known.turnaround_sample is None else known.timeout_at,
    )


def timed_out(held: InstanceInProgress, now: Instant) -> HavEvent:
    """Return the event, with a censored sample, for a job that will not be returned, ahead of its timeout."""
    usual_s = yardstick_s(
        tight=held.tight, est_runtime_s=held.est_runtime_s, median_turnaround_s=held.median_turnaround_s
    )
    sample = censored_sample(sent_at=held.sent_at, due_at=held.due_at, now=now, yardstick_s=usual_s)
    return HavEvent(
        held.host_id,
        held.app_version_id,
        HavEventKind.TIMED_OUT,
        now,
        tight=held.tight,
        ln_turnaround_ratio=sample,
    )


def _sample_left(known: Reported, event: HavEvent | None) -> float | None:
    """Return the sample stored with the instance.

    A late success keeps the timeout's sample until validation replaces it; a late error keeps it permanently.
    """
    if event is None or event.ln_turnaround_ratio is None:
        return known.turnaround_sample
    return event.ln_turnaround_ratio


def is_dead(state: InstanceState) -> bool:
    """Return whether a report can no longer make an instance in `state` useful.

    >>> is_dead(InstanceState.TIMED_OUT), is_dead(InstanceState.VALID)
    (False, True)
    """
    return not allows(state, Event.SUCCEEDED)


MOST_SENT_AT = Instant(1e12)


@quick_dataclass(frozen=True, slots=True)
class TricklesTaken:
    """`keep` are the messages to store; `dropped` counts the remaining ones."""

    keep: tuple[Trickle, ...]
    dropped: Counter[TrickleFate]


def take_trickles(
    request: SchedulerRequest, running: Iterable[InstanceInProgress], *, settings: FileSettings, now: Instant
) -> TricklesTaken:
    """Select the messages to store from a request at `now` from a host with `running` instances."""
    ids = {one.name: one.instance_id for one in running}
    keep = []
    dropped = Counter[TrickleFate]()
    if request.more_trickles:
        dropped[TrickleFate.TOO_MANY] = request.more_trickles
    for trickle in request.trickles:
        instance_id = ids.get(trickle.result_name)
        if instance_id is None:
            dropped[TrickleFate.NOT_IN_PROGRESS] += 1
        elif len(trickle.text.encode("utf-8", "replace")) > settings.max_trickle_bytes:
            dropped[TrickleFate.TOO_LARGE] += 1
        else:
            sent_at = Instant(sanity.clamped(trickle.sent_at, 0.0, MOST_SENT_AT))
            text = sanity.text(trickle.text, settings.max_trickle_bytes)
            keep.append(Trickle(instance_id, sent_at, now, sanity.text(trickle.variety), text))
    return TricklesTaken(tuple(keep), dropped)
