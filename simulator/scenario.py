"""Reads scenarios from TOML files: a project, its volunteers and its submitters.

    name = "department"            days = 30                delay_bound_days = 7
    [settings]                     settings of the project by key
    [population]                   simulator/population_fields.py
    [[app]]                        name, ncpus, gpu_types, efficiency
    [[submitter]]                  name, shares
    [[batch]]                      simulator/submitters.py
    [[outage]]                     at_hours, hours

Satisfies simulator.ports.Scenario.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from domain.apps import App, AppVersion, PlanClass, ProcessorType
from domain.errors import InvalidInputError
from domain.ranking import CutPoints
from domain.settings import Settings
from domain.units import DAY_S, HOUR_S, AppId, AppVersionId, Instant, Seconds
from jobs.fields import Fields
from simulator.client import SimulatedVolunteer
from simulator.population import MEMORY_SIGMA, HostPopulation
from simulator.population_fields import parse_population
from simulator.ports import Outage, Program, ShareOf, Submission
from simulator.robustness import DRAWN, drawn_scenario, population_number
from simulator.submitters import BatchPlan, in_order, parse_batches
from simulator.swf import LeftOut, Replay, plans_of, read_swf, told

SHIPPED = Path(__file__).parent / "scenarios"
MONDAY = Instant(1767571200.0)  # 5 January 2026, 0 h UTC
KNOWN = (
    "name",
    "days",
    "starts_at",
    "delay_bound_days",
    "settings",
    "population",
    "app",
    "submitter",
    "batch",
    "outage",
)
MOST_DAYS = 3650.0
YEAR_2100 = 4102444800.0


@dataclass(frozen=True, slots=True)
class AppPlan:
    """An app with the given `versions`, or else with one per platform for CPUs and for each type of GPU."""

    name: str
    ncpus: float = 1.0
    gpu_types: tuple[str, ...] = ()
    on_cpus: bool = True
    versions: tuple[AppVersion, ...] = ()
    cuts: tuple[CutPoints, ...] = ()

    def program(self, platforms: Sequence[str]) -> Program:
        if self.versions:
            without_files = tuple(replace(one, files=()) for one in self.versions)
            return Program(App(AppId(0), self.name), without_files, self.cuts)
        classes = [PlanClass("" if self.ncpus == 1.0 else f"mt{self.ncpus:g}", self.ncpus)] if self.on_cpus else []
        classes += [PlanClass(f"gpu_{kind}", 0.1, ProcessorType(kind)) for kind in self.gpu_types]
        versions = [
            AppVersion(AppVersionId(0), AppId(0), platform, 100, plan_class)
            for platform in platforms
            for plan_class in classes
        ]
        return Program(App(AppId(0), self.name), tuple(versions))


@dataclass(frozen=True, slots=True)
class FileScenario:
    """A checked scenario. `batches` are in chronological order."""

    name: str
    starts_at: Instant
    horizon_s: Seconds
    settings: Mapping[str, object]
    population: HostPopulation
    apps: tuple[AppPlan, ...]
    submitters: tuple[ShareOf, ...]
    batches: tuple[BatchPlan, ...]
    outages: tuple[Outage, ...] = ()
    delay_bound_s: Seconds = Seconds(7 * DAY_S)  # default for batches

    @property
    def programs(self) -> Sequence[Program]:
        return [app.program(sorted(self.population.platforms)) for app in self.apps]

    def volunteers(self, seed: int) -> Sequence[SimulatedVolunteer]:
        return self.population.volunteers(seed, starts_at=self.starts_at, horizon_s=self.horizon_s)

    def submissions(self, seed: int) -> Sequence[Submission]:  # noqa: ARG002  the batches are the file's
        wrong = self.population.garbage_fraction > 0.0 or self.population.unreliable_hosts_fraction > 0.0
        return [plan.submission(self.starts_at, with_outputs=wrong) for plan in self.batches]

    def with_trace(
        self,
        path: Path,
        *,
        speed_up: float = 1.0,
        most_jobs: int | None = None,
        tell: Callable[[str], None] | None = None,
    ) -> FileScenario:
        """Return the same project with the batches of a workload log (simulator/swf.py), or only its first `most_jobs`
        jobs.

        Jobs get the scenario's delay bound. `tell` receives a summary of the log. Raises InvalidInputError, also if no
        job in the log was submitted before the horizon.
        """
        replay = Replay(self.apps[0].name, self.horizon_s, self.delay_bound_s, speed_up, most_jobs=most_jobs)
        left_out = LeftOut()
        plans = plans_of(read_swf(path, left_out), replay, left_out)
        if not plans:
            first_days = self.horizon_s * speed_up / DAY_S
            expected = f"a log with a job that ran and was submitted in the first {first_days:g} days"
            raise InvalidInputError("trace", expected, str(path))
        check_that_all_can_be_run(plans, self.programs, self.population)
        if tell is not None:
            tell(told(plans, left_out))
        return self.with_batches(plans)

    def with_batches(self, batches: Sequence[BatchPlan]) -> FileScenario:
        """Return the same project with these batches instead; new submitters get one share."""
        known = {one.submitter: one for one in self.submitters}
        names = dict.fromkeys([*(plan.submitter for plan in batches), *known])
        return replace(
            self,
            batches=tuple(in_order(batches)),
            submitters=tuple(known.get(name, ShareOf(name)) for name in names),
        )


def read_scenario(path: str | Path, changes: Mapping[str, object] | None = None) -> FileScenario:
    """Return the scenario in a file, the shipped one of this name, or `robustness:NUMBER` (simulator/robustness.py).

    Raises InvalidInputError.

    `changes` replace values in the file by path: {"population.loss_fraction": 0.02, "delay_bound_days": 2}.

    >>> read_scenario("small", {"population.loss_fraction": 0.1}).population.loss_fraction
    0.1
    """
    number = population_number(path) if isinstance(path, str) else None
    if number is not None:
        return parse_scenario(changed(drawn_scenario(number), changes or {}), folder=SHIPPED)
    file = Path(path)
    if not file.is_file():
        shipped = SHIPPED / f"{file.stem}.toml"
        if str(path) not in (file.stem, shipped.name) or not shipped.is_file():
            expected = f"a TOML file, or one of {', '.join([*shipped_scenarios(), f'{DRAWN}:NUMBER'])}"
            raise InvalidInputError("scenario", expected, str(path))
        file = shipped
    try:
        values = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInputError(str(path), "a readable TOML file", str(error)) from error
    return parse_scenario(changed(values, changes or {}), folder=file.parent, name=file.stem)


def shipped_scenarios() -> list[str]:
    """Return the names of the scenarios shipped with Muster."""
    return sorted(file.stem for file in SHIPPED.glob("*.toml"))


def changed(values: Mapping[str, object], changes: Mapping[str, object]) -> dict[str, object]:
    """Return the tables with some values replaced. Raises InvalidInputError if a path leads through a non-table.

    >>> changed({"a": {"b": 1}}, {"a.b": 2, "c": 3})
    {'a': {'b': 2}, 'c': 3}
    """
    new = dict(values)
    for path, value in changes.items():
        first, _, rest = path.partition(".")
        if not rest:
            new[first] = value
            continue
        table = new.get(first, {})
        if not isinstance(table, dict):
            raise InvalidInputError(path, f"a path through tables; {first} is not a table", value)
        new[first] = changed(table, {rest: value})
    return new


def parse_scenario(values: Mapping[str, object], *, folder: Path, name: str = "scenario") -> FileScenario:
    """Check a scenario's tables. Raises InvalidInputError with the field, the expected value and the actual value."""
    fields = Fields(values, known=KNOWN)
    days = fields.number("days", above=0.0)
    if days > MOST_DAYS:
        raise InvalidInputError("days", f"at most {MOST_DAYS:g}", days)
    delay_bound_s = Seconds(fields.number("delay_bound_days", above=0.0, default=7.0) * DAY_S)
    starts_at = Instant(fields.number("starts_at", default=MONDAY))
    if starts_at >= YEAR_2100:
        raise InvalidInputError("starts_at", "seconds since 1970 before the year 2100", starts_at)
    settings = flat(fields.table("settings"))
    Settings.from_mapping(settings)
    scenario = FileScenario(
        name_of(fields, default=name),
        starts_at,
        Seconds(days * DAY_S),
        settings,
        parse_population(fields.table("population"), folder=folder),
        _apps(fields) or (AppPlan("app"),),
        _submitters(fields),
        (),
        _outages(fields, starts_at),
        delay_bound_s,
    )
    batches = parse_batches(fields.tables("batch"), delay_bound_s=delay_bound_s)
    for plan in batches:
        if plan.app not in {app.name for app in scenario.apps}:
            raise InvalidInputError(f"batch {plan.name}: app", f"one of {[a.name for a in scenario.apps]}", plan.app)
    check_times(batches, scenario.outages, scenario.population, starts_at=starts_at, horizon_s=scenario.horizon_s)
    check_that_all_can_be_run(batches, scenario.programs, scenario.population)
    return scenario.with_batches(batches)


