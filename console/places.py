"""Describes batches' places in the order and the reasons for them, with relative times."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

from administration.explain.verdict import start_in_words
from administration.ordering.places import (
    Urgent,
    expedite_in_words,
    position,
    sent_first,
    sent_first_because,
    the_first,
)
from administration.ordering.priorities import breakdown_of
from administration.stopped import Stopped, stopped_of
from batch_estimator.publish import tolerance_s
from domain.batches import Batch, QoS
from domain.catalogue import Catalogue
from domain.deadline_rules import traits_of
from domain.forecasting import is_moving
from domain.formatting import in_words
from domain.insight import WorkAhead
from domain.ordering import Breakdown, Contribution, PlaceInOrder, ServiceLevel
from domain.settings import Settings
from domain.units import AppId, BatchId, Instant, Seconds, later
from jobs.ordering.ordering_pass import importance_of
from priority.policies import LEVEL_TIERS, UNPAID_TIER
from store.postgres import PostgresStore
from web.handlers import PageServices
from web.moments import DASH, length, moment, number, percent

RANKED = "logical_time"  # the policy that orders by rank values
RULES = {  # policy -> its rule in words
    RANKED: "the batch that was submitted first goes first, unless it is larger or its submitter has more earlier work",
    "fifo": "the batch that was submitted first goes first",
    "equal_access": "the batch whose submitter has the least work in progress goes first",
}
NO_UNITS = frozenset({"level", "number", "priority", "fraction"})  # units that only repeat the name of the term
MOST_POINTS = "the batch with the most points goes first"


@dataclass(frozen=True, slots=True)
class PlaceShown:
    """A batch's place. `at` is None if no fresh instance of it is sent now, `breakdown` is None before its first
    ordering.

    `because`: that it is sent first, and why; "" if it is not. `record` is the stored breakdown with the
    importance on which the place rests. `first`: the number of batches that are sent first. `not_first`: the place
    it would have if it were not sent first, None if it is not. `is_sent`: each job was sent at least once.
    """

    at: PlaceInOrder | None = None
    breakdown: Breakdown | None = None
    record: Mapping[str, object] = field(default_factory=dict)
    because: str = ""
    first: int = 0
    not_first: PlaceInOrder | None = None
    is_sent: bool = False

    def is_pending(self, batch: Batch) -> bool:
        """Return whether the batch's importance has changed since the place was computed."""
        present = importance_of(batch)
        return any(self.record.get(name, value) != value for name, value in present.items())

    def moves_soon(self, batch: Batch, moved_at: Instant | None, now: Instant) -> bool:
        """Return whether the next ordering may give a changed batch another position. `moved_at`: its last move."""
        return self.is_pending(batch) and is_moving(moved_at, now)


async def first_now(services: PageServices) -> Urgent:
    """Return the batches that most requests take before the others now."""
    unrunnable = (await stopped_of(services.store, services.clock)).unrunnable
    return await sent_first(services.store, services.catalogue, services.clock.now(), unrunnable)


async def standings(
    store: PostgresStore,
    batches: Sequence[Batch],
    first: Urgent,
    apps: Collection[AppId],
    stopped: Stopped,
) -> Mapping[BatchId, PlaceShown]:
    """Return batches' positions and breakdowns. `first`: the batches that are sent first; `apps`: those with a version
    for new work.
    """
    if not batches:
        return {}
    rules, ids = store.ordering_rules, [one.batch_id for one in batches]
    places = {} if stopped.down else await rules.places(ids, apps, without=stopped.unrunnable)
    records, fresh = await rules.breakdowns(ids), await rules.with_fresh(ids)
    found = dict[BatchId, PlaceShown]()
    for batch in batches:
        one, at = batch.batch_id, places.get(batch.batch_id) if batch.counts.unsent else None
        not_first = None
        if at is not None and one in first:
            not_first = position(batch, at, {other: urgent for other, urgent in first.items() if other != one})
        found[one] = PlaceShown(
            None if at is None else position(batch, at, first),
            breakdown_of(records[one]) if one in records else None,
            records.get(one, {}),
            sent_first_because(first[one].because) if one in first else "",
            len(first),
            not_first,
            batch.batch_id not in fresh,
        )
    return found


