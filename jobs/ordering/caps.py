"""Whom does a cap on recent usage bar, while others wait? Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from domain.batches import Account
from domain.ordered_work import LeafId
from domain.ordering import ServiceLevel
from domain.ordering_settings import OrderingSettings
from domain.units import AccountId, Instant
from priority.standings import (
    Submitting,
    Target,
    TargetMode,
    newest_first,
    over_cap,
    target_for,
    targets,
    window_of,
    window_weights,
)

Windows = Mapping[int, float]


@dataclass(frozen=True, slots=True)
class Waiting:
    """A batch with unsent jobs: whose, of what level, and what one of its jobs uses."""

    leaf: LeafId
    level: ServiceLevel
    job_flop: float


class Caps:
    """The caps among the targets, and what is used of them. Without any nothing is looked at."""

    def __init__(
        self,
        accounts: Iterable[Account],
        submitting: Sequence[Submitting],
        levels: Mapping[ServiceLevel, Windows],
        settings: OrderingSettings,
        now: Instant,
    ) -> None:
        every = targets(settings.targets)
        self._targets = {key: one for key, one in every.items() if one.mode in {TargetMode.CAP, TargetMode.HARD_CAP}}
        if not self._targets:
            return
        self._accounts = {account.account_id: account for account in accounts}
        newest, depth = window_of(now, settings.window_s), settings.window_samples
        weights = window_weights(settings.window_decay_factor, depth)

        def weighed(windows: Windows) -> float:
            used = zip(newest_first(windows, newest, depth), weights, strict=True)
            return sum(flop * weight for flop, weight in used)

        self._names: dict[LeafId, dict[str, str]] = {}
        self._used: dict[tuple[str, str], float] = {}
        self._delivered = 0.0
        for one in submitting:
            used, leaf = weighed(one.windows), (one.leaf.submitter_id, one.leaf.account_id)
            self._delivered += used
            self._names[leaf] = self._names_of(one.name, one.leaf.account_id)
            for key in self._names[leaf].items():
                self._used[key] = self._used.get(key, 0.0) + used
        for level, windows in levels.items():
            self._used["level", level] = weighed(windows)

    def barred(self, batch: Waiting, *, others_wait: bool) -> tuple[str, ...]:
        """The caps that one more job of the batch would exceed, as sentences."""
        if not self._targets:
            return ()
        keys = {**self._names.get(batch.leaf, {}), "level": str(batch.level)}
        found = []
        for section, name in keys.items():
            target: Target | None = target_for(self._targets, section, name)
            used = self._used.get((section, name), 0.0)
            said = over_cap(
                target, used=used, delivered=self._delivered, request=batch.job_flop, others_wait=others_wait
            )
            if said is not None:
                found.append(f"{section} {name}: {said}")
        return tuple(found)

    def _names_of(self, user: str, account_id: AccountId) -> dict[str, str]:
        account = self._accounts[account_id]
        group = account
        while group.parent_id is not None and self._accounts[group.parent_id].parent_id is not None:
            group = self._accounts[group.parent_id]
        return {"user": user, "group": group.name, "account": account.name}
