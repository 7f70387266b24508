"""Each ask gets its own outcome under any mix of concurrency, failures, lost connections and cancellations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.facts import missing
from tests.properties.group_course import SITS_OUT, Course, Kind
from tests.properties.stepped import Fate, Place

some = st.integers(0, 1000)  # one of the existing ones
fates = st.one_of(st.just(Fate.DONE), st.sampled_from(Fate))
CROWD = 25  # concurrent asks: more than 20 groups of one

# ---------------------------------------------------------------- any course of events


class Courses(RuleBasedStateMachine):
    """Events in any order, at any turn of the event loop."""

    course: Course
    end: Fate  # of the sessions

    @initialize(
        lanes=st.integers(1, 3),
        most=st.integers(1, 4),
        kind=st.sampled_from([Kind.WRITES, Kind.WRITES_AT_ONCE, Kind.READS]),
        end=fates,
    )
    def begin(self, lanes: int, most: int, kind: Kind, end: Fate) -> None:
        self.end = end
        self.course = Course(lanes=lanes, most=most, kind=kind)

    @rule(row=st.integers(0, 2), count=st.integers(1, 3))
    def good_asks(self, row: int, count: int) -> None:
        for number in range(count):
            self.course.ask(row=(row + number) % 3)

    @rule(row=st.integers(0, 2))
    def a_bad_ask(self, row: int) -> None:
        self.course.ask(row=row, bad=True)

    @rule(row=st.integers(0, 2), conflicts=st.integers(1, 6))
    def an_ask_that_meets_other_nodes(self, row: int, conflicts: int) -> None:
        self.course.ask(row=row, conflicts=conflicts)

    @precondition(lambda self: self.course.most == 1)
    @rule()
    def a_crowd(self) -> None:
        for number in range(CROWD):
            self.course.ask(row=number % 3)

    @precondition(lambda self: self.course.requesters)
    @rule(which=some)
    def an_asker_leaves(self, which: int) -> None:
        self.course.cancel(which % len(self.course.requesters))

    @precondition(lambda self: self.course.database.pending)
    @rule(which=some, fate=fates)
    def a_step(self, which: int, fate: Fate) -> None:
        self.course.let(which % len(self.course.database.pending), fate)

    @precondition(lambda self: self.course.database.pending)
    @rule(count=st.integers(1, 8))
    def good_steps(self, count: int) -> None:
        for _ in range(count):
            self.course.rest()
            if self.course.database.pending:
                self.course.let(0)

    @precondition(lambda self: self.course.database.sessions)
    @rule(which=some)
    def a_session_ends(self, which: int) -> None:
        self.course.cut(which % len(self.course.database.sessions))

    @rule(turns=st.integers(1, 20))
    def time_passes(self, turns: int) -> None:
        self.course.turn(turns)

    @rule()
    def everything_comes_to_rest(self) -> None:
        self.course.rest()

    @precondition(lambda self: len(self.course.requesters) > 3)
    @rule()
    def closing(self) -> None:
        self.course.close()

    @invariant()
    def holds_now(self) -> None:
        self.course.check_now()

    def teardown(self) -> None:
        if hasattr(self, "course"):
            self.course.finish(self.end)


def test_each_ask_gets_its_own_outcome_exactly_once() -> None:
    run_state_machine_as_test(Courses, settings=settings(max_examples=150, stateful_step_count=40, deadline=None))


# ---------------------------------------------------------------- every course of a small world

HELD_UP = frozenset({Place.READ, Place.COMMIT})
TROUBLES = (Fate.REFUSED, Fate.LOST, Fate.UNHEARD, Fate.SILENT, Fate.BROKEN_OFF)
BAD = {"bad": True}
MANY = pytest.mark.faults  # tens of thousands of courses; `make faults` runs them
Choose = Callable[[int], int]  # one of this many


def every_course(run: Callable[[Choose], None]) -> int:
    """Run it once for every sequence of choices; return how many there were."""
    count, prefix = 0, list[int]()
    while True:
        taken: list[tuple[int, int]] = []

        def choose(options: int, taken: list[tuple[int, int]] = taken, prefix: Sequence[int] = tuple(prefix)) -> int:
            chosen = prefix[len(taken)] if len(taken) < len(prefix) else 0
            taken.append((chosen, options))
            return chosen

        run(choose)
        count += 1
        while taken and taken[-1][0] + 1 == taken[-1][1]:
            taken.pop()
        if not taken:
            return count
        prefix = [chosen for chosen, _ in taken]
        prefix[-1] += 1


def three_asks(asks: Sequence[dict[str, Any]], kind: Kind, choose: Choose) -> None:
    """Asks arrive, singly or together, and steps happen in a chosen order, with one failure at a chosen moment."""
    course, coming, troubles = Course(kind=kind, gated=HELD_UP), list(asks), [True]

    def trouble(happens: Callable[[], object]) -> None:
        troubles.clear()
        happens()

    def arrive(count: int) -> None:
        for _ in range(count):
            course.ask(**coming.pop(0))

    while True:
        course.rest()
        course.check_now()
        steps = range(len(course.database.pending))
        if not coming and not steps:
            break
        options: list[Callable[[], object]] = [partial(course.let, which) for which in steps]
        options += [partial(arrive, count) for count in range(1, len(coming) + 1)]
        if troubles:
            sad = [partial(course.let, which, fate) for which in steps for fate in TROUBLES]
            left = [
                partial(course.cancel, number)
                for number, requester in course.requesters.items()
                if not requester.done()
            ]
            happenings: list[Callable[[], object]] = [*sad, *left, course.close]
            options += [partial(trouble, happens) for happens in happenings]
        options[choose(len(options))]()
    course.finish()


@pytest.mark.parametrize("kind", Kind)
@pytest.mark.parametrize(
    "asks",
    [
        pytest.param(({}, {"row": 1}, {"row": 2}), id="of three rows", marks=MANY),
        pytest.param(({}, {}, {"row": 1}), id="two of one row", marks=MANY),
        pytest.param(({}, BAD, {"row": 1}), id="one bad"),
        pytest.param((BAD, {}, {"conflicts": 1}), id="one bad and one with a conflict", marks=MANY),
    ],
)
def test_every_order_of_three_asks_their_steps_and_one_trouble(asks: Sequence[dict[str, Any]], kind: Kind) -> None:
    assert every_course(partial(three_asks, asks, kind)) > 400


# ---------------------------------------------------------------- one event at any turn of the loop

EVENTS: dict[str, Callable[[Course], object]] = {
    "the first ask is cancelled": lambda course: course.cancel(0),
    "the last ask is cancelled": lambda course: course.cancel(3),
    "all asks are cancelled": lambda course: course.cancel(*course.requesters),
    "another asks": lambda course: course.ask(row=1),
    "it is closed": lambda course: course.close(),
    "a session ends": lambda course: course.cut(0) if course.database.sessions else None,
    "the next step is refused": lambda course: course.let(0, Fate.REFUSED) if course.database.pending else None,
    "the next step is lost": lambda course: course.let(0, Fate.LOST) if course.database.pending else None,
    "the next step is unanswered": lambda course: course.let(0, Fate.UNHEARD) if course.database.pending else None,
    "the next step is cancelled": lambda course: course.let(0, Fate.BROKEN_OFF) if course.database.pending else None,
}
TURNS = 80  # more than four asks need from start to end


@pytest.mark.parametrize("kind", [Kind.WRITES, Kind.WRITES_AT_ONCE])
@pytest.mark.parametrize("happens", EVENTS.values(), ids=EVENTS)
def test_an_event_may_come_at_any_turn_of_the_loop(happens: Callable[[Course], object], kind: Kind) -> None:
    for turns_before in range(TURNS + 1):
        course = Course(kind=kind)
        for row in range(4):
            course.ask(row=row % 3, bad=row == 1)
        for _ in range(turns_before):
            if course.database.pending:
                course.let(0)
            course.turn()
            course.check_now()
        assert turns_before < TURNS or all(requester.done() for requester in course.requesters.values())
        happens(course)
        course.finish()


# ---------------------------------------------------------------- what once went wrong


def steps_of(course: Course, *wanted: tuple[Place, Fate]) -> None:
    """Let the only pending step happen, repeatedly; each must be the expected one."""
    for place, fate in wanted:
        course.rest()
        assert [step.place for step in course.database.pending] == [place]
        course.let(0, fate)
    course.rest()


def a_round(*places: Place) -> list[tuple[Place, Fate]]:
    return [(place, Fate.DONE) for place in places]


REFUSED_ROUND = a_round(Place.BEGIN, Place.READ, Place.ROLLBACK)


def test_singles_fail_at_once_without_a_connection() -> None:
    """Otherwise each would block the lane for the time-out of its own connection."""
    course = Course(lanes=1, most=4)
    for row in range(4):
        course.ask(row=row, bad=row == 0)
    steps_of(
        course,
        *a_round(Place.CONNECT),
        *REFUSED_ROUND,  # all four
        *REFUSED_ROUND,  # the first two
        *REFUSED_ROUND,  # the bad one alone
        (Place.BEGIN, Fate.LOST),  # the second alone
        (Place.CONNECT, Fate.REFUSED),  # the other asks wait for this
    )

    assert course.database.pending == []
    refused = [str(requester.exception()) for requester in list(course.requesters.values())[2:]]
    assert [missing(why, "unavailable: refused") for why in refused] == [[], []]
    course.finish()


def in_one_lane(most: int, **bad: Any) -> list[list[int]]:
    """Return the groups of this many asks, when only one ask, a third from the end, has a problem."""
    course = Course(lanes=1, most=most, gated=frozenset())
    for row in range(most):
        course.ask(row=row, **(bad if row == most - most // 3 else {}))
    course.finish()
    return [[ask.number for ask in attempt.asks] for attempt in course.database.attempts]


def test_group_is_halved_until_a_bad_ask_is_alone() -> None:
    groups = in_one_lane(8, bad=True)
    assert groups == [[*range(8)], [0, 1, 2, 3], [4, 5, 6, 7], [4, 5], [6, 7], [6], [7]]


@pytest.mark.parametrize("most", [2, 3, 16, 33, 64])
def test_one_bad_member_costs_two_transactions_for_each_halving(most: int) -> None:
    assert len(in_one_lane(most, bad=True)) <= 1 + 2 * (most - 1).bit_length()


def test_conflicting_group_is_retried_as_a_whole() -> None:
    assert in_one_lane(8, conflicts=1) == [[*range(8)]] * 2


def test_a_group_that_meets_others_again_and_again_is_halved() -> None:
    """The half without conflicts is not retried; asks with conflicts alone are retried more often."""
    groups = in_one_lane(4, conflicts=5)
    assert groups == [[0, 1, 2, 3], [0, 1, 2, 3], [0, 1], [2, 3], [2], [3], [3], [3]]


def test_members_that_left_meanwhile_are_not_done_again() -> None:
    course = Course(lanes=1, most=4, gated=frozenset({Place.ROLLBACK}))
    for row in range(4):
        course.ask(row=row, bad=row == 0)
    course.rest()
    course.cancel(1, 2, 3)
    course.finish()
    assert [len(attempt.asks) for attempt in course.database.attempts] == [4, 1]


@pytest.mark.parametrize(("fate", "served"), [(Fate.FULL, 0), (Fate.TOO_MUCH, 4)])
def test_a_server_without_room_keeps_its_connection(fate: Fate, served: int) -> None:
    """With a full disk every ask fails without a retry; a group too large for the memory succeeds in halves."""
    course = Course(lanes=1, most=4)
    for row in range(4):
        course.ask(row=row)
    steps_of(course, *a_round(Place.CONNECT, Place.BEGIN, Place.READ), (Place.WRITE, fate), *a_round(Place.ROLLBACK))
    course.finish()
    assert len(course.database.sessions) == 1
    assert sum(requester.exception() is None for requester in course.requesters.values()) == served


def test_waiters_stay_with_a_lane_that_can_connect() -> None:
    course = Course(lanes=2, most=1)
    course.ask(row=0)
    steps_of(course, *a_round(Place.CONNECT))
    course.ask(row=1)  # while the first lane is busy, a second one connects
    course.ask(row=2)
    course.rest()
    assert sorted(step.place for step in course.database.pending) == [Place.BEGIN, Place.CONNECT]
    course.let([step.place for step in course.database.pending].index(Place.CONNECT), Fate.REFUSED)
    course.rest()
    assert [step.place for step in course.database.pending] == [Place.BEGIN]  # it pauses
    course.finish()
    assert [requester.exception() for requester in course.requesters.values()] == [None] * 3


def test_unconnected_lane_retries_after_some_groups() -> None:
    course = Course(lanes=2, most=1, gated=frozenset({Place.CONNECT, Place.COMMIT}))
    for row in range(5):
        course.ask(row=row % 3)
    course.rest()
    assert [step.place for step in course.database.pending] == [Place.CONNECT, Place.CONNECT]
    course.let(0)
    course.rest()
    course.let(0, Fate.REFUSED)  # the second lane, after the first has begun
    steps_of(course, *a_round(*[Place.COMMIT] * SITS_OUT))
    assert Place.CONNECT in [step.place for step in course.database.pending]
    course.finish()


def test_reconnects_after_all_waiters_failed() -> None:
    course = Course(lanes=1, most=1)
    course.ask()
    steps_of(course, (Place.CONNECT, Fate.REFUSED))
    second = course.ask()
    steps_of(course, *a_round(Place.CONNECT, Place.BEGIN, Place.READ, Place.WRITE, Place.COMMIT))
    assert course.requesters[second].result().number == second
    course.finish()


def test_a_session_that_did_not_answer_in_time_is_not_used_again() -> None:
    course = Course(lanes=1, most=1)
    course.ask()
    steps_of(course, *a_round(Place.CONNECT, Place.BEGIN), (Place.READ, Fate.SILENT))
    assert not missing(str(course.requesters[0].exception()), "unavailable: TimeoutError")
    course.ask()
    steps_of(course, *a_round(Place.CONNECT))
    course.finish()


def test_cancelled_statement_fails_its_group_only() -> None:
    course = Course(lanes=1, most=2)
    for row in range(3):
        course.ask(row=row)
    steps_of(course, *a_round(Place.CONNECT, Place.BEGIN), (Place.READ, Fate.BROKEN_OFF))
    told = [str(requester.exception()) for requester in list(course.requesters.values())[:2]]
    assert [missing(why, "unavailable: CancelledError") for why in told] == [[], []]
    steps_of(course, *a_round(Place.CONNECT, Place.BEGIN, Place.READ, Place.WRITE, Place.COMMIT))
    assert course.requesters[2].result().number == 2
    course.finish()


def test_connection_lost_before_first_statement_counts_as_none() -> None:
    """If the server accepts and closes at once, waiting asks fail, without endless reconnects."""
    course = Course(lanes=1, most=2)
    course.ask()
    course.rest()
    course.let(0)
    while not course.database.sessions:
        course.turn()
    course.cut(0)
    course.rest()
    assert course.database.pending == []
    assert "lost as soon as it was made" in str(course.requesters[0].exception())
    course.finish()


def test_waiters_fail_at_once_with_one_lane_refused() -> None:
    course = Course(lanes=2, most=1)
    course.ask(row=0)
    course.ask(row=1)
    course.rest()
    assert [step.place for step in course.database.pending] == [Place.CONNECT, Place.CONNECT]
    course.let(1, Fate.REFUSED)
    course.rest()
    refused = [str(requester.exception()) for requester in course.requesters.values()]
    assert [missing(why, "unavailable: refused") for why in refused] == [[], []]
    course.finish()
