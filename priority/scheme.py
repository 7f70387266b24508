"""Batch priorities as sums of weighted terms, and the state of the project that terms use. Pure.

A scheme is a list of weighted terms. P = sum over components of Wc * min(Cc, sum over terms of W * min(C, value)),
where the C are caps. Printed points always add up to the printed total: a component's excess over its cap is a term of
its own, and a clamped total is marked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby
from math import inf

from domain.ordered_work import LeafId, LeafStanding
from domain.ordering import BatchFacts, Breakdown, Clamp, Contribution, Request, ServiceLevel, total_of
from domain.units import Instant
from priority.measures import capped, processor_equivalents

UNKNOWN = LeafStanding()
ONE_CORE = Request()


@dataclass(frozen=True, slots=True)
class PolicyContext:
    """The state of the project at one instant, the same for all batches in an ordering pass.

    `reference` is the component-wise median of hosts active within 7 days; `largest_pe` the processor equivalents of
    the largest feasible host. `queue_tiers`, `queue_numbers` and `level_deltas` are by name and by service level.
    """

    now: Instant
    standings: Mapping[LeafId, LeafStanding] = field(default_factory=dict)
    reference: Request = ONE_CORE
    largest_pe: float = 1.0
    pool_flop_per_s: float = 0.0
    queue_tiers: Mapping[str, int] = field(default_factory=dict)
    queue_numbers: Mapping[str, float] = field(default_factory=dict)
    level_deltas: Mapping[ServiceLevel, float] = field(default_factory=dict)
    held_by_account: Mapping[int, float] = field(default_factory=dict)
    usage_snapshot_id: int | None = None

    def standing_of(self, facts: BatchFacts) -> LeafStanding:
        return self.standings.get(facts.leaf, UNKNOWN)


@lru_cache(maxsize=4096)
def request_pe(request: Request, reference: Request) -> float:
    """Return a job's processor equivalents on the reference host.

    >>> request_pe(Request(1.0, memory_bytes=4e9), Request(8.0, memory_bytes=16e9))
    2.0
    """
    return processor_equivalents(request.amounts(), reference.amounts())


# ---- terms and schemes

LARGEST = 1e30  # maximum of a measure; larger values and NaN count as unknown

Measure = Callable[[BatchFacts, PolicyContext], float | None]


@dataclass(frozen=True, slots=True)
class Term:
    """One weighted number. `measure` returns its value; `raw` returns the original quantity (None: the value itself).

    `shared`: the value is the same for all batches of one submitter, account and service level.
    """

    name: str
    component: str
    unit: str
    weight: float
    measure: Measure
    cap: float | None = None
    raw: Measure | None = None
    shared: bool = False


@dataclass(frozen=True, slots=True)
class Component:
    weight: float = 1.0
    cap: float | None = None


PLAIN = Component()


@dataclass(frozen=True, slots=True)
class Scheme:
    """Terms in the order of summation. Terms shared by a submitter's batches come last.

    `least` is the minimum for displayed totals and ties (the order still uses the total). `with_tiers`: queues are
    strict tiers that sort before the total.
    """

    policy: str
    own: tuple[Term, ...]
    shared: tuple[Term, ...] = ()
    components: Mapping[str, Component] = field(default_factory=dict)
    least: float | None = None
    with_tiers: bool = False

    def component(self, name: str) -> Component:
        return self.components.get(name, PLAIN)

    def weights(self) -> Mapping[str, float]:
        """Return the weight of each term that counts, multiplied by its component's weight."""
        found = {term.name: term.weight * self.component(term.component).weight for term in (*self.own, *self.shared)}
        return {name: weight for name, weight in found.items() if weight}


def scheme(
    policy: str,
    terms: Iterable[Term],
    *,
    components: Mapping[str, Component] | None = None,
    least: float | None = None,
    with_tiers: bool = False,
) -> Scheme:
    """Return a scheme with these terms. A component's terms must be adjacent, and either all or none shared."""
    every = tuple(terms)
    names = list(dict.fromkeys(one.component for one in every))
    grouped = sorted(every, key=lambda one: names.index(one.component))
    shared = {name for name in names if all(one.shared for one in every if one.component == name)}
    return Scheme(
        policy,
        tuple(one for one in grouped if one.component not in shared),
        tuple(one for one in grouped if one.component in shared),
        components or {},
        least,
        with_tiers,
    )


