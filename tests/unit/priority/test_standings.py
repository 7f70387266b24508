"""Standings of submitters, by tree and by windows."""

from __future__ import annotations

from domain.batches import Account
from domain.ordering import ServiceLevel
from domain.ordering_settings import OrderingSettings
from domain.units import DAY_S, AccountId, Instant, SubmitterId
from priority.fair_share import Leaf
from priority.standings import LeafStandings, Submitting, standings

NOW = Instant(20.5 * DAY_S)  # in window 10 of two days each
ROOT, STUART, TEAM = (AccountId(n) for n in (1, 2, 3))
ACCOUNTS = [Account(ROOT, "root"), Account(STUART, "stuart", ROOT), Account(TEAM, "team", STUART)]


def submitting(number: int, name: str, windows: dict[int, float], account: AccountId = TEAM) -> Submitting:
    leaf = Leaf(SubmitterId(number), account, 1.0, sum(windows.values()))
    return Submitting(leaf, name, windows, held_pe=2.0)


def made(targets: str, *every: Submitting, **settings: float) -> LeafStandings:
    chosen = OrderingSettings(targets=targets, **settings)  # type: ignore[arg-type]  # by name
    return standings(ACCOUNTS, every, chosen, now=NOW, level_windows={ServiceLevel.EXPEDITE: {10: 1.0}})


def test_users_topmost_groups_and_accounts_have_their_own_deltas() -> None:
    ada, bob = submitting(1, "ada", {10: 3.0}), submitting(2, "bob", {10: 1.0}, ROOT)
    found = made("user:DEFAULT=50 group:stuart=80 account:team=70+ level:expedite=20", ada, bob)
    one = found.leaves[SubmitterId(1), TEAM]

    assert (one.user_delta, one.group_delta, one.account_delta) == (-25.0, 5.0, 0.0)
    assert found.levels[ServiceLevel.EXPEDITE] == -5.0
    assert found.held_by_account == {TEAM: 2.0, ROOT: 2.0}


def test_older_windows_count_less_and_those_too_old_nothing() -> None:
    ada, bob = submitting(1, "ada", {9: 10.0, 0: 1e9}), submitting(2, "bob", {10: 5.0})
    found = made("user:DEFAULT=50", ada, bob, window_decay_factor=0.5)

    assert found.leaves[SubmitterId(1), TEAM].user_delta == 0.0  # 10 * 0.5 of 5 + 10 * 0.5


def test_nothing_delivered_leaves_the_component_out() -> None:
    found = made("user:DEFAULT=50", submitting(1, "ada", {}))

    assert found.leaves[SubmitterId(1), TEAM].user_delta == 0.0


def test_without_targets_there_are_no_deltas() -> None:
    assert made("", submitting(1, "ada", {10: 3.0})).levels == {ServiceLevel.EXPEDITE: 0.0}
