"""Measures the CPU time of the ordering policies without a database.

Submitters have shares and usage in a tree of accounts, batches have all sizes and ages, and each policy gives weight to
all of its terms. A full ordering computes the fair-share tree, every batch's key and the sort. `explain_us` is the cost
of one stored breakdown.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from collections.abc import Callable

from domain.batches import Account
from domain.ordered_work import LeafStanding
from domain.ordering import BatchFacts, QueueClock, Request, ServiceLevel
from domain.ordering_settings import SUBCOMPONENTS, OrderingSettings
from domain.units import DAY_S, AccountId, BatchId, Flop, Instant, Seconds, SubmitterId
from priority.fair_share import Leaf, fair_shares
from priority.order import BatchOrder
from priority.policies import POLICIES, Policy, policy_of
from priority.scheme import PolicyContext

NOW = Instant(1_800_000_000.0)
SEED = 20
REPEATS = 7
GROUPS = 12
REFERENCE = Request(8.0, 16e9, 100e9)
SETTINGS = {
    "size_weight": 1_000.0,
    "components": " ".join(f"{name}WEIGHT=1" for name in SUBCOMPONENTS) + " XFACTORCAP=100 expedite.XFACTORWEIGHT=10",
}
QUEUES = {"express": (0, 1.0), "normal": (1, 0.5), "bonus": (2, 0.0)}


class Project:
    """Accounts, submitters and batches in the form that the background process reads."""

    def __init__(self, batches: int, submitters: int) -> None:
        chance = random.Random(SEED)
        self.accounts = [Account(AccountId(1), "root")]
        self.accounts += [
            Account(AccountId(n), f"a{n}", AccountId(1), chance.randint(1, 9)) for n in range(2, GROUPS + 2)
        ]
        self.leaves = [_leaf(SubmitterId(n + 1), chance) for n in range(submitters)]
        self.batches = [_batch(BatchId(n + 1), self.leaves[n % submitters], chance) for n in range(batches)]

    def moment(self) -> PolicyContext:
        """Return the standings of all submitters, with the fair-share tree."""
        shares = fair_shares(self.accounts, self.leaves).leaves
        standings = {
            leaf: LeafStanding(
                share.ratio, share.rank, 20.0 - 100.0 * share.usage_fraction, 1.0, 2.0, 0.5, share.usage % 7
            )
            for leaf, share in shares.items()
        }
        return PolicyContext(
            NOW,
            standings,
            REFERENCE,
            largest_pe=32.0,
            pool_flop_per_s=1e13,
            queue_tiers={name: tier for name, (tier, _) in QUEUES.items()},
            queue_numbers={name: number for name, (_, number) in QUEUES.items()},
        )


def _leaf(submitter_id: SubmitterId, chance: random.Random) -> Leaf:
    account_id = AccountId(2 + submitter_id % GROUPS)
    return Leaf(submitter_id, account_id, float(chance.randint(1, 9)), chance.choice([0.0, 1e15 * chance.random()]))


def _batch(batch_id: BatchId, leaf: Leaf, chance: random.Random) -> BatchFacts:
    submitted_at = Instant(NOW - chance.random() * 30 * DAY_S)
    return BatchFacts(
        batch_id,
        leaf.submitter_id,
        leaf.account_id,
        submitted_at,
        logical_end_at=Instant(submitted_at + chance.random() * DAY_S),
        queue=chance.choice(list(QUEUES)),
        level=chance.choice(list(ServiceLevel)),
        user_priority=-chance.randint(0, 1024),
        clock=QueueClock(Seconds(0.0), submitted_at),
        deadline_at=chance.choice([None, Instant(NOW + DAY_S)]),
        request=Request(float(chance.randint(1, 16)), chance.choice([1e9, 4e9, 16e9])),
        job_runtime_s=Seconds(chance.random() * 10_000.0),
        batch_flop=Flop(chance.random() * 1e16),
        unsent=chance.randint(1, 10_000),
        bypassed=chance.randint(0, 3),
    )


def cpu_ms(action: Callable[[], object]) -> float:
    """Return the median CPU time of an action in milliseconds."""
    times = []
    for _ in range(REPEATS):
        began = time.process_time_ns()
        action()
        times.append((time.process_time_ns() - began) / 1e6)
    return statistics.median(times)


def policy_named(name: str) -> Policy:
    return policy_of(OrderingSettings(policy=name, size_weight=1_000.0, components=str(SETTINGS["components"])))


def measured(project: Project, policy: Policy) -> dict[str, float]:
    """Return one policy's figures."""
    order = BatchOrder(policy, project.batches, project.moment())

    ids = [facts.batch_id for facts in project.batches[:1000]]
    return {
        "full_ms": round(cpu_ms(lambda: BatchOrder(policy, project.batches, project.moment())), 2),
        "explain_us": round(cpu_ms(lambda: [order.breakdown(batch_id).as_record() for batch_id in ids]), 2),
    }


def reference_ms() -> float:
    """Time a fixed operation of the same kind: 100,000 changes of a small dictionary, and a sort."""

    def work() -> None:
        found: dict[int, float] = {}
        for number in range(100_000):
            found[number % 9973] = found.get(number % 89, 0.0) + number
        sorted((-value, number) for number, value in found.items())

    return cpu_ms(work)


def measure(batches: int, submitters: int) -> dict[str, object]:
    """Measure every policy, in milliseconds of CPU."""
    project = Project(batches, submitters)
    answers: dict[str, object] = {"batches": batches, "submitters": submitters, "seed": SEED}
    answers["reference_ms"] = round(reference_ms(), 2)
    answers["fair_share_tree_ms"] = round(cpu_ms(lambda: fair_shares(project.accounts, project.leaves)), 2)
    policies = {}
    for name in POLICIES:
        print(f"{name} ...", file=sys.stderr)
        policies[name] = measured(project, policy_named(name))
    answers["policies"] = policies
    answers["full_ms"] = max(one["full_ms"] for one in policies.values())
    full = policies["multifactor"]["full_ms"]
    answers["reference_ratio"] = round(full / reference_ms(), 3)
    return answers
