from __future__ import annotations

import pytest

from domain.acceleration import Acceleration
from domain.apps import ATI, CPU, NVIDIA, ProcessorType
from domain.batches import Batch, BatchCounts, QoS
from domain.catalogue import Catalogue
from domain.ranking import CutPoints, Gate
from domain.settings import AfapPolicy, DeadlineRule, DeadlineSettings, FeederSettings, Settings
from domain.units import AppId, Instant, Seconds
from feeder.reading import snapshot_of
from feeder.supply import feed_mode, gate_of
from lifecycle.tail import in_tail
from tests.builders import NOW, a_batch

HOUR_S = Seconds(3600.0)
IN_30_MIN = Instant(NOW + 1800.0)
IN_2_H = Instant(NOW + 7200.0)
SOME_VALID = BatchCounts(jobs_total=1000, jobs_validated=20)
FEW_VALID = BatchCounts(jobs_total=1000, jobs_validated=19)


@pytest.mark.parametrize(
    ("batch", "gate"),
    [
        (a_batch(qos=QoS.AFAP), Gate.AFAP),
        (a_batch(qos=QoS.AFAP, completion_at=IN_2_H, counts=SOME_VALID), Gate.NONE),
        (a_batch(qos=QoS.AFAP, completion_at=IN_2_H, counts=FEW_VALID), Gate.AFAP),
        (a_batch(qos=QoS.AFAP, completion_at=IN_30_MIN, counts=SOME_VALID), Gate.LATE),
        (a_batch(qos=QoS.SHORT_DEADLINE, deadline_at=IN_2_H, completion_at=IN_30_MIN), Gate.NONE),
        (a_batch(qos=QoS.SHORT_DEADLINE, deadline_at=IN_30_MIN, completion_at=IN_2_H), Gate.LATE),
        (a_batch(qos=QoS.SHORT_DEADLINE, deadline_at=NOW, completion_at=IN_2_H), Gate.NONE),
        (a_batch(qos=QoS.AFAP, completion_at=NOW, counts=SOME_VALID), Gate.LATE),
        (a_batch(qos=QoS.LONG_DEADLINE), Gate.NONE),
        (a_batch(qos=QoS.LONG_DEADLINE, completion_at=IN_30_MIN), Gate.LATE),
        (a_batch(qos=QoS.THROUGHPUT, completion_at=IN_30_MIN), Gate.NONE),
    ],
)
def test_a_batch_is_gated_without_an_estimate_or_when_late(batch: Batch, gate: Gate) -> None:
    assert gate_of(batch, now=NOW, median_r_q_s=HOUR_S, settings=DeadlineSettings()) is gate


def test_without_a_median_runtime_no_batch_counts_as_late() -> None:
    late = a_batch(qos=QoS.SHORT_DEADLINE, deadline_at=IN_30_MIN)
    assert gate_of(late, now=NOW, median_r_q_s=None, settings=DeadlineSettings()) is Gate.NONE


@pytest.mark.parametrize(
    "settings", [DeadlineSettings(afap=AfapPolicy.TABLE), DeadlineSettings(rule=DeadlineRule.PROPOSAL)]
)
def test_other_rules_gate_a_batch_past_its_deadline(settings: DeadlineSettings) -> None:
    late = a_batch(qos=QoS.SHORT_DEADLINE, deadline_at=Instant(NOW - 1.0))
    assert gate_of(late, now=NOW, median_r_q_s=HOUR_S, settings=settings) is Gate.LATE


@pytest.mark.parametrize(("total", "unsent", "tail"), [(1000, 50, True), (1000, 51, False), (60, 20, True)])
def test_the_tail_is_five_percent_or_twenty_jobs(total: int, unsent: int, tail: bool) -> None:
    batch = a_batch(counts=BatchCounts(jobs_total=total, unsent=unsent))
    assert in_tail(batch, FeederSettings()) is tail


def test_a_tail_is_everywhere_though_it_is_not_gated() -> None:
    batch = a_batch(counts=BatchCounts(jobs_total=100, unsent=5))
    found = feed_mode(batch, now=NOW, median_r_q_s=None, settings=Settings())
    assert (found.gate, found.everywhere) == (Gate.NONE, True)


def test_accelerated_batch_is_gated_and_in_every_worker() -> None:
    batch = a_batch(qos=QoS.THROUGHPUT, counts=BatchCounts(jobs_total=1000, unsent=140))
    flags = Acceleration(NOW, apps=frozenset({batch.app_id}), batches=frozenset({batch.batch_id}))
    view = snapshot_of([batch], Catalogue(acceleration=flags), {}, owned=frozenset(), limit=9, now=NOW)
    assert view.feeds[batch.batch_id].gate is Gate.LOW_TURNAROUND
    assert view.everywhere(batch.batch_id)
    plain = snapshot_of([batch], Catalogue(), {}, owned=frozenset(), limit=9, now=NOW)
    assert not plain.everywhere(batch.batch_id)


def test_median_runtime_is_of_the_most_used_processor_type() -> None:
    def cuts(kind: ProcessorType, n: int, median_s: float | None) -> CutPoints:
        return CutPoints(
            AppId(1), kind, NOW, n, (), (), median_safe_runtime_s=None if median_s is None else Seconds(median_s)
        )

    known = [cuts(CPU, 50, 7200.0), cuts(NVIDIA, 20, 600.0), cuts(ATI, 90, None)]
    catalogue = Catalogue(cut_points={(one.app_id, one.processor_type): one for one in known})
    assert catalogue.median_safe_runtime_s(AppId(1)) == 7200.0
    assert catalogue.median_safe_runtime_s(AppId(2)) is None
