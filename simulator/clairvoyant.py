"""Computes a lower bound on each batch's makespan for any dispatcher, even one that knows every host's future.

Claim. Let a batch of n jobs with quorum q be submitted at s. For each computer h let a_h be the first
instant, no earlier than s and its first request, at which it is on. With m_h processors (each as many as a job uses),
a speed v_h and jobs of at least w, let

    N_h(t) = 0                                   while W_h(t) < w / v_h
    N_h(t) = min(jobs, floor(m_h v_h W_h(t) / w))     otherwise

where W_h(t) is the time it is on in [a_h, t]. Let w_(1) <= ... <= w_(n) be the true sizes of the jobs. Then the batch
is not complete before t_j, the first t with sum over h of N_h(t) >= q (n - j + 1), for any j; the bound is the largest
t_j - s.

Proof. Each of the jobs j to n is done only when q different hosts have finished an instance of it, and each such
instance is at least w_(j) long. No job of the batch is on h before a_h. Give h every advantage a client can have: it
has no other work, from this project or another; all its processors serve the batch; jobs can be split and moved between
processors at no cost; none is lost or fails; all are reported and validated immediately. Even then an instance takes at
least w / v_h of W_h, and k instances need k w of the available m_h v_h W_h(t). So at most N_h(t) of them finish by t,
and no host finishes more instances than there are jobs. (McNaughton's rule, 1959, says that N_h(t) can be reached; the
bound does not need it.) So q (n - j + 1) finished instances cannot exist before t_j. Counting the GPUs of h as one more
host only relaxes the bound. The simulated client meets all assumptions: a task runs at full speed at most, tasks share
at most the existing processors, also in deadline mode, and they progress only while the host is on. If an app has
several versions for a type of processor, v_h is the speed of the fastest one and m_h v_h the highest throughput that
any version reaches on all processors, so no job and no host is faster, whichever version is sent.

Within the share. Suppose no host runs a job of the batch in deadline mode. Then h gives this project at most its share
f_h of the processors, because other projects always have work; deadline mode in other projects only reduces the share.
The same claim holds with f_h m_h in place of m_h, and w / v_h max(1, 1 / (f_h m_h)) in place of w / v_h. So this bounds
any rule and any run in which no client enters deadline mode, as with long due dates. A run below this bound was
accelerated by deadline mode.

Limits of both bounds. A job abandoned after too many errors or instances ends without being done, so a run with failed
jobs (`jobs_failed`) may be shorter than the bound, which counts all jobs. Jobs of a scenario are abandoned after 20
errors or 100 instances, so this is rare. The bound assumes that a client may contact the server at any instant, because
a server may ask it to do so at any interval. So a batch can be on h as early as a_h.

Excluded are hosts that never return results and hosts that cannot run a job: too little memory, too few processors, or
no app version for them.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from domain.apps import CPU, AppVersion, plan_for
from domain.errors import InvalidInputError
from domain.units import Instant, Seconds
from simulator.availability import Availability
from simulator.ports import Scenario
from simulator.scenario import FileScenario
from simulator.submitters import BatchPlan
from simulator.traits import Traits, true_size

SUBSETS = (0.0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99)  # j / n for which t_j is computed; the largest job too
ROUNDING_S = 1e-3  # tolerance for rounding of floating-point sums


@dataclass(frozen=True, slots=True)
class ProcessorLane:
    """A host's processors of one type. From `start_at` they run `width` jobs at a time, each flop taking `s_per_flop`.

    This project gets `share` of the processors unless a job is at risk of missing its deadline.
    """

    availability: Availability
    start_at: float
    width: float
    s_per_flop: float
    share: float = 1.0

    def end_at(self, number: int, flop: float) -> float:
        """Return the earliest end of `number` jobs of this many flop: they need (w / v) max(1, k / m) of on time."""
        needed_s = flop * self.s_per_flop * max(1.0, number / self.width)
        return self.availability.when(self.availability.worked_s(self.start_at) + needed_s)

    def in_share(self) -> ProcessorLane:
        """Return the lane without deadline mode. A width below 1 means that a job runs at a fraction of its speed.

        >>> one = ProcessorLane(Availability(iter([(0.0, 1e9)]), start_at=Instant(0.0)), 0.0, 1.0, 1.0, share=0.25)
        >>> one.in_share().end_at(1, 10.0)
        40.0
        """
        return replace(self, width=self.width * self.share)


@dataclass(frozen=True, slots=True)
class Bounds:
    """Lower bounds on makespans by batch name: for any dispatcher, and for one that never causes deadline mode."""

    least_s: Mapping[str, Seconds]
    in_share_s: Mapping[str, Seconds]


def clairvoyant(scenario: Scenario, seed: int) -> Bounds:
    """Return the bounds of each batch that can finish.

    Raises InvalidInputError if the scenario's computers are not drawn from a file's population.
    """
    if not isinstance(scenario, FileScenario):
        raise InvalidInputError("scenario", "a scenario from a file", type(scenario).__name__)
    population = scenario.population
    hosts = [
        (traits, population.availability(traits, seed)[0])
        for traits in population.traits(seed, starts_at=scenario.starts_at, horizon_s=scenario.horizon_s)
        if traits.loss_fraction < 1.0
    ]
    versions = {program.app.name: program.versions for program in scenario.programs}
    least_s, in_share_s = dict[str, Seconds](), dict[str, Seconds]()
    for plan in scenario.batches:
        at = _submitted_at(plan, scenario)
        sizes = sorted(true_size(f"{plan.name} {i}", population.size_sigma, seed) for i in range(plan.jobs))
        flops = [plan.fpops_est * size for size in sizes]
        lanes = list(_lanes(plan, versions[plan.app], hosts, at))
        for bounds, some in ((least_s, lanes), (in_share_s, [one.in_share() for one in lanes])):
            end_at = batch_end_at(some, flops, quorum=plan.quorum)
            if end_at < math.inf:
                bounds[plan.name] = Seconds(max(0.0, end_at - at - ROUNDING_S))
    return Bounds(least_s, in_share_s)


def batch_end_at(lanes: Sequence[ProcessorLane], sizes: Sequence[float], *, quorum: int = 1) -> float:
    """Return the largest t_j for jobs of the given sizes (flop, ascending), math.inf if there are too few hosts.

    With two hosts that are always on, a job of 10 s and a job of 20 s, the larger job ends at 20 s at the earliest.

    >>> from domain.units import Instant
    >>> def always(start_at):
    ...     return Availability(iter([(start_at, start_at + 1e9)]), start_at=Instant(start_at))
    >>> lanes = [ProcessorLane(always(0.0), at, 1.0, 1.0) for at in (0.0, 5.0)]
    >>> batch_end_at(lanes, [10.0, 20.0])
    20.0
    """
    jobs = len(sizes)
    first = {min(jobs - 1, int(part * jobs)) for part in SUBSETS} | {jobs - 1}
    return max(nth_end_at(lanes, sizes[j], (jobs - j) * quorum, most_each=jobs - j) for j in first)


def nth_end_at(lanes: Iterable[ProcessorLane], flop: float, needed: int, *, most_each: int) -> float:
    """Return the earliest end of `needed` jobs of this many flop, with at most `most_each` of them per lane."""
    every = list(lanes)
    heap = [(lane.end_at(1, flop), index, 1) for index, lane in enumerate(every)]
    heapq.heapify(heap)
    at = -math.inf
    for _ in range(needed):
        if not heap:
            return math.inf
        at, index, number = heap[0]
        if number < most_each:
            heapq.heapreplace(heap, (every[index].end_at(number + 1, flop), index, number + 1))
        else:
            heapq.heappop(heap)
    return at


def _submitted_at(plan: BatchPlan, scenario: FileScenario) -> Instant:
    """Return when the batch is submitted. If that is during an outage, it is the outage's end."""
    at = Instant(scenario.starts_at + plan.at_s)
    return next((outage.end_at for outage in scenario.outages if outage.start_at <= at < outage.end_at), at)