def first_s_of(catalogue: Catalogue, batch: Batch) -> float:
    """Return how long before its deadline most requests begin to take a batch before the others, 0 if that is not
    known, or if they never do or always.
    """
    if batch.deadline_at is None:
        return 0.0
    from_at = catalogue.sent_first_from(batch.app_id, batch.qos, batch.deadline_at, unpaid=batch.unpaid)
    return batch.deadline_at - from_at if math.isfinite(from_at) else 0.0


def first_at(batch: Batch, first_s: float, now: Instant) -> Instant | None:
    """Return from when on most requests take a batch with unsent instances before the others, None if not later on."""
    if batch.deadline_at is None or not first_s or not batch.counts.unsent:
        return None
    at = later(batch.deadline_at, -first_s)
    return at if at > now else None


def name_of(batch_id: BatchId, name: str) -> str:
    """Return a batch's name with its number."""
    return f"{name} #{batch_id}".lstrip()


def rule_of(policy: str) -> str:
    """Return a policy's rule in words.

    >>> rule_of("multifactor")
    'the batch with the most points goes first'
    """
    return RULES.get(policy, MOST_POINTS)


def first_sent(settings: Settings) -> Sequence[str]:
    """Say, one fact per line, which jobs a request gets first.

    >>> len(first_sent(Settings()))
    4
    """
    traits, share = traits_of(settings.deadline), settings.scheduler.afap_first_fraction
    said = ["A request gets the first jobs in this order that its host may run."]
    if traits.gates:
        most = f", up to {percent(settings.scheduler.urgent_share_fraction)} of the host's jobs" * traits.shares_gated
        said.append(f"A host above a gate gets the jobs that need a fast host before the others{most}.")
    if traits.afap_first and share > 0.0:
        factor = settings.deadline.first_factor
        due = f" and batches with less than {factor:g} retry turnarounds until their deadline" if factor > 0.0 else ""
        said.append(f"{percent(share)} of requests take AFAP batches{due} before all others, at any level.")
        said.append("Positions are those of these requests.")
    return said


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
    return short(named.pop()).capitalize() if len(named) == 1 else "Points"


def total(breakdown: Breakdown, now: float) -> Markup:
    """Return the value by which a batch is ordered: the time of its submission, or points; a dash for a rank value,
    which has no unit and predicts nothing.
    """
    at = instant_of(breakdown)
    if breakdown.policy == RANKED and at is not None:
        return Markup("{}").format(DASH)
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
    if breakdown.policy == RANKED and at is not None:
        return Markup("by its submission, its size and earlier work of its submitter")
    if at is not None:
        return Markup("{} {}").format(short(breakdown.components[0].name), total(breakdown, now))
    said = weightiest(breakdown)
    rest = f": {said}" if said else ", no term contributes"
    return Markup("{} points{}").format(number(breakdown.result, 1), rest)


def weightiest(breakdown: Breakdown) -> str:
    """Return the two terms with the largest absolute points; "" if there are none."""
    terms = sorted((one for one in breakdown.components if one.points), key=lambda one: -abs(one.points))
    said = ", ".join(f"{one.name} {'+' if one.points > 0 else ''}{number(one.points, 1)}" for one in terms[:2])
    return said + (f" and {len(terms) - 2} more" if len(terms) > 2 else "")


