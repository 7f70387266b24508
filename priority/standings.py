"""Current standings of submitters: fair-share, targets over recent windows, work in progress. Pure.

Policies use these standings. Windows are aligned to the epoch: window number = floor(instant / interval).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from domain.batches import Account
from domain.errors import InvalidInputError
from domain.ordered_work import LeafId, LeafStanding
from domain.ordering import ServiceLevel
from domain.ordering_settings import OrderingSettings
from domain.units import AccountId, Instant, Seconds
from domain.usage import LEAST_USAGE
from priority.fair_share import FairShares, Leaf, fair_shares
from priority.measures import estimate_accuracy

# ---- targets, as in Maui: usage as a percentage of the usage delivered in the last windows; older windows count less

STAR_POINTS = 5.0  # deviations from the target above this many percentage points are marked
MOST_WINDOWS = 24


class TargetMode(StrEnum):
    PLAIN = ""
    FLOOR = "+"  # matters only below the target
    CEILING = "-"  # matters only above the target
    CAP = "%"  # not a priority: blocks starts that would exceed it, relative to the usage delivered
    HARD_CAP = "^"  # the same, in absolute usage


@dataclass(frozen=True, slots=True)
class Target:
    """A target as a percentage of the usage delivered (HARD_CAP: as usage), and its mode."""

    amount: float
    mode: TargetMode = TargetMode.PLAIN


def parse_target(text: str) -> Target:
    """Parse a target in Maui's notation. Raises InvalidInputError.

    >>> parse_target("12.5+")
    Target(amount=12.5, mode=<TargetMode.FLOOR: '+'>)
    """
    found = re.fullmatch(r"\s*([0-9]{1,18}(?:\.[0-9]{0,18})?)\s*([-+%^]?)\s*", text)
    if found is None:
        raise InvalidInputError("target", "a percentage, optionally followed by +, -, % or ^", text)
    return Target(float(found[1]), TargetMode(found[2]))


def targets(text: str) -> Mapping[tuple[str, str], Target]:
    """Parse targets by (user|group|account|level, name) from words such as group:stuart=38+. Raises InvalidInputError.

    >>> targets("user:DEFAULT=20")["user", "DEFAULT"].amount
    20.0
    """
    found: dict[tuple[str, str], Target] = {}
    for word in text.split():
        credential, _, amount = word.rpartition("=")
        section, _, name = credential.partition(":")
        if section not in {"user", "group", "account", "level"} or not name:
            raise InvalidInputError("ordering.targets", "targets such as user:DEFAULT=20 or group:stuart=38+", word)
        found[section, name] = parse_target(amount)
    return found


def target_for(found: Mapping[tuple[str, str], Target], section: str, name: str) -> Target | None:
    """Return the target for this name, or else the section's DEFAULT, or else None.

    >>> target_for(targets("user:DEFAULT=20"), "user", "ada").amount
    20.0
    """
    return found.get((section, name), found.get((section, "DEFAULT")))


def window_of(at: Instant, interval_s: Seconds) -> int:
    """Return the number of the window that contains the instant.

    >>> window_of(Instant(400_000.0), Seconds(172_800.0))
    2
    """
    return int(at // interval_s)


def window_weights(decay: float, windows: int) -> list[float]:
    """Return the weight of each window, newest first: decay^n.

    >>> window_weights(0.5, 4)
    [1.0, 0.5, 0.25, 0.125]
    """
    return [decay**age for age in range(windows)]


def newest_first(usage: Mapping[int, float], newest: int, depth: int) -> list[float]:
    """Return usage by window number as a list of `depth` windows, newest first.

    >>> newest_first({7: 2.0, 5: 1.0}, 7, 3)
    [2.0, 0.0, 1.0]
    """
    return [usage.get(newest - age, 0.0) for age in range(depth)]


def used_fraction(used: Sequence[float], total: Sequence[float], *, decay: float, depth: int | None = None) -> float:
    """Return sum(used[n] * decay^n) / sum(total[n] * decay^n) for n < depth, with n = 0 newest; 0 if the total is 0.

    >>> round(used_fraction([60, 0, 10, 50], [110, 125, 100, 150], decay=0.5, depth=4), 6)
    0.317919
    """
    windows = len(total) if depth is None else min(depth, len(total))
    weights = window_weights(decay, windows)
    whole = sum(amount * weight for amount, weight in zip(total, weights, strict=False))
    own = sum(amount * weight for amount, weight in zip(used, weights, strict=False))
    return own / whole if whole >= LEAST_USAGE else 0.0


def used_percent(shares: Sequence[float], total: Sequence[float], *, decay: float) -> float:
    """Return the usage computed from each window's percentage, with two decimals as printed by `diagnose -f`.

    >>> used_percent([12.0, 6.0, 2.0], [20.0, 40.0, 160.0], decay=0.25)
    8.0
    """
    used = [percent * amount for percent, amount in zip(shares, total, strict=False)]
    return round(used_fraction(used, total, decay=decay), 2)


def delta(target: Target | None, percent: float, *, relative: bool = False) -> float:
    """Return target minus usage in percentage points, 0 without a target. With `relative`: 1 - usage / target.

    A floor counts only if usage is below it, a ceiling only if usage is above it, a cap never.

    >>> delta(Target(50.0), 45.0), delta(Target(10.0, TargetMode.FLOOR), 25.0)
    (5.0, 0.0)
    """
    if target is None or target.mode in {TargetMode.CAP, TargetMode.HARD_CAP}:
        return 0.0
    off = target.amount - percent
    if relative:
        off = 1.0 - percent / target.amount if target.amount > 0.0 else 0.0
    if target.mode is TargetMode.FLOOR:
        return max(0.0, off)
    if target.mode is TargetMode.CEILING:
        return min(0.0, off)
    return off


def starred(target: Target | None, percent: float) -> bool:
    """Return whether usage misses its target by more than 5 points: on either side, below a floor, or above a ceiling.

    >>> starred(Target(13.0), 18.0), starred(Target(13.0), 18.01), starred(Target(13.0, TargetMode.FLOOR), 20.0)
    (False, True, False)
    """
    if target is None:
        return False
    off = round(percent - target.amount, 9)
    if target.mode is TargetMode.FLOOR:
        return off < -STAR_POINTS
    if target.mode is TargetMode.PLAIN:
        return abs(off) > STAR_POINTS
    return off > STAR_POINTS


def over_cap(target: Target | None, *, used: float, delivered: float, request: float, others_wait: bool) -> str | None:
    """Return why a cap blocks a start that would use `request` more, or None. Caps apply only while other work waits.

    >>> over_cap(Target(10.0, TargetMode.CAP), used=9.0, delivered=90.0, request=1.0, others_wait=True)
    '11 % of the usage delivered would exceed the cap of 10 %'
    """
    if target is None or not others_wait or target.mode not in {TargetMode.CAP, TargetMode.HARD_CAP}:
        return None
    if target.mode is TargetMode.HARD_CAP:
        over = used + request > target.amount
        return f"usage of {used + request:g} would exceed the cap of {target.amount:g}" if over else None
    whole = delivered + request
    percent = 100.0 * (used + request) / whole if whole > 0.0 else 0.0
    if percent <= target.amount:
        return None
    return f"{percent:.3g} % of the usage delivered would exceed the cap of {target.amount:g} %"


# ---- standings of all submitters

Windows = Mapping[int, float]  # usage by window number


@dataclass(frozen=True, slots=True)
class Submitting:
    """A submitter in one account: its leaf, with usage as one number, and the other inputs for its standing.

    `windows` is usage by window number; `jobs` its latest jobs as (estimate, actual) seconds, newest first.
    """

    leaf: Leaf
    name: str
    windows: Windows = field(default_factory=dict)
    jobs: Sequence[tuple[float, float]] = ()
    held_pe: float = 0.0


@dataclass(frozen=True, slots=True)
class LeafStandings:
    """The standings of all submitters, the deltas of service levels, and the tree from which they were computed."""

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
) -> LeafStandings:
    """Return fair-share, deltas to targets, estimate accuracy and work in progress. Raises InvalidInputError.

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
    return LeafStandings(leaves, levels, held, shares)


