"""The sum of Moab's and Maui's components and sub-components. Pure.

P = sum over components of Wc * min(Cc, sum of W * min(C, value)); caps bound from above alone, before the weight. By
default only QUEUETIME counts, which is the order of submission. Weights of a service level add to the global ones.
USAGE (CONSUMED, REMAINING, PERCENT) concerns work under way and only enters `priority.displacement`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from domain.component_names import COMPONENTS, SUBCOMPONENTS
from domain.errors import InvalidInputError
from domain.ordering import BatchFacts, ServiceLevel
from domain.units import MINUTE_S, Seconds
from priority.measures import batch_runtime_s, deadline_nearness, expansion_factor, queue_minutes, target_nearness
from priority.moment import UNKNOWN, Moment, request_pe
from priority.multifactor import LEVELS
from priority.scheme import Component, Measure, Scheme, Term, scheme

MIB = 1024.0 * 1024.0
PARAMETER = re.compile(r"(?:([a-z]+)\.)?([A-Z]+?)(WEIGHT|CAP)=(.+)")


@dataclass(frozen=True, slots=True)
class ComponentWeights:
    """Weights and caps by name, "QUEUETIME" or "SERVICE", what levels add to weights, and the other parameters.

    What is not named weighs 1 if it is a component or QUEUETIME, else 0. `xf_min_s` is XFMINWCLIMIT,
    `target_wait_s` and `target_xf` are what TARGETQUEUETIME and TARGETXFACTOR aim at.
    """

    weights: Mapping[str, float] = field(default_factory=dict)
    caps: Mapping[str, float] = field(default_factory=dict)
    extra: Mapping[ServiceLevel, Mapping[str, float]] = field(default_factory=dict)
    xf_min_s: Seconds = MINUTE_S
    target_wait_s: Seconds | None = None
    target_xf: float | None = None


def parse_components(
    text: str, *, xf_min_s: Seconds = MINUTE_S, target_wait_s: Seconds | None = None, target_xf: float | None = None
) -> ComponentWeights:
    """Weights as Moab names them: "SERVICEWEIGHT=10 XFACTORWEIGHT=100 XFACTORCAP=50 expedite.XFACTORWEIGHT=1000".

    Raises InvalidInputError for a name there is not or what is no number.

    >>> parse_components("XFACTORWEIGHT=100 expedite.XFACTORWEIGHT=1000").extra[ServiceLevel.EXPEDITE]["XFACTOR"]
    1000.0
    """
    weights, caps = dict[str, float](), dict[str, float]()
    extra: dict[ServiceLevel, dict[str, float]] = {level: {} for level in ServiceLevel}
    for word in text.split():
        level, name, what, number = _parameter(word)
        if what == "CAP":
            caps[name] = number
        elif level is None:
            weights[name] = number
        else:
            extra[level][name] = number
    return ComponentWeights(weights, caps, extra, xf_min_s, target_wait_s, target_xf)


def _parameter(word: str) -> tuple[ServiceLevel | None, str, str, float]:
    found = PARAMETER.fullmatch(word)
    known = found is not None and found[2] in {*COMPONENTS, *SUBCOMPONENTS} and found[1] in {None, *ServiceLevel}
    if found is None or not known or (found[1] and found[3] == "CAP"):
        raise InvalidInputError("ordering.components", "words like XFACTORWEIGHT=100, XFACTORCAP=50", word)
    try:
        number = float(found[4])
    except ValueError:
        raise InvalidInputError("ordering.components", "a number behind the =", word) from None
    if not abs(number) <= 1e12:
        raise InvalidInputError("ordering.components", "a number from -1e12 to 1e12", word)
    return ServiceLevel(found[1]) if found[1] else None, found[2], found[3], number


def components(parameters: ComponentWeights, level: ServiceLevel = ServiceLevel.NORMAL) -> Scheme:
    """The scheme for batches of one service level.

    >>> sums = components(ComponentWeights({"USERPRIO": 2.0}))
    >>> [(term.name, term.weight) for term in sums.own if term.weight]
    [('QUEUETIME', 1.0), ('USERPRIO', 2.0)]
    """
    extra = parameters.extra.get(level, {})

    def weight(name: str, default: float) -> float:
        return parameters.weights.get(name, default) + extra.get(name, 0.0)

    measures = _measures(parameters)
    terms = [
        Term(
            name,
            sub.component,
            sub.unit,
            weight(name, 1.0 if name == "QUEUETIME" else 0.0),
            measures[name],
            parameters.caps.get(name),
            shared=sub.component == "FS",
        )
        for name, sub in SUBCOMPONENTS.items()
    ]
    grouped = {name: Component(weight(name, 1.0), parameters.caps.get(name)) for name in COMPONENTS}
    return scheme("components", terms, components=grouped)


def _measures(parameters: ComponentWeights) -> Mapping[str, Measure]:
    """How each sub-component is measured."""

    def runtime_s(facts: BatchFacts, moment: Moment) -> float | None:
        return batch_runtime_s(facts.job_runtime_s, facts.batch_flop, moment.pool_flop_per_s)

    def xfactor(facts: BatchFacts, moment: Moment) -> float:
        waited_s = facts.clock.waited_s(moment.now)
        return expansion_factor(
            waited_s=waited_s, runtime_s=runtime_s(facts, moment), least_runtime_s=parameters.xf_min_s
        )

    def wait_target(facts: BatchFacts, moment: Moment) -> float:
        wanted = parameters.target_wait_s
        minutes = None if wanted is None else wanted / MINUTE_S
        return target_nearness(minutes, queue_minutes(facts.clock.waited_s(moment.now)))

    def xf_target(facts: BatchFacts, moment: Moment) -> float:
        return target_nearness(parameters.target_xf, xfactor(facts, moment))

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


def _deadline(facts: BatchFacts, moment: Moment) -> float:
    return deadline_nearness(submitted_at=facts.submitted_at, deadline_at=facts.deadline_at, now=moment.now)
