"""An app's rows, split by processor type and decayed to the time of the run."""

from __future__ import annotations

import numpy as np
import pytest

from domain.apps import CPU, NVIDIA, App, AppVersion, PlanClass
from domain.ranking import AppFacts
from domain.settings import Settings
from domain.units import AppId, AppVersionId, Instant
from hoststats.apps import rank_app
from tests.builders import NOW
from tests.unit.hoststats.populations import Line, a_table

APP = App(AppId(1), "pi")
ON_CPU = AppVersion(AppVersionId(1), AppId(1), "linux", 100)
ON_WINDOWS = AppVersion(AppVersionId(2), AppId(1), "windows_x86_64", 100)
ON_GPU = AppVersion(AppVersionId(3), AppId(1), "linux", 100, PlanClass("cuda", gpu_type=NVIDIA))


def test_hosts_are_ranked_per_processor_type() -> None:
    slow_cpus = [Line(5.0 + score / 100, 12) for score in range(15)]
    fast_gpus = [Line(score / 100, 12) for score in range(30)]
    tables = [a_table(slow_cpus), a_table(slow_cpus, app_version_id=2), a_table(fast_gpus, app_version_id=3)]

    parts = list(
        rank_app(
            APP,
            [ON_CPU, ON_WINDOWS, ON_GPU],
            np.concatenate(tables),
            facts=AppFacts(),
            now=NOW,
            settings=Settings(),
        )
    )

    assert [(part.cuts.processor_type, part.summary.population) for part in parts] == [(NVIDIA, 30), (CPU, 30)]
    for part in parts:
        assert float(np.max(part.percentiles["p"])) >= 0.96
        assert float(np.mean(part.percentiles["x"])) == pytest.approx(0.5)


def test_samples_that_have_faded_do_not_count() -> None:
    month_ago = a_table([Line(0.0, 5, n=10.0)] * 30, at=NOW - 28 * 86400.0)  # 2.5 samples are left

    [part] = rank_app(APP, [ON_CPU], month_ago, facts=AppFacts(), now=NOW, settings=Settings())

    assert (part.summary.population, part.summary.newcomers) == (0, 30)


def test_few_samples_shrink_to_the_mean_of_hosts() -> None:
    lines = [Line(0.0, 5, n=1000.0), Line(2.0, 5, n=4.0)]

    [part] = rank_app(APP, [ON_CPU], a_table(lines), facts=AppFacts(), now=NOW, settings=Settings())

    assert part.cuts.score_mean == pytest.approx(1.0)
    assert part.cuts.turnaround == pytest.approx((2.0 / 1002.0, 10.0 / 6.0))


def test_sums_of_the_future_are_left_as_they_are() -> None:
    table = a_table([Line(1.0, 0, n=4.0)], at=NOW + 60.0)

    [part] = rank_app(APP, [ON_CPU], table, facts=AppFacts(), now=NOW, settings=Settings())

    assert part.summary.population == 1
    assert float(table["relaxed_n"][0]) == 4.0


def test_newcomers_of_large_population_are_counted_not_written() -> None:
    lines = [*(Line(float(score), 12) for score in range(20)), Line(0.0, 0, n=1.0)]

    [part] = rank_app(APP, [ON_CPU], a_table(lines), facts=AppFacts(), now=NOW, settings=Settings())

    assert (part.summary.rows, part.summary.ranked, part.summary.newcomers) == (21, 20, 1)
    assert 21 not in part.percentiles["host_id"]
    assert not part.summary.small_population


def test_app_without_rows_has_no_part() -> None:
    table = a_table([])

    assert list(rank_app(APP, [ON_CPU], table, facts=AppFacts(), now=Instant(NOW), settings=Settings())) == []


def test_host_meeting_only_tight_work_keeps_its_rank() -> None:
    """Its relaxed samples have nearly decayed; the mean of the others is 5 worse."""
    others = [Line(score / 4, 12) for score in range(40)]
    faded = Line(0.5, 12, n=0.2, met=18.0)

    [part] = rank_app(APP, [ON_CPU], a_table([*others, faded]), facts=AppFacts(), now=NOW, settings=Settings())

    by_host = dict(zip(part.percentiles["host_id"].tolist(), part.percentiles["p"].tolist(), strict=True))
    assert by_host[41] >= 0.9


def test_missed_tight_due_dates_lower_the_rank() -> None:
    others = [Line(score / 4, 12) for score in range(40)]
    lines = [*others, Line(2.0, 12, met=9.0, missed=1.0), Line(2.0, 12, met=5.0, missed=5.0)]

    [part] = rank_app(APP, [ON_CPU], a_table(lines), facts=AppFacts(), now=NOW, settings=Settings())

    met, missed = part.percentiles["p"].tolist()[-2:]
    assert missed < met - 0.05
