"""Measures the CPU time of one request's decisions with 1,000 and 10,000 slots, without a database or HTTP.

`python -m benchmarks.decide [--json]`. The job array has 50 batches, every fourth of them an AFAP batch without an
estimate. One request finds a job immediately, one is refused by every class, and one takes several jobs.
`reference_ratio` is the first request's time over that of a fixed pure-Python operation timed in the same run.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from dataclasses import replace

from benchmarks.running import reference_us
from domain.batches import BatchCounts, QoS
from domain.clock import SystemClock
from domain.hosts import DecayedSums
from domain.jobs import Candidate
from domain.settings import FeederSettings
from domain.units import HostId, Seconds, VolunteerId
from feeder.array import JobArray
from scheduler.context import SchedulingContext
from scheduler.selection import choose
from tests.builders import NOW, a_batch, a_hav, a_job_class, a_ready
from tests.unit.scheduler.arrays import a_catalogue, a_want, an_asking, some_cuts

BATCHES = 50
SLOTS = (1_000, 10_000)
REPEATS = 300
WARM_UP = 20


def filled_array(slots: int) -> JobArray:
    """Return a job array with `slots` slots in 50 batches, 2 % of them retries."""
    settings = FeederSettings(slots=slots)
    array = JobArray(SystemClock(), lambda: settings)
    for number in range(slots):
        batch_id = number % BATCHES + 1
        qos = QoS.AFAP if batch_id % 4 == 0 else QoS.THROUGHPUT
        batch = a_batch(
            batch_id=batch_id, order_key=float(batch_id), qos=qos, counts=BatchCounts(jobs_total=1000, unsent=1000)
        )
        job_class = a_job_class(job_class_id=batch_id, batch_id=batch_id)
        retries = 1 if number // BATCHES % 50 == 7 else 0
        ready = a_ready(
            instance_id=number + 1, job_id=number + 1, batch_id=batch_id, job_class_id=batch_id, retries=retries
        )
        array.place(Candidate(ready), batch, job_class)
    return array


def requests() -> dict[str, SchedulingContext]:
    """Return three requests from a host of medium rank."""
    samples = DecayedSums(10.0, 5.0, 3.0, NOW)
    hav = a_hav(consecutive_valid=12, relaxed=samples, speed=DecayedSums(10.0, 1e-8, 1e-17, NOW))
    catalogue = a_catalogue(cuts=[some_cuts()], scheduler__daily_quota_start=100_000)
    one = an_asking(havs={hav.app_version_id: hav}, catalogue=catalogue)
    return {
        "one_job": one,
        "all_refused": replace(one, host=replace(one.host, disk_free_bytes=1.0)),
        "eight_jobs": replace(one, wants=(a_want(req_s=Seconds(8 * 3600.0)),)),
    }


def median_us(context: SchedulingContext, array: JobArray) -> float:
    """Return the median CPU time of a request's decisions in microseconds.

    Each repetition uses another host of another volunteer, and clears the array's memory of sent jobs, which would
    otherwise grow with each repetition. Clearing is not timed.
    """
    times = []
    for turn in range(WARM_UP + REPEATS):
        host = replace(context.host, host_id=HostId(turn), volunteer_id=VolunteerId(turn))
        volunteer = replace(context.volunteer, volunteer_id=VolunteerId(turn))
        turned = replace(context, host=host, volunteer=volunteer, seed=turn)
        began = time.process_time_ns()
        choice = choose(turned, array)
        spent_ns = time.process_time_ns() - began
        for one in choice.chosen:
            array.lost([one.slot.instance_id])
            array.place(Candidate(one.slot), one.batch, one.job_class)
        if turn >= WARM_UP:
            times.append(spent_ns / 1000.0)
    return statistics.median(times)


def measure() -> dict[str, float]:
    """Measure each request with each size of array, and compute the ratios."""
    answers: dict[str, float] = {"batches": float(BATCHES), "reference_us": reference_us()}
    for slots in SLOTS:
        array = filled_array(slots)
        for name, context in requests().items():
            answers[f"{name}_{slots}_slots_us"] = round(median_us(context, array), 1)
    few, many = (answers[f"one_job_{slots}_slots_us"] for slots in SLOTS)
    answers["reference_ratio"] = round(few / answers["reference_us"], 3)
    answers["slots_ratio"] = round(many / few, 3)
    return answers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    as_json = parser.parse_args().json
    answers = measure()
    if as_json:
        print(json.dumps(answers))
        return
    for name, value in answers.items():
        print(f"{name:32} {value:10g}")


if __name__ == "__main__":
    main()
