"""Measures the quality and cost of completion forecasts on the worlds of the acceptance benchmark.

`python -m benchmarks.estimator --bench DIR --gate [--seeds 0-23] [--salt TEXT]` runs `evaluate.py` in DIR as a separate
process with this project's estimator, and returns its exit status. `--cost` measures the CPU time per forecast for
batches from DIR's simulator with 500 and 10,000 jobs, the latter with a quorum of 2 on hosts that often fail. DIR must
be writable, because it caches the simulated worlds.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import ModuleType
from typing import Any

from batch_estimator.estimate import estimate
from batch_estimator.snapshot import BatchSnapshot
from benchmarks.estimator_adapter import converted

ROOT = Path(__file__).parents[1]
ADAPTER = "benchmarks.estimator_adapter:estimate"
PUBLISHED_REMAINING_ERROR = {"p=0.9": 0.208, "p=0.99": 0.295}  # decision 20, median |q50 - T| / (T - now)
PUBLISHED_WORST_MS = 61.0  # decision 20: 10,000 jobs, quorum 2
REPEATS = 5


def run_gate(bench: Path, seeds: str, salt: str) -> tuple[int, dict[str, Any]]:
    """Run evaluate.py and return its exit status and the figures it wrote."""
    with tempfile.TemporaryDirectory() as folder:
        figures = Path(folder) / "figures.json"
        command = [sys.executable, "evaluate.py", "--estimator", ADAPTER, "--gate", "--seeds", seeds, "--salt", salt]
        command += ["--by", "p,q,cold,fam", "--json", str(figures)]
        status = subprocess.run(command, cwd=bench, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False).returncode
        return status, json.loads(figures.read_text()) if figures.exists() else {}


def remaining_errors(figures: dict[str, Any]) -> dict[str, float]:
    """Return the errors of the forecast remaining time late in a batch."""
    return {key: round(figures[key][ADAPTER.split(":")[1]]["relrem"], 3) for key in PUBLISHED_REMAINING_ERROR}


def measure_cost(bench: Path) -> dict[str, float]:
    """Return CPU milliseconds per forecast from a snapshot in memory, over all checkpoints of a few worlds."""
    simulator = _module(bench, "simulator")
    answers: dict[str, float] = {}
    for name, jobs, quorum in (("500_jobs", 500, 1), ("500_jobs_quorum_2", 500, 2), ("10000_jobs_quorum_2", 10_000, 2)):
        costs, rows = [], 0
        for family, seed in (("flaky", 1), ("flaky", 2), ("base", 3), ("diurnal", 4)):
            for snapshot in _snapshots(simulator, family, seed, jobs, quorum):
                rows = max(rows, len(snapshot.instances.job))
                costs.append(_cpu_ms(snapshot))
        answers |= {
            f"{name}_mean_ms": round(statistics.mean(costs), 2),
            f"{name}_worst_ms": round(max(costs), 2),
            f"{name}_most_instances": float(rows),
        }
    answers["sweep_of_1000_batches_s"] = round(answers["500_jobs_mean_ms"], 2)
    answers["published_worst_ms"] = PUBLISHED_WORST_MS
    answers["reference_ms"] = round(_reference_ms(), 3)
    answers["reference_ratio"] = round(answers["10000_jobs_quorum_2_worst_ms"] / answers["reference_ms"], 2)
    return answers


def _snapshots(simulator: ModuleType, family: str, seed: int, jobs: int, quorum: int) -> list[BatchSnapshot]:
    scenario = simulator.draw_scenario(family, seed, jobs)
    scenario.quorum, scenario.cold = quorum, False
    world = simulator.play(scenario, "cost")
    if not math.isfinite(world.T):
        return []
    return [converted(simulator.snapshot_at(world, at)) for _, at in simulator.checkpoint_times(world)]


def _cpu_ms(snapshot: BatchSnapshot) -> float:
    times = []
    for _ in range(REPEATS):
        began = time.process_time_ns()
        estimate(snapshot)
        times.append((time.process_time_ns() - began) / 1e6)
    return statistics.median(times)


def _reference_ms() -> float:
    """Time a fixed operation in the same run: sorting 100,000 numbers."""
    times = []
    for _ in range(30):
        numbers = [(7919 * number) % 100_003 for number in range(100_000)]
        began = time.process_time_ns()
        numbers.sort()
        times.append((time.process_time_ns() - began) / 1e6)
    return statistics.median(times)


def _module(bench: Path, name: str) -> ModuleType:
    sys.path.insert(0, str(bench))
    return importlib.import_module(name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", type=Path, required=True, help="the folder of evaluate.py")
    parser.add_argument("--gate", action="store_true", help="run the acceptance gates")
    parser.add_argument("--cost", action="store_true", help="measure CPU time per forecast")
    parser.add_argument("--seeds", default="0-23")
    parser.add_argument("--salt", default="")
    parser.add_argument("--json", action="store_true", help="print one JSON object last")
    asked = parser.parse_args()
    status, answers = 0, dict[str, Any]()
    if asked.gate or not asked.cost:
        status, figures = run_gate(asked.bench, asked.seeds, asked.salt)
        if figures:
            errors = remaining_errors(figures)
            answers |= {"remaining_error": errors, "published_remaining_error": PUBLISHED_REMAINING_ERROR}
        answers["gates_passed"] = status == 0
    if asked.cost:
        answers |= measure_cost(asked.bench)
    if asked.json:
        print(json.dumps(answers))
    else:
        for name, value in answers.items():
            print(f"{name:36} {value}")
    sys.exit(status)


if __name__ == "__main__":
    main()
