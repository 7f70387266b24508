"""The order of batches under each policy."""

from __future__ import annotations

from typing import Any

import pytest

from domain.errors import InvalidInputError
from domain.ordered_work import LeafStanding
from domain.ordering import BatchFacts, QueueClock, ServiceLevel
from domain.ordering_settings import OrderingSettings
from domain.settings import Settings
from domain.units import AccountId, BatchId, Instant, Seconds, SubmitterId
from priority.policies import POLICIES, policy_of
from priority.scheme import PolicyContext
from tests.facts import states

NOW = Instant(1_000.0)
MOMENT = PolicyContext(NOW, queue_tiers={"express": 0, "normal": 1}, queue_numbers={"express": 1.0, "normal": 0.5})


def facts(batch_id: int = 1, **changes: object) -> BatchFacts:
    values = {"submitted_at": Instant(100.0), "logical_end_at": Instant(900.0), **changes}
    return BatchFacts(BatchId(batch_id), SubmitterId(1), AccountId(1), **values)  # type: ignore[arg-type]  # by name


def placed(policy: str, batch: BatchFacts, moment: PolicyContext = MOMENT, **settings: object) -> tuple[int, float]:
    found = policy_of(OrderingSettings(policy=policy, **settings)).breakdown(batch, moment)  # type: ignore[arg-type]
    return found.tier, found.key


EARLY_AND_LONG = facts(logical_end_at=Instant(900.0))
LATE_AND_SHORT = facts(submitted_at=Instant(200.0), logical_end_at=Instant(300.0))


def test_logical_time_lets_the_short_batch_pass() -> None:
    assert placed("logical_time", LATE_AND_SHORT) < placed("logical_time", EARLY_AND_LONG)


def test_fifo_lets_no_batch_pass() -> None:
    assert placed("fifo", EARLY_AND_LONG) < placed("fifo", LATE_AND_SHORT)


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_batch_over_a_soft_limit_goes_last(policy: str) -> None:
    over = facts(soft_limits=("over",), submitted_at=Instant(0.0), logical_end_at=Instant(0.0))

    assert placed(policy, EARLY_AND_LONG) < placed(policy, over)


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_a_key_says_why(policy: str) -> None:
    breakdown = policy_of(OrderingSettings(policy=policy)).breakdown(EARLY_AND_LONG, MOMENT)

    assert breakdown.policy == policy
    assert breakdown.components
    assert breakdown.key == -breakdown.total


def test_the_default_setting_is_a_policy() -> None:
    assert Settings().ordering.policy in POLICIES


def test_an_unknown_policy_names_its_setting() -> None:
    with states(InvalidInputError, "ordering.policy:", *POLICIES, "got 'lifo'"):
        policy_of(OrderingSettings(policy="lifo"))


def test_expedite_beats_a_long_wait_and_standby_loses_to_all() -> None:
    waited = facts(clock=QueueClock(Seconds(1e9)))
    levels = [facts(level=level) for level in (ServiceLevel.EXPEDITE, ServiceLevel.NORMAL, ServiceLevel.STANDBY)]
    keys = [placed("multifactor", batch) for batch in levels]

    assert keys == sorted(keys)
    assert keys[0] < placed("multifactor", waited) < keys[1]


UNWEIGHED: dict[str, dict[str, object]] = {  # policies that give the service level no weight, with their settings
    "logical_time": {},
    "fifo": {},
    "equal_access": {},
    "components": {"components": "QUEUETIMEWEIGHT=1"},
    "multifactor": {"level_weight": 0.0},
}


@pytest.mark.parametrize("policy", UNWEIGHED)
def test_expedite_goes_first_where_no_term_weighs_it(policy: str) -> None:
    moment = PolicyContext(NOW, queue_tiers={"express": 0, "bonus": 9})
    batches = [
        facts(level=ServiceLevel.EXPEDITE, queue="bonus", submitted_at=Instant(500.0), soft_limits=("over",)),
        facts(queue="express", clock=QueueClock(Seconds(1e9))),
        facts(level=ServiceLevel.STANDBY, queue="express", clock=QueueClock(Seconds(1e9))),
        facts(unpaid=True),
    ]

    keys = [placed(policy, batch, moment, **UNWEIGHED[policy]) for batch in batches]

    assert keys == sorted(keys)
    assert len({tier for tier, _ in keys}) == len(keys)


