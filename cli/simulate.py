"""`muster simulate`: try rules and settings on simulated hosts before using them on real hosts."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from cli.context import only_here, to_json
from cli.settings import parsed
from domain.deadline_rules import SIMULATED_RULES
from domain.errors import InvalidInputError
from domain.settings import DeadlineRule
from domain.units import DAY_S, Instant

if TYPE_CHECKING:
    from simulator.frontier import Combination
    from simulator.run import Case, Ran
    from simulator.sweep import Axis, Grid


@click.command()
@only_here("it needs no project and runs on this machine; the console runs simulations on a server")
@click.argument("scenario")
@click.option(
    "--rule",
    "rules",
    multiple=True,
    type=click.Choice(SIMULATED_RULES),
    help=f"Deadline rule; may be repeated. Default: the scenario's rules, or {DeadlineRule.MUSTER}.",
)
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Number of runs per rule, each with its own seed.",
)
@click.option("--first-seed", type=click.IntRange(min=0), default=1, show_default=True)
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Setting of the simulated project; may be repeated."
)
@click.option(
    "--sweep",
    "sweeps",
    multiple=True,
    metavar="KEY=VALUE,VALUE...",
    help="Values of a setting to try; each combination gives one row, and Pareto-optimal rows are marked.",
)
@click.option("--with", "changes", multiple=True, metavar="PATH=VALUE", help="Value to change in the scenario file.")
@click.option(
    "--trace",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    default=None,
    help="Replace the scenario's batches with the jobs of this log in Standard Workload Format (.swf, .swf.gz).",
)
@click.option("--trace-jobs", type=click.IntRange(min=1), default=None, help="Use only the log's first N jobs.")
@click.option(
    "--trace-speed-up",
    type=click.FloatRange(min=0.0, min_open=True),
    default=1.0,
    help="Speed-up factor for the log's times.",
)
@click.option("--processes", type=click.IntRange(min=1), default=None, help="Parallel runs; default: one per CPU.")
@click.option(
    "--dask", "dask_address", default=None, metavar="ADDRESS", help="Run on the Dask cluster at this address."
)
@click.option("--charts", "folder", type=click.Path(path_type=Path, file_okay=False), help="Directory for PNG charts.")
@click.option("--json", "as_json", is_flag=True, help="Print only the JSON object.")
def simulate(
    scenario: str,
    rules: tuple[str, ...],
    seeds: int,
    first_seed: int,
    settings: tuple[str, ...],
    sweeps: tuple[str, ...],
    changes: tuple[str, ...],
    trace: Path | None,
    trace_jobs: int | None,
    trace_speed_up: float,
    processes: int | None,
    dask_address: str | None,
    folder: Path | None,
    as_json: bool,
) -> None:
    """Simulate a SCENARIO (a TOML file, or the name of a shipped one) under each rule, with the same seeds.

    The last line printed is one JSON object: medians over the seeds by rule, or with --sweep by combination of
    settings.
    """
    from simulator.charts import write_charts
    from simulator.report import table_of
    from simulator.run import RULE
    from simulator.scenario import read_scenario
    from simulator.sweep import cases_of, compared, grid_of
    from simulator.text_charts import charts_of

    found = read_scenario(scenario, dict(_pair(change, "--with") for change in changes))
    if trace is not None:
        found = found.with_trace(
            trace,
            speed_up=trace_speed_up,
            most_jobs=trace_jobs,
            tell=lambda text: click.echo(f"{trace}: {text}", err=True),
        )
    changed = dict(_pair(setting, "--set") for setting in settings)
    if RULE in changed:
        raise InvalidInputError("--set", f"settings other than {RULE}, which --rule sets", changed[RULE])
    asked = dict.fromkeys(rules or (str(found.settings.get(RULE, DeadlineRule.MUSTER)),))
    chosen = range(first_seed, first_seed + seeds)
    if sweeps:
        grid = grid_of(found, [axis_of(sweep) for sweep in sweeps], rules=asked, seeds=chosen, settings=changed)
        _run_grid(grid, folder, processes=processes, dask_address=dask_address, as_json=as_json)
        return
    cases = cases_of(found, rules=asked, seeds=chosen, settings=changed)
    ran = run_cases(cases, processes=processes, dask_address=dask_address)
    comparison = compared(cases, ran)
    if not as_json:
        Console().print(table_of(comparison), charts_of(comparison))
    if folder is not None:
        _tell_charts(write_charts(comparison, folder))
    click.echo(to_json(comparison.as_json()))


def _run_grid(
    grid: Grid, folder: Path | None, *, processes: int | None, dask_address: str | None, as_json: bool
) -> None:
    from simulator.charts import write_frontier_charts
    from simulator.frontier import shown

    swept = grid.swept(run_cases(grid.cases, processes=processes, dask_address=dask_address, combinations=grid.by_case))
    if not as_json:
        Console().print(shown(swept))
    if folder is not None:
        _tell_charts(write_frontier_charts(swept, folder))
    click.echo(to_json(swept.as_json()))


def _tell_charts(paths: Sequence[Path]) -> None:
    click.echo(f"charts: {', '.join(str(path) for path in paths)}", err=True)


def _pair(text: str, option: str) -> tuple[str, object]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise InvalidInputError(option, "KEY=VALUE", text)
    return key, parsed(value)


def axis_of(text: str) -> Axis:
    """Parse a setting and its comma-separated values, as JSON if all values are valid JSON, otherwise as text.

    >>> axis_of("deadline.p_afap=0.5,0.7"), axis_of("deadline.afap=prompt, table")
    (('deadline.p_afap', [0.5, 0.7]), ('deadline.afap', ['prompt', 'table']))
    """
    key, equals, text_of_values = text.partition("=")
    parts = [part.strip() for part in text_of_values.split(",")]
    if not key or not equals or not all(parts):
        raise InvalidInputError("--sweep", "KEY=VALUE,VALUE...", text)
    try:
        return key, json.loads(f"[{text_of_values}]")
    except json.JSONDecodeError:
        return key, [parsed(part) for part in parts]


def run_cases(
    cases: Sequence[Case],
    *,
    processes: int | None,
    dask_address: str | None = None,
    combinations: Sequence[Combination] = (),
) -> list[Ran]:
    """Run the cases, each with a progress bar labelled with its rule, seed and differing settings."""
    from administration.simulations.process import simulated_tasks
    from simulator.sweep import run_here, run_on_dask, run_on_processes

    at_once = min(len(cases), processes or os.cpu_count() or 1)
    with Bars(cases, combinations) as bars:
        if dask_address is not None:
            return run_on_dask(cases, simulated_tasks, bars, address=dask_address)
        if at_once == 1:
            return run_here(cases, simulated_tasks, bars)
        return run_on_processes(cases, simulated_tasks, bars, processes=at_once)


class Bars:
    """Satisfies simulator.sweep.Watching. Shows a bar with the simulated date for each run in progress on a terminal.

    A simulation ends when all its jobs are done, so a bar's number of days is an upper bound.
    """

    def __init__(
        self, cases: Sequence[Case], combinations: Sequence[Combination] = (), console: Console | None = None
    ) -> None:
        console = console or Console(stderr=True)
        self._cases = cases
        self._combinations = combinations
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[done]}"),
            TimeElapsedColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self._over = 0
        self._all = self._progress.add_task("runs", total=len(cases), done=self._runs())
        self._tasks: dict[int, TaskID] = {}

    def __enter__(self) -> Bars:
        self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._progress.stop()

    def moved(self, place: int, at: Instant) -> None:
        scenario = self._cases[place].scenario
        if place not in self._tasks:
            self._tasks[place] = self._progress.add_task(self._name(place), total=scenario.horizon_s, done="")
        date = datetime.fromtimestamp(at, UTC).strftime("%a %d %b %Y %H:%M")
        done_s = at - scenario.starts_at
        told = f"{date}, day {done_s / DAY_S:.1f} of at most {scenario.horizon_s / DAY_S:g}"
        self._progress.update(self._tasks[place], completed=done_s, done=told)

    def over(self, place: int) -> None:
        if place in self._tasks:
            self._progress.remove_task(self._tasks.pop(place))
        self._over += 1
        self._progress.update(self._all, advance=1, done=self._runs())

    def _runs(self) -> str:
        return f"{self._over} of {len(self._cases)} done"

    def _name(self, place: int) -> str:
        from simulator.frontier import as_text

        case = self._cases[place]
        settings = self._combinations[place] if self._combinations else {}
        told = "".join(f", {key.rpartition('.')[2]}={as_text(value)}" for key, value in settings.items())
        return f"run {place + 1}: {case.rule}, seed {case.seed}{told}"
