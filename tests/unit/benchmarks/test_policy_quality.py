"""The page on how good the policies are: limits, tables, kept runs, and nothing else of it changed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.policy_quality.__main__ import main
from benchmarks.policy_quality.frontier import GRIDS, USUAL, Frontier, chart_limits, defaults, remarks
from benchmarks.policy_quality.kept import KeptRuns, digest_of, digest_of_files, loaded_modules
from benchmarks.policy_quality.measured import Measured, by_seed, goals_of, goals_table, rules_of
from benchmarks.policy_quality.page import with_section
from benchmarks.policy_quality.running import lasting, run_all, unkept
from benchmarks.policy_quality.sections import MUSTER, SCENARIOS, pictures, seeds_of
from benchmarks.policy_quality.variants import VARIANTS, Variants, variants_table
from domain.settings import Settings
from simulator.frontier import Swept, Tried
from simulator.frontier_chart import Limits
from simulator.grid import combinations
from simulator.metrics import Figures
from simulator.report import CLAIRVOYANT, Comparison
from simulator.run import Case, Ran
from simulator.scenario import read_scenario
from simulator.services import PACE
from tests.unit.simulator.test_run import tiny

OURS = Figures(
    afap_makespan_s=36_000.0,
    other_makespan_s=110_000.0,
    makespan_s={"afap": 36_000.0, "throughput": 110_000.0},
    instances_per_job=1.3,
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
        CLAIRVOYANT: Figures(afap_makespan_s=12_000.0),
    },
)


def test_goals_are_ratios_to_the_other_rules_and_what_is_missed_is_bold() -> None:
    assert goals_table(goals_of("small", PAGE)).splitlines()[2:] == [
        "| AFAP makespan over `accelerated` | 0.50 | 0.90 |",
        "| AFAP makespan over the clairvoyant bound | **3.00** | 2.50 |",
        "| instances per job | **1.30** | 1.25 |",
        "| instances run in deadline mode | **12.5 %** | 10.0 % |",
        "| throughput makespan over `fixed` | **1.10** | 1.05 |",
        "| batches not over at the end | 0 | 0 |",
    ]


def test_ratios_to_what_was_not_over_say_so() -> None:
    fixed = replace(PAGE.rules["fixed"], cut_short=("afap", "other", "throughput"))
    page = replace(PAGE, rules={**PAGE.rules, "fixed": fixed})
    late = replace(PAGE, rules={**PAGE.rules, MUSTER: replace(OURS, cut_short=("afap",))})
    *_, row, _, said = variants_table("small", {"x": page}).splitlines()

    assert goals_of("small", page)[4] == ("throughput makespan over `fixed`", "**< 1.10**", "1.05")
    assert goals_of("small", late)[0][1] == "**> 0.50**"
    assert "| > 200.0 h | 3.3 h | 0.50 |" in row
    assert row.endswith("| **< 1.10** |")
    assert said.startswith('">" is of batches that were not over')


def test_larger_scenarios_have_stricter_limits() -> None:
    assert [limit for _, _, limit in goals_of("department", PAGE)][:2] == ["0.50", "2.00"]


def test_a_row_per_variant_says_how_the_rules_stand_and_which_limits_are_missed() -> None:
    *_, row = variants_table("small", {"loss 2 %": PAGE}).splitlines()
    kept = replace(OURS, makespan_s={"afap": 3e4}, other_makespan_s=1e5)
    kept = replace(kept, instances_per_job=1.1, deadline_mode_fraction=0.1)
    *_, within = variants_table("small", {"x": replace(PAGE, rules={**PAGE.rules, MUSTER: kept})}).splitlines()

    assert row == (
        "| loss 2 % | 10.0 h | 20.0 h | 200.0 h | 3.3 h | 0.50 | **3.00** | **1.30** | **12.5 %** | **1.10** |"
    )
    assert "**" not in within


def test_every_shipped_scenario_can_have_variants_and_they_share_their_first_with_the_section_before() -> None:
    for scenario in SCENARIOS:
        section = Variants(scenario, (1, 2))
        shared = {digest_of(case) for case in Measured(scenario, (1, 2)).cases}

        assert list(section.by_variant) == list(VARIANTS)
        assert {digest_of(case) for case in next(iter(section.by_variant.values()))} <= shared
        assert [
            {case.scenario.population.loss_fraction for case in cases} for cases in section.by_variant.values()
        ] == [{0.05}, {0.02}, {0.10}, {0.05}, {0.05}]


def test_what_takes_too_long_on_a_scenario_is_left_out_there() -> None:
    assert "proposal" in rules_of("small")
    assert "proposal" not in rules_of("large")
    assert (len(seeds_of("small", None)), len(seeds_of("large", None)), len(seeds_of("large", 7))) == (5, 3, 7)


def test_makespans_are_told_by_rule_and_seed() -> None:
    cases = [Case(tiny(), seed, rule) for rule in (MUSTER, "fixed") for seed in (1, 2)]
    ran = [Ran(Figures(afap_makespan_s=span_s)) for span_s in (36_000.0, None, 7200.0)]
    ran.append(Ran(Figures(afap_makespan_s=3600.0, cut_short=("afap",))))

    assert by_seed(cases, ran) == "`muster` 10, -; `fixed` 2, > 1"


# ------------------------------------------------------------ the frontier


def swept(*reached: tuple[float, float, float]) -> Swept:
    """Of p_afap 0, its default, and 1, with these AFAP hours, instances per job and shares in deadline mode."""
    return Swept(
        "small",
        2,
        [
            Tried(
                {"deadline.p_afap": p_afap},
                Comparison(
                    "small",
                    2,
                    {
                        MUSTER: Figures(
                            afap_makespan_s=3600.0 * hours, instances_per_job=price, deadline_mode_fraction=hurried
                        )
                    },
                ),
            )
            for p_afap, (hours, price, hurried) in zip((0.0, Settings().deadline.p_afap, 1.0), reached, strict=True)
        ],
    )


def test_defaults_and_rows_within_limits_are_named() -> None:
    found = swept((20.0, 1.2, 0.12), (30.0, 1.2, 0.08), (50.0, 1.3, 0.05))

    assert defaults(found) == {1}
    assert remarks(found, chart_limits("small", Figures(), Figures())) == (
        "The defaults are row 2*. At most 1.25 instances per job and 10 % in deadline mode: 1 of 3 rows."
    )
    told = remarks(found, chart_limits("small", Figures(afap_makespan_s=144_000.0), Figures(afap_makespan_s=36_000.0)))
    assert told.endswith(
        "Of these at most 0.90 of accelerated: 1, on the frontier 2*. Of these at most 2.5 times the bound: none."
    )


def test_limits_are_lines_of_the_chart_where_they_are_known() -> None:
    bound = Figures(afap_makespan_s=36_000.0)

    assert chart_limits("department", Figures(), bound) == Limits(
        {"2.0 times the bound": 72_000.0},  # type: ignore[dict-item]
        {"instances_per_job": 1.25, "deadline_mode_fraction": 0.10},
    )


@pytest.mark.parametrize("grid", [USUAL, *GRIDS.values()])
def test_grids_are_of_settings_and_have_the_defaults_among_them(grid: object) -> None:
    found = combinations(grid, {})  # type: ignore[arg-type]
    known = Settings().as_mapping()

    assert [one for one in found if all(known[key] == value for key, value in one.items())]


def test_a_section_of_thresholds_has_its_table_its_limits_and_its_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    section = Frontier("small", (1,))
    text = section.text([Ran(replace(OURS, afap_makespan_s=1e5)) for _ in section.cases], tmp_path)

    assert text.startswith("### small: thresholds\n")
    assert f"{len(section.grid.combinations)} combinations, medians over 1. The defaults are row" in text
    assert "![small: frontier](charts/small-frontier.png)" in text
    assert (tmp_path / "charts" / "small-frontier.png").is_file()


# ------------------------------------------------------------ runs that are kept


class Counted(KeptRuns):
    """With how often something was kept."""

    kept = 0

    def keep(self, case: Case, ran: Ran) -> None:
        self.kept += 1
        super().keep(case, ran)


def test_a_run_is_made_once_and_found_again_by_the_next_command(tmp_path: Path) -> None:
    bound = Case(tiny(), 1, CLAIRVOYANT)
    first, then, anew = Counted(tmp_path), Counted(tmp_path), Counted(tmp_path, anew=True)
    ran = run_all([bound, replace(bound, seed=2), bound], first, processes=1)

    assert (first.kept, len(list(tmp_path.glob("*/*.run")))) == (2, 2)
    assert ran[0] == ran[2] != ran[1]
    assert run_all([bound], then, processes=1) == ran[:1]
    assert then.kept == 0
    assert run_all([bound, bound], anew, processes=1) == [ran[0], ran[0]]
    assert anew.kept == 1


def test_what_was_kept_before_it_was_broken_off_is_not_run_again(tmp_path: Path) -> None:
    cases = [Case(tiny(), seed, MUSTER) for seed in (1, 2)]
    KeptRuns(tmp_path).keep(cases[0], Ran(OURS))

    assert unkept(cases, KeptRuns(tmp_path)) == cases[1:]
    assert lasting([Case(read_scenario("large"), 1, MUSTER)], 2).startswith("1 runs, about 0.1 h on 2 processes")


def test_another_scenario_seed_rule_or_setting_is_another_case() -> None:
    one = Case(tiny(), 1, MUSTER)
    paced = next(iter(PACE))
    others = [
        replace(one, seed=2),
        replace(one, rule="fixed"),
        replace(one, settings={"deadline.p_afap": 0.99}),
        replace(one, settings={paced: Settings().as_mapping()[paced]}),  # a simulation's own is another
        replace(one, scenario=replace(one.scenario, delay_bound_s=one.scenario.delay_bound_s * 2)),  # type: ignore[arg-type]
        replace(one, rule=CLAIRVOYANT),
    ]

    assert len({digest_of(case) for case in (one, *others)}) == len(others) + 1
    assert digest_of(replace(one, rule=CLAIRVOYANT)) == digest_of(
        replace(one, rule=CLAIRVOYANT, settings={"deadline.p_afap": 0.99})
    )


def test_kept_runs_are_of_the_code_as_it_is(tmp_path: Path) -> None:
    names = {path.relative_to(Path(__file__).parents[3]).as_posix() for path in loaded_modules()}
    file = tmp_path / "rule.py"
    file.write_text("LATE = 1\n")
    before = digest_of_files([file])
    file.write_text("LATE = 2\n")

    assert {"scheduler/deadline.py", "domain/settings.py", "simulator/engine.py", "store/memory/__init__.py"} <= names
    assert not names & {"simulator/report.py", "benchmarks/policy_quality/kept.py"}
    assert digest_of_files([file]) != before


# ------------------------------------------------------------ the page


def test_the_page_keeps_what_is_not_measured() -> None:
    page = "# Title\n\n<!-- measured: small -->\nold\n<!-- end: small -->\n\nText.\n"
    page = with_section(page, "small", "new\n")
    page = with_section(page, "large", "more\n", after="department")
    page = with_section(page, "small variants", "others\n", after="small")

    assert page == (
        "# Title\n\n<!-- measured: small -->\nnew\n<!-- end: small -->\n\n"
        "<!-- measured: small variants -->\nothers\n<!-- end: small variants -->\n\nText.\n\n"
        "<!-- measured: large -->\nmore\n<!-- end: large -->\n"
    )


def test_pictures_stand_in_the_page_by_their_folder() -> None:
    assert pictures([Path("/x/charts/small-end.png")]) == "![small: end](charts/small-end.png)\n"


def test_what_is_no_scenario_is_named_before_anything_is_run(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="scenario: expected a TOML file, or one of"):
        main(["--variants", "nowhere", "--docs", str(tmp_path)])

    assert list(tmp_path.iterdir()) == []
