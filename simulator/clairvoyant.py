"""Below which makespan can nobody go, who knows every computer's future? A lower bound, batch by batch.

Claim. Let a batch of n jobs with quorum q be submitted at s. For each computer h let a_h be the earliest instant, s or
later, at which it may ask for work; it does not depend on what any dispatcher does, because computers ask at instants
of a grid and when they are on. For m_h processors (of what a job takes), a speed v_h and jobs of at least w, let

    N_h(t) = 0                                   while W_h(t) < w / v_h
    N_h(t) = min(jobs, floor(m_h v_h W_h(t) / w))     from then on

where W_h(t) is the time it is on in [a_h, t]. Let w_(1) <= ... <= w_(n) be the true sizes of the jobs. Then the batch
is not over before t_j, the first t with sum over h of N_h(t) >= q (n - j + 1), for every j; the bound is the largest
t_j - s.

Proof. Of the jobs j to n each is over only when q computers have ended an instance of it, none of them twice, and each
such instance is at least w_(j) long. Nothing of the batch is on h before a_h. In what follows h is given every
advantage a client can have: no other work, of this project or another, all its processors are the batch's, jobs can
be split and moved between processors at no cost, none is lost or fails, all are reported and validated at once. Even
so an instance takes at least w / v_h of W_h, and k instances need k w of the m_h v_h W_h(t) there are; so at most
N_h(t) of them end by t, and no computer ends more of them than there are jobs. (That N_h(t) can be reached is
McNaughton's rule, 1959; the bound does not need it.) Hence q (n - j + 1) ended instances cannot exist before t_j.
Counting the GPUs of h as one more computer only relaxes. The simulated client keeps to all that was used: a task runs
at full speed at most, tasks share at most the processors there are, also in deadline mode, and they make progress
while it is on.

Computers that never answer are left out, and those that a job cannot be sent to for its memory or its processors.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from domain.errors import InvalidInputError
from domain.units import Instant, Seconds
from simulator.availability import Availability
from simulator.calls import MOST_POSTPONED_S
from simulator.fate import true_size
from simulator.ports import Scenario
from simulator.scenario import AppPlan, FileScenario
from simulator.submitters import BatchPlan
from simulator.traits import Traits

SUBSETS = (0.0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99)  # j / n for which t_j is looked at, and the largest job
ROUNDING_S = 1e-3  # what is added up in floating point may end so much earlier


@dataclass(frozen=True, slots=True)
class Lane:
    """A computer's processors of one kind: `width` jobs at a time, each of 1 flop in `s_per_flop`, from `start_at`."""

    availability: Availability
    start_at: float
    width: float
    s_per_flop: float

    def end_at(self, number: int, flop: float) -> float:
        """When `number` jobs of so many flop can be over at the earliest: (w / v) max(1, k / m) of time it is on."""
        needed_s = flop * self.s_per_flop * max(1.0, number / self.width)
        return self.availability.when(self.availability.worked_s(self.start_at) + needed_s)


def clairvoyant(scenario: Scenario, seed: int) -> Mapping[str, Seconds]:
    """The bound of every batch by its name; a batch that cannot be over at all is left out.

    Raises InvalidInputError for a scenario whose computers are not drawn from a file's population.
    """
    if not isinstance(scenario, FileScenario):
        raise InvalidInputError("scenario", "a scenario from a file", type(scenario).__name__)
    population = scenario.population
    hosts = [
        (traits, population.availability(traits, seed)[0])
        for traits in population.traits(seed, starts_at=scenario.starts_at, horizon_s=scenario.horizon_s)
        if traits.loss_fraction < 1.0
    ]
    apps = {app.name: app for app in scenario.apps}
    bounds = {}
    for plan in scenario.batches:
        at = _submitted_at(plan, scenario)
        lanes = _lanes(plan, apps[plan.app], hosts, at, scenario)
        sizes = sorted(true_size(f"{plan.name} {i}", population.size_sigma, seed) for i in range(plan.jobs))
        end_at = batch_end_at(lanes, [plan.fpops_est * size for size in sizes], quorum=plan.quorum)
        if end_at < math.inf:
            bounds[plan.name] = Seconds(max(0.0, end_at - at - ROUNDING_S))
    return bounds


def batch_end_at(lanes: Sequence[Lane], sizes: Sequence[float], *, quorum: int = 1) -> float:
    """The largest t_j for jobs of these sizes in flop, ascending; math.inf when there are too few computers.

    Two computers that are always on, a job of 10 s and one of 20 s: the larger one is over at 20 s at best.

    >>> from domain.units import Instant
    >>> def always(start_at):
    ...     return Availability(iter([(start_at, start_at + 1e9)]), start_at=Instant(start_at))
    >>> batch_end_at([Lane(always(0.0), 0.0, 1.0, 1.0), Lane(always(0.0), 5.0, 1.0, 1.0)], [10.0, 20.0])
    20.0
    """
    jobs = len(sizes)
    first = {min(jobs - 1, int(part * jobs)) for part in SUBSETS} | {jobs - 1}
    return max(nth_end_at(lanes, sizes[j], (jobs - j) * quorum, most_each=jobs - j) for j in first)


def nth_end_at(lanes: Iterable[Lane], flop: float, needed: int, *, most_each: int) -> float:
    """When `needed` jobs of so many flop can be over at the earliest, at most `most_each` of them on a lane."""
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
    """When it is posted; during an outage, when that is over."""
    at = Instant(scenario.starts_at + plan.at_s)
    return next((outage.end_at for outage in scenario.outages if outage.start_at <= at < outage.end_at), at)


def _lanes(
    plan: BatchPlan,
    app: AppPlan,
    hosts: Iterable[tuple[Traits, Availability]],
    at: Instant,
    scenario: FileScenario,
) -> list[Lane]:
    lanes = []
    for traits, availability in hosts:
        if plan.ncpus > traits.ncpus or plan.memory_bytes > traits.ram_bytes:
            continue
        on_grid = not (scenario.outages or traits.asks_with_reports)
        start_at = first_ask_at(traits, availability, at) if on_grid else None
        if start_at is None:
            start_at = availability.on_from(max(at, traits.joins_at))
        if start_at >= traits.leaves_at:
            continue
        if app.on_cpus:
            width = traits.ncpus / min(app.ncpus, float(traits.ncpus))
            lanes.append(Lane(availability, start_at, width, 1.0 / traits.flop_per_s_of(app.ncpus, 0.0)))
        gpu = traits.gpu
        if gpu is not None and gpu.type in app.gpu_types:
            lanes.append(Lane(availability, start_at, float(gpu.count), 1.0 / traits.flop_per_s_of(0.1, 1.0)))
    return lanes


def first_ask_at(traits: Traits, availability: Availability, at: Instant) -> float:
    """The earliest instant, `at` or later, at which a computer may ask for work.

    It asks at instants of its grid, or as soon after them as it is on, or as the server lets it: MOST_POSTPONED_S
    after them at the latest.
    """
    interval_s = traits.interval_s
    first = math.ceil((traits.joins_at - traits.grid_at) / interval_s)
    last = math.floor((at - traits.grid_at) / interval_s)
    if last >= first:
        asked_at = availability.on_from(traits.grid_at + last * interval_s)
        if asked_at >= at:
            return asked_at
        if asked_at + MOST_POSTPONED_S >= at:
            return availability.on_from(at)
    return availability.on_from(traits.grid_at + max(first, last + 1) * interval_s)