class _Deltas:
    """Target minus usage in percentage points, by submitter, topmost account and account."""

    def __init__(
        self, accounts: Iterable[Account], submitting: Sequence[Submitting], settings: OrderingSettings, now: Instant
    ) -> None:
        self._targets = targets(settings.targets)
        self._settings = settings
        self._newest = window_of(now, settings.window_s)
        self._credentials = CredentialNames(accounts)
        self._total: Windows = {}
        self._used: Mapping[tuple[str, str], Windows] = {}
        if self._targets:
            self._total = _added(one.windows for one in submitting)
            self._used = self._credentials.usage(submitting)

    def of(self, one: Submitting) -> tuple[float, float, float]:
        if not self._targets:
            return 0.0, 0.0, 0.0
        user, group, account = (
            self._delta(section, name, self._used[section, name])
            for section, name in self._credentials.of(one.name, one.leaf.account_id).items()
        )
        return user, group, account

    def of_level(self, level: ServiceLevel, usage: Windows) -> float:
        return self._delta("level", level, usage) if self._targets else 0.0

    def _delta(self, section: str, name: str, usage: Windows) -> float:
        target: Target | None = target_for(self._targets, section, name)
        if target is None:
            return 0.0
        depth = self._settings.window_samples
        used, total = newest_first(usage, self._newest, depth), newest_first(self._total, self._newest, depth)
        if not any(total):
            return 0.0  # no usage was delivered: the whole component is omitted
        return delta(target, 100.0 * used_fraction(used, total, decay=self._settings.window_decay_factor))