def sentence(standing: PlaceShown, now: float) -> Markup:
    """Explain a batch's place in a full sentence: by what is stronger than the policy's rule, or by the rule.

    >>> str(sentence(PlaceShown(), 0.0))
    'The next ordering, within a minute, gives it a place.'
    """
    found = standing.breakdown
    if found is None:
        return Markup("The next ordering, within a minute, gives it a place.")
    if standing.because:
        return Markup("It is {}.").format(standing.because)
    rule = rule_of(found.policy)
    if found.policy != RANKED:
        rule = Markup("{}; {}").format(because(found, now), rule)
    tier = tier_of(found.tier, standing.first)
    said = (tier, Markup("of one level, {}").format(rule)) if tier else (rule,)
    return Markup(" ").join(Markup("{}{}.").format(one[:1].upper(), one[1:]) for one in said)


def level_deciding(standing: PlaceShown) -> str:
    """Return what a position rests on before the policy's rule: that the batch is sent first, its level or its tier.

    >>> found = Breakdown(BatchId(1), "fifo", Instant(0.0), -40, 0.0, ())
    >>> level_deciding(PlaceShown(breakdown=found)), level_deciding(PlaceShown(breakdown=found, because="sent first"))
    ('level expedite', 'sent first')
    """
    name = "" if standing.breakdown is None else tier_name(standing.breakdown.tier)
    return standing.because or (f"level {name}" if name in list(ServiceLevel) else name)


def when_sent(standing: PlaceShown, batch: Batch, ahead: WorkAhead | None, stop: str = "") -> tuple[str, str]:
    """Return a batch's position, and below that the level or reason that decides it, and the work before it, or why
    nothing is sent.

    `ahead`: None if it is not known. `stop`: what keeps it from being sent (administration/stopped.py), "" if nothing.

    >>> from dataclasses import replace
    >>> from domain.batches import BatchCounts
    >>> one = Batch(1, 7, 1, 1, "", "afap", "active", Instant(0.0), 0, 0.0, Instant(0.0), counts=BatchCounts(unsent=5))
    >>> found = Breakdown(BatchId(1), "fifo", Instant(0.0), 0, 0.0, ())
    >>> none = replace(one, counts=BatchCounts(), qos="throughput")
    >>> when_sent(PlaceShown(PlaceInOrder(10, 11), found), one, None)
    ('10 of 11', '')
    >>> when_sent(PlaceShown(None, found), one, None, "paused")
    ('not sent', 'paused')
    >>> when_sent(PlaceShown(None, found), none, None)
    ('all sent', '')
    >>> when_sent(PlaceShown(None, found, is_sent=True), one, None)
    ('only retries', "retries and copies are sent at the batch's place in the order")
    >>> when_sent(PlaceShown(None, found, is_sent=True), one, None, "paused")
    ('only retries', 'retries and copies are not sent: paused')
    >>> when_sent(PlaceShown(PlaceInOrder(2, 11), found, because="sent first"), one, None)
    ('2 of 11', 'sent first')
    >>> when_sent(PlaceShown(PlaceInOrder(1, 11), replace(found, tier=-40)), one, None)
    ('1 of 11', 'level expedite')
    >>> when_sent(PlaceShown(PlaceInOrder(3, 12)), one, None)[0]
    'not ordered yet'
    """
    if batch.ended_at is not None:
        return DASH, ""
    if not batch.counts.unsent:
        waits = batch.counts.jobs_open > batch.counts.in_progress
        return "all sent", "open jobs wait for validation, or for new instances" if waits else ""
    if standing.is_sent:
        others = f"not sent: {stop}" if stop else "sent at the batch's place in the order"
        return "only retries", f"retries and copies are {others}"
    if stop:
        return "not sent", stop
    if standing.breakdown is None or standing.at is None:
        return "not ordered yet", ""
    place = f"{number(standing.at.place)} of {number(standing.at.of)}"
    before = "" if ahead is None else start_in_words(ahead)
    return place, "; ".join(filter(None, (level_deciding(standing), before)))


