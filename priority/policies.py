"""Ordering policies, which determine the order of batches and explain it. Pure.

A policy has a scheme of terms for each service level. From the facts of a batch it computes an order key (tier, key),
smaller first (of equal keys, the smaller batch id), and the breakdown that explains it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from domain.bounds import Bound
from domain.errors import InvalidInputError
from domain.ordering import BatchFacts, Breakdown, ServiceLevel
from domain.ordering_settings import COMPONENTS, SUBCOMPONENTS, OrderingSettings
from domain.units import MINUTE_S
from priority.equal_access import equal_access
from priority.measures import batch_runtime_s, deadline_nearness, expansion_factor, queue_minutes, target_nearness
from priority.scheme import (
    LARGEST,
    UNKNOWN,
    Component,
    Measure,
    PolicyContext,
    Scheme,
    Term,
    explain,
    request_pe,
    scheme,
)

# ---- multifactor: six factors between 0 and 1, weighted and summed, as in Flux's multi-factor plugin. P = Ww * wait +
# Wq * qos + Wu * queue + Ws * size + Wr * user + Wf * fair-share. Only the user factor can be negative. A weight of 0
# removes a factor; if all weights are 0, all batches tie and are ordered by submission.

LEAST_USER_PRIORITY = -1024
LEVELS: Mapping[ServiceLevel, float] = {
    ServiceLevel.EXPEDITE: 1.0,
    ServiceLevel.NORMAL: 0.5,
    ServiceLevel.STANDBY: 0.0,
}


def multifactor(settings: OrderingSettings) -> Scheme:
    """Return the scheme with six factors. A total below 0 is displayed as 0.

    >>> facts = BatchFacts(1, 1, 1, submitted_at=0.0, user_priority=-512, level=ServiceLevel.EXPEDITE)
    >>> six = multifactor(OrderingSettings())
    >>> [(term.name, term.measure(facts, PolicyContext(0.0))) for term in six.own]
    [('wait', 0.0), ('level', 1.0), ('queue', 0.0), ('size', 1.0), ('user', -0.5)]
    """

    def waited(facts: BatchFacts, moment: PolicyContext) -> float:
        if settings.max_wait_s <= 0.0:
            return 1.0
        return min(1.0, facts.clock.waited_s(moment.now) / settings.max_wait_s)

    def sized(facts: BatchFacts, moment: PolicyContext) -> float:
        size = (
            min(1.0, request_pe(facts.request, moment.reference) / moment.largest_pe) if moment.largest_pe > 0 else 0.0
        )
        return 1.0 - size if settings.size_favours == "small" else size

    def served(facts: BatchFacts, moment: PolicyContext) -> float | None:
        standing = moment.standing_of(facts)
        return standing.fairshare_rank if settings.fairshare == "rank" else standing.fairshare_ratio

    return scheme(
        "multifactor",
        (
            Term(
                "wait",
                "wait",
                "s",
                settings.wait_weight,
                waited,
                raw=lambda facts, moment: facts.clock.waited_s(moment.now),
            ),
            Term("level", "level", "level", settings.level_weight, lambda facts, _: LEVELS[facts.level]),
            Term("queue", "queue", "number", settings.queue_weight, _queue_factor, raw=_queue_number),
            Term(
                "size",
                "size",
                "PE",
                settings.size_weight,
                sized,
                raw=lambda facts, now: request_pe(facts.request, now.reference),
            ),
            Term(
                "user", "user", "priority", settings.user_weight, _user_factor, raw=lambda facts, _: facts.user_priority
            ),
            Term("fairshare", "fairshare", "fraction", settings.fairshare_weight, served, shared=True),
        ),
        least=0.0,
    )


def _queue_number(facts: BatchFacts, moment: PolicyContext) -> float:
    return moment.queue_numbers.get(facts.queue, 0.0)


def _queue_factor(facts: BatchFacts, moment: PolicyContext) -> float:
    """Return the queue's number divided by the largest number of all queues."""
    largest = max(moment.queue_numbers.values(), default=0.0)
    return max(0.0, moment.queue_numbers.get(facts.queue, 0.0) / largest) if largest > 0.0 else 0.0


