"""Work divided over host classes so that all finish at the same time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.units import Flop, FlopPerSecond, Seconds
from priority.node_groups import HostClass, drawn_class, expected_s, shares

CLASSES = st.lists(
    st.tuples(st.floats(0.0, 1e6), st.floats(0.0, 1e3), st.floats(0.0, 1e5), st.integers(0, 5)), max_size=6
).map(
    lambda rows: [
        HostClass(str(n), Flop(queued), FlopPerSecond(speed), Seconds(turnaround), hosts)
        for n, (queued, speed, turnaround, hosts) in enumerate(rows)
        if speed == 0.0 or speed > 1e-3
    ]
)


@given(CLASSES, st.floats(1.0, 1e9), st.integers(1, 3))
def test_shares_make_up_the_work_and_all_classes_end_together(
    classes: list[HostClass], work: float, replicas: int
) -> None:
    found = shares(classes, Flop(work), replicas=replicas)
    timed = [
        (seconds, one.name) for one in classes if one.hosts >= replicas and (seconds := expected_s(one)) is not None
    ]

    assert bool(found) == bool(timed)
    if not timed:
        return
    assert sum(found.values()) == pytest.approx(1.0, rel=1e-6)
    assert min(timed)[1] in found
    ends = [
        one.turnaround_s + (one.queued_flop + found[one.name] * work) / one.speed
        for one in classes
        if one.name in found
    ]
    assert max(ends) == pytest.approx(min(ends), rel=1e-6)
    left_out = [expected_s(one) for one in classes if one.name not in found and one.hosts >= replicas]
    assert all(one is None or one >= min(ends) * (1.0 - 1e-9) for one in left_out)


@given(st.floats(0.0, 1.0, exclude_max=True))
def test_every_number_belongs_to_a_class(drawn: float) -> None:
    assert drawn_class({"a": 0.3, "b": 0.7 - 1e-12}, drawn) in {"a", "b"}
