"""Deadline rules, which decide whether a host may get a job and when the job is due. One module per rule. Pure.

To add a rule: add a module with a function `due`, a line in `RULES`, its name in `DeadlineRule` (domain/settings.py),
its traits in domain/deadline_rules.py and the sentences of its rows in domain/due_terms.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from domain.refusals import Refusal
from domain.settings import AfapPolicy, DeadlineRule, DeadlineSettings
from scheduler.deadline import accelerated, fixed, prompt, proposal, table
from scheduler.deadline.inputs import Due, DueInputs, Moment, due_inputs, retry_turnaround_s, with_setting

__all__ = ["Due", "DueInputs", "DueRule", "Moment", "due_inputs", "retry_turnaround_s", "rule_of", "with_setting"]

DueRule = Callable[[Moment, DueInputs, DeadlineSettings], Due | Refusal]

RULES: Mapping[DeadlineRule, DueRule] = {
    DeadlineRule.MUSTER: prompt.due,
    DeadlineRule.PROPOSAL: proposal.due,
    DeadlineRule.FIXED: fixed.due,
    DeadlineRule.ACCELERATED: accelerated.due,
}


def rule_of(settings: DeadlineSettings) -> DueRule:
    """Return the function that computes due dates under these settings."""
    if settings.rule is DeadlineRule.MUSTER and settings.afap is AfapPolicy.TABLE:
        return table.due
    return RULES[settings.rule]
