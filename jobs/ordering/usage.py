"""The usage ledger of an ordering pass: what happened to each batch since the last one, and what it costs. Pure.

Jobs of a batch are alike, and its counters say how many instances were sent, are back, and were lost: a charge is their
difference times the estimate of one. Work is charged by estimate when it is sent, corrected when it is back, and
refunded when a volunteer failed; all of it counts from the instant the work was sent. No request pays for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from domain.ordered_work import LeafId, LeafUsage, OrderedBatch, OrderingView, OrderNotes, WindowUsage
from domain.ordering import QueueClock, ServiceLevel
from domain.ordering_settings import OrderingSettings
from domain.units import Instant, Seconds
from domain.usage import Charge
from jobs.ordering.sizing import JobFootprint
from priority.charging import usage_weights
from priority.fair_share import Leaf
from priority.logical_time import InstanceTally, counted
from priority.measures import ACCURACY_JOBS
from priority.standings import MOST_WINDOWS, Submitting, window_of

MOST_FRACTION = 10.0  # of an estimate that a job is taken to use: what volunteers claim is bounded


def charges_of(
    one: OrderedBatch, notes: OrderNotes, size: JobFootprint, *, rate: float, fraction: float, now: Instant
) -> tuple[OrderNotes, Sequence[Charge]]:
    """The charges since `notes` were taken, and the notes with them; an instance takes `fraction` of its estimate.

    What was sent since is charged by estimate from now on. What was lost is refunded since the mean instant of what was
    charged, at most what that was; what is back is corrected since then. `rate` is the price of what was sent since.
    """
    found = counted(one)
    sent = one.batch.counts.sent - notes.sent
    if not sent and (found.charged, found.used, fraction) == (notes.charged, notes.used, notes.used_fraction):
        return notes, []  # as most batches: nothing happened
    lost = notes.charged + sent - found.charged
    rate = _mean_rate(notes, sent=max(0, sent), rate=rate)
    charges = list(_charges(notes, size, found, sent=sent, lost=lost, rate=rate, fraction=fraction, now=now))
    since = now
    if notes.charged:
        before = max(0, notes.charged - max(0, lost))
        whole = before + max(0, sent)
        since = Instant((before * notes.charged_at + max(0, sent) * now) / whole) if whole else notes.charged_at
    changed = found.charged != notes.charged or sent
    return (
        replace(
            notes,
            sent=one.batch.counts.sent,
            charged=found.charged,
            used=found.used,
            charged_at=since if changed else notes.charged_at,
            used_fraction=fraction,
            rate=rate,
        ),
        charges,
    )


def _mean_rate(notes: OrderNotes, *, sent: int, rate: float) -> float:
    """Service units per PE-hour of what is under way, in the mean: each instance at the price it was sent for.

    >>> _mean_rate(OrderNotes(charged=4, used=1, rate=3.0), sent=3, rate=0.0)
    1.5
    """
    before = max(0, notes.charged - notes.used)
    return (before * notes.rate + sent * rate) / (before + sent) if before + sent else notes.rate


def _charges(
    notes: OrderNotes,
    size: JobFootprint,
    found: InstanceTally,
    *,
    sent: int,
    lost: int,
    rate: float,
    fraction: float,
    now: Instant,
) -> Iterator[Charge]:
    before = notes.charged_at if notes.charged else now
    if sent:
        yield Charge(now, size.amounts.times(sent))
    if lost:
        yield Charge(before, size.amounts.times(-lost))
    estimated = (found.used - notes.used) + notes.used * notes.used_fraction
    used = found.used * fraction
    if estimated != used or found.used != notes.used:
        usage = size.amounts.times(used).minus(size.amounts.times(estimated))
        yield Charge(before, usage, used_su=size.units(rate) * (used - notes.used * notes.used_fraction))


def fraction_of(sampled: Sequence[float], old: float) -> float:
    """What an instance takes of its estimate: the median of a sample, so that no single host can move it far.

    >>> fraction_of([0.5, 0.7, 900.0], 1.0), fraction_of([], 1.0)
    (0.7, 1.0)
    """
    if not sampled:
        return old
    ranked = sorted(min(one, MOST_FRACTION) for one in sampled)
    return ranked[len(ranked) // 2]


def wants_sample(one: OrderedBatch, notes: OrderNotes) -> bool:
    """Whether to look what jobs take: after 5 valid ones, and whenever there are half as many again."""
    valid = one.batch.counts.jobs_validated
    return valid >= 5 and valid >= 1.5 * notes.sampled


def noted(notes: OrderNotes, one: OrderedBatch, *, later_sent: bool, sent: int) -> OrderNotes:
    """The notes with how often the batch was passed over: later batches were sent, and nothing of this one."""
    waits = one.batch.counts.unsent > 0 and notes.clock.since is not None
    if sent > 0:
        return replace(notes, bypassed=0) if notes.bypassed else notes
    return replace(notes, bypassed=notes.bypassed + 1) if later_sent and waits else notes


def clocked(clock: QueueClock, *, eligible: bool, now: Instant) -> QueueClock:
    """The queue clock: it goes on while something of the batch could be sent, and stands still else.

    >>> clocked(QueueClock(since=Instant(10.0)), eligible=False, now=Instant(70.0))
    QueueClock(accrued_s=60.0, since=None)
    """
    if eligible:
        return clock.runs(now)
    return clock.pauses(now) if clock.since is not None else clock


WindowKey = tuple[LeafId, ServiceLevel, int]  # with the number of the window


class Books:
    """Usage by leaf and by window. Windows of another length than is set now count where their middle lies."""

    def __init__(self, view: OrderingView, settings: OrderingSettings, now: Instant) -> None:
        self._members = view.members
        self._settings = settings
        self._now = now
        self._usage = {one.leaf: one for one in view.usage}
        self._changed: dict[LeafId, None] = {}
        self._stored = view.windows
        self._added: dict[WindowKey, float] = {}

    @property
    def windows_from(self) -> Instant:
        """No setting looks further back than this."""
        longest_s = max([self._settings.window_s, *(one.length_s for one in self._stored)])
        return Instant(self._now - (MOST_WINDOWS + 1) * longest_s)

    def take(self, leaf: LeafId, level: ServiceLevel, charges: Iterable[Charge], sampled: Sequence[float]) -> None:
        """Enter the charges of one batch, and what its jobs took of their estimates."""
        for one in charges:
            old = self._usage.get(leaf, LeafUsage(leaf))
            usage = old.usage.charged(one.usage, since=one.since, half_life_s=self._settings.half_life_s)
            accuracies = (*sampled, *old.accuracies)[:ACCURACY_JOBS] if sampled else old.accuracies
            sampled = ()
            self._usage[leaf] = replace(old, usage=usage, accuracies=accuracies)
            self._changed[leaf] = None
            key = (leaf, level, window_of(one.since, self._settings.window_s))
            self._added[key] = self._added.get(key, 0.0) + one.usage.flop

    def submitting(self, held_pe: Mapping[LeafId, float]) -> list[Submitting]:
        """Every submitter in each of its accounts, as it stands with what was charged now."""
        weights, half_life_s = usage_weights(self._settings.usage_weights), self._settings.half_life_s
        windows: dict[LeafId, dict[int, float]] = {}
        for (leaf, _, number), flop in self._by_window().items():
            of_leaf = windows.setdefault(leaf, {})
            of_leaf[number] = of_leaf.get(number, 0.0) + flop
        found = []
        for member in self._members:
            used = self._usage.get(member.leaf, LeafUsage(member.leaf))
            usage = used.usage.read(self._now, half_life_s).weighed(weights)
            found.append(
                Submitting(
                    Leaf(*member.leaf, member.shares, usage),
                    member.name,
                    {at: max(0.0, flop) for at, flop in windows.get(member.leaf, {}).items()},
                    [(1.0, ratio) for ratio in used.accuracies],
                    held_pe.get(member.leaf, 0.0),
                )
            )
        return found

    def level_windows(self) -> dict[ServiceLevel, dict[int, float]]:
        """What each service level used, by window."""
        found: dict[ServiceLevel, dict[int, float]] = {level: {} for level in ServiceLevel}
        for (_, level, number), flop in self._by_window().items():
            found[level][number] = found[level].get(number, 0.0) + max(0.0, flop)
        return found

    def changed_usage(self) -> list[LeafUsage]:
        return [self._usage[leaf] for leaf in sorted(self._changed)]

    def changed_windows(self) -> list[WindowUsage]:
        """What is added to each window."""
        length_s = self._settings.window_s
        return [
            WindowUsage(leaf, level, Instant(number * length_s), length_s, flop)
            for (leaf, level, number), flop in sorted(self._added.items())
            if flop
        ]

    def _by_window(self) -> dict[WindowKey, float]:
        length_s: Seconds = self._settings.window_s
        found = dict(self._added)
        for one in self._stored:
            key = (one.leaf, one.level, window_of(Instant(one.starts_at + one.length_s / 2.0), length_s))
            found[key] = found.get(key, 0.0) + one.flop
        return found
