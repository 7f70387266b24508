from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import replace

import pytest

from domain.batches import QoS
from domain.dispatch import Assignment
from domain.jobs import JobClass
from domain.refusals import RefusalCode
from domain.units import (
    DAY_S,
    AppVersionId,
    BatchId,
    Flop,
    HostId,
    InstanceId,
    Instant,
    JobClassId,
    JobId,
    Seconds,
    VolunteerId,
    later,
)
from simulator.metrics import Figures, as_json, bound_figures, figures_of, makespan_s, medians, tail_s
from simulator.ports import VolunteerFacts
from simulator.recording import Followed, RunRecord
from simulator.scenario import read_scenario
from tests.builders import some_due_terms

END = Instant(1000.0)


def a_batch(
    number: int, qos: QoS, ends: list[float], *, jobs: int | None = None, instances: int = 0, tight: int = 0
) -> Followed:
    return Followed(
        BatchId(number),
        f"b{number}",
        qos,
        "ada",
        Instant(100.0),
        len(ends) if jobs is None else jobs,
        instances=instances,
        tight=tight,
        validated=len(ends),
        ended_at=array("d", ends),
    )


def a_record(*batches: Followed) -> RunRecord:
    record = RunRecord()
    for batch in batches:
        job_class = JobClass(JobClassId(batch.batch_id), batch.batch_id, Flop(1.0), Flop(1.0), 1.0, 1.0, Seconds(1.0))
        record.submitted(batch, [job_class], shares=1.0)
    return record


def test_a_makespan_is_from_submission_to_the_last_end() -> None:
    assert makespan_s(a_batch(1, QoS.AFAP, [300.0, 700.0, 500.0]), END) == 600.0


def test_a_batch_that_is_not_over_counts_with_the_time_it_had() -> None:
    unfinished = a_batch(1, QoS.AFAP, [300.0], jobs=2)

    assert makespan_s(unfinished, END) == 900.0
    assert tail_s(unfinished) is None


def test_the_tail_begins_when_nine_of_ten_jobs_are_over() -> None:
    assert tail_s(a_batch(1, QoS.AFAP, [float(n) for n in range(101, 121)])) == 2.0
    assert tail_s(a_batch(1, QoS.AFAP, [150.0])) == 0.0


def test_the_figures_of_a_run() -> None:
    record = a_record(
        a_batch(1, QoS.AFAP, [200.0, 300.0], instances=3, tight=2),
        a_batch(2, QoS.AFAP, [500.0, 600.0], instances=2),
        a_batch(3, QoS.THROUGHPUT, [900.0], instances=1),
        a_batch(4, QoS.LONG_DEADLINE, [], jobs=1, instances=2),
    )
    record.validation_delays_s.extend([0.0, 10.0, 20.0])
    record.waits_s[JobClassId(1)] = array("d", [5.0, 15.0])
    record.requests, record.asking, record.refused_feasible = 80, 50, 5
    facts = [VolunteerFacts(3, 1, Seconds(60.0), lost=1), VolunteerFacts(1, 1, Seconds(0.0))]
    found = figures_of(record, facts, ended_at=END, deadlines_missed=2)

    assert found.afap_makespan_s == (200.0 + 500.0) / 2
    assert found.other_makespan_s == (800.0 + 900.0) / 2
    assert found.makespan_s == {"afap": 350.0, "long_deadline": 900.0, "throughput": 800.0}
    assert found.instances_per_job == pytest.approx(8 / 6)
    assert found.tight_fraction == 2 / 8
    assert found.deadline_mode_fraction == 2 / 4
    assert found.deadline_miss_fraction == 2 / 8
    assert found.preempted_s_per_job == 10.0
    assert (found.validation_delay_s, found.validation_delay_p90_s) == (10.0, 18.0)
    assert found.wait_s == {"1": 10.0}
    assert found.never_returned_fraction == 1 / 8
    assert found.refused_feasible_fraction == 0.1
    assert (found.batches, found.batches_unfinished, found.jobs_failed) == (4.0, 1.0, 0.0)
    assert found.cut_short == ("long_deadline", "other")


