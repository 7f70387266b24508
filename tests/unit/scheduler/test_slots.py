"""Which slots a newcomer looks at in vain, and which is the next for it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from domain.draws import draw
from domain.hosts import HostAppVersion
from domain.jobs import Ready
from domain.refusals import RefusalCode
from domain.units import AppVersionId, HostId
from scheduler.slots import RETRIES_FOR_ALL, next_for_newcomers, record_refusal
from tests.builders import a_ready
from tests.unit.scheduler.arrays import ListGroup, a_catalogue, a_group, an_asking, some_cuts

FRACTION = 0.05


def some_slots(count: int) -> tuple[ListGroup, list[Ready]]:
    group = a_group(size=count)
    return group, group.ready


def looked_for(slots: list[Ready], at: int, most: int) -> tuple[int, int]:
    """The definition, slot by slot."""
    end = min(len(slots), at + most)
    for place in range(at, end):
        if draw(slots[place].instance_id) < FRACTION:
            return place - at, place
    return end - at, len(slots)


def test_the_next_slot_for_newcomers_is_what_looking_one_by_one_finds() -> None:
    group, slots = some_slots(200)
    for at in range(200):
        for most in (1, 8, 64, 1024):
            assert next_for_newcomers(group, slots, at, FRACTION, most=most) == looked_for(slots, at, most)


def test_newcomers_that_get_nothing_look_at_nothing() -> None:
    group, slots = some_slots(10)

    assert next_for_newcomers(group, slots, 0, 0.0, most=8) == (0, 10)


def test_urgent_slots_are_for_no_newcomer() -> None:
    group = a_group(ready=[a_ready(retries=1)])

    assert next_for_newcomers(group, group.slots(), 0, 1.0, most=8) == (0, 1)


@pytest.mark.parametrize(("n_valid", "ranked", "is_refused"), [(0, True, True), (1, True, False), (0, False, False)])
def test_a_job_retried_often_needs_a_host_with_a_result(n_valid: int, ranked: bool, is_refused: bool) -> None:
    """Where hosts are ranked; a new project has none with a record."""
    group = a_group(ready=[a_ready(retries=RETRIES_FOR_ALL)])
    havs = {AppVersionId(1): HostAppVersion(HostId(1), AppVersionId(1), n_valid=n_valid)}
    asking = an_asking(havs=havs)
    if ranked:
        asking = replace(asking, catalogue=a_catalogue(cuts=[some_cuts()]))
    refusal = record_refusal(group.slots()[0], group, asking)
    assert (refusal is not None) is is_refused
    if refusal is not None:
        assert refusal.code is RefusalCode.RECORD_NEEDED
        assert refusal.detail == "job 1 was retried 3 times; beyond 2 retries a host needs a valid result"
