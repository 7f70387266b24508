"""Aggregation over a node's processes: no count is lost, no ended process is shown."""

from __future__ import annotations

import msgspec
from prometheus_client.parser import text_string_to_metric_families

from domain.units import later
from runtime.metrics.catalogue import (
    ARRAY_SLOTS,
    BY_NAME,
    CLOCK_OFFSET,
    JOBS_SENT,
    METRICS,
    REFILL_AGE,
    REQUEST_SECONDS,
    REQUESTS,
    MetricSample,
)
from runtime.metrics.metrics_store import FRESH_S, MetricReading, counts, exposition, reading, together
from tests.builders import NOW

BUCKETS = [0, 0, 3, *[0] * 10, 1]


def taken(process: str, *samples: MetricSample, at: float = NOW) -> MetricReading:
    return reading(process, later(NOW, at - NOW), samples, {})


def test_counts_add_up_and_the_longest_wait_is_the_node_s() -> None:
    one = taken("worker 0", REQUESTS.of("200", value=3), REFILL_AGE.of(value=4.0))
    two = taken("worker 1", REQUESTS.of("200", value=4), REQUESTS.of("503", value=1), REFILL_AGE.of(value=9.0))

    found = together([one, two], NOW)

    assert found[REQUESTS] == {("200",): (7.0,), ("503",): (1.0,)}
    assert found[REFILL_AGE] == {(): (9.0,)}


def test_per_process_gauges_have_a_process_label() -> None:
    found = together([taken("worker 0", CLOCK_OFFSET.of(value=0.5)), taken("worker 1", CLOCK_OFFSET.of(value=-1))], NOW)

    assert found[CLOCK_OFFSET] == {("worker 0",): (0.5,), ("worker 1",): (-1.0,)}


def test_histograms_add_up_bucket_by_bucket() -> None:
    sample = REQUEST_SECONDS.counted(buckets=BUCKETS, total=11.0)

    found = together([taken("worker 0", sample), taken("worker 1", sample)], NOW)

    assert found[REQUEST_SECONDS][()] == (*(2.0 * n for n in BUCKETS), 22.0)


def test_silent_process_keeps_counters_and_loses_gauges() -> None:
    old = taken("worker 0", JOBS_SENT.of(value=5), ARRAY_SLOTS.of("pi", "cpu", value=900), at=NOW - FRESH_S - 1.0)

    assert together([old], NOW) == {JOBS_SENT: {(): (5.0,)}}


def test_restarted_process_continues_its_counters() -> None:
    before = taken("worker 0", JOBS_SENT.of(value=5), CLOCK_OFFSET.of(value=2.0), REQUESTS.of("503", value=1))

    after = reading("worker 0", NOW, [JOBS_SENT.of(value=1)], counts(before))

    found = together([after], NOW)
    assert found == {JOBS_SENT: {(): (6.0,)}, REQUESTS: {("503",): (1.0,)}}


def test_metrics_of_another_version_are_passed_over() -> None:
    strange = MetricReading("worker 0", NOW, (("muster_unheard_of", (), (1.0,)),))

    assert together([strange], NOW) == {}


def test_other_buckets_are_not_added_to_these() -> None:
    known = taken("worker 0", REQUEST_SECONDS.counted(buckets=BUCKETS, total=11.0))
    other = MetricReading("worker 1", NOW, ((REQUEST_SECONDS.name, (), (1.0, 2.0)),))

    assert together([known, other], NOW)[REQUEST_SECONDS] == {(): (*map(float, BUCKETS), 11.0)}


def test_a_reading_is_the_same_behind_its_file() -> None:
    one = taken("worker 0", ARRAY_SLOTS.of("pi", "cpu", value=900), REQUEST_SECONDS.counted(buckets=BUCKETS, total=1.5))

    assert msgspec.json.decode(msgspec.json.encode(one), type=MetricReading) == one


def test_a_monitoring_system_can_read_every_metric() -> None:
    samples = [
        metric.counted(*metric.labels, buckets=[1] * (len(metric.bounds) + 1), total=2.0)
        if metric.bounds
        else metric.of(*metric.labels, value=1.5)
        for metric in METRICS
    ]
    text, content_type = exposition([taken("worker 0", *samples)], NOW)

    families = {family.name: family for family in text_string_to_metric_families(text.decode())}

    assert content_type.startswith("text/plain")
    assert {name.removesuffix("_total") for name in BY_NAME} == families.keys()
    for metric in METRICS:
        family = families[metric.name.removesuffix("_total")]
        assert (family.type, family.documentation) == (metric.kind.value, metric.meaning)
        assert {"le", *metric.shown_labels} >= set(family.samples[0].labels) >= set(metric.shown_labels)


def test_who_accepts_openmetrics_gets_it() -> None:
    accept = "application/openmetrics-text; version=1.0.0"

    text, content_type = exposition([taken("worker 0", JOBS_SENT.of(value=1))], NOW, accept)

    assert content_type.startswith("application/openmetrics-text")
    assert text.decode().endswith("# EOF\n")