def _user_factor(facts: BatchFacts, _moment: PolicyContext) -> float:
    """Return the user priority, scaled from -1024..1023 to [-1, 1)."""
    return max(-1.0, min(1.0, facts.user_priority / -LEAST_USER_PRIORITY))


# ---- components: the sum of Moab's and Maui's components and sub-components. P = sum over components of Wc * min(Cc,
# sum of W * min(C, value)); caps are upper bounds only and apply before the weight. By default only QUEUETIME counts,
# which gives the order of submission. A service level's weights are added to the global ones. USAGE (CONSUMED,
# REMAINING, PERCENT) concerns instances in progress and is used only in priority/displacement.py.

MIB = 1024.0 * 1024.0
PARAMETER = re.compile(r"(?:([a-z]+)\.)?([A-Z]+?)(WEIGHT|CAP)=(.+)")


@dataclass(frozen=True, slots=True)
class ComponentWeights:
    """Weights and caps by name, such as "QUEUETIME" or "SERVICE", and additional weights for service levels.

    The default weight is 1 for components and QUEUETIME, otherwise 0.
    """

    weights: Mapping[str, float]
    caps: Mapping[str, float]
    extra: Mapping[ServiceLevel, Mapping[str, float]]


def parse_components(text: str) -> ComponentWeights:
    """Parse weights in Moab's notation: "SERVICEWEIGHT=10 XFACTORWEIGHT=100 XFACTORCAP=50 expedite.XFACTORWEIGHT=1000".

    Raises InvalidInputError for unknown names and invalid numbers.

    >>> parse_components("XFACTORWEIGHT=100 expedite.XFACTORWEIGHT=1000").extra[ServiceLevel.EXPEDITE]["XFACTOR"]
    1000.0
    """
    weights, caps = dict[str, float](), dict[str, float]()
    extra: dict[ServiceLevel, dict[str, float]] = {level: {} for level in ServiceLevel}
    for word in text.split():
        level, name, what, number = _parameter(word)
        if what == "CAP":
            caps[name] = number
        else:
            (weights if level is None else extra[level])[name] = number
    return ComponentWeights(weights, caps, extra)


def _parameter(word: str) -> tuple[ServiceLevel | None, str, str, float]:
    found = PARAMETER.fullmatch(word)
    known = found is not None and found[2] in {*COMPONENTS, *SUBCOMPONENTS} and found[1] in {None, *ServiceLevel}
    if found is None or not known or (found[1] and found[3] == "CAP"):
        raise InvalidInputError(
            "ordering.components", "NAME=NUMBER words, such as XFACTORWEIGHT=100 XFACTORCAP=50", word
        )
    try:
        number = float(found[4])
    except ValueError:
        raise InvalidInputError("ordering.components", "a number after the =", word) from None
    if not abs(number) <= 1e12:
        raise InvalidInputError("ordering.components", "a number from -1e12 to 1e12", word)
    return ServiceLevel(found[1]) if found[1] else None, found[2], found[3], number


def components(settings: OrderingSettings) -> Mapping[ServiceLevel, Scheme]:
    """Return the scheme for each service level. A target time or target expansion factor of 0 means no target.

    >>> sums = components(OrderingSettings(components="USERPRIOWEIGHT=2"))[ServiceLevel.NORMAL]
    >>> [(term.name, term.weight) for term in sums.own if term.weight]
    [('QUEUETIME', 1.0), ('USERPRIO', 2.0)]
    """
    given, measures = parse_components(settings.components), _measures(settings)
    return {level: _components_of(given, given.extra[level], measures) for level in ServiceLevel}


