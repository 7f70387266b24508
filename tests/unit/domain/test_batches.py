"""Counters of a batch."""

from __future__ import annotations

from domain.batches import BatchCounts


def test_open_jobs_are_those_neither_valid_nor_failed() -> None:
    assert BatchCounts(jobs_total=10, jobs_validated=6, jobs_failed=1).jobs_open == 3


def test_a_finished_batch_has_no_open_job() -> None:
    assert BatchCounts(jobs_total=10, jobs_validated=9, jobs_failed=1).jobs_open == 0
