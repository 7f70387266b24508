"""Names of jobs and instances, and urgency."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.jobs import instance_id_of, instance_name, job_name, output_file_name
from domain.units import BatchId, InstanceId, JobId
from tests.builders import a_ready

IDS = st.integers(1, 10**18 - 1)
NAMES = st.from_regex(r"\A[a-z][a-z0-9_.-]{0,30}\Z")


@given(NAMES, IDS, IDS, IDS)
def test_an_instance_is_found_again_by_its_name(app: str, batch: int, job: int, instance: int) -> None:
    name = instance_name(app, BatchId(batch), JobId(job), InstanceId(instance))

    assert instance_id_of(name) == instance


@given(NAMES, IDS, IDS, IDS)
def test_the_name_of_an_instance_begins_with_its_jobs(app: str, batch: int, job: int, instance: int) -> None:
    name = instance_name(app, BatchId(batch), JobId(job), InstanceId(instance))

    assert name.startswith(job_name(app, BatchId(batch), JobId(job)) + "_")


@pytest.mark.parametrize(
    "name",
    ["", "_", "pi_3_41_", "pi_3_41_-7", "pi_3_41_7x", "pi_3_41_ 7", "pi_3_41_７", "pi_3_41_²", "pi_1_1_" + "9" * 19],
)
def test_a_name_we_never_gave_belongs_to_no_instance(name: str) -> None:
    assert instance_id_of(name) is None


@given(st.text())
def test_any_text_at_all_is_a_name_or_not(name: str) -> None:
    found = instance_id_of(name)

    assert found is None or 0 <= found < 10**18


def test_outputs_are_numbered_from_zero() -> None:
    assert [output_file_name("pi_3_41_77", position) for position in range(2)] == ["pi_3_41_77_r0", "pi_3_41_77_r1"]


def test_retries_and_jobs_with_a_sibling_back_are_urgent() -> None:
    assert not a_ready().urgent
    assert a_ready(retries=1).urgent
    assert a_ready(sibling_returned=True).urgent
