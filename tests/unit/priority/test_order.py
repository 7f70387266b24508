"""The order of all batches."""

from __future__ import annotations

import math
from dataclasses import replace

from domain.ordered_work import LeafStanding
from domain.ordering import BatchFacts, QueueClock, total_of
from domain.ordering_settings import OrderingSettings
from domain.units import AccountId, BatchId, Instant, Seconds, SubmitterId
from priority.order import BatchOrder, Place
from priority.policies import Policy, policy_of
from priority.scheme import PolicyContext

NOW = Instant(1_000.0)
ADA, BOB = (SubmitterId(1), AccountId(1)), (SubmitterId(2), AccountId(1))


def facts(batch_id: int, leaf: tuple[SubmitterId, AccountId] = ADA, **changes: object) -> BatchFacts:
    values = {"submitted_at": Instant(100.0), **changes}
    return BatchFacts(BatchId(batch_id), *leaf, **values)  # type: ignore[arg-type]  # by name


def policy(name: str, **settings: object) -> Policy:
    return policy_of(replace(OrderingSettings(policy=name), **settings))  # type: ignore[arg-type]  # by name


def moment(ada: float, bob: float, rank: tuple[float, float] = (1.0, 0.5)) -> PolicyContext:
    return PolicyContext(NOW, {ADA: LeafStanding(ada, rank[0]), BOB: LeafStanding(bob, rank[1])})


def ids(places: list[Place]) -> list[int]:
    return [place.batch_id for place in places]


def sorted_as_stored(places: list[Place]) -> list[int]:
    return [place.batch_id for place in sorted(places, key=lambda one: (one.tier, one.key, one.batch_id))]


def test_the_under_served_submitter_goes_first() -> None:
    order = BatchOrder(policy("multifactor"), [facts(1), facts(2, BOB)], moment(ada=0.2, bob=0.8))

    assert ids(order.places) == [2, 1]


def test_a_charge_puts_its_submitter_behind() -> None:
    batches = [facts(1), facts(2, BOB), facts(3)]

    assert ids(BatchOrder(policy("multifactor"), batches, moment(ada=0.8, bob=0.5)).places) == [1, 3, 2]
    assert ids(BatchOrder(policy("multifactor"), batches, moment(ada=0.3, bob=0.5)).places) == [2, 1, 3]


def test_the_total_of_a_place_is_the_sum_of_its_breakdown() -> None:
    batches = [facts(n, (ADA, BOB)[n % 2], user_priority=-n, clock=QueueClock(Seconds(77.7 * n))) for n in range(1, 9)]
    for name in ("multifactor", "components", "equal_access"):
        order = BatchOrder(
            policy(name, components="QUEUETIMEWEIGHT=0.1 USERPRIOWEIGHT=1 SERVICECAP=1"), batches, moment(0.1, 0.7)
        )
        for place in order.places:
            breakdown = order.breakdown(place.batch_id)
            assert breakdown.total == place.total
            assert total_of(one.points for one in breakdown.components) == place.total


def test_ties_break_by_rank_submission_id() -> None:
    batches = [
        facts(1, BOB),
        facts(2, clock=QueueClock(Seconds(0.0), Instant(900.0))),
        facts(3, clock=QueueClock(Seconds(0.0), Instant(800.0))),
        facts(4, BOB),
    ]
    order = BatchOrder(policy("multifactor", wait_weight=0.0), batches, moment(0.5, 0.5))

    assert ids(order.places) == [3, 2, 1, 4]
    assert sorted_as_stored(order.places) == [3, 2, 1, 4]
    assert math.isclose(order.places[0].key, order.places[-1].key)


def test_nothing_to_order_is_an_empty_order() -> None:
    order = BatchOrder(policy("components"), [], PolicyContext(NOW))

    assert order.places == []
