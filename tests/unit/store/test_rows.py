"""Tests that rows become values, and that values survive JSON columns."""

from __future__ import annotations

import doctest
from dataclasses import asdict
from typing import Any

import pytest

import store.counting
import store.hosts
import store.request_writes
import store.rows
from domain.apps import CPU, NVIDIA, ProcessorType
from domain.batches import BatchCounts
from domain.hosts import Coprocessor
from domain.jobs import Input, Output
from domain.units import FlopPerSecond
from store import rows
from tests.builders import a_batch, a_host, a_job_class, a_plan_class, an_app


@pytest.mark.parametrize("module", [store.rows, store.counting, store.hosts, store.request_writes])
def test_the_examples_in_the_docstrings_hold(module: Any) -> None:
    assert doctest.testmod(module).failed == 0


def test_a_host_with_a_gpu_is_read_as_it_was_written() -> None:
    gpu = Coprocessor(ProcessorType("NVIDIA"), 2, FlopPerSecond(5e12), 8e9, 53_000)
    host = a_host(coprocessors=(gpu,), host_cpid='a"b\\c')
    row = asdict(host) | {"platforms": list(host.platforms), "coprocessors": rows.encoded(host.coprocessors)}
    assert rows.host(row) == host


def test_an_app_is_read_as_it_was_written() -> None:
    app = an_app(beta=True, adaptive_copies=2)
    assert rows.app(asdict(app)) == app


def test_a_plan_class_without_a_gpu_is_for_the_cpu() -> None:
    assert rows.plan_class(asdict(a_plan_class())).processor_type == CPU
    assert rows.plan_class(asdict(a_plan_class(gpu_type=NVIDIA))).processor_type == NVIDIA


def test_a_job_class_is_read_as_it_was_written() -> None:
    job_class = a_job_class(
        inputs=(Input("in_1", "in", 10, "0" * 32, sticky=True),), outputs=(Output("out", 5, optional=True),)
    )
    row = asdict(job_class) | {"inputs": rows.encoded(job_class.inputs), "outputs": rows.encoded(job_class.outputs)}
    assert rows.job_class(row) == job_class


def test_job_without_own_inputs_has_none() -> None:
    assert rows.inputs(None) is None
    assert rows.inputs("[]") == ()


def test_an_instance_without_uploads_has_an_empty_list() -> None:
    assert rows.uploads(None) == ()


def test_a_batch_is_read_with_its_totals() -> None:
    batch = a_batch(counts=BatchCounts(*range(1, 10)), user_priority=3)
    assert rows.batch(asdict(batch) | asdict(batch.counts)) == batch


def test_standard_error_is_cut_at_64_kib_between_characters() -> None:
    kept = store.request_writes.storable("é" * 40_000)
    assert kept == "é" * 32_768


def test_text_that_is_no_unicode_can_be_kept() -> None:
    assert store.request_writes.storable("a\udc80b") == "a?b"
