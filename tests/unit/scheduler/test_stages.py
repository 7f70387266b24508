"""The stages of a request: those that can find something."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.context import SchedulingContext
from scheduler.stages import Stage, stages_of
from tests.builders import a_volunteer, an_app
from tests.unit.scheduler.arrays import ListGroup, a_catalogue, a_group, an_asking

BETA = a_catalogue(apps=[an_app(beta=True)], scheduler__afap_first_fraction=0.0)


def asking_with(**changes: Any) -> SchedulingContext:
    return an_asking(**{"catalogue": a_catalogue(scheduler__afap_first_fraction=0.0), **changes})


def paid_and_unpaid() -> list[ListGroup]:
    return [a_group(1), a_group(2, unpaid=True)]


PLAIN = (Stage.GATED, Stage.ALL, Stage.LEFT_OVER)


def test_most_requests_have_stages_gated_all_and_left_over() -> None:
    assert stages_of(asking_with(), [a_group()]) == PLAIN


def test_nothing_is_looked_at_where_there_is_nothing() -> None:
    assert stages_of(asking_with(), []) == ()


@pytest.mark.parametrize(
    ("changes", "more"),
    [
        ({"sticky_files": frozenset({"data"})}, Stage.LOCALITY),
        ({"catalogue": BETA, "volunteer": a_volunteer(beta=True)}, Stage.BETA),
        ({"catalogue": a_catalogue(scheduler__afap_first_fraction=1.0)}, Stage.PROMPT),
    ],
)
def test_what_a_host_has_or_asks_for_is_a_pass_before_everything(changes: dict[str, Any], more: Stage) -> None:
    assert stages_of(asking_with(**changes), [a_group()]) == (Stage.GATED, more, Stage.ALL, Stage.LEFT_OVER)


@pytest.mark.parametrize(
    "changes", [{"catalogue": BETA}, {"volunteer": a_volunteer(beta=True)}, {"sticky_files": frozenset()}]
)
def test_what_a_host_can_have_nothing_in_is_no_pass(changes: dict[str, Any]) -> None:
    assert stages_of(asking_with(**changes), [a_group()]) == PLAIN


def test_unpaid_work_is_the_last_stage_if_there_is_any() -> None:
    assert stages_of(asking_with(), paid_and_unpaid()) == (*PLAIN, Stage.UNPAID)


def test_a_rule_without_gates_looks_at_everything_once() -> None:
    fixed = a_catalogue(deadline__rule="fixed")

    assert stages_of(asking_with(catalogue=fixed), [a_group()]) == (Stage.ALL,)
