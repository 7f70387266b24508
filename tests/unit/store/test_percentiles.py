"""Tests which apps are read together, and how rows are distributed to them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from domain.apps import NVIDIA, AppVersion, PlanClass
from domain.ranking import HAV_FIELDS
from domain.units import AppId, AppVersionId, Instant
from store.binary_copy import native_dtype
from store.percentiles import HOST_FIELDS, Sorter, bundles, complete

CUDA = PlanClass("cuda", gpu_type=NVIDIA)


@given(st.dictionaries(st.integers(1, 50).map(AppId), st.integers(0, 30), max_size=12), st.integers(1, 40))
def test_bundles_read_each_app_once_within_row_limit(sizes: dict[AppId, int], most: int) -> None:
    found = list(bundles(sizes, most_rows=most))

    assert [app_id for bundle in found for app_id in bundle] == sorted(sizes)
    assert all(len(bundle) == 1 or sum(sizes[app_id] for app_id in bundle) <= most for bundle in found)


def test_rows_are_put_with_their_app_in_the_order_they_come() -> None:
    sorter = Sorter({AppVersionId(1): AppId(1), AppVersionId(7): AppId(1), AppVersionId(3): AppId(2)})
    rows = np.zeros(30_000, native_dtype(HAV_FIELDS))
    rows["app_version_id"] = np.tile([1, 3, 7], 10_000)
    rows["host_id"] = np.arange(30_000)

    for block in np.array_split(rows, 7):
        sorter.take(block)

    assert sorter.table(AppId(2))["host_id"].tolist() == list(range(1, 30_000, 3))
    assert sorter.table(AppId(1))["host_id"].tolist() == [host for host in range(30_000) if host % 3 != 1]


def test_what_is_asked_of_hosts_is_looked_up_for_each_row() -> None:
    versions = [
        AppVersion(AppVersionId(1), AppId(1), "linux", 1),
        AppVersion(AppVersionId(2), AppId(1), "linux", 1, CUDA),
    ]
    hosts = np.array([(3, True, 0.5, 0.25), (9, False, 1.0, 1.0)], native_dtype(HOST_FIELDS))
    table = np.zeros(5, native_dtype(HAV_FIELDS))
    table["host_id"] = [3, 3, 9, 4, 10]  # 4 and 10 were added after the hosts were read
    table["app_version_id"] = [1, 2, 1, 1, 1]
    table["stats_at"] = [100.0, 100.0, 100.0, 100.0, 100.0]
    table["s_per_flop"] = 1.0

    complete(table, versions, hosts, used_at=Instant(100.0))

    assert table["active"].tolist() == [True, True, False, False, False]
    assert table["s_per_flop"][:3].tolist() == [2.0, 4.0, 1.0]
    complete(table, versions, hosts, used_at=Instant(101.0))
    assert not table["active"].any()


def test_without_hosts_nothing_is_active() -> None:
    table = np.ones(2, native_dtype(HAV_FIELDS))

    complete(table, [], np.zeros(0, native_dtype(HOST_FIELDS)), used_at=Instant(0.0))

    assert table["active"].tolist() == [False, False]
