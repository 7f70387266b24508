"""Limits that block a batch."""

from __future__ import annotations

from domain.limits import Limit, Quantity, RequestedAmounts, Scope
from priority.limits import holds
from tests.facts import missing

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

    held, submitter, account = (holds(asked(held=True), limits, counts).reason() or "").split("; ")
    assert not missing(held, "held", "submitter")
    assert not missing(submitter, "hard", "submitter ada:", "2 + 1 > 2 jobs")
    assert not missing(account, "hard", "account lab:", "2 + 2 > 3 processor equivalents")


def test_a_limit_of_ones_own_comes_instead_of_everybodys() -> None:
    limits = [
        Limit(Scope.SUBMITTER, Quantity.JOBS, "ada", hard=10.0),
        Limit(Scope.SUBMITTER, Quantity.JOBS, hard=1.0),
        Limit(Scope.SUBMITTER, Quantity.JOBS, "bob", hard=0.0),
    ]
    counts = {(Scope.SUBMITTER, "ada", Quantity.JOBS): 5.0}

    assert holds(asked(), limits, counts).reason() is None
    assert holds(asked(), limits[::-1], counts).reason() is None


def test_a_soft_limit_does_not_hold() -> None:
    held = holds(asked(), [Limit(Scope.APP, Quantity.JOBS, soft=0.0)], {})

    assert held.reason() is None
    assert [missing(one.sentence(), "soft", "app pi:", "0 + 1 > 0 jobs") for one in held.soft] == [[]]


def test_standby_is_free_of_size_and_run_time_limits_alone() -> None:
    limits = [
        Limit(Scope.QUEUE, Quantity.JOB_RUNTIME_S, hard=60.0),
        Limit(Scope.QUEUE, Quantity.JOBS, hard=0.0),
    ]
    amounts = {Quantity.JOB_RUNTIME_S: 3600.0, Quantity.JOBS: 1.0}

    reason = holds(asked(amounts=amounts), limits[:1], {}).reason() or ""
    assert not missing(reason, "hard", "queue normal:", "3600 > 60 seconds per job")
    assert holds(asked(amounts=amounts, standby=True), limits[:1], {}).reason() is None
    assert holds(asked(amounts=amounts, standby=True), limits, {}).reason() is not None
