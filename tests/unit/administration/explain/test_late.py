"""Why a batch misses its deadline, from made-up times and dry runs."""

from __future__ import annotations

from typing import Any

from administration.explain.late import SendingTime, late_conclusion, sent_per_request, slowest_cause
from administration.explain.verdict import GATED_SHARE, CallingHosts, HostAnswer, calling_hosts, ungated
from domain.batches import Batch, BatchCounts
from domain.forecasts import ForecastState
from domain.insight import WorkAhead
from domain.jobs import InstanceState
from domain.ordering import ServiceLevel
from domain.ranking import Gate, Percentile
from domain.refusals import BEHIND_GATE, RefusalCode
from domain.settings import Settings
from domain.units import HOUR_S, HostId, InstanceId, JobId, Seconds, later
from domain.views import ListedInstance
from muster_client.shapes import RiskShown
from scheduler.deadline.inputs import below_gate, busy_below_gate, slow_below_gate
from tests.builders import NOW, a_batch
from tests.facts import missing

TAKERS = tuple(HostAnswer(number, 2.0, 3, 0.0, ()) for number in range(1, 4))
SHARED = tuple(HostAnswer(number, 2.0, 3, 0.0, (), shared=True) for number in range(1, 4))
BELOW = tuple(
    HostAnswer(number, 4.0, 0, 0.0, (below_gate(Percentile(0.3), Gate.TIGHT, 0.9),)) for number in range(4, 10)
)
RISK: RiskShown = {"deadline_at": later(NOW, HOUR_S), "late_by_s": 60.0, "probability": 0.6, "missed": False}


def late(**changes: Any) -> Batch:
    return a_batch(counts=BatchCounts(jobs_total=100, unsent=100), **changes)


def sample(*answers: HostAnswer) -> CallingHosts:
    return calling_hosts(answers, Settings().as_mapping())


def test_work_ahead_that_delays_most_is_the_cause() -> None:
    found = slowest_cause(late(), sample(*TAKERS), WorkAhead(5, 900), is_first=False)

    assert found is not None and found.gain == 10.0 and not missing(found.words, "5 batches")
    assert found.remedy is not None and not missing(found.remedy.words, "expedite") and "#h-act" in found.remedy.link


def test_expedite_is_no_change_for_a_batch_sent_first() -> None:
    for batch, is_first in ((late(), True), (late(level=ServiceLevel.EXPEDITE), False)):
        found = slowest_cause(batch, sample(*TAKERS), WorkAhead(5, 900), is_first=is_first)

        assert found is not None and found.remedy is None


def test_gated_work_ahead_of_an_ungated_batch_is_no_cause() -> None:
    assert slowest_cause(late(), sample(*TAKERS), WorkAhead(1, 900, gated=900), is_first=False) is None


def test_gate_that_excludes_most_requests_is_the_cause() -> None:
    found = slowest_cause(late(), sample(*SHARED, *BELOW), WorkAhead(1, 20), is_first=True)

    assert found is not None and found.gain == 5.0 and not missing(found.words, "6 of 9 hosts")
    assert found.remedy is not None and found.remedy.link == "percentiles/preview?deadline.p_tight=0.3"


def test_no_lower_gate_is_suggested_once_the_deadline_has_passed() -> None:
    """Hosts below the gate get first instances as soon as they would finish them soon (decision 84)."""
    late_sample = ungated(sample(*SHARED, *BELOW))

    assert slowest_cause(late(), late_sample, WorkAhead(), is_first=True) is None
    assert [one.suggestion for one in late_sample.held_back] == [None] and late_sample.gated_share == 1.0


def test_late_batch_has_other_help_for_each_code_of_a_gate() -> None:
    low, new = Percentile(0.3), Percentile(None)
    slow = (slow_below_gate(one, Gate.AFAP, 0.5, 5.0 * HOUR_S, HOUR_S) for one in (low, new))
    busy = busy_below_gate(low, Gate.AFAP, 0.5, 9.0 * HOUR_S, HOUR_S)
    answers = [HostAnswer(number, 4.0, 0, 0.0, (one,)) for number, one in enumerate([*slow, busy])]

    found = ungated(sample(*answers)).held_back

    assert {one.code for one in found} == BEHIND_GATE
    assert len({one.help for one in found}) == len({one.of_hosts for one in found}) == len(found)
    assert all("later deadline" in one.help for one in found)


