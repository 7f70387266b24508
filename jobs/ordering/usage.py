"""The usage ledger of an ordering pass: changes to each batch since the last pass, and their charges. Pure.

The jobs of a batch are equal, and its counters have the numbers of instances sent, returned and lost: a charge is the
difference times the estimate for one instance. Work is charged by estimate when sent, corrected when returned, and
refunded if a volunteer failed, always as of the time when it was sent. Scheduler requests do none of this.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from domain.history import month_bounds, month_of
from domain.ordered_work import DayUsage, LeafId, LeafUsage, OrderedBatch, OrderingView, OrderNotes, WindowUsage
from domain.ordering import QueueClock, ServiceLevel
from domain.ordering_settings import OrderingSettings
from domain.units import DAY_S, Instant, Seconds
from domain.usage import Amounts, Charge
from jobs.ordering.sizing import JobFootprint
from priority.charging import usage_weights
from priority.fair_share import Leaf
from priority.logical_time import InstanceTally, counted
from priority.measures import ACCURACY_JOBS
from priority.standings import MOST_WINDOWS, Submitting, window_of

MOST_FRACTION = 10.0  # cap on used / estimated, because volunteers report the usage


def charges_of(
    one: OrderedBatch, notes: OrderNotes, size: JobFootprint, *, rate: float, fraction: float, now: Instant
) -> tuple[OrderNotes, Sequence[Charge]]:
    """Return the updated state and the charges since `notes`. An instance is assumed to use `fraction` of its estimate.

    Newly sent work is charged by estimate as of now. Lost work is refunded, and returned work corrected, as of the mean
    time of the charged work; a refund is at most the charged amount. `rate` is the price of newly sent work.
    """
    found = counted(one)
    sent = one.batch.counts.sent - notes.sent
    if not sent and (found.charged, found.used, fraction) == (notes.charged, notes.used, notes.used_fraction):
        return notes, []  # no change, the usual case
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
    """Return the mean price, in service units per PE-hour, of the work in progress, each job at its price when sent.

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
        new = used - notes.used * notes.used_fraction
        yield Charge(before, usage, size.units(rate) * new, size.amounts.times(new), found.used - notes.used)


ENOUGH = 5  # this many results represent the whole batch


def fraction_of(sampled: Sequence[float], old: float, *, used: int) -> float:
    """Return the mean ratio of actual to estimated usage over `used` returned instances.

    It is the median of the sampled ratios, so that one host has little effect. Fewer than ENOUGH results represent only
    themselves; the remaining instances count with their estimate.

    >>> fraction_of([0.5, 0.7, 900.0, 0.6, 0.8], 1.0, used=80), fraction_of([], 1.0, used=3)
    (0.7, 1.0)
    >>> fraction_of([0.1], 1.0, used=1), fraction_of([0.2], 1.0, used=4)
    (0.1, 0.8)
    """
    if not sampled:
        return old
    ranked = sorted(min(one, MOST_FRACTION) for one in sampled)
    median, count = ranked[len(ranked) // 2], len(ranked)
    if count >= ENOUGH or used <= count:
        return median
    return (count * median + used - count) / used


def wants_sample(one: OrderedBatch, notes: OrderNotes) -> bool:
    """Return whether to sample runtimes: for each of the first valid jobs, then when their number has grown by half."""
    valid = one.batch.counts.jobs_validated
    return valid > notes.sampled and (valid <= ENOUGH or valid >= 1.5 * notes.sampled)


def noted(notes: OrderNotes, one: OrderedBatch, *, later_sent: bool, sent: int) -> OrderNotes:
    """Return the state with an updated count of passes in which later batches were sent but this batch was not."""
    waits = one.batch.counts.unsent > 0 and notes.clock.since is not None
    if sent > 0:
        return replace(notes, bypassed=0) if notes.bypassed else notes
    return replace(notes, bypassed=notes.bypassed + 1) if later_sent and waits else notes


def clocked(clock: QueueClock, *, eligible: bool, now: Instant) -> QueueClock:
    """Return the queue clock: running if `eligible` (jobs of the batch could be sent), otherwise paused.

    >>> clocked(QueueClock(since=Instant(10.0)), eligible=False, now=Instant(70.0))
    QueueClock(accrued_s=60.0, since=None)
    """
    if eligible:
        return clock.runs(now)
    return clock.pauses(now) if clock.since is not None else clock


WindowKey = tuple[LeafId, ServiceLevel, int]  # a leaf, a level, and the number of the window


class UsageLedger:
    """Usage by leaf and by window. A stored window of another length counts in the window around its midpoint."""

    def __init__(self, view: OrderingView, settings: OrderingSettings, now: Instant) -> None:
        self._members = view.members
        self._settings = settings
        self._now = now
        self._usage = {one.leaf: one for one in view.usage}
        self._changed: dict[LeafId, None] = {}
        self._stored = view.windows
        self._added: dict[WindowKey, float] = {}
        self._returned: dict[LeafId, DayUsage] = {}

    @property
    def windows_from(self) -> Instant:
        """Return the start of the oldest window that any setting may use."""
        longest_s = max([self._settings.window_s, *(one.length_s for one in self._stored)])
        return Instant(self._now - (MOST_WINDOWS + 1) * longest_s)

    def take(self, leaf: LeafId, level: ServiceLevel, charges: Iterable[Charge], sampled: Sequence[float]) -> None:
        """Add one batch's charges, and the ratios sampled from its jobs."""
        for one in charges:
            old = self._usage.get(leaf, LeafUsage(leaf))
            usage = old.usage.charged(one.usage, since=one.since, half_life_s=self._settings.half_life_s)
            accuracies = (*sampled, *old.accuracies)[:ACCURACY_JOBS] if sampled else old.accuracies
            sampled = ()
            self._usage[leaf] = replace(old, usage=usage, accuracies=accuracies)
            self._changed[leaf] = None
            key = (leaf, level, window_of(one.since, self._settings.window_s))
            self._added[key] = self._added.get(key, 0.0) + one.usage.flop
            if one.returned or one.used_su or one.used != Amounts():
                self._returned[leaf] = self._returned.get(leaf, DayUsage(leaf)).plus(one)

    def submitting(self, held_pe: Mapping[LeafId, float]) -> list[Submitting]:
        """Return each submitter in each of its accounts, with usage that includes the new charges."""
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
        """Return each service level's usage by window."""
        found: dict[ServiceLevel, dict[int, float]] = {level: {} for level in ServiceLevel}
        for (_, level, number), flop in self._by_window().items():
            found[level][number] = found[level].get(number, 0.0) + max(0.0, flop)
        return found

    @property
    def days_from(self) -> Instant:
        """The start of the first month of which days are kept."""
        return month_bounds(month_of(Instant(max(0.0, self._now - self._settings.usage_days * DAY_S))))[0]

    def returned(self) -> list[DayUsage]:
        return [self._returned[leaf] for leaf in sorted(self._returned)]

    def changed_usage(self) -> list[LeafUsage]:
        return [self._usage[leaf] for leaf in sorted(self._changed)]

    def changed_windows(self) -> list[WindowUsage]:
        """Return the amount to add to each window."""
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
