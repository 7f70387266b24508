"""Values shown on pages: bars, rates, charts and rows, with their numbers."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest

from administration.cursors import cursor_of
from administration.ordering.places import sent_first_because, the_first
from console.batch_forms import batch_of
from console.batch_list import asked_of, where_on
from console.charts import bar_of
from console.drawing import BESIDE, CHARACTER, NARROW, Plot
from console.mark_labels import LabelledLine
from console.mark_labels import rows_of as label_rows_of
from console.ordering_page import contributions_chart
from console.overview import ReadyJobs, codes_of, duties_of, rates_of, ready_of
from console.percentiles import distribution
from console.places import PlaceShown, sentence, total_name
from console.settings_pages import rows_of
from console.simulate import asked_of as simulation_of
from console.simulate import in_order
from domain.apps import CPU
from domain.catalogue import Catalogue
from domain.errors import InvalidInputError
from domain.ordering import Breakdown, Contribution, PlaceInOrder
from domain.ranking import CutPoints, Gate, RelaxedGate
from domain.refusals import RefusalCode, code_in_words
from domain.settings import Settings
from domain.units import AppId, BatchId, Instant, later
from domain.views import BatchPlace, BatchSort, ProcessReport
from tests.builders import NOW, an_app
from tests.facts import missing
from tests.memory import MemoryStore
from tests.stores import as_postgres
from tests.worlds import a_submitted_batch


def a_worker(name: str = "a", **changes: Any) -> ProcessReport:
    """A worker's report: two requests per second of 10 ms each, 300 of 1000 slots filled."""
    report: dict[str, object] = {
        "started_at": NOW,
        "totals": {"requests": 100},
        "per_s": {"requests": 2.0, "sent": 1.0, "reports": 0.5},
        "took_s": 0.01,
        "refusals": {"disk": 3},
        "slots": 300,
        "slots_most": 1000,
        "partitions": [{"app": "pi", "processor_type": "cpu", "urgent": 1, "fresh": 299, "asked": 2.0}],
        "unrunnable": [],
    }
    return ProcessReport(name, "worker", NOW, report | changes)


def a_duty(**changes: Any) -> dict[str, object]:
    duty = {"name": "sweeper", "mine": True, "rounds": 3, "failures": 0, "done_at": NOW, "took_s": 0.1}
    return {**duty, "failed_at": None, "failure": "", **changes}


def test_rates_of_workers_add_up_and_their_time_is_weighed() -> None:
    slow = a_worker("b", per_s={"requests": 6.0, "sent": 3.0, "reports": 0.0}, took_s=0.03)

    found = rates_of([a_worker(), slow])

    assert (found.workers, found.requests, found.sent, found.slots, found.slots_most) == (2, 8.0, 4.0, 600, 2000)
    assert found.took_s == pytest.approx((2 * 0.01 + 6 * 0.03) / 8)
    assert rates_of([]).took_s is None


def test_ready_jobs_and_refusals_of_workers_add_up() -> None:
    """A job that two processor types can run is counted once, as in the sum of the slots."""
    parts = [
        {"app": app, "processor_type": kind, "urgent": 1, "fresh": fresh, "asked": asked}
        for app, kind, fresh, asked in (("pi", "cpu", 299, 2.0), ("pi", "NVIDIA", 299, 0.5), ("e", "cpu", 7, 2.0))
    ]
    workers = [a_worker(), a_worker("b", refusals={"disk": 1, "cpus": 9}, partitions=parts)]

    assert ready_of(workers) == [ReadyJobs("e", ["cpu"], 1, 7), ReadyJobs("pi", ["NVIDIA", "cpu"], 2, 598)]
    assert codes_of(workers) == [("cpus", 9), ("disk", 4)]


def test_periodic_task_is_shown_from_its_holder() -> None:
    idle = ProcessReport("b", "background", NOW, {"duties": [a_duty(mine=False, done_at=None, failures=2)]})
    doing = ProcessReport("a", "background", NOW, {"duties": [a_duty()]})

    for processes in ([idle, doing], [doing, idle]):
        [found] = duties_of(processes)
        assert (found.where, found.done_at, found.failures) == ("a", NOW, 2)


