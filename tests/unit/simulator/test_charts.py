from __future__ import annotations

from pathlib import Path

import pytest

from simulator.charts import write_charts
from simulator.metrics import Figures
from simulator.report import Comparison

pytest.importorskip("matplotlib")

PNG = b"\x89PNG\r\n\x1a\n"
SMALL = Comparison(
    "small",
    2,
    {
        "muster": Figures(afap_makespan_s=3600.0, makespan_s={"afap": 3600.0}, tight_fraction=0.1),
        "fixed": Figures(afap_makespan_s=7200.0, makespan_s={"afap": 7200.0, "throughput": 1e5}),
    },
)


def test_there_is_a_picture_each_of_makespans_prices_and_the_end(tmp_path: Path) -> None:
    paths = write_charts(SMALL, tmp_path / "charts", ends={"muster": ([60.0, 3600.0], 2), "fixed": ([7200.0], 2)})

    assert [path.name for path in paths] == ["small-makespan.png", "small-price.png", "small-end.png"]
    assert all(path.read_bytes().startswith(PNG) for path in paths)


def test_the_same_figures_give_the_same_file(tmp_path: Path) -> None:
    once, again = (write_charts(SMALL, tmp_path / name)[0].read_bytes() for name in ("once", "again"))

    assert once == again
