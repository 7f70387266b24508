"""Measures the cost per instance of a simulation.

    python -m benchmarks.simulate --hosts 10000 --instances 1000000 [--rule muster] [--json]

Runs the shipped scenario `large` once, with its work divided into this many jobs: with more jobs, each is shorter, and
the work per host stays the same. Without --instances its jobs are unchanged. Prints the total CPU time per instance,
the requests per instance, the process's peak memory, and `reference_ratio`: the time per instance over that of a fixed
pure-Python operation timed in the same run.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from dataclasses import replace

from administration.simulations.process import simulated_tasks
from domain.units import DAY_S
from simulator.engine import Engine
from simulator.run import RULE, checked_rule, deadline_rule, warnings_only, what_is_stays
from simulator.scenario import FileScenario, read_scenario
from simulator.virtual_time import run_without_threads
from store.memory import MemoryStore

SCENARIO = "large"


def scaled(*, hosts: int, jobs: int | None = None) -> FileScenario:
    """Return the scenario for this many hosts, with the same work per host, divided into this many jobs.

    >>> new = scaled(hosts=1000, jobs=43_600)
    >>> hosts_of(new), sum(batch.jobs for batch in new.batches), new.batches[0].fpops_est
    (1000, 43600, 30000000000000.0)
    """
    whole = read_scenario(SCENARIO)
    known, part = sum(batch.jobs for batch in whole.batches), hosts / hosts_of(whole)
    share = part if jobs is None else jobs / known
    batches = [
        replace(batch, jobs=max(1, round(batch.jobs * share)), fpops_est=batch.fpops_est * part / share)
        for batch in whole.batches
    ]
    return read_scenario(SCENARIO, {"population.hosts": hosts}).with_batches(batches)


def hosts_of(scenario: FileScenario) -> int:
    """Return the number of hosts that ever participate."""
    return sum(arrivals.hosts for arrivals in scenario.population.arrivals)


def reference_us() -> float:
    """Time a fixed pure-Python operation."""
    begun = time.process_time()
    found: dict[int, float] = {}
    for number in range(200_000):
        found[number % 1009] = found.get(number % 1009, 0.0) + number * 0.5
    return (time.process_time() - begun) * 1e6 / 20_000


def measure(scenario: FileScenario, *, rule: str, seed: int) -> dict[str, object]:
    """Perform one run. Its CPU time counts from the creation of the hosts to the last event."""
    begun = time.process_time()
    engine = Engine(
        scenario,
        seed,
        store=lambda _: MemoryStore(),
        settings={RULE: deadline_rule(rule)},
        more_tasks=simulated_tasks,
        watch=lambda _: None,
    )
    with warnings_only(), what_is_stays():
        run_without_threads(engine.run())
    cpu_s = time.process_time() - begun
    record = engine.record
    instances = sum(batch.instances for batch in record.batches.values())
    us = cpu_s * 1e6 / instances
    return {
        "rule": rule,
        "seed": seed,
        "hosts": hosts_of(scenario),
        "jobs": sum(batch.jobs for batch in scenario.batches),
        "jobs_open": record.jobs_open,
        "instances": instances,
        "simulated_days": round((engine.ended_at - scenario.starts_at) / DAY_S, 2),
        "cpu_s": round(cpu_s, 1),
        "us_per_instance": round(us, 1),
        "requests_per_instance": round(record.requests / instances, 3),
        "without_work_per_instance": round(record.without_work / instances, 3),
        "rss_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0, 1),
        "reference_ratio": round(us / reference_us(), 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=10_000)
    parser.add_argument("--instances", type=int, help="jobs, without resent ones; default: those of the scenario")
    parser.add_argument("--rule", type=checked_rule, default="muster")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    scenario = scaled(hosts=options.hosts, jobs=options.instances)
    answers = measure(scenario, rule=options.rule, seed=options.seed)
    if options.json:
        print(json.dumps(answers))
        return
    for name, value in answers.items():
        print(f"{name:24} {value}", file=sys.stdout)


if __name__ == "__main__":
    main()