def _components_of(given: ComponentWeights, extra: Mapping[str, float], measures: Mapping[str, Measure]) -> Scheme:
    def weight(name: str, default: float) -> float:
        return given.weights.get(name, default) + extra.get(name, 0.0)

    terms = [
        Term(
            name,
            sub.component,
            sub.unit,
            weight(name, 1.0 if name == "QUEUETIME" else 0.0),
            measures[name],
            given.caps.get(name),
            shared=sub.component == "FS",
        )
        for name, sub in SUBCOMPONENTS.items()
    ]
    grouped = {name: Component(weight(name, 1.0), given.caps.get(name)) for name in COMPONENTS}
    return scheme("components", terms, components=grouped)


def _measures(settings: OrderingSettings) -> Mapping[str, Measure]:
    """Return the measure for each sub-component."""

    def runtime_s(facts: BatchFacts, moment: PolicyContext) -> float | None:
        return batch_runtime_s(facts.job_runtime_s, facts.batch_flop, moment.pool_flop_per_s)

    def xfactor(facts: BatchFacts, moment: PolicyContext) -> float:
        waited_s = facts.clock.waited_s(moment.now)
        return expansion_factor(
            waited_s=waited_s, runtime_s=runtime_s(facts, moment), least_runtime_s=settings.xfactor_min_s
        )

    def wait_target(facts: BatchFacts, moment: PolicyContext) -> float:
        minutes = settings.target_wait_s / MINUTE_S or None
        return target_nearness(minutes, queue_minutes(facts.clock.waited_s(moment.now)))

    def xf_target(facts: BatchFacts, moment: PolicyContext) -> float:
        return target_nearness(settings.target_xfactor or None, xfactor(facts, moment))

    return {
        "QUEUETIME": lambda facts, moment: queue_minutes(facts.clock.waited_s(moment.now)),
        "XFACTOR": xfactor,
        "DEADLINE": _deadline,
        "SPVIOLATION": lambda facts, _: 1.0 if facts.soft_limits else 0.0,
        "USERPRIO": lambda facts, _: facts.user_priority,
        "BYPASS": lambda facts, _: facts.bypassed,
        "TARGETQUEUETIME": wait_target,
        "TARGETXFACTOR": xf_target,
        "CLASS": lambda facts, moment: moment.queue_numbers.get(facts.queue, 0.0),
        "QOS": lambda facts, _: LEVELS[facts.level],
        "PROC": lambda facts, _: facts.request.cores,
        "MEM": lambda facts, _: facts.request.memory_bytes / MIB,
        "DISK": lambda facts, _: facts.request.disk_bytes / MIB,
        "PE": lambda facts, moment: request_pe(facts.request, moment.reference),
        "WALLTIME": lambda facts, _: facts.job_runtime_s,
        "FSUSER": lambda facts, moment: moment.standings.get(facts.leaf, UNKNOWN).user_delta,
        "FSGROUP": lambda facts, moment: moment.standings.get(facts.leaf, UNKNOWN).group_delta,
        "FSACCOUNT": lambda facts, moment: moment.standings.get(facts.leaf, UNKNOWN).account_delta,
        "FSQOS": lambda facts, moment: moment.level_deltas.get(facts.level, 0.0),
        "WCACCURACY": lambda facts, moment: moment.standings.get(facts.leaf, UNKNOWN).accuracy,
    }


def _deadline(facts: BatchFacts, moment: PolicyContext) -> float:
    return deadline_nearness(submitted_at=facts.submitted_at, deadline_at=facts.deadline_at, now=moment.now)


# ---- all policies

