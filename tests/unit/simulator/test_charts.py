from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from simulator.charts import write_charts
from simulator.metrics import Figures
from simulator.report import BatchEnds, RuleComparison

pytest.importorskip("matplotlib")

PNG = b"\x89PNG\r\n\x1a\n"
SMALL = RuleComparison(
    "small",
    2,
    {
        "muster": Figures(
            afap_makespan_s=3600.0, makespan_s={"afap": 3600.0}, tail_s={"afap": 600.0}, tight_fraction=0.1
        ),
        "fixed": Figures(afap_makespan_s=7200.0, makespan_s={"afap": 7200.0, "throughput": 1e5}),
    },
    {"muster": BatchEnds((60.0, 3600.0), 2), "fixed": BatchEnds((7200.0,), 2)},
)


def test_there_is_a_picture_each_of_makespans_prices_and_the_end(tmp_path: Path) -> None:
    paths = write_charts(SMALL, tmp_path / "charts")

    assert [path.name for path in paths] == ["small-makespan.png", "small-price.png", "small-end.png"]
    assert all(path.read_bytes().startswith(PNG) for path in paths)


def test_without_urgent_batches_there_is_no_picture_of_their_end(tmp_path: Path) -> None:
    paths = write_charts(replace(SMALL, ends={}), tmp_path)

    assert [path.name for path in paths] == ["small-makespan.png", "small-price.png"]


def test_other_ends_make_another_picture(tmp_path: Path) -> None:
    slower = replace(SMALL, ends={**SMALL.ends, "fixed": BatchEnds((90_000.0,), 2)})
    one, other = (write_charts(of, tmp_path / name)[2] for name, of in (("one", SMALL), ("other", slower)))

    assert one.read_bytes() != other.read_bytes()


def test_bars_of_what_was_not_over_are_drawn_otherwise(tmp_path: Path) -> None:
    rules = {**SMALL.rules, "fixed": replace(SMALL.rules["fixed"], cut_short=("throughput",))}
    one, other = (
        write_charts(of, tmp_path / name)[0] for name, of in (("one", SMALL), ("other", replace(SMALL, rules=rules)))
    )

    assert one.read_bytes() != other.read_bytes()


def test_the_same_figures_give_the_same_file(tmp_path: Path) -> None:
    once, again = (write_charts(SMALL, tmp_path / name)[0].read_bytes() for name in ("once", "again"))

    assert once == again
