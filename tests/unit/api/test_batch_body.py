"""The typed body of a submission in the OpenAPI document agrees with what the server parses."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import pytest

from api.batch_body import BatchInput, BatchJobTable, BatchOutput, BatchValidator, NewBatchBody
from api.routes import Api
from domain.errors import InvalidInputError
from jobs.requirements import JOB_FIELDS
from jobs.spec import BATCH_FIELDS, parse_batch, size_of

JOBS = {"count": 2, "fpops_est": 1e12}
GOOD: list[dict[str, Any]] = [
    {"app": "pi", "qos": "afap", "jobs": JOBS},
    {"app": "pi", "qos": "short_deadline", "deadline_s": 3600, "jobs": {**JOBS, "quorum": 2, "ncpus": 4}},
    {"app": "pi", "qos": "throughput", "jobs": {"fpops_est": 1e9}, "job": [{"command_line": "--n {i}"}, {"count": 3}]},
    {"app": "pi", "qos": "throughput", "jobs": {"fpops_est": 1e9}, "jobs_csv": "jobs_0d.csv", "after_ok": [1, 2]},
    {
        "app": "pi",
        "qos": "long_deadline",
        "name": "all",
        "account": "lab",
        "queue": "normal",
        "level": "standby",
        "user_priority": -5,
        "jobs": {
            **JOBS,
            "fpops_bound": 1e13,
            "memory_bytes": 0,
            "disk_bytes": 1e9,
            "delay_bound_s": 86400,
            "max_errors": 1,
            "max_instances": 20,
            "hr_type": 2,
            "validator": {"kind": "tolerance", "tolerance": 1e-6},
            "inputs": [{"name": "in_0d.txt", "open_name": "data/in.txt", "sticky": True}],
            "outputs": [{"name": "out_{i}", "max_bytes": 1000, "optional": True}],
        },
    },
]
BAD: list[dict[str, Any]] = [
    {"qos": "afap", "jobs": JOBS},
    {"app": "pi", "qos": "soon", "jobs": JOBS},
    {"app": "pi", "qos": "afap", "jobs": JOBS, "colour": "red"},
    {"app": "pi", "qos": "afap", "jobs": {**JOBS, "colour": "red"}},
    {"app": "pi", "qos": "afap", "jobs": {**JOBS, "count": 0}},
    {"app": "pi", "qos": "afap", "jobs": {**JOBS, "count": "2"}},
    {"app": "pi", "qos": "afap", "jobs": {**JOBS, "fpops_est": 0}},
    {"app": "pi", "qos": "afap", "jobs": {**JOBS, "quorum": 21}},
    {"app": "pi", "qos": "afap", "jobs": {**JOBS, "validator": {"kind": "close"}}},
    {"app": "pi", "qos": "afap", "jobs": {**JOBS, "outputs": [{"name": "out"}]}},
    {"app": "pi", "qos": "afap", "jobs": {**JOBS, "inputs": [{"file": "in.txt"}]}},
    {"app": "pi", "qos": "afap", "jobs": [JOBS]},
    {"app": "", "qos": "afap", "jobs": JOBS},
    {"app": "pi", "qos": "afap", "jobs": JOBS, "after_ok": [0]},
    {"app": "pi", "qos": "afap", "jobs": JOBS, "level": None},
    {"app": "pi", "qos": "afap", "jobs": JOBS, "user_priority": 1024},
]


@pytest.fixture
def schema(api: Api) -> Any:
    """Validate a submission by the document that clients are generated from."""
    document = json.loads(api.document)
    content = document["paths"]["/batches"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert content == {"$ref": "#/components/schemas/NewBatchBody"}
    return jsonschema_rs.validator_for({**content, "components": document["components"]})


@pytest.mark.parametrize("batch", GOOD, ids=range(len(GOOD)))
def test_accepted_batches_are_valid_by_the_document(schema: Any, batch: dict[str, Any]) -> None:
    spec = parse_batch({"submitter": "ada", **batch})
    assert batch.get("jobs_csv") or size_of(spec).jobs > 0
    schema.validate(batch)


@pytest.mark.parametrize("batch", BAD, ids=range(len(BAD)))
def test_invalid_batches_are_refused_by_server_and_document(schema: Any, batch: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        size_of(parse_batch({"submitter": "ada", **batch}))
    assert not schema.is_valid(batch)


def test_document_has_all_fields_that_the_server_reads() -> None:
    def of(table: Any) -> set[str]:
        return set(table.__struct_fields__)

    assert of(NewBatchBody) == set(BATCH_FIELDS)
    assert of(BatchJobTable) == set(JOB_FIELDS)
    assert of(BatchInput) == {"path", "name", "open_name", "sticky"}
    assert of(BatchOutput) == {"name", "max_bytes", "optional"}
    assert of(BatchValidator) == {"kind", "tolerance"}