def test_waits_are_grouped_by_processors_and_work() -> None:
    record = a_record(*(a_batch(number, QoS.AFAP, [300.0]) for number in (1, 2, 3)))
    for number, (ncpus, work) in enumerate(((1.0, 6e13), (1.0, 2e12), (4.0, 9e13)), start=1):
        job_class = replace(record.classes[JobClassId(number)], ncpus=ncpus, fpops_est_flop=Flop(work))
        record.classes[JobClassId(number)] = job_class
        record.waits_s[JobClassId(number)] = array("d", [10.0 * number])
    found = figures_of(record, [], ended_at=END, deadlines_missed=0)

    assert found.wait_s == {"1": 15.0, "4": 30.0}
    assert found.wait_by_length_s == {"1e+12": 20.0, "1e+13": 20.0}


def test_forecast_figures_are_means_over_batches() -> None:
    kept, missed = (a_batch(number, QoS.AFAP, [200.0, 400.0]) for number in (1, 2))
    kept.promised_at, missed.promised_at = Instant(500.0), Instant(300.0)
    found = figures_of(a_record(kept, missed), [], ended_at=END, deadlines_missed=0)

    assert found.forecast_coverage_fraction == 0.5
    assert found.forecast_promise_ratio == (1.5 + 0.5) / 2


@pytest.mark.parametrize(
    ("batches", "cut_short"),
    [
        ([([300.0], 1)], ()),
        ([([300.0], 2)], ("afap",)),
        ([([300.0], 1), ([300.0], 1), ([], 1)], ()),  # the median is a finished batch
        ([([300.0], 1), ([], 1)], ("afap",)),
    ],
)
def test_makespan_is_cut_short_if_more_time_would_extend_it(
    batches: list[tuple[list[float], int]], cut_short: tuple[str, ...]
) -> None:
    record = a_record(
        *(a_batch(number, QoS.AFAP, ends, jobs=jobs) for number, (ends, jobs) in enumerate(batches, start=1))
    )

    assert figures_of(record, [], ended_at=END, deadlines_missed=0).cut_short == cut_short


def test_medians_over_seeds_are_cut_short_by_the_same_measure() -> None:
    whole, cut = Figures(makespan_s={"afap": 5.0}), Figures(makespan_s={"afap": 9.0}, cut_short=("afap",))

    assert medians([whole, whole, cut]).cut_short == ()
    assert medians([whole, cut, cut]).cut_short == ("afap",)
    assert medians([whole, cut]).cut_short == ("afap",)
    assert as_json(cut) == {"makespan_s": {"afap": 9.0}, "cut_short": ["afap"]}


def test_a_run_in_which_nothing_happened_has_few_figures() -> None:
    found = figures_of(RunRecord(), [], ended_at=END, deadlines_missed=0)

    assert as_json(found) == {
        "makespan_s": {},
        "tail_s": {},
        "wait_s": {},
        "wait_by_length_s": {},
        "batches": 0.0,
        "batches_unfinished": 0.0,
        "jobs_failed": 0.0,
    }


def test_medians_are_per_figure_over_runs_that_have_it() -> None:
    runs = [
        Figures(afap_makespan_s=1.0, makespan_s={"afap": 1.0}),
        Figures(afap_makespan_s=5.0, makespan_s={"afap": 5.0, "throughput": 7.0}, tight_fraction=0.5),
        Figures(afap_makespan_s=2.0, makespan_s={"afap": 2.0}),
    ]
    found = medians(runs)

    assert (found.afap_makespan_s, found.tight_fraction) == (2.0, 0.5)
    assert found.makespan_s == {"afap": 2.0, "throughput": 7.0}
    assert found.other_makespan_s is None


def test_figures_have_six_digits() -> None:
    assert as_json(Figures(afap_makespan_s=123456.789, tail_s={"afap": 1 / 3})) == {
        "afap_makespan_s": 123457.0,
        "tail_s": {"afap": 0.333333},
    }


def test_bound_is_reported_in_the_same_figures() -> None:
    plans = read_scenario("small").batches
    in_share_s = {"rush": Seconds(7.0), "census": Seconds(11.0)}
    found = bound_figures({"rush": Seconds(5.0), "census": Seconds(9.0)}, plans, in_share_s=in_share_s)

    assert found.afap_makespan_in_share_s == 7.0
    assert (found.afap_makespan_s, found.other_makespan_s) == (5.0, 9.0)
    assert (found.batches, found.batches_unfinished) == (3.0, 1.0)


def answered(record: RunRecord, *, sent: int = 0, resent: int = 0, refusals: Sequence[RefusalCode] = ()) -> None:
    counted = dict.fromkeys(refusals, 1)
    record.request_answered(sent=sent, resent=resent, reports=1, refusals=counted, took_s=Seconds(0.0))


