"""The page on how good the policies are: limits, tables, and nothing else of it changed."""

from __future__ import annotations

from benchmarks.policy_quality import (
    MUSTER,
    PLAIN,
    VARIANTS,
    Studied,
    goals_of,
    goals_table,
    section_of,
    studied,
    study_of,
    variants_table,
    with_section,
)
from simulator.metrics import Figures
from simulator.report import Comparison
from simulator.run import Ran

OURS = Figures(
    afap_makespan_s=36_000.0,
    other_makespan_s=105_000.0,
    makespan_s={"afap": 36_000.0, "throughput": 110_000.0},
    instances_per_job=1.1,
    deadline_mode_fraction=0.125,
    batches_unfinished=0.0,
)
PAGE = Comparison(
    "small",
    2,
    {
        MUSTER: OURS,
        "accelerated": Figures(afap_makespan_s=72_000.0),
        "fixed": Figures(afap_makespan_s=720_000.0, other_makespan_s=1e5, makespan_s={"throughput": 1e5}),
        "clairvoyant": Figures(afap_makespan_s=12_000.0),
    },
)


def test_goals_are_ratios_to_the_other_rules_and_what_is_missed_is_bold() -> None:
    assert goals_table(goals_of("small", PAGE)).splitlines()[2:] == [
        "| AFAP makespan over `accelerated` | 0.50 | 0.90 |",
        "| AFAP makespan over the clairvoyant bound | **3.00** | 2.50 |",
        "| instances per job | 1.10 | 1.25 |",
        "| instances run in deadline mode | **12.5 %** | 10.0 % |",
        "| throughput makespan over `fixed` | **1.10** | 1.05 |",
        "| batches not over at the end | 0.00 | 0.00 |",
    ]


def test_larger_scenarios_have_stricter_limits() -> None:
    limits = [limit for _, _, limit, _ in goals_of("department", PAGE)]

    assert limits[:2] == [0.50, 2.0]


def test_a_row_per_variant_says_how_the_rules_stand() -> None:
    *_, row = variants_table({"loss 2 %": PAGE}).splitlines()

    assert row == "| loss 2 % | 10.0 h | 20.0 h | 200.0 h | 3.3 h | 0.50 | 3.00 | 1.10 | 12.5 % | 1.05 |"


def test_runs_go_to_the_cases_they_were_made_of() -> None:
    study = study_of("small", (1, 2), (PLAIN, "loss 10 %"))
    cases = [case for of_variant in study.cases.values() for case in of_variant]
    runs = [Ran(Figures(afap_makespan_s=100.0 * place)) for place in range(len(cases))]

    found = studied(study, iter(runs))

    assert [case.scenario.population.loss_fraction for case in study.cases["loss 10 %"]] == 8 * [0.1]
    assert found.by_seed[MUSTER] == [0.0, 100.0]
    assert found.plain.rules["clairvoyant"].afap_makespan_s == 850.0
    assert found.variants["loss 10 %"].rules[MUSTER].afap_makespan_s == 1050.0
    assert set(VARIANTS) > set(found.variants)


def test_a_section_has_limits_seeds_figures_charts_and_variants() -> None:
    one = Studied("small", {PLAIN: PAGE, "loss 2 %": PAGE}, {MUSTER: [36_000.0, None]})
    section = section_of(one, ["charts/small-end.png"])

    assert section.startswith("### small\n")
    assert "in hours: `muster` 10, -.\n" in section
    assert "![small: end](charts/small-end.png)" in section
    assert section.count("| loss 2 % |") == 1


def test_only_what_is_between_its_marks_changes() -> None:
    page = "# Title\n\n<!-- measured: small -->\nold\n<!-- end: small -->\n\nText.\n"

    again = with_section(with_section(page, "small", "new\n"), "large", "more\n")

    assert again == (
        "# Title\n\n<!-- measured: small -->\nnew\n<!-- end: small -->\n\nText.\n\n"
        "<!-- measured: large -->\nmore\n<!-- end: large -->\n"
    )


def test_a_rule_that_takes_too_long_is_left_out() -> None:
    study = study_of("large", range(1, 3), [PLAIN], ["proposal"])

    assert {case.rule for case in study.cases[PLAIN]} == {MUSTER, "accelerated", "fixed", "clairvoyant"}