def target_in_words(batch: Batch, target_at: Instant, bound_s: Seconds, now: Instant) -> str:
    """Return where a batch's completion target C comes from, and what moves it. `bound_s` is its longest delay bound.

    >>> from dataclasses import replace
    >>> one = Batch(1, 7, 1, 1, "", QoS.LONG_DEADLINE, "active", Instant(0.0), 0, 0.0, Instant(0.0))
    >>> target_in_words(replace(one, deadline_at=Instant(9.0)), Instant(9.0), Seconds(60.0), Instant(0.0))
    'its deadline'
    >>> target_in_words(one, Instant(86400.0), Seconds(86400.0), Instant(0.0))
    'its delay bound, 1 d, after its submission; moves with each first dispatch, and when a forecast ends later'
    >>> sent = replace(one, last_first_dispatch_at=Instant(3600.0), completion_at=Instant(180000.0))
    >>> target_in_words(sent, Instant(90000.0), Seconds(86400.0), Instant(0.0)).partition(";")[0]
    'its delay bound, 1 d, after its last first dispatch'
    >>> target_in_words(sent, Instant(180000.0), Seconds(86400.0), Instant(0.0))
    'the latest end of a forecast; moves when a new one differs by more than 7 h 30 min'
    """
    if batch.deadline_at is not None:
        return "its deadline"
    sent_at = batch.created_at if batch.last_first_dispatch_at is None else batch.last_first_dispatch_at
    if batch.qos is QoS.LONG_DEADLINE and target_at <= later(sent_at, bound_s):
        since = "submission" if batch.last_first_dispatch_at is None else "last first dispatch"
        why = "moves with each first dispatch, and when a forecast ends later"
        return f"its delay bound, {in_words(bound_s)}, after its {since}; {why}"
    held_s = tolerance_s(target_at - now, bound_s)
    return f"the latest end of a forecast; moves when a new one differs by more than {in_words(held_s)}"


def tier_name(tier: int) -> str:
    """Return the name of a tier, "" for that of most batches.

    >>> [tier_name(tier) for tier in (0, -40, 2, 41, 140)]
    ['', 'expedite', 'tier 2', 'standby', 'unpaid']
    """
    expedite, standby = LEVEL_TIERS[ServiceLevel.EXPEDITE], LEVEL_TIERS[ServiceLevel.STANDBY]
    if tier >= standby:
        return "unpaid" if tier >= UNPAID_TIER + expedite else "standby"
    return "expedite" if tier < 0 else f"tier {tier}" if tier else ""


def tier_of(tier: int, first: int) -> str:
    """Return a tier in words, "" for that of most batches. `first`: the number of batches that are sent first.

    >>> [tier_of(tier, 0) for tier in (0, -40, 2, 41)]
    ['', 'expedite goes before all others', 'tier 2, lower ones go first', 'standby goes last']
    """
    if tier < 0:
        return expedite_in_words(first)
    lasts = tier >= LEVEL_TIERS[ServiceLevel.STANDBY]
    return f"{tier_name(tier)}{' goes last' if lasts else ', lower ones go first'}" if tier else ""


def moves(
    present: PlaceInOrder | None,
    then: PlaceInOrder | None,
    every_s: float,
    *,
    pending: bool,
    first: int = 0,
    stop: str = "",
) -> str:
    """Say where the next ordering puts a batch. `pending`: it has changed since the last one.

    `then`: None without fresh unsent instances. `first`: the number of batches that are sent first. `stop`: what keeps
    it from being sent, "" if nothing.

    >>> moves(PlaceInOrder(11, 12), PlaceInOrder(1, 12), 60.0, pending=True)
    'about position 1 of 12 from the next ordering on, within 60\\xa0s; now 11 of 12'
    >>> [moves(PlaceInOrder(1, 9), PlaceInOrder(1, 9), 60.0, pending=pending) for pending in (True, False)]
    ['the position stays 1 of 9', 'in force, position 1 of 9']
    >>> moves(None, PlaceInOrder(3, 9), 60.0, pending=True, first=2).partition(" from ")[0]
    'about position 3 of 9, after the 2 batches that are sent first,'
    >>> moves(None, None, 60.0, pending=True, stop="paused")
    'no position while it is not sent: paused'
    """
    if stop:
        return f"no position while it is not sent: {stop}"
    if then is None:
        return "each of its jobs is sent"
    place = f"{number(then.place)} of {number(then.of)}"
    if first and then.place == first + 1:
        place = f"{place}, after {the_first(first)}{',' * (present != then)}"
    if present == then:
        return f"the position stays {place}" if pending else f"in force, position {place}"
    was = "" if present is None else f"; now {number(present.place)} of {number(present.of)}"
    return f"about position {place} from the next ordering on, within {length(every_s)}{was}"


