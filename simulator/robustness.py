"""Draws scenarios from a number, to measure decisions on populations they were not tuned on.

`drawn_scenario(number)` returns the tables of a scenario file (simulator/scenario.py). Odd numbers are for tuning, even
numbers for testing. Every six successive populations of a half form a Latin hypercube: each of DIMENSIONS is divided
into six equal parts, and each part is drawn once, so that six populations already cover every range.

Sizes are chosen so that a run takes seconds: large populations get long jobs and short delay bounds. The horizon is
two to three times as long as the work needs without losses, so a run ends even if its batches do not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from domain.batches import QoS
from domain.errors import InvalidInputError
from domain.units import DAY_S, HOUR_S, Instant
from simulator.population import HostPopulation
from simulator.population_fields import parse_population

DRAWN = "robustness"  # scenarios are named `robustness:NUMBER`
MOST_NUMBER = 1_000_000
PARTS = 6  # parts per dimension, each drawn once in this many successive populations of a half
DIMENSIONS = (  # append only: a dimension's position is part of its seed
    "hosts",
    "presence",
    "presence_share",
    "loss",
    "error",
    "stay",
    "replaced",
    "length",
    "speed_sigma",
    "computers",
    "gpus",
    "buffer_min",
    "buffer_additional",
    "buffer_sigma",
    "mix",
    "delay_bound",
    "growth",
    "survey",
    "work",
    "share",
    "time_zones",
    "tightness",
)

SMALL_HOSTS, LARGE_HOSTS = (20.0, 200.0), (500.0, 2000.0)
MOST_LOSS, MOST_ERROR = 0.30, 0.15
SHORT_JOB_HOURS, MOST_JOB_HOURS = (
    (1.0 / 6.0, 1.0),
    48.0,
)  # on a processor of REFERENCE_FLOP_PER_S that is always on
REFERENCE_FLOP_PER_S = 1.67e9
MOST_JOBS_PER_DAY = 1500.0  # jobs a population can finish; shorter jobs would make a run take minutes
MOST_SURVEY_JOBS, MOST_LATER_JOBS = 1500, 800
MOST_HOST_DAYS = 4000.0  # minimum of the first phase and of a delay bound
GPU_JOB_FLOP = 1.2e15  # 50 minutes on 4 Tflop/s, of which an app gets a tenth

A, L, T, D = QoS.AFAP, QoS.LONG_DEADLINE, QoS.THROUGHPUT, QoS.SHORT_DEADLINE
MIXES: tuple[tuple[tuple[QoS, float], ...], ...] = (  # error rates in addition to the survey, by share of the jobs
    ((A, 0.4), (L, 0.6)),
    ((A, 0.2), (L, 0.5), (D, 0.3)),
    ((A, 0.3), (T, 0.7)),
    ((A, 0.15), (L, 0.4), (T, 0.45)),
    ((A, 0.25), (L, 0.25), (T, 0.25), (D, 0.25)),
    ((A, 0.2), (A, 0.2), (L, 0.6)),
)
_OWNERS_ON: Mapping[str, object] = {"law": "weibull", "shape": 0.393, "scale_hours": 2.964}
_OWNERS_OFF: Mapping[str, object] = {"law": "lognormal", "median_hours": 0.5565, "sigma": 1.6}
PRESENCES: Mapping[str, Mapping[str, object]] = {
    "always on": {},
    "offices": {"hours": {"from": 8.0, "hours": 10.0, "weekend_hours": 0.0, "sd_hours": 0.5}},
    "homes": {
        "on": _OWNERS_ON,
        "off": _OWNERS_OFF,
        "hours": {"from": 16.0, "hours": 7.0, "weekend_hours": 14.0, "sd_hours": 1.0},
        "spread_sigma": 0.5,
    },
    "weekends": {"hours": {"from": 8.0, "hours": 0.0, "weekend_hours": 15.0, "sd_hours": 1.0}},
}
USUAL, MIXED = "usual", "mixed"
PRESENCE_KINDS = (*PRESENCES, USUAL, MIXED)
COMPUTERS = ("seti", "einstein", "lhc")


def population_number(scenario: str) -> int | None:
    """Return the number in the scenario name `robustness:NUMBER`, None for any other name. Raises InvalidInputError.

    >>> population_number("robustness:7"), population_number("small")
    (7, None)
    """
    name, colon, number = scenario.partition(":")
    if name != DRAWN or not colon:
        return None
    if not (number.isascii() and number.isdigit()) or not 1 <= int(number) <= MOST_NUMBER:
        raise InvalidInputError("scenario", f"{DRAWN}:NUMBER with a number from 1 to {MOST_NUMBER}", scenario)
    return int(number)


def drawn_scenario(number: int) -> dict[str, object]:
    """Return the tables of population `number`, which counts from 1. The same number gives the same tables."""
    u = _places(number)
    population = _population(u)
    parsed = parse_population(population, folder=Path())
    speed = capacity_flop_per_s(parsed, number)
    hosts = float(parsed.arrivals[0].hosts)
    bound_days = _log(u["delay_bound"], 2.0, max(2.5, min(10.0, MOST_HOST_DAYS / hosts)))
    longest = min(MOST_JOB_HOURS, bound_days * 24.0 / 4.0)
    shortest = min(longest, max(SHORT_JOB_HOURS[0], speed * 24.0 / (REFERENCE_FLOP_PER_S * MOST_JOBS_PER_DAY)))
    job_hours = _log(u["length"], shortest, longest)
    if u["length"] < 1.0 / PARTS:  # every batch has jobs of minutes, although the run is short
        job_hours = _log(u["length"] * PARTS, *SHORT_JOB_HOURS)
    flop = _digits(job_hours * HOUR_S * REFERENCE_FLOP_PER_S)
    per_day = speed * DAY_S / flop
    survey_days = _log(u["survey"], 3.0, max(3.0, min(10.0, MOST_HOST_DAYS / hosts)))
    survey = _within(per_day * survey_days, 50, MOST_SURVEY_JOBS)
    later = _within(per_day * _log(u["work"], 0.4, 3.0), 60, MOST_LATER_JOBS)
    later_at_hours = round(24.0 * max(1.0, 0.7 * survey / per_day))
    _leave_and_join(population, u, later_at_hours)
    work_days = (survey + later) / per_day
    batches = [_batch("survey", QoS.THROUGHPUT, 0.0, survey, flop)]
    due_hours = (24.0 * later / per_day + 8.0 * job_hours + 24.0) * (1.0 + 2.0 * u["tightness"])
    for place, (qos, share) in enumerate(MIXES[_choice(u["mix"], len(MIXES))]):
        jobs = max(20, round(share * later))
        batch = _batch(f"{qos}_{place + 1}", qos, later_at_hours + 6.0 * place, jobs, flop)
        if qos is QoS.SHORT_DEADLINE:
            batch["deadline_hours"] = _digits(due_hours)
        batches.append(batch)
    apps: list[dict[str, object]] = [{"name": "app"}]
    if "gpus" in population:
        apps.append({"name": "gpu", "gpu_types": ["NVIDIA"], "on_cpus": False})
        gpus = _within(hosts * parsed.gpus[0].share, 2, 100)
        batches.append(_batch("gpu_survey", QoS.THROUGHPUT, 0.0, gpus * 10, GPU_JOB_FLOP, app="gpu"))
        batches.append(_batch("gpu_afap", QoS.AFAP, later_at_hours + 3.0, max(20, gpus * 3), GPU_JOB_FLOP, app="gpu"))
    return {
        "name": f"{DRAWN}-{number}",
        "days": math.ceil(later_at_hours / 24.0 + 2.5 * (work_days + bound_days) + 3.0),
        "delay_bound_days": _digits(bound_days),
        "population": population,
        "app": apps,
        "submitter": [{"name": "ada"}, {"name": "ben"}],
        "batch": batches,
    }


def capacity_flop_per_s(population: HostPopulation, seed: int) -> float:
    """Return the average flop/s of the initial hosts for this project, without losses or departures."""
    drawn = population.traits(seed, starts_at=Instant(0.0), horizon_s=DAY_S)
    per_host = float(np.mean([one.ncpus * one.flop_per_s / one.stretch for one in drawn]))
    return population.arrivals[0].hosts * per_host * population.share * on_fraction(population)


def on_fraction(population: HostPopulation) -> float:
    """Return the mean fraction of time in which hosts are on.

    >>> round(on_fraction(parse_population({"hosts": 1, "presence": [{"share": 1.0}]}, folder=Path())), 2)
    1.0
    """
    shares = sum(one.share for one in population.presences)
    together = sum(
        one.share * one.process.fraction * (1.0 if one.hours is None else one.hours.fraction)
        for one in population.presences
    )
    return together / shares


# ------------------------------------------------------------ the draws


def _places(number: int) -> dict[str, float]:
    """Return a position in [0, 1) for each dimension."""
    half, (block, row) = number % 2, divmod((number - 1) // 2, PARTS)
    places = {}
    for dimension, name in enumerate(DIMENSIONS):
        rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence((half, block, dimension))))
        order, within = rng.permutation(PARTS), rng.random(PARTS)
        places[name] = (float(order[row]) + float(within[row])) / PARTS
    return places


def _population(u: Mapping[str, float]) -> dict[str, object]:
    small, place = u["hosts"] < (PARTS - 1) / PARTS, u["hosts"] * PARTS
    hosts = _log(u["hosts"] * PARTS / (PARTS - 1), *SMALL_HOSTS) if small else _log(place - PARTS + 1, *LARGE_HOSTS)
    table: dict[str, object] = {
        "hosts": round(hosts),
        "computers": COMPUTERS[_choice(u["computers"], len(COMPUTERS))],
        "speed_sigma": _digits(0.9 * u["speed_sigma"] ** 2),
        "loss_fraction": _digits(MOST_LOSS * u["loss"] ** 2),
        "error_fraction": _digits(MOST_ERROR * u["error"] ** 2),
        "share_fraction": _digits(0.3 + 0.7 * u["share"]),
        "buffer_min_days": _digits(_log(u["buffer_min"], 0.02, 1.0)),
        "buffer_additional_days": _digits(_log(u["buffer_additional"], 0.02, 2.0)),
        "buffer_sigma": _digits(u["buffer_sigma"]),
        "time_zones_hours": _digits(12.0 * u["time_zones"]),
    }
    presence = _presence(PRESENCE_KINDS[_choice(u["presence"], len(PRESENCE_KINDS))], u["presence_share"])
    if presence:
        table["presence"] = presence
    if u["gpus"] >= 2.0 / 3.0:
        share = _digits(0.3 + 0.3 * (3.0 * u["gpus"] - 2.0))
        table["gpus"] = [{"share": share, "type": "NVIDIA", "median_tflops": 4.0, "sigma": 0.6, "gigabytes": 6.0}]
    return table


def _presence(kind: str, place: float) -> list[dict[str, object]]:
    """Return the presence table: mostly one kind with the rest always on, or all four kinds, the first one rarer."""
    if kind == USUAL:
        return []
    if kind == MIXED:
        weights = (0.05 + 0.4 * place, 0.2, 0.3, 0.1)
        return [{"share": _digits(share), **PRESENCES[name]} for name, share in zip(PRESENCES, weights, strict=True)]
    most = _digits(0.6 + 0.4 * place if kind != "weekends" else 0.4 + 0.4 * place)
    rest: list[dict[str, object]] = [{"share": _digits(1.0 - most)}] if most < 1.0 and kind != "always on" else []
    return [{"share": most, **PRESENCES[kind]}, *rest]


def _leave_and_join(population: dict[str, object], u: Mapping[str, float], later_at_hours: float) -> None:
    """Add departures to one half of the populations, and newcomers that join with the later batches to the other."""
    if u["stay"] >= 0.5:
        days = _log(2.0 * u["stay"] - 1.0, 60.0, 8.0)
        population["mean_stay_days"] = _digits(max(days, 1.5 * later_at_hours / 24.0))
        population["replaced"] = u["replaced"] < 0.5
    if u["growth"] >= 0.5:
        hosts = population["hosts"]
        assert isinstance(hosts, int)
        newcomers = math.ceil(hosts * _log(2.0 * u["growth"] - 1.0, 0.1, 1.0))
        population["arrivals"] = [{"hosts": newcomers, "at_hours": later_at_hours, "over_hours": 72.0}]


def _batch(name: str, qos: QoS, at_hours: float, jobs: int, flop: float, *, app: str = "app") -> dict[str, object]:
    submitter = "ada" if qos in (QoS.AFAP, QoS.SHORT_DEADLINE) else "ben"
    return {
        "name": name,
        "app": app,
        "submitter": submitter,
        "qos": str(qos),
        "at_hours": at_hours,
        "jobs": jobs,
        "fpops_est": flop,
    }


def _log(place: float, low: float, high: float) -> float:
    """Return the value at the fraction `place` of the way from `low` to `high`, on a logarithmic scale."""
    return low * math.exp(place * math.log(high / low))


def _choice(place: float, count: int) -> int:
    return min(count - 1, int(place * count))


def _within(value: float, low: int, high: int) -> int:
    return round(min(max(value, low), high))


def _digits(value: float) -> float:
    """Round to three significant digits, so that a drawn scenario is readable."""
    return float(f"{value:.3g}")