@pytest.mark.parametrize("weights", ["QOSWEIGHT=10", "expedite.XFACTORWEIGHT=5", "CREDWEIGHT=-1 QOSWEIGHT=1"])
def test_a_weighed_service_level_is_no_tier(weights: str) -> None:
    assert placed("components", facts(level=ServiceLevel.EXPEDITE), components=weights)[0] == 0


def test_waiting_beyond_the_longest_wait_earns_no_more() -> None:
    at_most = facts(clock=QueueClock(Seconds(7 * 86400.0)))
    longer = facts(clock=QueueClock(Seconds(70 * 86400.0)))

    assert placed("multifactor", longer) == placed("multifactor", at_most)


def test_user_may_only_lower_own_batches() -> None:
    assert placed("multifactor", facts()) < placed("multifactor", facts(user_priority=-1))


def test_without_weights_the_multifactor_policy_has_no_opinion() -> None:
    weights = ("wait_weight", "fairshare_weight", "level_weight", "queue_weight", "user_weight")
    chosen: dict[str, Any] = {"policy": "multifactor", **dict.fromkeys(weights, 0.0)}
    off = policy_of(OrderingSettings(**chosen))

    assert [off.breakdown(batch, MOMENT).key for batch in (EARLY_AND_LONG, LATE_AND_SHORT)] == [0.0, 0.0]


def test_weights_of_a_service_level_add_to_the_global_ones() -> None:
    weights = "QUEUETIMEWEIGHT=0 XFACTORWEIGHT=100 expedite.XFACTORWEIGHT=1000"
    normal, expedite = facts(), facts(level=ServiceLevel.EXPEDITE)

    assert placed("components", normal, components=weights) == (0, -100.0)
    assert placed("components", expedite, components=weights) == (0, -1100.0)


def test_a_components_cap_takes_off_what_is_over_it_and_says_so() -> None:
    policy = policy_of(
        OrderingSettings(policy="components", components="SERVICECAP=50 SERVICEWEIGHT=2 USERPRIOWEIGHT=1")
    )
    batch = facts(clock=QueueClock(Seconds(6000.0)), user_priority=-20)
    breakdown = policy.breakdown(batch, MOMENT)

    assert breakdown.total == 100.0  # 2 * min(50, 100 minutes - 20)
    assert [(one.name, one.points) for one in breakdown.components] == [
        ("QUEUETIME", 200.0),
        ("USERPRIO", -40.0),
        ("SERVICE cap", -60.0),
    ]


def test_equal_access_prefers_least_work_in_progress() -> None:
    holding = PolicyContext(NOW, {(SubmitterId(1), AccountId(1)): LeafStanding(held_pe=8.0)})

    assert placed("equal_access", facts(), PolicyContext(NOW)) < placed("equal_access", facts(), holding)


def test_express_precedes_normal_for_any_work_in_progress() -> None:
    holding = PolicyContext(
        NOW, {(SubmitterId(1), AccountId(1)): LeafStanding(held_pe=1e6)}, queue_tiers=MOMENT.queue_tiers
    )

    assert placed("equal_access", facts(queue="express"), holding) < placed("equal_access", facts(), MOMENT)


def test_a_batch_passed_over_gains_under_equal_access() -> None:
    assert placed("equal_access", facts(bypassed=1)) < placed("equal_access", facts())


def test_what_is_not_known_counts_nothing_and_is_called_unknown() -> None:
    breakdown = policy_of(OrderingSettings(policy="multifactor")).breakdown(facts(), MOMENT)
    [fairshare] = [one for one in breakdown.components if one.name == "fairshare"]

    assert (fairshare.value, fairshare.points, fairshare.note) == (None, 0.0, "unknown")