def test_shared_task_is_shown_from_the_holder_that_is_behind() -> None:
    late = ProcessReport("b", "background", NOW, {"duties": [a_duty(done_at=later(NOW, -60.0), failures=2)]})
    fresh = ProcessReport("a", "background", NOW, {"duties": [a_duty()]})
    never = ProcessReport("c", "background", NOW, {"duties": [a_duty(done_at=None)]})

    for processes in ([late, fresh], [fresh, late]):
        [found] = duties_of(processes)
        assert (found.where, found.done_at, found.failures) == ("b", later(NOW, -60.0), 2)
    [found] = duties_of([late, never, fresh])
    assert (found.where, found.done_at) == ("c", None)


def test_a_bar_shows_valid_jobs_and_the_end_only_when_reached() -> None:
    assert bar_of(1000, 999, 0, 1).percent == "99.9 %"
    assert bar_of(1000, 999, 1, 0).percent == "99.9 %"
    assert bar_of(80, 0, 80, 0).percent == "0 %"
    assert bar_of(80, 80, 0, 0).percent == "100 %"
    assert bar_of(0, 0, 0, 0).percent == "0 %"


def test_legends_of_refusals_tell_all_codes_apart() -> None:
    legends = [code_in_words(code) for code in RefusalCode]

    assert len(set(legends)) == len(RefusalCode) and not any("_" in one for one in legends)


@pytest.mark.parametrize(("valid", "in_progress", "is_said"), [(0, 50, False), (5, 50, True), (5, 35, False)])
def test_bar_tells_of_ended_jobs_only_if_some_ended(valid: int, in_progress: int, is_said: bool) -> None:
    words = bar_of(40, valid, 0, in_progress).words

    assert ("ended" in words) is is_said and ("copies" in words) is (in_progress == 50)


def test_a_place_in_a_list_comes_back_from_its_address() -> None:
    for first, second in ((-1.0, 0.1 + 0.2), (1.0, -(0.1 + 0.2)), (7.25, 0.0), (float("inf"), 0.0)):
        place = BatchPlace(BatchId(7), first, second)
        assert where_on(f"50~{cursor_of(place)}") == (place, 50)


@pytest.mark.parametrize("text", ["x", "1~2~3", "1~0~0~0", "1~2~nan~0", "-1~2~0~0"])
def test_a_made_up_place_is_refused_by_name(text: str) -> None:
    with pytest.raises(InvalidInputError, match=r"^after: "):
        where_on(text)


async def test_a_list_is_chosen_by_its_address() -> None:
    memory = MemoryStore()
    batch, store = await a_submitted_batch(memory, jobs=1), as_postgres(memory)

    choice, sort = await asked_of({"app": "pi", "state": "at_risk", "sort": "-order", "q": " Rush "}, store, NOW)

    assert (choice.app_id, choice.state, choice.at_risk_at, choice.text) == (batch.app_id, None, NOW, "Rush")
    assert sort is BatchSort.ORDER_DOWN
    for wrong in (
        *({"app": "none"}, {"submitter": "none"}, {"account": "none"}),
        *({"state": "asleep"}, {"qos": "soon"}, {"sort": "size"}, {"sort": "order", "state": "complete"}),
    ):
        with pytest.raises(InvalidInputError, match=f"^{next(iter(wrong))}: "):
            await asked_of(wrong, store, NOW)


def test_thresholds_stand_where_that_many_hosts_are_faster() -> None:
    app = an_app()
    catalogue = Catalogue(apps={app.app_id: app})
    scores = tuple((place - 500) / 500 for place in range(1000))  # ln of the relative turnaround

    chart = distribution(CutPoints(app.app_id, CPU, NOW, 2000, scores, (0,) * 11), catalogue)

    assert chart is not None
    rows = {str(row[0]): row[1:] for row in chart.rows}
    assert rows["p_tight"] == ("0.9", "0.45 × expected", "200")  # e^-0.8
    assert rows["p_afap, p_late, p_retry"] == ("0.5", "1.00 × expected", "1\u202f000")
    assert isinstance(chart.drawing, Plot) and chart.drawing.bins is not None
    assert sum(chart.drawing.bins.y) == pytest.approx(2000 * 0.96, rel=0.01)  # outliers are left out
    assert distribution(CutPoints(AppId(9), CPU, NOW, 0, (), ()), catalogue) is None


