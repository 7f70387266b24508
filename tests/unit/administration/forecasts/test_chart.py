"""Jobs done over time and the fan of a forecast, as text."""

from __future__ import annotations

from administration.forecasts.chart import FAN, MEDIAN, Fan, Mark, Point, chart, over_at
from domain.units import Instant

HALF = [Point(Instant(0.0), 0.0), Point(Instant(40.0), 0.5)]
AHEAD = Fan(HALF[-1], Instant(50.0), Instant(60.0), Instant(80.0))


def cells(lines: list[str], height: int) -> list[str]:
    """The rows of jobs without their labels, all of one width."""
    return [line[7:] for line in lines[:height]]


def test_every_line_is_as_wide_as_asked() -> None:
    lines = chart(HALF, AHEAD, [Mark("n", Instant(40.0))], width=41, height=6)

    assert len(lines) == 8
    assert {len(row) for row in cells(lines, 6)} == {41}
    assert all(len(line) == 48 for line in lines)


def test_jobs_done_fill_half_the_height_when_half_are_over() -> None:
    top, bottom = cells(chart(HALF, None, [], width=5, height=2), 2)

    assert top == "     "
    assert bottom == " ▂▄▆█"


def test_the_fan_is_drawn_from_the_last_forecast_to_its_quantiles() -> None:
    rows = cells(chart(HALF, AHEAD, [], width=81, height=4), 4)

    assert all(set(row[:40]) <= set(" ▁▂▃▄▅▆▇█") for row in rows)
    assert rows[0].index(FAN) == 46  # on the line to q10 more than three quarters are over after 46 s
    assert rows[0].rindex(FAN) == 79  # and on that to q90 all after 80 s
    assert (rows[0].index(MEDIAN), rows[0].rindex(MEDIAN)) == (50, 60)
    assert (rows[1].index(MEDIAN), rows[1].rindex(MEDIAN)) == (41, 49)
    assert FAN not in rows[2] + rows[3]


def test_marks_stand_where_their_instants_are_and_the_last_hides_others() -> None:
    marks = [Mark("D", Instant(80.0)), Mark("9", Instant(80.0)), Mark("n", Instant(40.0))]

    line = chart(HALF, AHEAD, marks, width=81, height=4)[-1]

    assert line[7:] == " " * 40 + "n" + " " * 39 + "9"


def test_a_deadline_behind_the_fan_widens_the_chart() -> None:
    line = chart(HALF, AHEAD, [Mark("D", Instant(160.0))], width=81, height=4)[-1]

    assert line[7:] == " " * 80 + "D"


def test_a_batch_that_was_submitted_this_moment_has_a_chart() -> None:
    now = [Point(Instant(5.0), 0.0), Point(Instant(5.0), 0.0)]

    assert len(chart(now, Fan(now[-1], Instant(5.0), Instant(5.0), Instant(5.0)), [], width=20, height=3)) == 5


def test_between_points_jobs_are_done_evenly_and_none_before_the_first() -> None:
    assert [over_at(Instant(at), HALF) for at in (-1.0, 0.0, 20.0, 40.0, 99.0)] == [0.0, 0.0, 0.25, 0.5, 0.5]