Points = Callable[[BatchFacts, PolicyContext], list[float]]


def evaluator(terms: Sequence[Term], scheme: Scheme) -> Points:
    """Return a function that computes the points of each term in order. Terms with weight 0 are skipped.

    A component's excess over its cap follows the component's terms.

    >>> held = Term("held", "held", "PE", -1.0, lambda facts, moment: 3.0, cap=2.0)
    >>> plain = scheme("p", [held])
    >>> evaluator(plain.own, plain)(BatchFacts(1, 1, 1, 0.0), PolicyContext(0.0))
    [-2.0]
    """
    active = [term for term in terms if term.weight and scheme.component(term.component).weight]
    if any(scheme.component(term.component).cap for term in active):
        return _capped_evaluator(active, scheme)
    parts = [(term.measure, scheme.component(term.component).weight, term.weight, term.cap or inf) for term in active]

    def plain(facts: BatchFacts, moment: PolicyContext) -> list[float]:
        found = list[float]()
        for measure, component_weight, weight, cap in parts:
            value = measure(facts, moment)
            if value is None or not -LARGEST <= value <= LARGEST:
                found.append(0.0)
            else:
                found.append(component_weight * (weight * (cap if value > cap else value)))
        return found

    return plain


def _capped_evaluator(active: Sequence[Term], scheme: Scheme) -> Points:
    groups = [(scheme.component(name), list(group)) for name, group in groupby(active, key=lambda term: term.component)]

    def with_caps(facts: BatchFacts, moment: PolicyContext) -> list[float]:
        found = list[float]()
        for component, terms in groups:
            before = [_points(term, 1.0, facts, moment) for term in terms]
            found.extend(component.weight * one for one in before)
            found.append(-component.weight * _excess(before, component))
        return found

    return with_caps


def _points(term: Term, component_weight: float, facts: BatchFacts, moment: PolicyContext) -> float:
    value = term.measure(facts, moment)
    if value is None or not -LARGEST <= value <= LARGEST:
        return 0.0
    value = capped(value, term.cap)
    return component_weight * (term.weight * value)


def _excess(before: Iterable[float], component: Component) -> float:
    return max(0.0, total_of(before) - component.cap) if component.cap else 0.0


def explain(scheme: Scheme, facts: BatchFacts, moment: PolicyContext, *, tier: int) -> Breakdown:
    """Return the breakdown of a batch's priority: all terms with their inputs.

    Terms with weight 0 are omitted. Points, in order, add up to the total.
    """
    contributions = tuple(_contributions(scheme, facts, moment))
    total = total_of(one.points for one in contributions)
    return Breakdown(
        facts.batch_id,
        scheme.policy,
        moment.now,
        tier,
        total,
        contributions,
        facts.soft_limits,
        _clamp(total, scheme),
        moment.usage_snapshot_id,
    )


def _clamp(total: float, scheme: Scheme) -> Clamp | None:
    if scheme.least is None or total >= scheme.least:
        return None
    return Clamp(f"at least {scheme.least:g}", scheme.least)


def _contributions(scheme: Scheme, facts: BatchFacts, moment: PolicyContext) -> Iterator[Contribution]:
    for name, group in groupby((*scheme.own, *scheme.shared), key=lambda term: term.component):
        terms, component = list(group), scheme.component(name)
        for term in terms:
            if term.weight * component.weight:
                yield _contribution(term, component.weight, facts, moment)
        excess = _excess((_points(term, 1.0, facts, moment) for term in terms if term.weight), component)
        if excess > 0.0:
            cap, weight = component.cap, component.weight
            note = f"excess of {name} over its cap of {cap:g}"
            yield Contribution(f"{name} cap", name, excess, "points", -excess, None, weight, -weight * excess, note)


def _contribution(term: Term, component_weight: float, facts: BatchFacts, moment: PolicyContext) -> Contribution:
    value = term.measure(facts, moment)
    if value is not None and not -LARGEST <= value <= LARGEST:
        value = None
    raw = value if term.raw is None else term.raw(facts, moment)
    bites = value is not None and capped(value, term.cap) != value
    note = "unknown" if value is None else f"capped at {term.cap:g}" if bites else ""
    weight = component_weight * term.weight
    made = _points(term, component_weight, facts, moment)
    return Contribution(term.name, term.component, raw, term.unit, value, term.cap or None, weight, made, note)