class CredentialNames:
    """The names under which usage counts: of the user, of the group (the account below the top) and of the account."""

    def __init__(self, accounts: Iterable[Account]) -> None:
        self._accounts = {account.account_id: account for account in accounts}

    def of(self, user: str, account_id: AccountId) -> Mapping[str, str]:
        account = group = self._accounts[account_id]
        while group.parent_id is not None and self._accounts[group.parent_id].parent_id is not None:
            group = self._accounts[group.parent_id]
        return {"user": user, "group": group.name, "account": account.name}

    def usage(self, submitting: Iterable[Submitting]) -> dict[tuple[str, str], Windows]:
        """Return usage by section and name."""
        found: dict[tuple[str, str], list[Windows]] = {}
        for one in submitting:
            for key in self.of(one.name, one.leaf.account_id).items():
                found.setdefault(key, []).append(one.windows)
        return {key: _added(every) for key, every in found.items()}


@dataclass(frozen=True, slots=True)
class CredentialUsage:
    """A name's usage compared with its target: `percent` over all windows with their weights, and `windows` for each
    one, newest first, as percentages of the usage delivered in it.
    """

    section: str
    name: str
    target: str
    percent: float
    off_target: bool
    windows: tuple[float, ...]


def credential_usage(
    accounts: Iterable[Account],
    submitting: Sequence[Submitting],
    settings: OrderingSettings,
    *,
    now: Instant,
    level_windows: Mapping[ServiceLevel, Windows],
) -> tuple[list[float], list[CredentialUsage]]:
    """Return the usage delivered in each window, newest first, and the rows of `diagnose -f`: users, groups, accounts
    and levels with usage or with a target of their own. Raises InvalidInputError.

    >>> ada, bob = (Submitting(Leaf(n, 1, 1.0, 0.0), name, {0: 30.0 * n}) for n, name in ((1, "ada"), (2, "bob")))
    >>> settings = OrderingSettings(targets="user:ada=20+", window_samples=2)
    >>> delivered, rows = credential_usage([Account(1, "lab")], [ada, bob], settings, now=0.0, level_windows={})
    >>> delivered, [(row.name, row.target, round(row.percent, 2), row.off_target) for row in rows[:2]]
    ([90.0, 0.0], [('ada', '20+', 33.33, False), ('bob', '', 66.67, False)])
    """
    asked, newest, depth = targets(settings.targets), window_of(now, settings.window_s), settings.window_samples
    used = CredentialNames(accounts).usage(submitting) | {
        ("level", str(one)): got for one, got in level_windows.items()
    }
    delivered = newest_first(_added(one.windows for one in submitting), newest, depth)
    rows = []
    for section, name in sorted(used, key=lambda key: (("user", "group", "account", "level").index(key[0]), key[1])):
        target: Target | None = target_for(asked, section, name)
        of_window = newest_first(used[section, name], newest, depth)
        if any(of_window) or (section, name) in asked:
            percent = 100.0 * used_fraction(of_window, delivered, decay=settings.window_decay_factor)
            shares = tuple(
                100.0 * one / whole if whole > 0.0 else 0.0 for one, whole in zip(of_window, delivered, strict=True)
            )
            text = "" if target is None else f"{target.amount:g}{target.mode}"
            rows.append(CredentialUsage(section, name, text, percent, starred(target, percent), shares))
    return delivered, rows


def _added(every: Iterable[Windows]) -> Windows:
    total: dict[int, float] = {}
    for windows in every:
        for number, amount in windows.items():
            total[number] = total.get(number, 0.0) + amount
    return total
