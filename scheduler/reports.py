"""What the reports of a request change, and which of them are acknowledged. Pure. docs/protocol.md#reports.

Every reported result is acknowledged, also one we do not know: a client repeats a result until it is.
Only an instance that the context host was given takes a step, so a result slipped into a request through
an application's output changes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

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
MOST_REASON_CHARS = 500


@quick_dataclass(frozen=True, slots=True)
class ReportsTaken:
    """`reports` are the steps to be written; `acks` the names to acknowledge once they are."""

    reports: tuple[Report, ...] = ()
    acks: tuple[str, ...] = ()

    def acks_without(self, left_out: frozenset[InstanceId]) -> tuple[str, ...]:
        """The names to acknowledge when the steps of these instances were not written after all.

        >>> ReportsTaken(acks=("pi_1_1_1", "pi_1_2_2")).acks_without(frozenset({2}))
        ('pi_1_1_1',)
        """
        return tuple([name for name in self.acks if instance_id_of(name) not in left_out]) if left_out else self.acks


def reported_ids(results: Iterable[ReportedResult]) -> tuple[InstanceId, ...]:
    """The instances that results name, each once; names we never gave are left out.

    >>> reported_ids([ReportedResult("pi_3_41_77", 5, 0), ReportedResult("fake_0x", 5, 0)])
    (77,)
    """
    ids = [instance_id_of(result.name) for result in results]
    return tuple(dict.fromkeys([i for i in ids if i is not None]))


def take_reports(
    results: Iterable[ReportedResult],
    reported: Mapping[InstanceId, Reported],
    host: Host,
    only_successes: Collection[InstanceId] = (),
    *,
    now: Instant,
) -> ReportsTaken:
    """Judge every result of a request that came at `now` from `host`.

    A repeated report, one after which nothing can change any more, and a failure of the `only_successes` are
    acknowledged and make no step.
    """
    by_name: dict[str, ReportedResult] = {}
    for result in results:
        if result.name:
            by_name.setdefault(result.name, result)
    known = {one.held.name: one for one in reported.values()}
    judged = [_report(result, known[name], host, now) for name, result in by_name.items() if name in known]
    steps = [
        one
        for one in judged
        if one is not None and (one.to_state is InstanceState.REPORTED or one.instance_id not in only_successes)
    ]
    return ReportsTaken(tuple(steps), tuple(by_name))


def _report(result: ReportedResult, known: Reported, host: Host, now: Instant) -> Report | None:
    judgement = judge_report(result, known.outputs, known.uploads)
    held, happened = known.held, judgement.event
    if happened is Event.SERVER_ABORTED and not held.no_longer_needed:
        happened = Event.USER_ABORTED  # the server asks for no abort of a job that is open, whatever the client says
    if not allows(known.state, happened):
        return None
    step = advance(known.state, happened, instance_id=held.instance_id)
    record = host_record(step.instructions)
    event = None if record is None else _hav_event(known, record, now)
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
        stderr=sanity.text(result.stderr, MOST_STDERR_CHARS),
        turnaround_sample=_sample_left(known, event),
        hav_event=event,
        reported_before_at=known.reported_at,
    )


def _hav_event(known: Reported, kind: HavEventKind, now: Instant) -> HavEvent:
    """What the host's statistics are told now; a success is told once it is validated.

    An error leaves the censored sample of a time-out: all that is known of the turnaround is still that it is longer.
    A job given up unstarted is a time-out the client noticed before we did, and leaves such a sample.
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
    """What the host's statistics are told of a job that will not come back, before its time-out: a censored sample."""
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
    """The sample that stays on the instance.

    A late success keeps the time-out's, for the validation that will replace it, and a late error keeps it for good.
    """
    if event is None or event.ln_turnaround_ratio is None:
        return known.turnaround_sample
    return event.ln_turnaround_ratio


def is_dead(state: InstanceState) -> bool:
    """Whether an instance in `state` can no longer be of use, whatever its host reports.

    >>> is_dead(InstanceState.TIMED_OUT), is_dead(InstanceState.VALID)
    (False, True)
    """
    return not allows(state, Event.SUCCEEDED)


MOST_SENT_AT = Instant(1e12)


@quick_dataclass(frozen=True, slots=True)
class TricklesTaken:
    """`keep` are the messages to store; `dropped` counts the others."""

    keep: tuple[Trickle, ...]
    dropped: Counter[TrickleFate]


def take_trickles(
    request: SchedulerRequest, running: Iterable[InstanceInProgress], *, settings: FileSettings, now: Instant
) -> TricklesTaken:
    """Choose the messages to keep of a request that came at `now` from a host with `running` instances."""
    ids = {one.name: one.instance_id for one in running}
    keep = []
    dropped = Counter[TrickleFate]()
    if request.more_trickles:
        dropped[TrickleFate.TOO_MANY] = request.more_trickles
    for said in request.trickles:
        instance_id = ids.get(said.result_name)
        if instance_id is None:
            dropped[TrickleFate.NOT_IN_PROGRESS] += 1
        elif len(said.text.encode("utf-8", "replace")) > settings.max_trickle_bytes:
            dropped[TrickleFate.TOO_LARGE] += 1
        else:
            sent_at = Instant(sanity.clamped(said.sent_at, 0.0, MOST_SENT_AT))
            text = sanity.text(said.text, settings.max_trickle_bytes)
            keep.append(Trickle(instance_id, sent_at, now, sanity.text(said.variety), text))
    return TricklesTaken(tuple(keep), dropped)
