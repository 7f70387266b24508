"""The features that each deadline rule requires from other services: gates, shares, copies. Pure.

scheduler/deadline/ has one module per rule, which computes due dates. Other services check these traits, never the
rule's name.
"""

from __future__ import annotations

from collections.abc import Mapping

from domain.quick import quick_dataclass
from domain.ranking import Gate
from domain.settings import AfapPolicy, DeadlineRule, DeadlineSettings

CLAIRVOYANT = "clairvoyant"
COPIES = "+copies"  # suffix of a rule's name: with tail copies, which the rule omits by default
FIXED_COPIES = f"{DeadlineRule.FIXED}{COPIES}"
SIMULATED_RULES = (*[str(rule) for rule in DeadlineRule], FIXED_COPIES, CLAIRVOYANT)  # the rules a simulation can use


@quick_dataclass(frozen=True, slots=True)
class RuleTraits:
    """The features of other services that a deadline rule uses.

    `gates`: the percentile gates the rule can apply. `relaxes_gates`: gates are lowered when too few requests come from
    hosts that pass them (decision 12). `strict_gates`: a host exactly at the threshold does not pass. `shares_gated`:
    gated jobs are limited to a share of each host, and the last jobs of a batch are reserved for newcomers.
    `afap_first`: AFAP batches and batches with near deadlines precede deferrable jobs. `adds_slack`: a delay bound must
    exceed the minimum slack. `copies_tails`: late jobs in the tail are copied. `accelerates`: batch acceleration flags
    hosts and batches and makes its own copies.
    """

    gates: tuple[Gate, ...] = ()
    relaxes_gates: bool = False
    strict_gates: bool = False
    shares_gated: bool = False
    afap_first: bool = False
    adds_slack: bool = False
    copies_tails: bool = True
    accelerates: bool = False


def _muster(*, afap_first: bool) -> RuleTraits:
    gates = (Gate.AFAP, Gate.LATE, Gate.RETRY, Gate.TIGHT)
    return RuleTraits(gates, relaxes_gates=True, shares_gated=True, afap_first=afap_first, adds_slack=True)


_MUSTER, _AT_ONCE = DeadlineRule.MUSTER, AfapPolicy.PROMPT  # cached: an enum lookup takes 75 ns in Python 3.11
_PROMPT, _TABLE = _muster(afap_first=True), _muster(afap_first=False)
TRAITS: Mapping[DeadlineRule, RuleTraits] = {
    DeadlineRule.MUSTER: _PROMPT,
    DeadlineRule.PROPOSAL: RuleTraits((Gate.AFAP, Gate.TIGHT), strict_gates=True),
    DeadlineRule.FIXED: RuleTraits(),
    DeadlineRule.ACCELERATED: RuleTraits((Gate.LOW_TURNAROUND,), copies_tails=False, accelerates=True),
}


def traits_of(settings: DeadlineSettings) -> RuleTraits:
    """Return the traits of the configured rule.

    >>> traits_of(DeadlineSettings()).afap_first, traits_of(DeadlineSettings(afap=AfapPolicy.TABLE)).afap_first
    (True, False)
    """
    if settings.rule is _MUSTER:
        return _PROMPT if settings.afap is _AT_ONCE else _TABLE
    return TRAITS[settings.rule]
