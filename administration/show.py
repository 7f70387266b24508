"""Things as JSON and as text: the same keys in the API, the command line and the console."""

from __future__ import annotations

from dataclasses import asdict

from administration.ports import InstanceRow, JobRow
from batch_estimator.publish import Forecast
from domain.apps import App
from domain.batches import Account, Batch, BatchCounts, Submitter
from domain.catalogue import Catalogue
from domain.forecasts import ForecastRecord, ForecastState, Method
from domain.ranking import HostStatisticsRun
from domain.settings import Settings, meaning_of
from domain.views import SettingChange


def batch_as_json(
    batch: Batch,
    *,
    app: str,
    submitter: str,
    account: str,
    forecast_state: ForecastState = ForecastState.NOT_YET,
    at_risk: str | None = None,
    waits_for: str | None = None,
) -> dict[str, object]:
    """A batch with its counters. Instants are seconds since the epoch, None = not yet.

    `forecast_state`: whether q50 and q90 are shown, or why not.
    `at_risk`: why its deadline will hardly be kept, or why no host that called lately can finish it; None where all is
    well, or nothing is known. `waits_for`: "another volunteer" or "another host" that only could.
    """
    return {
        "batch_id": batch.batch_id,
        "name": batch.name,
        "app": app,
        "submitter": submitter,
        "account": account,
        "qos": batch.qos.value,
        "state": batch.state.value,
        **counts_as_json(batch.counts),
        "created_at": batch.created_at,
        "ended_at": batch.ended_at,
        "deadline_at": batch.deadline_at,
        "logical_end_at": batch.logical_end_at,
        "completion_at": batch.completion_at,
        "completion_q50_at": batch.completion_q50_at,
        "completion_q90_at": batch.completion_q90_at,
        "forecast_state": forecast_state.value,
        "at_risk": at_risk,
        "waits_for": waits_for,
        "order_tier": batch.order_tier,
        "order_key": batch.order_key,
        "user_priority": batch.user_priority,
        "level": batch.level.value,
        "queue": batch.queue,
        "hold": batch.hold,
    }


def counts_as_json(counts: BatchCounts) -> dict[str, object]:
    """How far a batch is."""
    return {
        "jobs_total": counts.jobs_total,
        "jobs_validated": counts.jobs_validated,
        "jobs_failed": counts.jobs_failed,
        "unsent": counts.unsent,
        "in_progress": counts.in_progress,
        "retries": counts.retries,
        "sent": counts.sent,
        "reported": counts.reported,
        "deadlines_missed": counts.deadlines_missed,
    }


def job_as_json(job: JobRow) -> dict[str, object]:
    """A job with its instances."""
    return {
        "job_id": job.job_id,
        "batch_id": job.batch_id,
        "state": job.state.value,
        "command_line": job.command_line,
        "failure": job.failure,
        "canonical_instance_id": job.canonical_instance_id,
        "instances": [instance_as_json(instance) for instance in job.instances],
    }


def instance_as_json(instance: InstanceRow) -> dict[str, object]:
    """An instance; `because` says how its due date came about."""
    return {
        "instance_id": instance.instance_id,
        "state": instance.state.value,
        "retries": instance.retries,
        "tight": instance.tight,
        "host_id": instance.host_id,
        "app_version_id": instance.app_version_id,
        "sent_at": instance.sent_at,
        "due_at": instance.due_at,
        "reported_at": instance.reported_at,
        "est_runtime_s": instance.est_runtime_s,
        "elapsed_s": instance.elapsed_s,
        "exit_status": instance.exit_status,
        "reason": instance.reason,
        "because": instance.because,
        "stderr": instance.stderr,
        "uploads": [{"name": u.name, "nbytes": u.nbytes, "md5": u.md5} for u in instance.uploads],
    }


def account_as_json(account: Account, names: dict[int, str]) -> dict[str, object]:
    parent = names.get(account.parent_id) if account.parent_id is not None else None
    return {"account_id": account.account_id, "name": account.name, "parent": parent, "shares": account.shares}


def submitter_as_json(submitter: Submitter, accounts: dict[int, str]) -> dict[str, object]:
    return {
        "submitter_id": submitter.submitter_id,
        "name": submitter.name,
        "account": accounts[submitter.account_id],
        "shares": submitter.shares,
        "logical_at": submitter.logical_at,
    }


def app_as_json(app: App, catalogue: Catalogue) -> dict[str, object]:
    """An application with its current versions."""
    versions = [version.title for version in catalogue.current.get(app.app_id, ())]
    return {
        "app_id": app.app_id,
        "name": app.name,
        "user_friendly_name": app.user_friendly_name,
        "beta": app.beta,
        "deprecated": app.deprecated,
        "adaptive_copies": app.adaptive_copies,
        "one_per_host": app.one_per_host,
        "one_per_volunteer": app.one_per_volunteer.value,
        "versions": versions,
    }


def run_as_json(run: HostStatisticsRun) -> dict[str, object]:
    """A run of the host statistics, with its totals and what it found per (app, processor type)."""
    return {
        "generation": run.generation,
        "full": run.full,
        "started_at": run.started_at,
        "seconds": round(run.seconds, 3),
        "apps": run.apps,
        "rows": run.rows,
        "ranked": run.ranked,
        "parts": [asdict(part) for part in run.parts],
    }


def quantiles_as_json(made: ForecastRecord | Forecast) -> dict[str, object]:
    """q10, q50 and q90; null while no result is back that they could rest on."""
    known = made.method is not Method.APRIORI
    return {name: getattr(made, name) if known else None for name in ("q10_at", "q50_at", "q90_at")}


def forecast_as_json(record: ForecastRecord) -> dict[str, object]:
    """A forecast with what it rests on, and what became of the published C(B)."""
    return {
        "made_at": record.made_at,
        "trigger": record.trigger.value,
        **quantiles_as_json(record),
        "method": record.method.value,
        "method_because": record.method_because,
        "spread": record.spread,
        "completion_at": record.completion_at,
        "change": record.change.value,
        "because": record.because,
        "jobs_total": record.jobs_total,
        "jobs_validated": record.jobs_validated,
        "jobs_failed": record.jobs_failed,
        "at_risk": record.at_risk,
        "flag": record.flag,
        "terms": None if record.terms is None else asdict(record.terms),
        "holds": [asdict(hold) for hold in record.holds],
    }


DEFAULTS = Settings().as_mapping()


def setting_as_json(key: str, value: object) -> dict[str, object]:
    """A setting with what it is.

    >>> setting_as_json("deadline.p_tight", 0.8)["changed"]
    True
    """
    default = DEFAULTS[key]
    return {"key": key, "value": value, "default": default, "changed": value != default, "meaning": meaning_of(key)}


def change_as_json(change: SettingChange) -> dict[str, object]:
    return {
        "changed_at": change.changed_at,
        "key": change.key,
        "from": change.from_value,
        "to": change.to_value,
        "by": change.changed_by,
        "why": change.why,
    }
