"""The page docs/lifecycle.md, made from the transition table. Pure.

`python -m lifecycle.diagram > docs/lifecycle.md` writes it.
"""

from __future__ import annotations

import sys

from domain.jobs import InstanceState
from lifecycle.states import SHAPES, TRANSITIONS, StateShape, is_job_error, is_lost, is_retry_cause

_HEAD = """\
# The life of an instance

Made from `lifecycle/states.py` by `python -m lifecycle.diagram > docs/lifecycle.md`, its drawing by
`python -m lifecycle.drawing > docs/charts/lifecycle.svg`; a test fails when one of them is stale. Every step that is
not here is refused.

![The states of an instance and the steps between them; they are listed below](charts/lifecycle.svg)

An instance begins as unsent. The states with a thick border are the last ones.
"""


def page() -> str:
    """The whole page."""
    return "\n".join([_HEAD, "## Steps\n", _steps(), "## States\n", _states()])


def _steps() -> str:
    rows = [
        f"| {source} | {event} | {target} | {', '.join(instructions)} |"
        for (source, event), (target, instructions) in TRANSITIONS.items()
    ]
    return "\n".join(["| from | event | to | instructions |", "|---|---|---|---|", *rows, ""])


def _states() -> str:
    rows = [
        f"| {state} | {_yes(SHAPES[state].sent)} | {_reported(SHAPES[state])} "
        f"| {_yes(is_retry_cause(state))} | {_yes(is_job_error(state))} | {_yes(is_lost(state))} |"
        for state in InstanceState
    ]
    head = (
        "| state | has a host, sent_at, due_at | has reported_at | counts in retries | counts to max_errors "
        "| counts to lifecycle.max_lost_instances |"
    )
    return "\n".join([head, "|---|---|---|---|---|---|", *rows, ""])


def _yes(answer: bool) -> str:
    return "yes" if answer else ""


def _reported(shape: StateShape) -> str:
    return "perhaps" if shape.reported is None else _yes(shape.reported)


if __name__ == "__main__":
    sys.stdout.write(page())
