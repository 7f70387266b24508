"""A batch's place in logical time, by the worked table of docs/ordering.md."""

from __future__ import annotations

import doctest

import pytest

from domain.errors import InvalidInputError
from domain.units import DAY_S, Flop, FlopPerSecond, Instant
from priority import logical_time
from priority.logical_time import LogicalTimes, charge_batch
from tests.facts import states

POOL = FlopPerSecond(1e12)
SHARES = {"U": 0.5, "V": 0.25, "W": 0.25}
# t in days, submitter, R in days: batches B1 to B5
SUBMISSIONS = [(0.0, "U", 2.0), (0.0, "V", 2.0), (0.0, "W", 0.25), (0.5, "U", 1.0), (0.5, "V", 0.1)]


def days(at: float) -> Instant:
    return Instant(at * DAY_S)


def submitted(rule: str) -> list[LogicalTimes]:
    """The five batches in sequence, with each submitter's logical time carried over."""
    logical_at = dict.fromkeys(SHARES, Instant(0.0))
    placed = []
    for at, submitter, whole_pool in SUBMISSIONS:
        times = charge_batch(
            logical_at=logical_at[submitter],
            now=days(at),
            batch_flop=Flop(whole_pool * DAY_S * POOL),
            pool_flop_per_s=POOL,
            share_fraction=SHARES[submitter],
            rule=rule,
        )
        logical_at[submitter] = times.submitter_logical_at
        placed.append(times)
    return placed


@pytest.mark.parametrize(
    ("rule", "ends", "order"),
    [
        ("design", [2.0, 2.0, 0.25, 5.0, 8.1], [3, 1, 2, 4, 5]),  # B1 and B2 tied
        ("wfq", [4.0, 8.0, 1.0, 6.0, 8.4], [3, 1, 4, 2, 5]),  # B4 passes B2
    ],
)
def test_the_worked_table(rule: str, ends: list[float], order: list[int]) -> None:
    placed = submitted(rule)
    assert [times.logical_end_at / DAY_S for times in placed] == pytest.approx(ends)
    assert sorted(range(1, 6), key=lambda n: (placed[n - 1].logical_end_at, n)) == order


@pytest.mark.parametrize("rule", ["design", "wfq"])
def test_the_submitters_clocks_are_those_of_the_worked_table(rule: str) -> None:
    placed = submitted(rule)
    assert [times.logical_start_at / DAY_S for times in placed] == pytest.approx([0.0, 0.0, 0.0, 4.0, 8.0])
    assert [times.submitter_logical_at / DAY_S for times in placed] == pytest.approx([4.0, 8.0, 1.0, 6.0, 8.4])
    assert [times.charged_s / DAY_S for times in placed] == pytest.approx([4.0, 8.0, 1.0, 2.0, 0.4])


def charge(**changes: float | str) -> LogicalTimes:
    arguments = {
        "logical_at": 0.0,
        "now": 0.0,
        "batch_flop": 1e15,
        "pool_flop_per_s": 1e12,
        "share_fraction": 0.5,
        **changes,
    }
    return charge_batch(**arguments)  # type: ignore[arg-type]  # plain numbers stand for their units here


def test_unused_share_is_not_saved_up() -> None:
    assert charge(logical_at=100.0, now=5000.0).logical_start_at == 5000.0


def test_an_unknown_pool_is_taken_as_a_teraflop_per_second() -> None:
    assert charge(pool_flop_per_s=0.0) == charge(pool_flop_per_s=1e12)


def test_a_submitter_without_shares_has_a_finite_place() -> None:
    times = charge(share_fraction=0.0, rule="wfq")
    assert times.logical_end_at == pytest.approx(1e9)  # 1000 s at a millionth


def test_splitting_a_batch_is_never_faster_under_design() -> None:
    whole = charge(batch_flop=4e15)
    logical_at = 0.0
    for _ in range(4):
        part = charge(batch_flop=1e15, logical_at=logical_at)
        logical_at = part.submitter_logical_at
    assert part.logical_end_at > whole.logical_end_at
    assert part.submitter_logical_at == whole.submitter_logical_at


def test_an_unknown_rule_names_its_setting() -> None:
    with states(InvalidInputError, "ordering.let_rule:", "design, wfq", "got 'lifo'"):
        charge(rule="lifo")


@pytest.mark.parametrize(
    ("field", "value"),
    [("batch_flop", -1.0), ("batch_flop", float("nan")), ("pool_flop_per_s", float("inf")), ("share_fraction", 1.5)],
)
def test_numbers_without_sense_are_named(field: str, value: float) -> None:
    with pytest.raises(InvalidInputError, match=f"{field}: expected"):
        charge(**{field: value})


def test_examples_hold() -> None:
    assert doctest.testmod(logical_time).failed == 0
