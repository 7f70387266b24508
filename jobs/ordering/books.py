"""The books of one ordering: what everybody used, with what is charged now. No input or output."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from domain.ordered_work import LeafId, LeafUsage, OrderingView, WindowUsage
from domain.ordering import ServiceLevel
from domain.ordering_settings import OrderingSettings
from domain.units import Instant, Seconds
from domain.usage import Charge
from priority.charging import usage_weights
from priority.fair_share import Leaf
from priority.measures import ACCURACY_JOBS
from priority.standings import MOST_WINDOWS, Submitting, window_of

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

    def take(self, level: ServiceLevel, charges: Iterable[Charge], sampled: Sequence[float]) -> None:
        """Enter the charges of one batch of this level, and what its jobs took of their estimates."""
        for one in charges:
            leaf = (one.submitter_id, one.account_id)
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
