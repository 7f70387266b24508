"""The checks of a single job."""

from __future__ import annotations

from dataclasses import replace

import pytest

from domain.hosts import HostAppVersion
from domain.refusals import RefusalCode
from domain.units import AppVersionId, HostId
from scheduler.slots import RETRIES_FOR_ALL, record_refusal
from tests.builders import a_ready
from tests.unit.scheduler.arrays import a_catalogue, a_group, an_asking, some_cuts


@pytest.mark.parametrize(("n_valid", "ranked", "is_refused"), [(0, True, True), (1, True, False), (0, False, False)])
def test_a_job_retried_often_needs_a_host_with_a_result(n_valid: int, ranked: bool, is_refused: bool) -> None:
    """Where hosts are ranked; a new project has none with a record."""
    group = a_group(ready=[a_ready(retries=RETRIES_FOR_ALL)])
    havs = {AppVersionId(1): HostAppVersion(HostId(1), AppVersionId(1), n_valid=n_valid)}
    asking = an_asking(havs=havs)
    if ranked:
        asking = replace(asking, catalogue=a_catalogue(cuts=[some_cuts()]))
    refusal = record_refusal(group.slots()[0], group, asking)
    assert (refusal is not None) is is_refused
    if refusal is not None:
        assert refusal.code is RefusalCode.RECORD_NEEDED
        assert refusal.detail == "job 1 was retried 3 times; beyond 2 retries a host needs a valid result"
