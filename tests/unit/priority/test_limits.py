"""What holds a batch."""

from __future__ import annotations

from domain.limits import Limit, Quantity, RequestedAmounts, Scope
from priority.limits import eligible, holds, released

NAMES = {Scope.SUBMITTER: "ada", Scope.ACCOUNT: "lab", Scope.APP: "pi", Scope.QUEUE: "normal"}


def asked(**changes: object) -> RequestedAmounts:
    return RequestedAmounts(**{"names": NAMES, "amounts": {Quantity.JOBS: 1.0, Quantity.PE: 2.0}, **changes})  # type: ignore[arg-type]


def test_every_limit_that_holds_a_batch_is_named() -> None:
    limits = [
        Limit(Scope.SUBMITTER, Quantity.JOBS, hard=2.0),
        Limit(Scope.ACCOUNT, Quantity.PE, hard=3.0),
        Limit(Scope.QUEUE, Quantity.JOBS, hard=100.0),
    ]
    counts = {(Scope.SUBMITTER, "ada", Quantity.JOBS): 2.0, (Scope.ACCOUNT, "lab", Quantity.PE): 2.0}

    assert eligible(asked(held=True), limits, counts) == (
        "held by its submitter; hard limit of submitter ada: 2 and 1 more of at most 2 jobs in progress; "
        "hard limit of account lab: 2 and 2 more of at most 3 processor equivalents in progress"
    )


def test_a_limit_of_ones_own_comes_instead_of_everybodys() -> None:
    limits = [
        Limit(Scope.SUBMITTER, Quantity.JOBS, "ada", hard=10.0),
        Limit(Scope.SUBMITTER, Quantity.JOBS, hard=1.0),
        Limit(Scope.SUBMITTER, Quantity.JOBS, "bob", hard=0.0),
    ]
    counts = {(Scope.SUBMITTER, "ada", Quantity.JOBS): 5.0}

    assert eligible(asked(), limits, counts) is None
    assert eligible(asked(), limits[::-1], counts) is None


def test_a_soft_limit_does_not_hold() -> None:
    held = holds(asked(), [Limit(Scope.APP, Quantity.JOBS, soft=0.0)], {})

    assert held.reason() is None
    assert [one.sentence() for one in held.soft] == ["soft limit of app pi: 0 and 1 more of at most 0 jobs in progress"]


def test_standby_is_free_of_size_and_run_time_limits_alone() -> None:
    limits = [
        Limit(Scope.QUEUE, Quantity.JOB_RUNTIME_S, hard=60.0),
        Limit(Scope.QUEUE, Quantity.JOBS, hard=0.0),
    ]
    amounts = {Quantity.JOB_RUNTIME_S: 3600.0, Quantity.JOBS: 1.0}

    assert eligible(asked(amounts=amounts), limits[:1], {}) == (
        "hard limit of queue normal: 3600 of at most 60 seconds of one job"
    )
    assert eligible(asked(amounts=amounts, standby=True), limits[:1], {}) is None
    assert eligible(asked(amounts=amounts, standby=True), limits, {}) is not None


def test_a_release_pass_counts_what_it_releases_itself() -> None:
    waiting = [(number, asked()) for number in range(5)]
    gone = released(waiting, [Limit(Scope.SUBMITTER, Quantity.JOBS, hard=3.0)], {})

    assert [key for key, _ in gone] == [0, 1, 2]


def test_all_within_soft_limits_go_before_those_within_hard_ones() -> None:
    bob = asked(names={**NAMES, Scope.SUBMITTER: "bob"})
    waiting = [("a1", asked()), ("a2", asked()), ("b1", bob)]
    gone = released(waiting, [Limit(Scope.SUBMITTER, Quantity.JOBS, soft=1.0, hard=8.0)], {})

    assert [(key, bool(held.soft)) for key, held in gone] == [("a1", False), ("b1", False), ("a2", True)]
