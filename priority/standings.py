"""How do all submitters stand at this moment? Makes what policies share of what is stored. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from domain.batches import Account
from domain.ordered_work import LeafStanding
from domain.ordering import ServiceLevel
from domain.ordering_settings import OrderingSettings
from domain.units import AccountId, Instant
from priority.fair_share import FairShares, Leaf, LeafId, fair_shares
from priority.measures import estimate_accuracy
from priority.parameters import target_for, targets
from priority.targets import Target, delta, newest_first, used_fraction, window_of

Windows = Mapping[int, float]  # usage by window number


@dataclass(frozen=True, slots=True)
class Submitting:
    """A submitter in one account: its leaf with usage as one number, and what else its standing is made of.

    `windows` is usage by window number, `jobs` its last jobs as (estimate, actual) seconds, newest first.
    """

    leaf: Leaf
    name: str
    windows: Windows = field(default_factory=dict)
    jobs: Sequence[tuple[float, float]] = ()
    held_pe: float = 0.0


@dataclass(frozen=True, slots=True)
class Standings:
    """Everybody's standing, the deltas of service levels, and the tree they come from."""

    leaves: Mapping[LeafId, LeafStanding]
    levels: Mapping[ServiceLevel, float]
    held_by_account: Mapping[int, float]
    shares: FairShares


def standings(
    accounts: Sequence[Account],
    submitting: Sequence[Submitting],
    settings: OrderingSettings,
    *,
    now: Instant,
    level_windows: Mapping[ServiceLevel, Windows] | None = None,
) -> Standings:
    """Fair-share by tree, deltas to targets by windows, accuracy of estimates, work held. Raises InvalidInputError.

    >>> ada = Submitting(Leaf(1, 1, 1.0, 10.0), "ada", {0: 30.0})
    >>> bob = Submitting(Leaf(2, 1, 1.0, 10.0), "bob", {0: 70.0})
    >>> made = standings([Account(1, "lab")], [ada, bob], OrderingSettings(targets="user:DEFAULT=50"), now=0.0)
    >>> [(one.fairshare_ratio, one.user_delta) for one in made.leaves.values()]
    [(0.5, 20.0), (0.5, -20.0)]
    """
    shares = fair_shares(accounts, (one.leaf for one in submitting), damping=settings.damping_factor)
    deltas = _Deltas(accounts, submitting, settings, now)
    held: dict[int, float] = {}
    leaves: dict[LeafId, LeafStanding] = {}
    for one in submitting:
        leaf = (one.leaf.submitter_id, one.leaf.account_id)
        share = shares.leaves[leaf]
        held[one.leaf.account_id] = held.get(one.leaf.account_id, 0.0) + one.held_pe
        leaves[leaf] = LeafStanding(
            share.ratio,
            share.rank,
            *deltas.of(one),
            accuracy=estimate_accuracy(one.jobs) if one.jobs else None,
            held_pe=one.held_pe,
        )
    levels = {level: deltas.of_level(level, usage) for level, usage in (level_windows or {}).items()}
    return Standings(leaves, levels, held, shares)


class _Deltas:
    """Percentage points of target less usage, by submitter, topmost account and account."""

    def __init__(
        self, accounts: Iterable[Account], submitting: Sequence[Submitting], settings: OrderingSettings, now: Instant
    ) -> None:
        self._targets = targets(settings.targets)
        self._settings = settings
        self._newest = window_of(now, settings.window_s)
        self._accounts = {account.account_id: account for account in accounts}
        self._total: Windows = {}
        self._users, self._groups, self._owns = dict[str, Windows](), dict[str, Windows](), dict[str, Windows]()
        if not self._targets:
            return
        self._total = _added(one.windows for one in submitting)
        self._users = _grouped((one.name, one.windows) for one in submitting)
        self._groups = _grouped((self._topmost(one.leaf.account_id), one.windows) for one in submitting)
        self._owns = _grouped((self._accounts[one.leaf.account_id].name, one.windows) for one in submitting)

    def of(self, one: Submitting) -> tuple[float, float, float]:
        if not self._targets:
            return 0.0, 0.0, 0.0
        group, account = self._topmost(one.leaf.account_id), self._accounts[one.leaf.account_id].name
        return (
            self._delta("user", one.name, self._users[one.name]),
            self._delta("group", group, self._groups[group]),
            self._delta("account", account, self._owns[account]),
        )

    def of_level(self, level: ServiceLevel, usage: Windows) -> float:
        return self._delta("level", level, usage) if self._targets else 0.0

    def _delta(self, section: str, name: str, usage: Windows) -> float:
        target: Target | None = target_for(self._targets, section, name)
        if target is None:
            return 0.0
        depth = self._settings.window_samples
        used, total = newest_first(usage, self._newest, depth), newest_first(self._total, self._newest, depth)
        if not any(total):
            return 0.0  # nothing delivered: the whole component is left out
        return delta(target, 100.0 * used_fraction(used, total, decay=self._settings.window_decay_factor))

    def _topmost(self, account_id: AccountId) -> str:
        account = self._accounts[account_id]
        while account.parent_id is not None and self._accounts[account.parent_id].parent_id is not None:
            account = self._accounts[account.parent_id]
        return account.name


def _added(every: Iterable[Windows]) -> Windows:
    total: dict[int, float] = {}
    for windows in every:
        for number, amount in windows.items():
            total[number] = total.get(number, 0.0) + amount
    return total


def _grouped(named: Iterable[tuple[str, Windows]]) -> dict[str, Windows]:
    groups: dict[str, list[Windows]] = {}
    for name, windows in named:
        groups.setdefault(name, []).append(windows)
    return {name: _added(every) for name, every in groups.items()}
