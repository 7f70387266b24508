"""Cursors round-trip, and invalid ones are refused."""

from __future__ import annotations

import pytest

from administration.cursors import cursor_of, place_of
from domain.errors import InvalidInputError
from domain.host_lists import HostPlace
from domain.units import BatchId, HostId, InstanceId, Instant
from domain.views import BatchPlace, InstancePlace
from domain.volunteers import ResultPlace
from tests.facts import states


def test_cursors_round_trip() -> None:
    third = 0.1 + 0.2
    result = ResultPlace(Instant(1.8e9 + third), InstanceId(77))
    instance = InstancePlace(2, InstanceId(77))
    host = HostPlace(HostId(7), third, 3)
    batch = BatchPlace(BatchId(7), float("-inf"), third)

    assert place_of(ResultPlace, cursor_of(result)) == result
    assert place_of(InstancePlace, cursor_of(instance)) == instance
    assert place_of(HostPlace, cursor_of(host)) == host
    assert place_of(BatchPlace, cursor_of(batch)) == batch
    assert place_of(BatchPlace, "") is None


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        (ResultPlace, ("x", "1", "1~2~3", "nan~2", "inf~2", "1~0", f"1~{2**62}")),
        (InstancePlace, ("1.5~2", "-1~2", "32768~2", "1~0")),
        (HostPlace, ("1~2", "0~0.0~0", "1~inf~0", "1~0.0~-1", "2147483648~0.0~0")),
        (BatchPlace, ("0~0.0~0.0", "1~nan~0.0", "1~0.0~x")),
    ],
)
def test_invalid_cursor_is_refused(kind: type[ResultPlace], texts: tuple[str, ...]) -> None:
    for text in texts:
        with states(InvalidInputError, "after:", "cursor"):
            place_of(kind, text)
