"""The terms a due date followed from: put behind its reason when it is given, read again when somebody asks. Pure.

The reason says in words what decided; start, queue, R_q and P are in it only where they did. All of them are kept, so
that a due date can be taken apart long after the host has changed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from domain.settings import DeadlineRule
from domain.units import Seconds
from scheduler.evaluation import Evaluation

# put together for every job that is sent: % takes two thirds of the time of an f-string
KEPT_AS = "%s [%s: start %.0f s, queue %.0f s, R %.0f s, R_q %.0f s, P %s, gate %s %g]"
KEPT = re.compile(
    r"^(?P<because>.*) \[(?P<rule>\w+): start (?P<start>\S+) s, queue (?P<queue>\S+) s, R (?P<runtime>\S+) s, "
    r"R_q (?P<safe>\S+) s, P (?P<p>\S+), gate (?P<gate>\w+) (?P<threshold>\S+)\]$",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class DueTerms:
    """What a due date followed from at dispatch, in whole seconds.

    `start_s` and `queue_s` are the host's busy times, with what the same reply gave it before. `gate` is "none" where
    no percentile was asked for.
    """

    rule: str
    start_s: Seconds
    queue_s: Seconds
    runtime_s: Seconds
    safe_runtime_s: Seconds
    p: float | None
    gate: str
    threshold: float


def kept_because(evaluation: Evaluation, rule: DeadlineRule) -> str:
    """The reason with its terms, as it is kept with the instance: one line, about 80 characters more."""
    due, moment = evaluation.due, evaluation.moment
    p = moment.percentile.p
    return KEPT_AS % (
        due.because,
        rule,
        moment.start_s,
        moment.queue_s,
        evaluation.runtime_s,
        evaluation.safe_runtime_s,
        "none" if p is None else f"{p:.3f}",
        due.gate,
        due.threshold,
    )


def terms_in(kept: str) -> tuple[str, DueTerms | None]:
    """The reason alone, and its terms; None of an instance that was sent before they were kept.

    >>> text = "row 1: due at the bound [muster: start 0 s, queue 60 s, R 3600 s, R_q 9000 s, P 0.500, gate none 0]"
    >>> because, terms = terms_in(text)
    >>> because, terms.queue_s, terms.p, terms.gate
    ('row 1: due at the bound', 60.0, 0.5, 'none')
    >>> terms_in("row 1: due at the bound")
    ('row 1: due at the bound', None)
    """
    found = KEPT.match(kept)
    if found is None:
        return kept, None
    start_s, queue_s, runtime_s, safe_s = (Seconds(float(found[key])) for key in ("start", "queue", "runtime", "safe"))
    p = None if found["p"] == "none" else float(found["p"])
    terms = DueTerms(found["rule"], start_s, queue_s, runtime_s, safe_s, p, found["gate"], float(found["threshold"]))
    return found["because"], terms
