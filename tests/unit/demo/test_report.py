"""The demonstration's comparison of forecasts with actual ends."""

from __future__ import annotations

from dataclasses import replace

from demo.report import against_fact
from domain.units import later
from tests.builders import NOW, a_batch
from tests.unit.administration.forecasts.test_words import RECORD

BATCH = a_batch(name="rush", created_at=NOW, ended_at=later(NOW, 50.0))


def test_report_has_first_half_and_nine_tenths_forecasts() -> None:
    made = [
        replace(RECORD, made_at=later(NOW, at), jobs_total=10, jobs_validated=over, jobs_failed=0)
        for at, over in ((1.0, 0), (10.0, 4), (20.0, 6), (30.0, 7), (40.0, 9), (45.0, 9))
    ]

    found = against_fact(BATCH, made)

    assert [(one.made_s, one.jobs_over, one.ended_s) for one in found] == [
        (1.0, 0, 50.0),
        (20.0, 6, 50.0),
        (40.0, 9, 50.0),
    ]
    assert (found[0].batch, found[0].about_s, found[0].at_latest_s) == ("rush", 7200.0, 21600.0)
    assert found[0].as_json()["made_s"] == 1.0


def test_report_omits_repeated_and_late_forecasts() -> None:
    late = replace(RECORD, made_at=later(NOW, 60.0), jobs_validated=40)
    early = replace(RECORD, made_at=later(NOW, 40.0), jobs_validated=39)

    assert [one.made_s for one in against_fact(BATCH, [early, late])] == [40.0]
    assert against_fact(replace(BATCH, ended_at=None), [late])[0].ended_s is None
    assert against_fact(BATCH, []) == []
