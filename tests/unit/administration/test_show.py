"""Keys of the JSON that scripts rely on."""

from __future__ import annotations

import msgspec

from administration.batches import batch_as_json
from administration.show import account_as_json, app_as_json, job_as_json, submitter_as_json
from administration.stopped import NOTHING_STOPPED
from domain.batches import Account, BatchCounts, Submitter
from domain.catalogue import Catalogue
from domain.dispatch import Upload
from domain.jobs import InstanceState, JobState
from domain.units import (
    AccountId,
    AppId,
    AppVersionId,
    BatchId,
    HostId,
    InstanceId,
    Instant,
    JobClassId,
    JobId,
    SubmitterId,
)
from domain.views import InstanceRow, JobRow, Whose
from tests.builders import LINUX, NOW, a_batch, a_plan_class, an_app, an_app_version, some_due_terms

TERMS = some_due_terms()
INSTANCE = InstanceRow(
    InstanceId(77),
    JobId(41),
    InstanceState.VALID,
    1,
    True,
    HostId(5),
    AppVersionId(2),
    NOW,
    Instant(NOW + 60.0),
    None,
    None,
    None,
    0,
    "",
    TERMS,
    "",
    (Upload("pi_3_41_77_r0", 10, "0" * 32),),
)
JOB = JobRow(JobId(41), BatchId(3), JobClassId(1), JobState.VALID, "41", "", InstanceId(77), (), (INSTANCE,))


def test_batch_has_counters_under_their_names() -> None:
    counts = BatchCounts(jobs_total=9, jobs_validated=1, jobs_failed=2, unsent=3, in_progress=4, retries=5)

    shown = batch_as_json(a_batch(counts=counts), Whose("pi", "ada", "physics"), None, None, NOTHING_STOPPED, now=NOW)

    keys = ("jobs_total", "jobs_validated", "jobs_failed", "unsent", "in_progress", "retries")
    assert [dict(shown)[key] for key in keys] == [9, 1, 2, 3, 4, 5]
    assert (shown["app"], shown["submitter"], shown["account"]) == ("pi", "ada", "physics")
    assert (shown["qos"], shown["state"], shown["completion_at"]) == ("throughput", "active", None)


def test_job_has_instances_and_outputs() -> None:
    shown = msgspec.json.decode(msgspec.json.encode(job_as_json(JOB)))

    assert (shown["job_id"], shown["state"], shown["canonical_instance_id"]) == (41, "valid", 77)
    [instance] = shown["instances"]
    assert (instance["state"], instance["tight"], instance["because"]) == ("valid", True, TERMS.in_full)
    assert instance["uploads"] == [{"name": "pi_3_41_77_r0", "nbytes": 10, "md5": "0" * 32}]


def test_account_names_its_parent() -> None:
    root, leaf = Account(AccountId(1), "root"), Account(AccountId(2), "leaf", AccountId(1), 3.0)
    names = {1: "root", 2: "leaf"}

    assert account_as_json(root, names)["parent"] is None
    shown = {"account_id": 2, "name": "leaf", "parent": "root", "shares": 3.0, "permissions": ()}
    assert account_as_json(leaf, names) == shown


def test_submitter_names_its_account() -> None:
    assert submitter_as_json(Submitter(SubmitterId(4), "ada", AccountId(2)), {2: "leaf"})["account"] == "leaf"


def test_app_lists_its_current_versions() -> None:
    versions = (an_app_version(version_num=107), an_app_version(version_num=1203, plan_class=a_plan_class()))
    catalogue = Catalogue(current={AppId(1): versions})

    assert app_as_json(an_app(), catalogue)["versions"] == [f"1.07 {LINUX}", f"12.03 {LINUX} mt"]
    assert app_as_json(an_app(), Catalogue())["versions"] == []
