"""Tests that low-turnaround hosts computed from tables are those of the definition."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest

from domain.units import AppId, BatchId, HostId, JobId, Seconds
from store.binary_copy import Table, native_dtype
from store.memory.columns import NAN, RETURN_FIELDS, low_turnaround_of, without
from tests.cases.reference.acceleration import Returned, low_turnaround


def table(returned: Sequence[Returned]) -> Table:
    rows = [(n, one.host_id, NAN if one.turnaround_s is None else one.turnaround_s) for n, one in enumerate(returned)]
    return np.array(rows, native_dtype(RETURN_FIELDS))


def batch_of(number: int, draw: random.Random, *, hosts: int, results: int, whole: bool) -> list[Returned]:
    """Whole seconds, so that means are exactly 1 or close to it."""

    def turnaround_s() -> Seconds | None:
        if draw.random() < 0.02:
            return None
        return Seconds(float(draw.randint(0, 4)) if whole else draw.lognormvariate(0.0, 1.0))

    ids = [HostId(draw.randint(1, hosts)) for _ in range(results)]
    return [Returned(BatchId(number), AppId(1 + number % 2), host_id, turnaround_s()) for host_id in ids]


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_tables_give_what_the_definition_gives(seed: int, *, whole: bool) -> None:
    draw = random.Random(seed)
    sizes = (0, 99, 103, 400, 1001)
    batches = [batch_of(n, draw, hosts=150, results=size, whole=whole) for n, size in enumerate(sizes, 1)]

    found = low_turnaround_of((BatchId(n), AppId(1 + n % 2), table(some)) for n, some in enumerate(batches, 1))

    assert found == low_turnaround([one for some in batches for one in some])
    assert found.hosts and len(found.median_s) in (3, 2)


def test_borderline_mean_is_decided_by_exact_sum() -> None:
    thirds = [Returned(BatchId(1), AppId(1), HostId(1), Seconds(s)) for s in (0.1, 0.2, 2.7)]  # their mean is 1
    others = [Returned(BatchId(1), AppId(1), HostId(2), Seconds(1.0)) for _ in range(100)]

    assert low_turnaround_of([(BatchId(1), AppId(1), table([*thirds, *others]))]) == low_turnaround([*thirds, *others])


def test_jobs_may_be_left_out() -> None:
    rows = table([Returned(BatchId(1), AppId(1), HostId(n), Seconds(1.0)) for n in (7, 8, 9)])

    assert without(rows, {JobId(1)})["host_id"].tolist() == [7, 9]
    assert without(rows, ()) is rows