def levels_in_words(
    offered: Sequence[str], then: Mapping[ServiceLevel, PlaceInOrder], at: PlaceInOrder
) -> Mapping[str, str]:
    """Return levels with the positions that a batch would get, none if each keeps its position now, `at`.

    >>> first, last = PlaceInOrder(2, 8), PlaceInOrder(5, 8)
    >>> levels_in_words(["normal", "standby"], {"normal": first, "standby": last}, last)
    {'normal': 'normal: about 2 of 8', 'standby': 'standby: 5 of 8, as now'}
    >>> [levels_in_words(offered, {"normal": last}, last) for offered in (["normal", "standby"], ["normal"])]
    [{'normal': 'normal: 5 of 8, as now', 'standby': 'standby'}, {}]
    """
    places = {one: then.get(ServiceLevel(one)) for one in offered}
    return {} if set(places.values()) == {at} else {one: _with_place(one, to, at) for one, to in places.items()}


def _with_place(level: str, to: PlaceInOrder | None, at: PlaceInOrder) -> str:
    if to is None:
        return level
    place = f"{number(to.place)} of {number(to.of)}"
    return f"{level}: {f'{place}, as now' if to == at else f'about {place}'}"


def level_effect(standing: PlaceShown, stop: str, words: str, *, idle: bool) -> str:
    """Say what the level of a batch changes. `idle`: each level keeps its position; `stop`: what keeps it from being
    sent, "" if nothing; `words`: the effect under the policy.

    >>> first = PlaceShown(PlaceInOrder(1, 3), because="among those sent first, because it is an AFAP batch")
    >>> level_effect(first, "", "standby goes last", idle=True)
    'No level moves it now: it is among those sent first, because it is an AFAP batch.'
    >>> level_effect(PlaceShown(PlaceInOrder(1, 1)), "", "standby goes last", idle=True)
    'No level moves it now: no other batch would change places with it.'
    >>> level_effect(PlaceShown(PlaceInOrder(3, 3), first=2), "", "standby goes last", idle=True)
    'No level moves it now: the other batches are sent first at any level.'
    >>> level_effect(PlaceShown(PlaceInOrder(1, 2)), "", "standby goes last", idle=False)
    'Standby goes last.'
    """
    if stop:
        return f"It has no position while it is not sent: {stop}."
    if standing.at is None:
        return "Each of its jobs has been sent. The level matters only for retries and copies."
    if idle:
        alone = standing.at.of - standing.first <= 1 < standing.at.of
        why = "the other batches are sent first at any level" if alone else "no other batch would change places with it"
        why = f"it is {standing.because}" if standing.because else why
        return f"No level moves it now: {why}."
    if standing.because:
        return f"It is {standing.because}. Its level moves it only among these."
    return f"{words[:1].upper()}{words[1:]}."


def term(part: Contribution) -> str:
    """Explain the points given by a term.

    >>> term(Contribution("wait", "wait", 7200.0, "s", 0.25, None, 1000.0, 250.0))
    '1\\u202f000 × 0.25, computed from 2\\xa0h'
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


def short(name: str) -> str:
    """Return the name of a term that orders batches alone, for use before its value.

    >>> short("logical end time"), short("submitted at")
    ('rank value', 'submitted')
    """
    return "rank value" if name == "logical end time" else name.removesuffix(" at")
