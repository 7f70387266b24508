"""Describes batches' places in the order and the reasons for them, with relative times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

from administration.explain.batch import SentFirst
from administration.explain.verdict import start_in_words
from administration.ordering.priorities import breakdown_of
from domain.batches import Batch, BatchCounts
from domain.deadline_rules import traits_of
from domain.insight import WorkAhead
from domain.ordering import Breakdown, Contribution, PlaceInOrder, ServiceLevel
from domain.settings import Settings
from domain.units import BatchId, Instant
from jobs.ordering.ordering_pass import importance_of
from priority.policies import LEVEL_TIERS, UNPAID_TIER
from store.ordering import PostgresOrderingRules
from web.moments import DASH, length, moment, number, percent

RULES = {  # policy -> its rule in words
    "logical_time": "the batch with the earliest logical end goes first, which is when it would end if all hosts "
    "worked only on it after its submitter's earlier batches",
    "fifo": "the batch that was submitted first goes first",
    "equal_access": "the batch whose submitter has the least work in progress goes first",
}
NO_UNITS = frozenset({"level", "number", "priority", "fraction"})  # units that only repeat the name of the term
MOST_POINTS = "the batch with the most points goes first"


@dataclass(frozen=True, slots=True)
class PlaceShown:
    """A batch's place. `at` is None for an ended batch, `breakdown` is None before its first ordering.

    `record` is the stored breakdown with the importance on which the place rests.
    """

    at: PlaceInOrder | None = None
    breakdown: Breakdown | None = None
    record: Mapping[str, object] = field(default_factory=dict)

    def is_pending(self, batch: Batch) -> bool:
        """Return whether the batch's importance has changed since the place was computed."""
        present = importance_of(batch)
        return any(self.record.get(name, value) != value for name, value in present.items())


async def standings(rules: PostgresOrderingRules, batch_ids: Sequence[BatchId]) -> Mapping[BatchId, PlaceShown]:
    """Return batches' places and breakdowns."""
    if not batch_ids:
        return {}
    places, records = await rules.places(batch_ids), await rules.breakdowns(batch_ids)
    return {
        one: PlaceShown(places.get(one), breakdown_of(records[one]) if one in records else None, records.get(one, {}))
        for one in batch_ids
    }


def rule_of(policy: str) -> str:
    """Return a policy's rule in words.

    >>> rule_of("multifactor")
    'the batch with the most points goes first'
    """
    return RULES.get(policy, MOST_POINTS)


def first_sent(settings: Settings) -> str:
    """Say which jobs a request gets first.

    >>> first_sent(Settings()).count(". ")
    1
    """
    traits, share = traits_of(settings.deadline), settings.scheduler.afap_first_fraction
    said = ["A request gets the first jobs in this order that its host may run"]
    if traits.gates:
        said.append("hosts above a gate get the jobs that need a fast host before those")
    words = "; ".join(said)
    if not traits.afap_first or share <= 0.0:
        return f"{words}."
    factor = settings.deadline.first_factor
    due = f" and batches with less than {factor:g} retry turnarounds until their deadline" if factor > 0.0 else ""
    return f"{words}. {percent(share)} of requests take afap batches{due} before the others."


def instant_of(breakdown: Breakdown) -> Instant | None:
    """Return the time by which a batch is ordered; None if the policy gives points.

    >>> end = Contribution("logical end time", "logical end time", 7.0, "instant", 7.0, None, -1.0, -7.0)
    >>> instant_of(Breakdown(BatchId(1), "logical_time", Instant(0.0), 0, -7.0, (end,)))
    7.0
    """
    match breakdown.components:
        case (Contribution(unit="instant", value=float() as value),):
            return Instant(value)
        case _:
            return None


def total_name(breakdowns: Sequence[Breakdown]) -> str:
    """Return the heading for the column of totals.

    >>> total_name([])
    'Points'
    """
    named = {one.components[0].name for one in breakdowns if instant_of(one) is not None}
    return _short(named.pop()).capitalize() if len(named) == 1 else "Points"


def total(breakdown: Breakdown, now: float) -> Markup:
    """Return the value by which a batch is ordered: a time, or points."""
    at = instant_of(breakdown)
    return Markup("{}").format(number(breakdown.result, 1)) if at is None else moment(at, now)


def because(breakdown: Breakdown | None, now: float) -> Markup:
    """Explain a batch's place briefly. If the policy gives points, name the two largest terms.

    >>> terms = [Contribution(name, name, None, "", None, None, 1.0, of) for name, of in (("age", 3.0), ("size", -5.0))]
    >>> str(because(Breakdown(BatchId(1), "multifactor", Instant(0.0), 0, -2.0, tuple(terms)), 0.0))
    '-2.0 points: size -5.0, age +3.0'
    >>> str(because(None, 0.0))
    'not ordered yet'
    """
    if breakdown is None:
        return Markup("not ordered yet")
    at = instant_of(breakdown)
    if at is not None:
        return Markup("{} {}").format(_short(breakdown.components[0].name), moment(at, now))
    said = weightiest(breakdown)
    rest = f": {said}" if said else ", no term contributes"
    return Markup("{} points{}").format(number(breakdown.result, 1), rest)


def weightiest(breakdown: Breakdown) -> str:
    """Return the two terms with the largest absolute points; "" if there are none."""
    terms = sorted((one for one in breakdown.components if one.points), key=lambda one: -abs(one.points))
    said = ", ".join(f"{one.name} {'+' if one.points > 0 else ''}{number(one.points, 1)}" for one in terms[:2])
    return said + (f" and {len(terms) - 2} more" if len(terms) > 2 else "")