def flat(table: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    """Return settings by key from nested tables.

    >>> flat({"deadline": {"p_tight": 0.9}, "feeder.slots": 500})
    {'deadline.p_tight': 0.9, 'feeder.slots': 500}
    """
    found: dict[str, object] = {}
    for key, value in table.items():
        found.update(flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value})
    return found


def _apps(fields: Fields) -> tuple[AppPlan, ...]:
    apps = list[AppPlan]()
    for number, values in enumerate(fields.tables("app")):
        one = Fields(values, known=("name", "ncpus", "gpu_types", "on_cpus"), where=f"app[{number}]")
        types = values.get("gpu_types", [])
        are_types = isinstance(types, list) and all(isinstance(kind, str) and kind for kind in types)
        if not isinstance(types, list) or not are_types or len(set(types)) < len(types):
            raise InvalidInputError(one.path("gpu_types"), "a list of GPU types without duplicates", types)
        on_cpus = one.flag("on_cpus", default=True)
        if not on_cpus and not types:
            raise InvalidInputError(one.path("on_cpus"), "true, or gpu_types", False)
        name = name_of(one, [app.name for app in apps])
        apps.append(AppPlan(name, one.number("ncpus", above=0.0, default=1.0), tuple(types), on_cpus))
    return tuple(apps)