def test_lowered_gate_is_drawn_where_it_is_in_force() -> None:
    app = an_app()
    scores = tuple((place - 500) / 500 for place in range(1000))
    lowered = (RelaxedGate(app.app_id, CPU, Gate.TIGHT, 0.6),)
    cuts = CutPoints(app.app_id, CPU, NOW, 2000, scores, (0,) * 11, relaxed=lowered)

    chart = distribution(cuts, Catalogue(apps={app.app_id: app}))

    assert chart is not None
    rows = {str(row[0]): row[1] for row in chart.rows}
    assert (rows["p_tight now"], rows["p_tight"], rows["p_afap, p_late, p_retry"]) == ("0.6", "0.9", "0.5")


def test_threshold_keeps_its_colour_in_the_preview() -> None:
    app = an_app()
    cuts = CutPoints(app.app_id, CPU, NOW, 1000, tuple((place - 500) / 500 for place in range(1000)), (0,) * 11)
    catalogue = Catalogue(apps={app.app_id: app})
    changed = replace(catalogue, settings=catalogue.settings.changed("deadline.p_tight", 0.45))

    hues = []
    for chart in (distribution(cuts, catalogue), distribution(cuts, catalogue, changed)):
        assert chart is not None and isinstance(chart.drawing, Plot)
        hues.append({one.name.partition(" ")[0]: one.hue for one in chart.drawing.marks})

    assert hues[0] == hues[1] and len(set(hues[0].values())) == len(hues[0]) == 4


@pytest.mark.parametrize("moved", [0.35, 0.7])
def test_labels_of_a_moved_threshold_cross_no_line(moved: float) -> None:
    """Wherever both lines stand, even on a phone."""
    app = an_app()
    cuts = CutPoints(app.app_id, CPU, NOW, 1000, tuple((place - 500) / 500 for place in range(1000)), (0,) * 11)
    catalogue = Catalogue(apps={app.app_id: app}, settings=Settings().changed("deadline.p_afap", 0.45))
    chart = distribution(
        cuts, catalogue, replace(catalogue, settings=catalogue.settings.changed("deadline.p_afap", moved))
    )

    assert chart is not None and isinstance(chart.drawing, Plot)
    names = [one.name for one in sorted(chart.drawing.marks, key=lambda mark: mark.x) if "p_afap" in one.name]
    widths = [(CHARACTER * len(name) + BESIDE) / NARROW for name in names]
    for first, second in itertools.combinations(range(101), 2):
        lines = [LabelledLine(at / 100, width) for at, width in zip((first, second), widths, strict=True)]
        (top, _), (below, left) = label_rows_of(lines)
        low, high = lines[below].span(left=left)
        assert not low <= lines[top].x <= high, (first, second)


def points(name: str, of: float) -> Contribution:
    return Contribution(name, "own", of, "", of, None, 1.0, of)


def ordered(batch: int, policy: str, *components: Contribution, tier: int = 0) -> Breakdown:
    total = sum(one.points for one in components)
    return Breakdown(BatchId(batch), policy, NOW, tier, total, components)


def ending(batch: int, after_s: float, tier: int = 0) -> Breakdown:
    """A batch whose logical end is this many seconds from now."""
    at = NOW + after_s
    end = Contribution("logical end time", "logical end time", at, "instant", at, None, -1.0, -at)
    return ordered(batch, "logical_time", end, tier=tier)


def test_points_are_stacked_by_term() -> None:
    found = [ordered(1, "mixed", points("age", 5.0), points("size", -1.0)), ordered(2, "mixed", points("age", 2.0))]

    chart = contributions_chart(found, {1: "rush"})

    assert chart is not None
    assert chart.columns == ("batch", "age", "size", "total")
    assert chart.rows == [("rush", "5.0", "-1.0", "4.0"), ("#2", "2.0", "0.0", "2.0")]


