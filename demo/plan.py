"""Defines the demonstration's batches, one of each kind."""

from __future__ import annotations

APP = "primes"
FPOPS_EST = 2e9  # 2 s on a host with 1 Gflop/s
FIRST = 1_000_000
LENGTH = 50_000

# Short intervals: jobs take seconds, not hours.
SETTINGS: dict[str, object] = {
    "project.name": "Muster demonstration",
    "deadline.min_slack_s": 5.0,
    "lifecycle.min_grace_s": 1.0,
    "lifecycle.sweep_interval_s": 0.5,
    "lifecycle.validate_interval_s": 0.2,
    "feeder.interval_s": 0.2,
    "estimator.look_s": 1.0,
    "estimator.pause_s": 5.0,
    "scheduler.request_delay_s": 1.0,
    "scheduler.no_work_delay_s": 2.0,
    "scheduler.jobs_per_request": 1,  # leaves work for the stock client
    "scheduler.in_progress_per_cpu": 2,
}


def planned_batches() -> list[dict[str, object]]:
    """Return the batch specifications in the order of submission.

    >>> [batch["qos"] for batch in planned_batches()]
    ['throughput', 'long_deadline', 'afap', 'short_deadline']
    """
    return [
        _batch("survey", "throughput", 100, quorum=1),
        _batch("census", "long_deadline", 50, quorum=2),
        _batch("rush", "afap", 70, quorum=1),
        {**_batch("tonight", "short_deadline", 50, quorum=1), "deadline_s": 60},
    ]


def _batch(name: str, qos: str, count: int, *, quorum: int) -> dict[str, object]:
    return {
        "app": APP,
        "name": name,
        "qos": qos,
        "jobs": {
            "count": count,
            "command_line": f"{FIRST} {LENGTH} {{i}}",
            "fpops_est": FPOPS_EST,
            "memory_bytes": 5e7,
            "disk_bytes": 1e7,
            "delay_bound_s": 20.0,  # the cost of a lost job: the batch ends soon after its last dispatch
            "quorum": quorum,
            "max_errors": 8,
            "max_instances": 16,
            "outputs": [{"name": "out", "max_bytes": 10_000}],
            "inputs": [],
        },
    }
