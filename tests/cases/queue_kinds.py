"""Cases of reservation and backfill."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from domain.units import HOUR_S, MINUTE_S, Instant, Seconds
from priority.big_jobs import CoreRequest, CoreUse
from tests.cases.reference.backfill import Plan, Rehearsed, plan, rehearse

START = Instant(0.0)


def backfill_policy(inputs: Mapping[str, Any], _expected: Mapping[str, Any]) -> Mapping[str, Any]:
    """Plan jobs in order on one host twice: all of them, and those left after some are cancelled."""
    jobs = [CoreRequest(job["id"], job["cores"], Seconds(job["limit_min"] * MINUTE_S)) for job in inputs["jobs"]]
    depth = inputs.get("reservation_depth", 1)
    cancel = inputs.get("cancel")
    cancelled = [] if cancel is None else cancel if isinstance(cancel, list) else [cancel]

    def look(waiting: list[CoreRequest], running: tuple[CoreUse, ...]) -> Plan:
        return plan(waiting, cores=inputs["cores"], running=running, now=START, depth=depth)

    first = look(jobs, ())
    kept = tuple(slot for slot in first.started if slot.job not in cancelled)
    gone = {slot.job for slot in first.started} | set(cancelled)
    second = look([job for job in jobs if job.job not in gone], kept)
    running = {slot.job for slot in (*kept, *second.started)}
    return {
        "started_first": [slot.job for slot in first.started],
        "reserved": [slot.job for slot in first.promised],
        "reserved_at_min": {str(slot.job): slot.start_at / MINUTE_S for slot in first.promised},
        "started_after_cancel": [slot.job for slot in second.started],
        "reserved_after_cancel": [slot.job for slot in second.promised],
        "running_at_end": [job.job for job in jobs if job.job in running],
    }


def backfill_story(inputs: Mapping[str, Any], expected: Mapping[str, Any]) -> Mapping[str, Any]:
    """Rehearse jobs over time; return the promises at the requested hours."""
    jobs = [_rehearsed(job) for job in inputs["jobs"]]
    depth = inputs.get("reservation_depth", 1)
    asked = {key: found for key in expected if (found := re.fullmatch(r"reservation_of_(.+)_at_([0-9.]+)h", key))}
    at = [Instant(float(found[2]) * HOUR_S) for found in asked.values()]
    went = rehearse(jobs, cores=inputs["procs"], depth=depth, asked_at=at)
    plain = rehearse(jobs, cores=inputs["procs"], depth=depth, backfill=False)
    answers: dict[str, Any] = {"start": {str(job): _hours(at) for job, at in went.starts.items()}}
    answers |= {f"start_of_{job}_without_backfill": _hours(at) for job, at in plain.starts.items()}
    answers |= {f"start_of_{job}": _hours(at) for job, at in went.starts.items()}
    for key, found in asked.items():
        promised = went.promises[Instant(float(found[2]) * HOUR_S)]
        start_at = {str(job): at for job, at in promised.items()}.get(found[1])
        answers[key] = None if start_at is None else _hours(start_at)
    return answers


def _rehearsed(job: Mapping[str, Any]) -> Rehearsed:
    wanting = CoreRequest(job["id"], job["procs"], Seconds(job["limit_h"] * HOUR_S))
    actual = job.get("actual_h")
    submit_at = Instant(job.get("submit_h", 0.0) * HOUR_S)
    return Rehearsed(
        wanting, submit_at, None if actual is None else Seconds(actual * HOUR_S), float(job.get("priority", 0.0))
    )


def _hours(at: float) -> float:
    return at / HOUR_S
