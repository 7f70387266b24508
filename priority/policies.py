"""Whose batch goes first, and why? Pure.

A policy turns what is known of a batch into an order key. The key lives on the batch alone; smaller
keys go first, and within equal keys the smaller batch id.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from domain.errors import InvalidInputError
from domain.units import Instant


@dataclass(frozen=True, slots=True)
class OrderFacts:
    """What a policy knows of a batch. A smaller `tier` goes first whatever the policy says."""

    created_at: Instant
    logical_end_at: Instant
    tier: int = 0


@dataclass(frozen=True, slots=True)
class OrderKey:
    """A batch's place in the queue: (tier, key), smaller first, and the terms that explain it."""

    tier: int
    key: float
    because: str


Policy = Callable[[OrderFacts], OrderKey]


def logical_time(facts: OrderFacts) -> OrderKey:
    """The batch with the least logical end time first.

    >>> logical_time(OrderFacts(Instant(100.0), Instant(700.0))).because
    'logical end time 700, 600 s after its submission'
    """
    lead_s = facts.logical_end_at - facts.created_at
    because = f"logical end time {facts.logical_end_at:.0f}, {lead_s:.0f} s after its submission"
    return OrderKey(facts.tier, facts.logical_end_at, because)


def fifo(facts: OrderFacts) -> OrderKey:
    """The batch that was submitted first.

    >>> fifo(OrderFacts(Instant(100.0), Instant(700.0))).because
    'submitted at 100'
    """
    return OrderKey(facts.tier, facts.created_at, f"submitted at {facts.created_at:.0f}")


POLICIES: Mapping[str, Policy] = MappingProxyType({"logical_time": logical_time, "fifo": fifo})


def order_key(policy: str, facts: OrderFacts) -> OrderKey:
    """The batch's order key under the policy of that name. Raises InvalidInputError for any other name.

    >>> order_key("logical_time", OrderFacts(Instant(100.0), Instant(700.0))).key
    700.0
    """
    if policy not in POLICIES:
        raise InvalidInputError("ordering.policy", "one of " + ", ".join(sorted(POLICIES)), policy)
    return POLICIES[policy](facts)
