from __future__ import annotations

import io
import json

from rich.console import Console

from simulator.metrics import Figures
from simulator.report import CLAIRVOYANT, Comparison, markdown_of, rows_of, table_of

TWO = Comparison(
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
    assert rows_of(TWO) == [
        ("AFAP makespan", ["10.0 h", "5.0 h"]),
        ("AFAP makespan over the bound", ["2.00", "1.00"]),
        ("instances per job", ["", "1.00"]),
        ("tight due dates", ["12.5 %", ""]),
        ("makespan, afap", ["10.0 h", "5.0 h"]),
    ]


def test_the_table_names_scenario_seeds_and_rules() -> None:
    text = shown(table_of(TWO))

    assert "small: medians over 5 seeds" in text
    assert "muster" in text
    assert "10.0 h" in text


def test_a_document_gets_the_same_table() -> None:
    lines = markdown_of(TWO).splitlines()

    assert lines[0] == "| small, medians over 5 | muster | clairvoyant |"
    assert lines[1] == "|---|---:|---:|"
    assert lines[2] == "| AFAP makespan | 10.0 h | 5.0 h |"