UNPAID_TIER = 100  # comes after the tiers of all queues and levels
LEVEL_TIERS: Mapping[ServiceLevel, int] = {  # wider than the tiers of queues
    ServiceLevel.EXPEDITE: -40,
    ServiceLevel.NORMAL: 0,
    ServiceLevel.STANDBY: 40,
}
FURTHEST = Bound(-LARGEST, LARGEST)  # a term beyond this range counts as unknown; 0 is the first place


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy with its weights: a scheme per service level, and whether exceeding a soft limit changes the tier.

    `by_level`: no term weighs the service level, so it is a strict tier; expedite goes first under every policy.
    """

    name: str
    schemes: Mapping[ServiceLevel, Scheme]
    soft_limit_last: bool = True
    by_level: bool = False

    def scheme_of(self, facts: BatchFacts) -> Scheme:
        return self.schemes[facts.level]

    def breakdown(self, facts: BatchFacts, moment: PolicyContext) -> Breakdown:
        """Return a batch's tier, key and explanation.

        >>> facts = BatchFacts(1, 1, 1, 100.0, logical_end_at=700.0)
        >>> policy_of(OrderingSettings()).breakdown(facts, PolicyContext(100.0)).key
        700.0
        """
        return explain(self.scheme_of(facts), facts, moment, tier=self.tier(facts, moment))

    def tier(self, facts: BatchFacts, moment: PolicyContext) -> int:
        """Return the strict tier, which precedes every key: the level's, and the queue's tier under equal access; one
        higher over a soft limit, unless `ordering.soft_limits` leaves that to SPVIOLATION. Unpaid work comes last.

        >>> two = PolicyContext(0.0, queue_tiers={"express": 0, "normal": 1})
        >>> facts = BatchFacts(1, 1, 1, 0.0, soft_limits=("2 of 1 jobs in progress",))
        >>> [policy_of(OrderingSettings(policy="equal_access", soft_limits=mode)).tier(facts, two)
        ...  for mode in ("last", "penalty")]
        [3, 2]
        """
        tier = moment.queue_tiers.get(facts.queue, 0) if self.scheme_of(facts).with_tiers else 0
        over_soft = 1 if facts.soft_limits and self.soft_limit_last else 0
        of_level = LEVEL_TIERS[facts.level] if self.by_level else 0
        return of_level + 2 * tier + over_soft + (UNPAID_TIER if facts.unpaid else 0)


def logical_time(_settings: OrderingSettings) -> Mapping[ServiceLevel, Scheme]:
    """Return the scheme that sorts by logical end time, smallest first; a time beyond the range goes last."""
    return _one_term("logical_time", "logical end time", lambda facts, _: FURTHEST.nearest(facts.logical_end_at))


def fifo(_settings: OrderingSettings) -> Mapping[ServiceLevel, Scheme]:
    """Return the scheme that sorts by submission time, earliest first."""
    return _one_term("fifo", "submitted at", lambda facts, _: facts.submitted_at)


def _equal_access(settings: OrderingSettings) -> Mapping[ServiceLevel, Scheme]:
    by_account = settings.equal_among == "accounts"
    return dict.fromkeys(ServiceLevel, equal_access(by_account=by_account, bypass_gain_pe=settings.bypass_weight))


POLICIES: Mapping[str, Callable[[OrderingSettings], Mapping[ServiceLevel, Scheme]]] = MappingProxyType(
    {
        "logical_time": logical_time,
        "multifactor": lambda settings: dict.fromkeys(ServiceLevel, multifactor(settings)),
        "components": components,
        "equal_access": _equal_access,
        "fifo": fifo,
    }
)


def policy_of(settings: OrderingSettings) -> Policy:
    """Return the configured policy with its weights. Raises InvalidInputError for an unknown name or invalid weights.

    >>> policy_of(OrderingSettings()).name
    'logical_time'
    """
    if settings.policy not in POLICIES:
        raise InvalidInputError("ordering.policy", "one of " + ", ".join(POLICIES), settings.policy)
    schemes = POLICIES[settings.policy](settings)
    last = settings.soft_limits == "last"
    return Policy(settings.policy, schemes, soft_limit_last=last, by_level=not _weighs_level(schemes))


LEVEL_TERMS = frozenset({"level", "QOS"})


def _weighs_level(schemes: Mapping[ServiceLevel, Scheme]) -> bool:
    """Return whether a term measures the service level, or the levels have different weights."""
    weights = [one.weights() for one in schemes.values()]
    return any(LEVEL_TERMS & one.keys() or one != weights[0] for one in weights)


def _one_term(
    policy: str, name: str, measure: Callable[[BatchFacts, PolicyContext], float]
) -> Mapping[ServiceLevel, Scheme]:
    return dict.fromkeys(ServiceLevel, scheme(policy, (Term(name, name, "instant", -1.0, measure),)))
