"""What each deadline rule asks of the other services: gates, shares, copies. Pure.

How a rule computes due dates is in scheduler/deadline/, one module per rule. Services ask for these traits, never for a
rule by name.
"""

from __future__ import annotations

from collections.abc import Mapping

from domain.quick import quick_dataclass
from domain.ranking import Gate
from domain.settings import AfapPolicy, DeadlineRule, DeadlineSettings


@quick_dataclass(frozen=True, slots=True)
class RuleTraits:
    """Which services a deadline rule needs.

    `gates`: the percentile gates it may put before a job. `relaxes_gates`: they are lowered where too few requests come
    from hosts above (decision 12). `strict_gates`: a host at the gate does not pass. `shares_gated`: gated jobs get a
    share of each host, and the last jobs of a batch are kept for newcomers. `afap_first`: AFAP batches, and batches due
    soon, go before what can wait. `adds_slack`: a delay bound must exceed the least slack. `copies_tails`: last jobs
    are copied when late. `accelerates`: batch acceleration flags hosts and batches, and makes copies of its own.
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


_MUSTER, _AT_ONCE = DeadlineRule.MUSTER, AfapPolicy.PROMPT  # looked up once: 75 ns each in Python 3.11
_PROMPT, _TABLE = _muster(afap_first=True), _muster(afap_first=False)
TRAITS: Mapping[DeadlineRule, RuleTraits] = {
    DeadlineRule.MUSTER: _PROMPT,
    DeadlineRule.PROPOSAL: RuleTraits((Gate.AFAP, Gate.TIGHT), strict_gates=True),
    DeadlineRule.FIXED: RuleTraits(),
    DeadlineRule.ACCELERATED: RuleTraits((Gate.LOW_TURNAROUND,), copies_tails=False, accelerates=True),
}


def traits_of(settings: DeadlineSettings) -> RuleTraits:
    """The traits of the rule in the settings.

    >>> traits_of(DeadlineSettings()).afap_first, traits_of(DeadlineSettings(afap=AfapPolicy.TABLE)).afap_first
    (True, False)
    """
    if settings.rule is _MUSTER:
        return _PROMPT if settings.afap is _AT_ONCE else _TABLE
    return TRAITS[settings.rule]
