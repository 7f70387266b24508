"""Whose batch goes first."""

from __future__ import annotations

import doctest

import pytest

from domain.errors import InvalidInputError
from domain.settings import Settings
from domain.units import Instant
from priority import policies
from priority.policies import POLICIES, OrderFacts, OrderKey, order_key

EARLY_AND_LONG = OrderFacts(created_at=Instant(100.0), logical_end_at=Instant(900.0))
LATE_AND_SHORT = OrderFacts(created_at=Instant(200.0), logical_end_at=Instant(300.0))


def placed(key: OrderKey) -> tuple[int, float]:
    return key.tier, key.key


def test_logical_time_lets_the_short_batch_pass() -> None:
    assert placed(order_key("logical_time", LATE_AND_SHORT)) < placed(order_key("logical_time", EARLY_AND_LONG))


def test_fifo_lets_nobody_pass() -> None:
    assert placed(order_key("fifo", EARLY_AND_LONG)) < placed(order_key("fifo", LATE_AND_SHORT))


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_a_smaller_tier_goes_first_under_every_policy(policy: str) -> None:
    first = OrderFacts(Instant(9e9), Instant(9e9), tier=-1)
    assert placed(order_key(policy, first)) < placed(order_key(policy, EARLY_AND_LONG))


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_a_key_says_why(policy: str) -> None:
    assert order_key(policy, EARLY_AND_LONG).because


def test_the_default_setting_is_a_policy() -> None:
    assert Settings().ordering.policy in POLICIES


def test_an_unknown_policy_names_its_setting() -> None:
    with pytest.raises(InvalidInputError, match=r"ordering\.policy: expected one of fifo, logical_time, got 'lifo'"):
        order_key("lifo", EARLY_AND_LONG)


def test_examples_hold() -> None:
    assert doctest.testmod(policies).failed == 0
