"""Six factors between 0 and 1, weighted and summed: the Flux multi-factor plugin as designed. Pure.

P = Ww * wait + Wq * qos + Wu * queue + Ws * size + Wr * user + Wf * fair-share. The user factor alone may be negative.
A weight of 0 removes a factor; without any weight all batches tie and go in the order of their submission.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from domain.ordering import BatchFacts, ServiceLevel
from domain.units import DAY_S, Seconds
from priority.moment import Moment, request_pe
from priority.scheme import Scheme, Term, scheme

LEAST_USER_PRIORITY = -1024
LEVELS: Mapping[ServiceLevel, float] = {
    ServiceLevel.EXPEDITE: 1.0,
    ServiceLevel.NORMAL: 0.5,
    ServiceLevel.STANDBY: 0.0,
}


@dataclass(frozen=True, slots=True)
class MultifactorWeights:
    """Weights of the six factors, and what wait counts as the whole."""

    wait: float = 10_000.0
    fairshare: float = 100_000.0
    qos: float = 100_000.0
    queue: float = 10_000.0
    size: float = 0.0
    user: float = 10_000.0
    max_wait_s: Seconds = Seconds(7 * DAY_S)
    fairshare_by_rank: bool = False
    favour_small: bool = False


def multifactor(weights: MultifactorWeights) -> Scheme:
    """The scheme of the six factors. A total below 0 is shown as 0.

    >>> facts = BatchFacts(1, 1, 1, submitted_at=0.0, user_priority=-512, level=ServiceLevel.EXPEDITE)
    >>> six = multifactor(MultifactorWeights())
    >>> [(term.name, term.measure(facts, Moment(0.0))) for term in six.own]
    [('wait', 0.0), ('qos', 1.0), ('queue', 0.0), ('size', 1.0), ('user', -0.5)]
    """

    def waited(facts: BatchFacts, moment: Moment) -> float:
        if weights.max_wait_s <= 0.0:
            return 1.0
        return min(1.0, facts.clock.waited_s(moment.now) / weights.max_wait_s)

    def sized(facts: BatchFacts, moment: Moment) -> float:
        size = (
            min(1.0, request_pe(facts.request, moment.reference) / moment.largest_pe) if moment.largest_pe > 0 else 0.0
        )
        return 1.0 - size if weights.favour_small else size

    def served(facts: BatchFacts, moment: Moment) -> float | None:
        standing = moment.standing_of(facts)
        return standing.fairshare_rank if weights.fairshare_by_rank else standing.fairshare_ratio

    return scheme(
        "multifactor",
        (
            Term("wait", "wait", "s", weights.wait, waited, raw=lambda facts, moment: facts.clock.waited_s(moment.now)),
            Term("qos", "qos", "level", weights.qos, lambda facts, _: LEVELS[facts.level]),
            Term("queue", "queue", "number", weights.queue, _queue_factor, raw=_queue_number),
            Term(
                "size",
                "size",
                "PE",
                weights.size,
                sized,
                raw=lambda facts, now: request_pe(facts.request, now.reference),
            ),
            Term("user", "user", "priority", weights.user, _user_factor, raw=lambda facts, _: facts.user_priority),
            Term("fairshare", "fairshare", "fraction", weights.fairshare, served, shared=True),
        ),
        least=0.0,
    )


def _queue_number(facts: BatchFacts, moment: Moment) -> float:
    return moment.queue_numbers.get(facts.queue, 0.0)


def _queue_factor(facts: BatchFacts, moment: Moment) -> float:
    """The queue's number over the largest of all queues."""
    largest = max(moment.queue_numbers.values(), default=0.0)
    return max(0.0, moment.queue_numbers.get(facts.queue, 0.0) / largest) if largest > 0.0 else 0.0


def _user_factor(facts: BatchFacts, _moment: Moment) -> float:
    """-1024..1023 scaled to [-1, 1)."""
    return max(-1.0, min(1.0, facts.user_priority / -LEAST_USER_PRIORITY))
