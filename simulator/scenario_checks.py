"""What must a scenario keep to as a whole, beyond its single fields?

Names differ, all begins before the end, and somebody can run what is asked for. Raises InvalidInputError. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from domain.errors import InvalidInputError
from domain.units import DAY_S, HOUR_S
from jobs.fields import Fields
from simulator.population import MEMORY_SIGMA, Population
from simulator.ports import Outage, Program
from simulator.submitters import BatchPlan

MOST_NAME_CHARS = 100
MOST_HOSTS = 1_000_000  # that ever take part
MOST_MEMORY_SIGMAS = 6.0  # beyond them there is nobody among a million


def name_of(fields: Fields, taken: Iterable[str] = (), *, default: str | None = None) -> str:
    """The field `name`: not empty, and none of those that are taken."""
    name = fields.text("name", most=MOST_NAME_CHARS, default=default)
    if not name:
        raise InvalidInputError(fields.path("name"), "a name", name)
    if name in taken:
        raise InvalidInputError(fields.path("name"), "names that differ", name)
    return name


def check_times(
    plans: Sequence[BatchPlan], outages: Sequence[Outage], population: Population, *, starts_at: float, horizon_s: float
) -> None:
    """Everything begins before the end, and no more computers take part than can be simulated."""
    expected = f"before the end, {horizon_s / DAY_S:g} days"
    begins = [
        *((f"batch {plan.name}: at_hours", plan.at_s) for plan in plans),
        *((f"outage[{number}].at_hours", one.start_at - starts_at) for number, one in enumerate(outages)),
        *((f"population.arrivals[{number}].at_hours", one.at_s) for number, one in enumerate(population.arrivals[1:])),
    ]
    for where, at_s in begins:
        if at_s >= horizon_s:
            raise InvalidInputError(where, expected, at_s / HOUR_S)
    hosts = sum(one.hosts * (1.0 + one.replaced * horizon_s / one.mean_stay_s) for one in population.arrivals)
    if hosts > MOST_HOSTS:
        expected = f"at most {MOST_HOSTS} computers in {horizon_s / DAY_S:g} days"
        raise InvalidInputError("population", expected, round(hosts))


def check_that_all_can_be_run(plans: Iterable[BatchPlan], programs: Iterable[Program], population: Population) -> None:
    """Of every batch: that some computer of this population can have the processors, the memory and the GPU."""
    most_cores = population.computers.most_cores
    most_memory = population.gigabytes_per_core * most_cores * math.exp(MOST_MEMORY_SIGMAS * MEMORY_SIGMA) * 1e9
    can_run = {program.app.name for program in programs if _can_run(program, population, most_cores)}
    for plan in plans:
        if plan.ncpus > most_cores:
            expected = f"at most {most_cores}, as many as a computer of this population has"
            raise InvalidInputError(f"batch {plan.name}: ncpus", expected, plan.ncpus)
        if plan.memory_bytes > most_memory:
            expected = "what a computer of this population can have"
            raise InvalidInputError(f"batch {plan.name}: memory_gigabytes", expected, plan.memory_bytes / 1e9)
        if plan.app not in can_run:
            expected = "an app that a computer of this population can run"
            raise InvalidInputError(f"batch {plan.name}: app", expected, plan.app)


def _can_run(program: Program, population: Population, most_cores: int) -> bool:
    gpu_types = {kind.type for kind in population.gpus if kind.share > 0.0}
    plans = [version.plan_class for version in program.versions]
    return any(plan.ncpus <= most_cores and (plan.gpu_type is None or plan.gpu_type in gpu_types) for plan in plans)