def test_only_requests_that_ask_for_work_can_be_refused_it() -> None:
    record = RunRecord()
    answered(record)  # it reports and requests nothing
    answered(record, refusals=(RefusalCode.NO_NEW_TASKS,))
    answered(record, resent=1)
    answered(record, sent=1)
    answered(record, sent=1, refusals=(RefusalCode.BELOW_GATE,))
    answered(record, refusals=(RefusalCode.BELOW_GATE, RefusalCode.TOO_SLOW))
    answered(record, refusals=(RefusalCode.TOO_SLOW,))

    assert (record.requests, record.asking, record.without_work, record.refused_feasible) == (7, 4, 2, 1)
    assert figures_of(record, [], ended_at=END, deadlines_missed=0).refused_feasible_fraction == 0.25


def test_daily_use_and_coverages_are_combined_over_runs() -> None:
    one = Figures(use_by_day=(0.2, None, 0.6), forecast_q90_coverage={"0": 1.0, "10": 1.0})
    other = Figures(use_by_day=(0.4, 0.5), forecast_q90_coverage={"0": 0.0})
    third = Figures(forecast_q90_coverage={"0": 0.0})
    found = as_json(medians([one, other, third]))

    assert found["use_by_day"] == [pytest.approx(0.3), 0.5, 0.6]
    assert found["forecast_q90_coverage"] == {"0": pytest.approx(1 / 3, rel=1e-5), "10": 1.0}


def test_jobs_a_day_are_counted_from_the_first_submission() -> None:
    record = a_record(a_batch(1, QoS.AFAP, [200.0, 300.0]), a_batch(2, QoS.THROUGHPUT, [900.0], jobs=5))

    assert figures_of(record, [], ended_at=END, deadlines_missed=0).jobs_per_day == pytest.approx(3 * 86400.0 / 900.0)


def sent(batch: Followed, number: int, at: float) -> Assignment:
    due_at = Instant(at + DAY_S)
    return Assignment(
        instance_id=InstanceId(number),
        job_id=JobId(number),
        batch_id=batch.batch_id,
        job_class_id=JobClassId(batch.batch_id),
        app_version_id=AppVersionId(1),
        host_id=HostId(1),
        volunteer_id=VolunteerId(1),
        sent_at=Instant(at),
        due_at=due_at,
        timeout_at=later(due_at, 3600.0),
        est_runtime_s=Seconds(3600.0),
        tight=False,
        due_terms=some_due_terms(),
    )


def a_saturated_record(last_sent_at: float) -> RunRecord:
    """Four jobs submitted at 100 s: two end within a day, one after two; the last is first sent at `last_sent_at`."""
    batch = a_batch(1, QoS.THROUGHPUT, [100.0 + DAY_S / 2, 100.0 + DAY_S, 100.0 + 2 * DAY_S], jobs=4)
    record = a_record(batch)
    for number in (1, 2, 3):
        record.sent(sent(batch, number, 100.0))
    record.sent(sent(batch, 4, last_sent_at))
    record.sent(sent(batch, 4, last_sent_at + 3 * DAY_S))  # a retry
    return record


def test_saturation_ends_with_the_last_first_dispatch() -> None:
    figures = figures_of(a_saturated_record(100.0 + 1.6 * DAY_S), [], ended_at=Instant(10 * DAY_S), deadlines_missed=0)

    assert figures.saturated_jobs_per_day == pytest.approx(2 / 1.6)


def test_saturation_of_less_than_a_day_tells_nothing() -> None:
    figures = figures_of(a_saturated_record(100.0 + 0.9 * DAY_S), [], ended_at=Instant(10 * DAY_S), deadlines_missed=0)

    assert figures.saturated_jobs_per_day is None


def test_saturation_lasts_while_jobs_were_never_sent() -> None:
    record = a_record(a_batch(1, QoS.THROUGHPUT, [100.0 + DAY_S, 100.0 + 2 * DAY_S], jobs=4))

    assert figures_of(record, [], ended_at=Instant(100.0 + 4 * DAY_S), deadlines_missed=0).saturated_jobs_per_day == 0.5


def test_jobs_for_gpus_saturate_no_cpu() -> None:
    gpu = replace(a_batch(1, QoS.THROUGHPUT, [], jobs=4), on_cpus=False)

    assert figures_of(a_record(gpu), [], ended_at=END, deadlines_missed=0).saturated_jobs_per_day is None
