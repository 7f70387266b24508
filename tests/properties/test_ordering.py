"""Any batch has a position in the order, and a breakdown that adds up."""

from __future__ import annotations

import json
import math
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from domain.batches import Account
from domain.ordered_work import LeafStanding
from domain.ordering import BatchFacts, QueueClock, Request, ServiceLevel, total_of
from domain.ordering_settings import COMPONENTS, SUBCOMPONENTS, OrderingSettings
from domain.units import AccountId, BatchId, Flop, Instant, Seconds, SubmitterId
from domain.usage import Amounts, DecayedUsage
from priority.charging import QUEUES
from priority.displays import Format, shown, verbose
from priority.fair_share import Leaf, fair_shares
from priority.logical_time import charge_batch
from priority.order import BatchOrder
from priority.policies import POLICIES, Policy, policy_of
from priority.scheme import PolicyContext
from priority.standings import Submitting, Target, TargetMode, delta, standings, used_fraction, window_of

NOW = Instant(1e9)
amounts = st.sampled_from([0.0, 1e-300, 1.0, 7.0]) | st.floats(0, 1e18)
weights = st.sampled_from([0.0, 1.0, -1.0, 1e5]) | st.floats(-1e6, 1e6)
maybe = st.none() | st.floats(allow_nan=True, allow_infinity=True)
requests = st.builds(Request, amounts, amounts, amounts, st.just(()) | st.just((("NVIDIA", 1.0),)))
clocks = st.builds(QueueClock, st.floats(0, 1e9), st.none() | st.floats(0, 2e9))
facts = st.builds(
    BatchFacts,
    st.integers(1, 10_000),
    st.integers(1, 5),
    st.integers(1, 2),
    st.floats(0, 2e9),
    logical_end_at=st.floats(0, 4e9),
    queue=st.sampled_from([*QUEUES, "unheard of"]),
    level=st.sampled_from(list(ServiceLevel)),
    user_priority=st.integers(-1024, 1023),
    clock=clocks,
    deadline_at=st.none() | st.floats(0, 2e9),
    request=requests,
    job_runtime_s=st.none() | amounts,
    batch_flop=st.none() | amounts,
    bypassed=st.integers(0, 1000),
    soft_limits=st.sampled_from([(), ("over",)]),
)
standing = st.builds(LeafStanding, maybe, st.none() | st.floats(0, 1), maybe, maybe, maybe, maybe, amounts)
moments = st.builds(
    PolicyContext,
    st.just(NOW),
    st.dictionaries(st.tuples(st.integers(1, 5), st.integers(1, 2)), standing),
    requests,
    amounts,
    amounts,
    st.sampled_from([{}, {one.name: one.tier for one in QUEUES.values()}]),
    st.sampled_from([{}, {one.name: one.priority for one in QUEUES.values()}]),
)
words = st.lists(
    st.builds(
        "{}{}={:.3f}".format,
        st.sampled_from([*COMPONENTS, *SUBCOMPONENTS]),
        st.sampled_from(["WEIGHT", "CAP"]),
        st.floats(0, 1e6),
    ),
    max_size=12,
)
policies = st.builds(
    lambda name, wait, share, level, queue, size, user, components: policy_of(
        OrderingSettings(
            policy=name,
            wait_weight=wait,
            fairshare_weight=share,
            level_weight=level,
            queue_weight=queue,
            size_weight=size,
            user_weight=abs(user),
            components=" ".join(components),
        )
    ),
    st.sampled_from(sorted(POLICIES)),
    *([weights] * 6),
    words,
)


@given(policies, facts, moments)
def test_parts_sum_to_the_total_and_nothing_is_infinite(
    policy: Policy, batch: BatchFacts, moment: PolicyContext
) -> None:
    breakdown = policy.breakdown(batch, moment)

    assert math.isfinite(breakdown.total)
    assert breakdown.total == total_of(one.points for one in breakdown.components)
    assert all(math.isfinite(one.points) for one in breakdown.components)
    json.dumps(breakdown.as_record(), allow_nan=True)
    for layout in Format:
        shown([breakdown], layout)
    verbose(breakdown)


@given(policies, st.lists(facts, max_size=12, unique_by=lambda one: one.batch_id), moments, st.randoms())
@settings(max_examples=60)
def test_order_is_total_repeatable_and_by_stored_keys(
    policy: Policy, batches: list[BatchFacts], moment: PolicyContext, chance: object
) -> None:
    places = BatchOrder(policy, batches, moment).places
    shuffled = list(batches)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]  # random.Random

    assert BatchOrder(policy, shuffled, moment).places == places
    assert sorted(places, key=lambda one: (one.tier, one.key, one.batch_id)) == places
    for place in places:
        assert place.total == BatchOrder(policy, batches, moment).breakdown(place.batch_id).total


@given(st.lists(st.tuples(amounts, amounts, st.integers(1, 3)), min_size=1, max_size=12))
def test_fair_shares_are_fractions(members: list[tuple[float, float, int]]) -> None:
    accounts = [Account(AccountId(0), "root")]
    accounts += [Account(AccountId(n), str(n), AccountId(0), float(n - 1)) for n in (1, 2, 3)]
    leaves = [Leaf(SubmitterId(n), AccountId(account), s, u) for n, (s, u, account) in enumerate(members)]
    for share in fair_shares(accounts, leaves).leaves.values():
        assert 0.0 <= share.ratio <= 1.0
        assert share.rank is not None and 0.0 < share.rank <= 1.0
        assert not math.isnan(share.level_weight)