def test_rank_values_and_submissions_have_no_chart() -> None:
    sent = Contribution("submitted at", "submitted at", NOW - 7200.0, "instant", NOW - 7200.0, None, -1.0, -NOW)
    ranked = [ending(2, -3600.0), ending(1, 3 * 3600.0)]

    assert contributions_chart(ranked, {}) is None
    assert contributions_chart([ordered(1, "fifo", sent)], {}) is None
    assert total_name(ranked) == "Rank value"


def test_position_has_its_reason_and_tier() -> None:
    told = {
        ordered(
            1, "components", *(points(name, of) for name, of in (("a", 1.0), ("b", -9.0), ("c", 3.0)))
        ): "-5.0 points: b -9.0, c +3.0 and 1 more; the batch with the most points goes first.",
        ordered(
            1, "equal_access"
        ): "0.0 points, no term contributes; the batch whose submitter has the least work in progress goes first.",
        None: "The next ordering, within a minute, gives it a place.",
    }

    for breakdown, words in told.items():
        assert sentence(PlaceShown(PlaceInOrder(1, 2), breakdown), NOW).striptags() == words


def test_place_by_rank_value_says_its_level_and_rule() -> None:
    said = sentence(PlaceShown(PlaceInOrder(2, 3), ending(1, -900.0, tier=-40), first=1), NOW).striptags()

    assert not missing(said, "submitted", "Expedite", the_first(1))
    assert not any(word in said for word in ("ago", " min", "would"))


def test_rule_is_left_out_for_a_batch_that_is_sent_first() -> None:
    because = sent_first_because("it is due")
    said = sentence(PlaceShown(PlaceInOrder(2, 3), ending(1, -900.0), because=because, first=2), NOW).striptags()

    assert not missing(said, "sent first", "it is due") and missing(said, "submitted")


def test_batch_that_is_sent_first_has_no_tier() -> None:
    """Its tier counts only among the batches that are sent first."""
    late, other = (PlaceShown(PlaceInOrder(2, 3), ending(1, 0.0, tier=-40), because=why) for why in ("it is late", ""))

    assert not missing(sentence(other, NOW).striptags(), "Expedite")
    assert missing(sentence(late, NOW).striptags(), "Expedite")


def test_every_setting_has_a_meaning_and_a_unit() -> None:
    rows = rows_of(Settings().changed("deadline.p_tight", 0.8), [])

    assert [row.key for row in rows if row.is_changed] == ["deadline.p_tight"]
    assert all(row.meaning and row.unit for row in rows)
    [p_tight] = [row for row in rows if row.key == "deadline.p_tight"]
    assert (p_tight.span, p_tight.kind, p_tight.default) == ("0 to 1", "number", 0.9)


def test_a_form_of_a_batch_is_checked_field_by_field() -> None:
    form = {"app": "pi", "qos": "short_deadline", "count": "2", "deadline": "2027-01-15T08:00", "output": "out"}

    values: Any = batch_of(form, Instant(1_800_000_000.0 - 60.0))

    assert values["deadline_s"] == 60.0
    assert values["jobs"]["outputs"] == [{"name": "out", "max_bytes": 1_000_000}]
    for field, wrong in (("count", "none"), ("gflop", "much"), ("deadline", "soon"), ("quorum", "0")):
        with pytest.raises(InvalidInputError, match=f"^{field}: "):
            batch_of(form | {field: wrong}, NOW)


def test_a_population_of_ones_own_stays_within_bounds() -> None:
    asked = simulation_of({"scenario": "small", "seeds": "1", "hosts": "80", "computers": "lhc"}, ["muster"])

    assert asked.changes == {"population.hosts": 80, "population.computers": "lhc"}
    with pytest.raises(InvalidInputError, match=r"^loss_fraction: "):
        simulation_of({"scenario": "small", "seeds": "1", "loss_fraction": "2"}, ["muster"])


def test_rules_stand_in_the_order_they_were_asked_for() -> None:
    kept = {
        "rules": {"fixed": {"a": 1}, "muster": {"a": 2}},
        "curves": {"fixed": [], "muster": []},
        "rows": [["a", ["2", "1"]]],
    }

    shown = in_order(kept, {"rules": ["muster", "fixed"]})

    assert list(shown["rules"]) == list(shown["curves"]) == ["muster", "fixed"]