def sentence(standing: PlaceShown, now: float) -> Markup:
    """Explain a batch's place in a full sentence."""
    found = standing.breakdown
    if found is None:
        return Markup("Not ordered yet; the next ordering follows within a minute.")
    words, tier, at = because(found, now), tier_of(found.tier), instant_of(found)
    first = f" Before all else: {tier}." if tier else ""
    if found.policy == "logical_time" and at is not None:
        would = "would have ended" if at < now else "would end"
        return Markup(
            "If all hosts worked only on it after its submitter's earlier batches, it {} {}. The batch for which this "
            "time (its logical end) is earliest goes first.{}"
        ).format(would, moment(at, now), first)
    return Markup("{}{}; {}.{}").format(words[:1].upper(), words[1:], rule_of(found.policy), first)


def turn(at: PlaceInOrder | None, first: SentFirst | None, ahead: WorkAhead | None, unsent: int) -> tuple[str, str]:
    """Say when a batch is sent, and below that what comes first (`ahead`, None: not said), with its position in the
    order, if that does not decide it.

    >>> turn(PlaceInOrder(10, 11), None, None, 5)
    ('10 of 11', '')
    >>> turn(PlaceInOrder(4, 12), None, None, 0)
    ('all sent', '4 of 12 in the order, for retries')
    >>> turn(PlaceInOrder(10, 11), SentFirst("its deadline is near", 2, 3), WorkAhead(1, 7), 5)[0]
    'sent first, 2 of 3'
    """
    if at is None:
        return DASH, ""
    place = f"{number(at.place)} of {number(at.of)}"
    if not unsent:
        return "all sent", f"{place} in the order, for retries"
    start = "" if ahead is None else start_in_words(ahead, sent_first=first is not None)
    if first is not None:
        words = f"{place} in the order, which most requests skip for it, because {first.because}"
        return f"sent first, {number(first.place)} of {number(first.of)}", f"{words}{start and '; '}{start}"
    return place, start


def when_sent(
    standing: PlaceShown, counts: BatchCounts, first: SentFirst | None, ahead: WorkAhead | None
) -> tuple[str, str]:
    """Say when a batch is sent, as `turn` does, unless it has no place yet or nothing to send.

    >>> when_sent(PlaceShown(PlaceInOrder(3, 12)), BatchCounts(), None, None)[0]
    'not ordered yet'
    """
    if standing.at is not None and standing.breakdown is None:
        return "not ordered yet", ""
    if standing.at is not None and counts.jobs_open and not counts.unsent and not counts.in_progress:
        return "nothing to send", "the open jobs wait for validation, or for new instances"
    return turn(standing.at, first, ahead, counts.unsent)


def tier_of(tier: int) -> str:
    """Return a tier in words, "" for that of most batches. Batches of a lower tier always go first.

    >>> [tier_of(tier) for tier in (0, -40, 2, 41, 140)]
    ['', 'expedite goes first', 'tier 2, lower ones go first', 'standby goes last', 'unpaid goes last']
    """
    expedite, standby = LEVEL_TIERS[ServiceLevel.EXPEDITE], LEVEL_TIERS[ServiceLevel.STANDBY]
    if tier >= UNPAID_TIER + expedite:
        return "unpaid goes last"
    if tier >= standby:
        return "standby goes last"
    if tier < 0:
        return "expedite goes first"
    return f"tier {tier}, lower ones go first" if tier else ""


def moves(present: PlaceInOrder | None, then: PlaceInOrder | None, every_s: float) -> str:
    """Say where the next ordering puts a batch.

    >>> moves(PlaceInOrder(11, 12), PlaceInOrder(1, 12), 60.0)
    'position 1 of 12 from the next ordering on, within 60 s; now 11 of 12'
    >>> moves(PlaceInOrder(11, 12), PlaceInOrder(11, 12), 60.0)
    'the position stays 11 of 12'
    """
    if then is None:
        return "it has ended"
    if present == then:
        return f"the position stays {number(then.place)} of {number(then.of)}"
    was = "" if present is None else f"; now {number(present.place)} of {number(present.of)}"
    return (
        f"position {number(then.place)} of {number(then.of)} from the next ordering on, within {length(every_s)}{was}"
    )


def term(part: Contribution) -> str:
    """Explain the points given by a term.

    >>> term(Contribution("wait", "wait", 7200.0, "s", 0.25, None, 1000.0, 250.0))
    '1\\u202f000 × 0.25, computed from 2 h'
    >>> term(Contribution("held", "held", 3.0, "PE", 3.0, None, -1.0, -3.0))
    '-1 × 3 PE'
    """
    if part.value is None:
        return "no points"
    made_of = part.value if part.raw is None else part.raw
    unit = "" if part.unit in NO_UNITS else part.unit
    raw = length(made_of) if unit == "s" else f"{_brief(made_of)} {unit}".rstrip()
    if made_of == part.value:
        return f"{_brief(part.weight)} × {raw}"
    return f"{_brief(part.weight)} × {_brief(part.value)}, computed from {raw}"


def _brief(value: float) -> str:
    """Format a number with as many significant digits as it has."""
    whole = value == round(value) or abs(value) >= 1000.0
    return number(value, 0) if whole else f"{value:.3g}"


def _short(name: str) -> str:
    """Shorten the name of a term for use before a time.

    >>> _short("logical end time"), _short("submitted at")
    ('logical end', 'submitted')
    """
    return name.removesuffix(" time").removesuffix(" at")
