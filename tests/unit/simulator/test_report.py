from __future__ import annotations

import io
import json
from collections.abc import Iterable

from rich.console import Console

from domain.deadline_rules import CLAIRVOYANT
from simulator.metrics import Figures
from simulator.report import ReportRow, RuleComparison, rows_of, table_of
from tests.facts import missing

TWO = RuleComparison(
    "small",
    5,
    {
        "muster": Figures(afap_makespan_s=36_000.0, makespan_s={"afap": 36_000.0}, tight_fraction=0.125),
        CLAIRVOYANT: Figures(afap_makespan_s=18_000.0, makespan_s={"afap": 18_000.0}, instances_per_job=1.0),
    },
)


def shown(what: object) -> str:
    console = Console(width=200, file=io.StringIO())
    with console.capture() as capture:
        console.print(what)
    return capture.get()


def short(rows: Iterable[ReportRow]) -> list[tuple[str, list[str]]]:
    """Rows with the first three words of their names."""
    return [(" ".join(row.label.split()[:3]), row.cells) for row in rows]


def test_the_object_has_a_rule_each_with_its_figures() -> None:
    assert TWO.as_json() == {
        "scenario": "small",
        "seeds": 5,
        "rules": {
            "muster": {"afap_makespan_s": 36_000.0, "makespan_s": {"afap": 36_000.0}, "tight_fraction": 0.125},
            "clairvoyant": {
                "afap_makespan_s": 18_000.0,
                "makespan_s": {"afap": 18_000.0},
                "instances_per_job": 1.0,
            },
        },
    }


def test_the_same_figures_give_the_same_bytes() -> None:
    assert json.dumps(TWO.as_json()) == json.dumps(TWO.as_json())


def test_lines_that_no_rule_has_are_left_out() -> None:
    assert short(rows_of(TWO)) == [
        ("AFAP makespan", ["10.0 h", "5.0 h"]),
        ("AFAP makespan over", ["2.00", "1.00"]),
        ("instances per job", ["", "1.00"]),
        ("tight due dates", ["12.5 %", ""]),
    ]


def test_the_table_names_scenario_seeds_and_rules() -> None:
    text = shown(table_of(TWO))

    assert "small: medians over 5 seeds" in text
    assert "muster" in text
    assert "10.0 h" in text


CUT = RuleComparison(
    "small",
    2,
    {
        "muster": Figures(afap_makespan_s=36_000.0, makespan_s={"afap": 36_000.0}),
        "fixed": Figures(afap_makespan_s=72_000.0, makespan_s={"afap": 72_000.0}, cut_short=("afap",)),
        CLAIRVOYANT: Figures(afap_makespan_s=18_000.0, makespan_s={"afap": 18_000.0}),
    },
)


def test_unfinished_batches_are_marked() -> None:
    assert short(rows_of(CUT)) == [
        ("AFAP makespan", ["10.0 h", "> 20.0 h", "5.0 h"]),
        ("AFAP makespan over", ["2.00", "> 4.00", "1.00"]),
    ]
    assert "the true value is larger" in " ".join(shown(table_of(CUT)).split())
    assert "larger" not in shown(table_of(TWO))


def test_rows_of_waits_are_in_the_order_of_their_sizes() -> None:
    waits = Figures(wait_s={"16": 60.0, "2": 60.0}, wait_by_length_s={"1e+13": 60.0, "1e+09": 60.0})

    names = [row.label for row in rows_of(RuleComparison("small", 1, {"muster": waits}))]
    facts = ("per job: 2", "per job: 16", "at least 1 Gflop", "at least 10000 Gflop")
    assert [missing(name, "wait", fact) for name, fact in zip(names, facts, strict=True)] == [[]] * 4
