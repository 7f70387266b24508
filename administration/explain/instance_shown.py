"""An instance's due date as JSON, term by term. Pure."""

from __future__ import annotations

from dataclasses import asdict

from administration.explain.instance import InstanceExplanation, Terms
from administration.explain.job import waiting_as_json
from domain.refusals import Refusal
from domain.views import InstanceRow
from scheduler.terms import terms_in

AT_BOUND_S = 1.0  # a due date this close to sending + D is the delay bound


def instance_explained_as_json(explanation: InstanceExplanation) -> dict[str, object]:
    """One object: what was stored at dispatch, the same terms as they are today, and what became of it."""
    row = explanation.row
    return {
        "computed_at": explanation.now,
        "instance_id": row.instance_id,
        "job_id": row.job_id,
        "batch_id": explanation.batch.batch_id,
        "qos": explanation.batch.qos.value,
        "state": row.state.value,
        "retries": row.retries,
        "copied_because": explanation.terms.copied_because or None,
        "host_id": row.host_id,
        "app_version_id": row.app_version_id,
        "due": _due(explanation),
        "today": None if explanation.today is None else _today(explanation.today, explanation.now),
        "outcome": _outcome(explanation),
        "waiting": [waiting_as_json(one) for one in explanation.of_job.waiting if one.instance_id == row.instance_id],
    }


def _due(explanation: InstanceExplanation) -> dict[str, object] | None:
    """What the host was told and why; None while it is unsent."""
    row, timeout_at = explanation.row, explanation.terms.timeout_at
    if row.sent_at is None or row.due_at is None:
        return None
    because, given = terms_in(row.because)
    allowed_s, bound_s = row.due_at - row.sent_at, explanation.job_class.delay_bound_s
    return {
        "sent_at": row.sent_at,
        "due_at": row.due_at,
        "allowed_s": allowed_s,
        "because": because,
        "terms": None if given is None else asdict(given),
        "tight": row.tight,
        "est_runtime_s": row.est_runtime_s,
        "allowed_over_runtime": round(allowed_s / row.est_runtime_s, 3) if row.est_runtime_s else None,
        "delay_bound_s": bound_s,
        "is_delay_bound": abs(allowed_s - bound_s) <= AT_BOUND_S,
        "timeout_at": timeout_at,
        "grace_s": None if timeout_at is None else timeout_at - row.due_at,
        "timeout_by_settings_at": explanation.timeout_by_settings_at,
    }


def _today(terms: Terms, now: float) -> dict[str, object]:
    due = terms.outcome
    answer: dict[str, object] = (
        {"refused": due.code.value, "why": due.detail}
        if isinstance(due, Refusal)
        else {
            "due_in_s": due.due_at - now,
            "tight": due.tight,
            "row": due.row,
            "gate": due.gate.value,
            "threshold": due.threshold,
            "because": due.because,
        }
    )
    return {
        "flop_per_s": terms.flop_per_s,
        "speed_samples": round(terms.speed_samples, 3),
        "availability_fraction": terms.availability_fraction,
        "runtime_s": terms.runtime_s,
        "slack_factor": round(terms.slack_factor, 4),
        "safe_runtime_s": terms.safe_runtime_s,
        "delay_bound_s": terms.delay_bound_s,
        "complete_in_s": None if terms.complete_at is None else terms.complete_at - now,
        "retry_turnaround_s": terms.retry_s,
        "p": terms.p,
        "p_because": terms.p_because,
        "stale_cut_points": list(terms.stale_cut_points),
        "idle_host_would_get": answer,
    }


def _outcome(explanation: InstanceExplanation) -> dict[str, object]:
    row: InstanceRow = explanation.row
    back = row.reported_at is not None and row.sent_at is not None
    return {
        "state": row.state.value,
        "job_state": explanation.of_job.job.state.value,
        "is_canonical": explanation.of_job.job.canonical_instance_id == row.instance_id,
        "reported_at": row.reported_at,
        "turnaround_s": row.reported_at - row.sent_at if back and row.reported_at and row.sent_at else None,
        "late_s": row.reported_at - row.due_at if row.reported_at is not None and row.due_at is not None else None,
        "elapsed_s": row.elapsed_s,
        "exit_status": row.exit_status,
        "reason": row.reason,
        "turnaround_sample": explanation.terms.turnaround_sample,
    }