def _submitters(fields: Fields) -> tuple[ShareOf, ...]:
    found = list[ShareOf]()
    for number, values in enumerate(fields.tables("submitter")):
        one = Fields(values, known=("name", "shares"), where=f"submitter[{number}]")
        name = name_of(one, [known.submitter for known in found])
        found.append(ShareOf(name, one.number("shares", above=0.0, default=1.0)))
    return tuple(found)


def _outages(fields: Fields, starts_at: Instant) -> tuple[Outage, ...]:
    found: list[Outage] = []
    for number, values in enumerate(fields.tables("outage")):
        one = Fields(values, known=("at_hours", "hours"), where=f"outage[{number}]")
        at = starts_at + one.number("at_hours") * HOUR_S
        if found and at <= found[-1].end_at:
            raise InvalidInputError(one.path("at_hours"), "outages in order, without overlap", one.number("at_hours"))
        found.append(Outage(Instant(at), Instant(at + one.number("hours", above=0.0) * HOUR_S)))
    return tuple(found)


MOST_NAME_CHARS = 100
MOST_HOSTS = 1_000_000  # hosts that ever participate
MOST_MEMORY_SIGMAS = 6.0  # in sigmas: more than any host in a million has


def name_of(fields: Fields, taken: Iterable[str] = (), *, default: str | None = None) -> str:
    """Return the field `name`, which must not be empty or in `taken`."""
    name = fields.text("name", most=MOST_NAME_CHARS, default=default)
    if not name:
        raise InvalidInputError(fields.path("name"), "a name", name)
    if name in taken:
        raise InvalidInputError(fields.path("name"), "unique names", name)
    return name


def check_times(
    plans: Sequence[BatchPlan],
    outages: Sequence[Outage],
    population: HostPopulation,
    *,
    starts_at: float,
    horizon_s: float,
) -> None:
    """Check that everything begins before the horizon and that the number of hosts is not too large to simulate."""
    expected = f"before the end of the scenario, {horizon_s / DAY_S:g} days"
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
        expected = f"at most {MOST_HOSTS} hosts in {horizon_s / DAY_S:g} days"
        raise InvalidInputError("population", expected, round(hosts))


def check_that_all_can_be_run(
    plans: Iterable[BatchPlan], programs: Iterable[Program], population: HostPopulation
) -> None:
    """Check for each batch that a host of the population can have the processors, memory and GPU that it needs."""
    most_cores = population.computers.most_cores
    most_memory = population.gigabytes_per_core * most_cores * math.exp(MOST_MEMORY_SIGMAS * MEMORY_SIGMA) * 1e9
    can_run = {program.app.name for program in programs if _can_run(program, population, most_cores)}
    for plan in plans:
        if plan.ncpus > most_cores:
            expected = f"at most {most_cores}, the largest host of this population"
            raise InvalidInputError(f"batch {plan.name}: ncpus", expected, plan.ncpus)
        if plan.memory_bytes > most_memory:
            expected = "memory that a host of this population can have"
            raise InvalidInputError(f"batch {plan.name}: memory_gigabytes", expected, plan.memory_bytes / 1e9)
        if plan.app not in can_run:
            expected = "an app that a host of this population can run"
            raise InvalidInputError(f"batch {plan.name}: app", expected, plan.app)


def _can_run(program: Program, population: HostPopulation, most_cores: int) -> bool:
    gpu_types = {kind.type for kind in population.gpus if kind.share > 0.0}
    plans = [version.plan_class for version in program.versions]
    return any(plan.ncpus <= most_cores and (plan.gpu_type is None or plan.gpu_type in gpu_types) for plan in plans)