def _lanes(
    plan: BatchPlan,
    versions: Sequence[AppVersion],
    hosts: Iterable[tuple[Traits, Availability]],
    at: Instant,
) -> Iterator[ProcessorLane]:
    for traits, availability in hosts:
        if plan.ncpus > traits.ncpus or plan.memory_bytes > traits.ram_bytes:
            continue
        counts = {str(CPU): traits.ncpus}
        if traits.gpu is not None:
            counts[traits.gpu.type] = traits.gpu.count
        fitting = [one for one in versions if _runs_on(one, traits)]
        if not fitting:
            continue
        start_at = availability.on_from(max(at, traits.first_call_at))
        if start_at >= traits.leaves_at:
            continue
        for kind, count in counts.items():
            speeds = [_speed_of(one, traits, plan.ncpus) for one in fitting if one.processor_type == kind]
            if speeds:
                fastest = max(flop_per_s for flop_per_s, _ in speeds)
                together = count * max(flop_per_s / usage for flop_per_s, usage in speeds)
                yield ProcessorLane(availability, start_at, together / fastest, 1.0 / fastest, traits.share)


def _runs_on(version: AppVersion, traits: Traits) -> bool:
    """Return whether the version fits the host's platform and processors."""
    plan = version.plan_class
    needed = max(float(plan.min_host_ncpus), plan.ncpus)
    return version.platform == traits.platform and traits.ncpus >= needed


def _speed_of(version: AppVersion, traits: Traits, ncpus: float) -> tuple[float, float]:
    """Return the speed in flop/s of a job of `ncpus` that runs alone, and how many processors of its type it uses."""
    plan = plan_for(version.plan_class, ncpus)
    gpu_count = plan.gpu_count if plan.gpu_type is not None else 0.0
    return traits.flop_per_s_of(plan.ncpus, gpu_count), gpu_count or min(plan.ncpus, float(traits.ncpus))