def test_example_in_brief_has_only_the_figures_that_decide() -> None:
    known = Percentile(0.246, reason="faster than 24.6 % of hosts")
    slow = slow_below_gate(known, Gate.AFAP, 0.45, 5.0 * HOUR_S, HOUR_S)
    new = slow_below_gate(Percentile(None, reason="a newcomer"), Gate.AFAP, 0.45, 5.0 * HOUR_S, HOUR_S)
    busy = busy_below_gate(known, Gate.AFAP, 0.45, 9.0 * HOUR_S, HOUR_S)
    answers = [HostAnswer(number, 4.0, 0, 0.0, (one,)) for number, one in enumerate([slow, new, busy])]

    found = {one.code: one for one in sample(*answers).held_back}

    assert found[RefusalCode.BELOW_GATE].example_brief == "P 0.246, p_afap 0.45"
    assert found[RefusalCode.NO_RANK].example_brief == "no P, p_afap 0.45"
    assert not missing(found[RefusalCode.BUSY_BELOW_GATE].example_brief, "P 0.246, p_afap 0.45", "9 h", "1 h")
    assert all(len(one.example_brief) < len(one.example) / 2 for one in found.values())


def test_share_behind_gates_is_the_cause_with_its_effect() -> None:
    found = slowest_cause(late(), sample(*SHARED), WorkAhead(), is_first=True)

    assert found is not None and found.gain == 2.0 and not missing(found.words, "50 %")
    assert found.remedy is not None and found.remedy.link == f"settings/{GATED_SHARE}"
    assert not missing(found.remedy.words, "2 times")


def test_least_time_is_dropped_if_the_forecast_is_sooner() -> None:
    sooner, later_on = (SendingTime(2244, present_s, 585.0, 2.9) for present_s in (Seconds(1713), Seconds(8000)))

    assert sooner.least_s is None and not sooner.words
    assert later_on.least_s is not None and not missing(later_on.words, "2\u202f244", 585, "2.9")


def test_deadline_that_all_requests_could_not_meet_is_told() -> None:
    """The least time decides, then slow results, then slow sending."""

    def told(per_hour: float, cause: str = "") -> tuple[str, list[str]]:
        time = SendingTime(100, None, per_hour, 2.0)
        asked = late(), RISK, ForecastState.SHOWN, time, sample(*SHARED), WorkAhead(), cause
        words, remedies = late_conclusion(*asked, now=NOW, is_first=True)
        return words, [one.link for one in remedies]

    words, links = told(40.0)
    assert not missing(words, "cannot", "100 unsent", "1 h 15 min") and links == ["batches/1#h-act", "batches/1/abort"]
    slow = told(60.0, "host 7 is slow")
    assert not missing(slow[0], "60 %", "host 7 is slow") and slow[1] == links
    assert not missing(told(60.0)[0], "60 %", "50 %") and told(60.0)[1] == [f"settings/{GATED_SHARE}"]
    assert not missing(told(0.0)[0], "60 %")


def test_missed_deadline_is_told_with_the_time_left_to_send() -> None:
    missed: RiskShown = {**RISK, "deadline_at": later(NOW, -HOUR_S), "missed": True}
    asked = ForecastState.SHOWN, SendingTime(100, None, 50.0, 2.0), sample(*SHARED), WorkAhead(), ""

    words, remedies = late_conclusion(late(), missed, *asked, now=NOW, is_first=True)

    assert not missing(words, "missed", "100 unsent", "1 h") and "50 %" not in words and len(remedies) == 2


def test_instances_of_one_request_are_counted_together() -> None:
    """Host 7 took two with one request and one with another, host 8 one."""
    old, new = later(NOW, -60.0), NOW
    found = [(7, old), (7, old), (7, new), (8, new)]
    sent = [
        ListedInstance(
            InstanceId(number),
            JobId(1),
            InstanceState.IN_PROGRESS,
            0,
            False,
            False,
            old,
            HostId(host),
            at,
            new,
            None,
            "",
        )
        for number, (host, at) in enumerate(found)
    ]

    assert sent_per_request(sent) == 4 / 3 and sent_per_request(()) == 0.0
