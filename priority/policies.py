"""Whose batch goes first, and why? Pure.

A policy is a scheme of terms per service level. It turns what is known of a batch into an order key, (tier, key),
smaller first and within equal keys the smaller batch id, and into the breakdown that explains it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from domain.bounds import Bound
from domain.errors import InvalidInputError
from domain.ordering import BatchFacts, Breakdown, ServiceLevel
from domain.ordering_settings import OrderingSettings
from priority.components import components, parse_components
from priority.equal_access import equal_access
from priority.moment import Moment
from priority.multifactor import MultifactorWeights, multifactor
from priority.scheme import LARGEST, Scheme, Term, explain, scheme

UNPAID_TIER = 100  # behind the tiers of all queues
FURTHEST = Bound(-LARGEST, LARGEST)  # a term that is out of it counts as unknown, and 0 is the first place


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy with its weights: the scheme of each service level."""

    name: str
    schemes: Mapping[ServiceLevel, Scheme]

    def scheme_of(self, facts: BatchFacts) -> Scheme:
        return self.schemes[facts.level]


@dataclass(frozen=True, slots=True)
class OrderKey:
    """A batch's place in the queue: (tier, key), smaller first, and why."""

    tier: int
    key: float
    because: str
    breakdown: Breakdown


def logical_time(_settings: OrderingSettings) -> Mapping[ServiceLevel, Scheme]:
    """The batch with the least logical end time first; one beyond all measure comes last."""
    return _one_term("logical_time", "logical end time", lambda facts, _: FURTHEST.nearest(facts.logical_end_at))


def fifo(_settings: OrderingSettings) -> Mapping[ServiceLevel, Scheme]:
    """The batch that was submitted first."""
    return _one_term("fifo", "submitted at", lambda facts, _: facts.submitted_at)


def _multifactor(settings: OrderingSettings) -> Mapping[ServiceLevel, Scheme]:
    weights = MultifactorWeights(
        wait=settings.wait_weight,
        fairshare=settings.fairshare_weight,
        qos=settings.level_weight,
        queue=settings.queue_weight,
        size=settings.size_weight,
        user=settings.user_weight,
        max_wait_s=settings.max_wait_s,
        fairshare_by_rank=settings.fairshare == "rank",
        favour_small=settings.size_favours == "small",
    )
    return dict.fromkeys(ServiceLevel, multifactor(weights))


def _components(settings: OrderingSettings) -> Mapping[ServiceLevel, Scheme]:
    parameters = parse_components(
        settings.components,
        xf_min_s=settings.xfactor_min_s,
        target_wait_s=settings.target_wait_s or None,
        target_xf=settings.target_xfactor or None,
    )
    return {level: components(parameters, level) for level in ServiceLevel}


def _equal_access(settings: OrderingSettings) -> Mapping[ServiceLevel, Scheme]:
    by_account = settings.equal_among == "accounts"
    return dict.fromkeys(ServiceLevel, equal_access(by_account=by_account, bypass_gain_pe=settings.bypass_weight))


POLICIES: Mapping[str, Callable[[OrderingSettings], Mapping[ServiceLevel, Scheme]]] = MappingProxyType(
    {
        "logical_time": logical_time,
        "multifactor": _multifactor,
        "components": _components,
        "equal_access": _equal_access,
        "fifo": fifo,
    }
)


def policy_of(settings: OrderingSettings) -> Policy:
    """The policy the settings choose, with its weights. Raises InvalidInputError for another name or wrong weights.

    >>> policy_of(OrderingSettings()).name
    'logical_time'
    """
    if settings.policy not in POLICIES:
        raise InvalidInputError("ordering.policy", "one of " + ", ".join(POLICIES), settings.policy)
    return Policy(settings.policy, POLICIES[settings.policy](settings))


def tier_of(scheme: Scheme, facts: BatchFacts, moment: Moment) -> int:
    """Strict tiers come before every number: the queue's under equal access; over a soft limit is one lower.

    What is charged nothing comes after everything, under every policy.

    >>> two = Moment(0.0, queue_tiers={"express": 0, "normal": 1})
    >>> facts = BatchFacts(1, 1, 1, 0.0, soft_limits=("2 of 1 jobs in progress",))
    >>> tier_of(equal_access(), facts, two)
    3
    """
    tier = moment.queue_tiers.get(facts.queue, 0) if scheme.with_tiers else 0
    return 2 * tier + (1 if facts.soft_limits else 0) + (UNPAID_TIER if facts.unpaid else 0)


def order_key(policy: Policy, facts: BatchFacts, moment: Moment) -> OrderKey:
    """One batch's order key and its breakdown: key = -total, so that a higher priority goes first.

    >>> facts = BatchFacts(1, 1, 1, 100.0, logical_end_at=700.0)
    >>> order_key(policy_of(OrderingSettings()), facts, Moment(100.0)).key
    700.0
    """
    scheme = policy.scheme_of(facts)
    breakdown = explain(scheme, facts, moment, tier=tier_of(scheme, facts, moment))
    return OrderKey(breakdown.tier, 0.0 - breakdown.total, _because(breakdown), breakdown)


def _because(breakdown: Breakdown) -> str:
    """The terms in a line, the largest first.

    >>> facts = BatchFacts(1, 1, 1, 100.0)
    >>> order_key(policy_of(OrderingSettings(policy="fifo")), facts, Moment(100.0)).because
    'submitted at 100'
    """
    terms = sorted(breakdown.components, key=lambda one: -abs(one.points))
    if len(terms) == 1 and terms[0].weight == -1.0 and terms[0].value is not None:
        return f"{terms[0].name} {terms[0].value:.0f}"
    return ", ".join(f"{one.name} {one.points:+.6g}" for one in terms if one.points) or "no term has points"


def _one_term(policy: str, name: str, measure: Callable[[BatchFacts, Moment], float]) -> Mapping[ServiceLevel, Scheme]:
    return dict.fromkeys(ServiceLevel, scheme(policy, (Term(name, name, "instant", -1.0, measure),)))
