"""Combinations of settings as text: a row each, the frontier marked, bars and charts."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from domain.deadline_rules import CLAIRVOYANT
from simulator.charts import write_frontier_charts
from simulator.frontier import Swept, Tried, names, rows_of, shown
from simulator.metrics import Figures
from simulator.report import RuleComparison
from tests.facts import missing


def reached(hours: float, price: float) -> Figures:
    return Figures(
        afap_makespan_s=3600.0 * hours,
        makespan_s={"afap": 3600.0 * hours, "throughput": 720_000.0},
        instances_per_job=price,
        deadline_mode_fraction=0.0625,
        deadline_miss_fraction=0.03,
    )


def swept(*keys: str, bound: bool = True) -> Swept:
    least = {CLAIRVOYANT: Figures(afap_makespan_s=36_000.0)} if bound else {}
    return Swept(
        "small",
        3,
        [
            Tried(
                dict.fromkeys(keys or ("deadline.p_afap",), value),
                RuleComparison("small", 3, {"muster": ours, **least}),
            )
            for value, ours in ((0.5, reached(30, 1.2)), (0.7, reached(25, 1.1)))
        ],
    )


def lines_of(what: Swept, width: int) -> list[str]:
    console = Console(width=width, file=io.StringIO())
    with console.capture() as capture:
        console.print(shown(what))
    return [line.rstrip() for line in capture.get().splitlines()]


def test_row_has_settings_makespans_prices_and_ratio() -> None:
    rows = rows_of(swept(), "muster")

    assert rows.head[:6] == ["", "p_afap", "AFAP, h", "over the bound", "throughput, h", "instances per job"]
    assert rows.head[6:] == ["in deadline mode, %", "missed, %"]
    assert rows.cells == [
        ("1 ", "0.5", "30.0", "3.00", "200.0", "1.20", "6.2", "3.0"),
        ("2*", "0.7", "25.0", "2.50", "200.0", "1.10", "6.2", "3.0"),
    ]


def test_unfinished_batches_are_marked_in_tables() -> None:
    found = swept()
    ours = found.tried[1].comparison.rules
    cut = Tried(
        {"deadline.p_afap": 0.7},
        RuleComparison("small", 3, {**ours, "muster": replace(ours["muster"], cut_short=("afap",))}),
    )
    late = replace(found, tried=[found.tried[0], cut])

    assert rows_of(late, "muster").cells[1][:4] == ("2*", "0.7", "> 25.0", "> 2.50")
    assert [line.split()[-3:] for line in lines_of(late, 120) if "█" in line] == [
        [40 * "█", "30.0", "h"],
        [">", "25.0", "h"],
    ]


def test_without_the_bound_there_is_no_ratio() -> None:
    assert "over the bound" not in rows_of(swept(bound=False), "muster").head


def test_keys_are_shortened_when_unique() -> None:
    assert names(swept("deadline.p_afap", "feeder.slots")) == {"deadline.p_afap": "p_afap", "feeder.slots": "slots"}
    assert set(names(swept("a.x", "b.x")).values()) == {"a.x", "b.x"}


def test_console_fits_eighty_columns_with_a_bar_each() -> None:
    lines = lines_of(swept("deadline.p_afap", "lifecycle.tail_overhead_fraction", "lifecycle.tail_late_factor"), 80)

    assert not missing(lines[0], "small, muster: 2 combinations", "medians over 3 seeds")
    (row,) = (line.split() for line in lines if line.split()[:1] == ["2*"] and "█" not in line)
    assert row == ["2*", "0.7", "0.7", "0.7", "25.0", "2.50", "200.0", "1.10", "6.2", "3.0"]
    assert [line.split()[0] for line in lines if "█" in line] == ["1", "2*"]


def test_a_picture_is_drawn_of_each_rule(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    (drawn,) = write_frontier_charts(swept(), tmp_path / "first")
    (again,) = write_frontier_charts(swept(), tmp_path / "again")

    assert drawn.name == "small-frontier.png"
    assert drawn.read_bytes() == again.read_bytes()
