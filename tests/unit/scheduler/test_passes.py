"""Which passes a request has: those that may look at something."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.asking import Asking
from scheduler.passes import Pass, passes_of
from tests.builders import a_volunteer, an_app
from tests.unit.scheduler.arrays import ListGroup, a_catalogue, a_group, an_asking

BETA = a_catalogue(apps=[an_app(beta=True)], scheduler__afap_first_fraction=0.0)


def asking_with(**changes: Any) -> Asking:
    return an_asking(**{"catalogue": a_catalogue(scheduler__afap_first_fraction=0.0), **changes})


def paid_and_unpaid() -> list[ListGroup]:
    return [a_group(1), a_group(2, unpaid=True)]


PLAIN = (Pass.GATED, Pass.ALL, Pass.LEFT_OVER)


def test_most_requests_have_gated_jobs_everything_and_what_is_left_over() -> None:
    assert passes_of(asking_with(), [a_group()]) == PLAIN


def test_nothing_is_looked_at_where_there_is_nothing() -> None:
    assert passes_of(asking_with(), []) == ()


@pytest.mark.parametrize(
    ("changes", "more"),
    [
        ({"sticky_files": frozenset({"data"})}, Pass.LOCALITY),
        ({"catalogue": BETA, "volunteer": a_volunteer(beta=True)}, Pass.BETA),
        ({"catalogue": a_catalogue(scheduler__afap_first_fraction=1.0)}, Pass.PROMPT),
    ],
)
def test_what_a_host_has_or_asks_for_is_a_pass_before_everything(changes: dict[str, Any], more: Pass) -> None:
    assert passes_of(asking_with(**changes), [a_group()]) == (Pass.GATED, more, Pass.ALL, Pass.LEFT_OVER)


@pytest.mark.parametrize(
    "changes", [{"catalogue": BETA}, {"volunteer": a_volunteer(beta=True)}, {"sticky_files": frozenset()}]
)
def test_what_a_host_can_have_nothing_in_is_no_pass(changes: dict[str, Any]) -> None:
    assert passes_of(asking_with(**changes), [a_group()]) == PLAIN


def test_work_that_is_charged_nothing_is_the_last_pass_where_there_is_some() -> None:
    assert passes_of(asking_with(), paid_and_unpaid()) == (*PLAIN, Pass.UNPAID)


def test_a_rule_without_gates_looks_at_everything_once() -> None:
    fixed = a_catalogue(deadline__rule="fixed")

    assert passes_of(asking_with(catalogue=fixed), [a_group()]) == (Pass.ALL,)