used = st.just(0.0) | st.floats(1e-6, 1e15)  # FLOP and seconds: smaller ones round to nothing


@given(st.floats(1, 1e6), used, used, st.booleans(), facts)
def test_under_served_never_ranks_below_over_served(
    shares: float, one: float, other: float, by_rank: bool, batch: BatchFacts
) -> None:
    leaves = [Leaf(SubmitterId(n), AccountId(1), shares, usage) for n, usage in ((1, one), (2, other))]
    found = fair_shares([Account(AccountId(1), "lab")], leaves).leaves
    standings = {leaf: LeafStanding(share.ratio, share.rank) for leaf, share in found.items()}
    batches = [
        replace(batch, batch_id=BatchId(n), submitter_id=SubmitterId(n), account_id=AccountId(1)) for n in (1, 2)
    ]
    chosen = OrderingSettings(policy="multifactor", fairshare="rank" if by_rank else "ratio")
    places = BatchOrder(policy_of(chosen), batches, PolicyContext(NOW, standings)).places

    less = 1 if one < other else 2
    if abs(one - other) > 1e-9 * max(one, other):
        assert places[0].batch_id == less


SERVED = {  # every fairness policy, with the setting that makes it depend on service
    "ratio": {"policy": "multifactor"},
    "rank": {"policy": "multifactor", "fairshare": "rank"},
    "target": {"policy": "components", "components": "QUEUETIMEWEIGHT=0 FSUSERWEIGHT=1", "targets": "user:DEFAULT=50"},
    "ceiling": {"policy": "components", "components": "FSUSERWEIGHT=1", "targets": "user:DEFAULT=50-"},
    "held": {"policy": "equal_access"},
    "let": {"policy": "logical_time"},
    "wfq": {"policy": "logical_time", "let_rule": "wfq"},
}


@given(st.sampled_from(sorted(SERVED)), st.floats(0, 1e15), st.floats(0, 1e15), st.integers(1, 9), facts)
def test_of_equals_who_was_served_more_never_goes_first(
    how: str, one: float, other: float, shares: int, batch: BatchFacts
) -> None:
    """Usage, running work and work submitted before are `one` and `other`; all else is equal."""
    chosen, window = OrderingSettings(**SERVED[how]), window_of(NOW, OrderingSettings().window_s)  # type: ignore[arg-type]
    served = {1: one, 2: other}
    submitting = [
        Submitting(
            Leaf(SubmitterId(n), AccountId(1), float(shares), much), f"user{n}", {window: much}, held_pe=much / 1e13
        )
        for n, much in served.items()
    ]
    standing = standings([Account(AccountId(1), "lab")], submitting, chosen, now=NOW).leaves
    batches = [
        replace(
            batch,
            batch_id=BatchId(n),
            submitter_id=SubmitterId(n),
            account_id=AccountId(1),
            logical_end_at=_end_after(much, chosen.let_rule),
        )
        for n, much in served.items()
    ]

    first = BatchOrder(policy_of(chosen), batches, PolicyContext(NOW, standing)).places[0].batch_id

    assert served[first] <= min(one, other) * (1.0 + 1e-9) + 1.0


def _end_after(flop: float, rule: str) -> Instant:
    """Return the logical end of a batch behind another one with this much work."""
    logical_at, both = NOW, (Flop(flop), Flop(1e12))
    for batch_flop in both:
        times = charge_batch(
            logical_at=Instant(logical_at),
            now=NOW,
            batch_flop=batch_flop,
            pool_flop_per_s=1e9,
            share_fraction=0.5,
            rule=rule,
        )
        logical_at = times.submitter_logical_at
    return times.logical_end_at


@given(st.lists(st.tuples(amounts, st.floats(0, 1e6)), min_size=1, max_size=6), st.randoms(), st.floats(1, 1e6))
def test_decayed_usage_does_not_depend_on_the_order_of_charges(
    charges: list[tuple[float, float]], chance: object, half_life_s: float
) -> None:
    def used(every: list[tuple[float, float]]) -> float:
        usage = DecayedUsage()
        for amount, since in every:
            usage = usage.charged(Amounts(flop=amount), since=Instant(since), half_life_s=Seconds(half_life_s))
        return usage.read(Instant(1e6), Seconds(half_life_s)).flop

    shuffled = list(charges)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]  # random.Random
    assert math.isclose(used(charges), used(shuffled), rel_tol=1e-6, abs_tol=1e-9)


@given(st.lists(amounts, max_size=8), st.lists(amounts, max_size=8), st.floats(0, 1), st.sampled_from(list(TargetMode)))
def test_windows_give_finite_deltas_of_the_right_sign(
    used: list[float], total: list[float], decay: float, mode: TargetMode
) -> None:
    percent = 100.0 * used_fraction(used, total, decay=decay)
    found = delta(Target(20.0, mode), percent)

    assert math.isfinite(percent) and math.isfinite(found)
    assert found >= 0.0 or mode is not TargetMode.FLOOR
    assert found <= 0.0 or mode is not TargetMode.CEILING
