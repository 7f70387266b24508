"""Runs one scenario with one seed under one rule and returns its figures. Results are the same on any machine."""

from __future__ import annotations

import gc
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import structlog

from domain.batches import QoS
from domain.deadline_rules import CLAIRVOYANT, COPIES, SIMULATED_RULES
from domain.errors import InvalidInputError
from domain.settings import Settings
from simulator.clairvoyant import clairvoyant
from simulator.engine import CountJobs, Engine, Watch, uncounted
from simulator.metrics import Figures, bound_figures, figures_of, makespan_s
from simulator.recording import processor_use
from simulator.scenario import FileScenario
from simulator.services import MoreTasks
from simulator.virtual_time import run_without_threads
from store.memory import MemoryStore

RULE = "deadline.rule"


@dataclass(frozen=True, slots=True)
class Case:
    """A run to perform. `rule` is one of SIMULATED_RULES; `settings` override the scenario's settings."""

    scenario: FileScenario
    seed: int
    rule: str
    settings: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ran:
    """A run's figures, and the seconds from submission to the end of each job, by name of AFAP batch.

    `spans_s`: those to the end of the last job, by name of any batch; unfinished batches are missing.
    """

    figures: Figures
    ends_s: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    spans_s: Mapping[str, float] = field(default_factory=dict)


def checked_rule(rule: str) -> str:
    """Return the rule. Raises InvalidInputError if it is unknown.

    >>> checked_rule("muster")
    'muster'
    """
    if rule not in SIMULATED_RULES:
        raise InvalidInputError("rule", f"one of {', '.join(SIMULATED_RULES)}", rule)
    return rule


def deadline_rule(rule: str) -> str:
    """Return the value of `deadline.rule` for one of SIMULATED_RULES.

    >>> deadline_rule("fixed+copies")
    'fixed'
    """
    return rule.removesuffix(COPIES)


def run_case(case: Case, more_tasks: MoreTasks, watch: Watch, count_jobs: CountJobs = uncounted) -> Ran:
    """Perform the run. Raises InvalidInputError for an invalid rule or setting.

    Services log only warnings during a run.
    """
    Settings.from_mapping(case.settings)
    if checked_rule(case.rule) == CLAIRVOYANT:
        bounds = clairvoyant(case.scenario, case.seed)
        return Ran(bound_figures(bounds.least_s, case.scenario.batches, in_share_s=bounds.in_share_s))
    engine = Engine(
        case.scenario,
        case.seed,
        store=lambda _: MemoryStore(),
        settings={**case.settings, RULE: deadline_rule(case.rule)},
        more_tasks=more_tasks,
        watch=watch,
        count_jobs=count_jobs,
    )
    with warnings_only(), what_is_stays():
        run_without_threads(engine.run())
    every = engine.record.batches.values()
    spans_s = {one.name: float(makespan_s(one, engine.ended_at)) for one in every if one.is_over}
    return Ran(run_without_threads(_figures(engine, case.scenario)), _ends_s(engine), spans_s)


@contextmanager
def warnings_only() -> Iterator[None]:
    """Log only warnings, because services log a thousand times per simulated day."""
    before = structlog.get_config()
    told = before["logger_factory"]()  # shared by all loggers; replaced by one that only checks whether it is enabled
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING), logger_factory=lambda *_: told
    )
    try:
        yield
    finally:
        structlog.configure(**before)


@contextmanager
def what_is_stays() -> Iterator[None]:
    """Freeze existing objects and collect garbage rarely, because nearly all new objects live until the end."""
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


async def _figures(engine: Engine, scenario: FileScenario) -> Figures:
    """Return the run's figures; without failed jobs for a project's batches, which the simulation never gives up."""
    batches = [await engine.store.views.batch(batch_id) for batch_id in engine.record.batches]
    facts = [volunteer.facts() for volunteer in engine.volunteers]
    figures = figures_of(
        engine.record,
        facts,
        ended_at=engine.ended_at,
        deadlines_missed=sum(batch.counts.deadlines_missed for batch in batches),
        use=processor_use(engine.record.work_samples, engine.volunteers, engine.ended_at),
    )
    return replace(figures, jobs_failed=None) if any(plan.batch_id for plan in scenario.batches) else figures


def _ends_s(engine: Engine) -> dict[str, tuple[float, ...]]:
    return {
        batch.name: tuple(at - batch.submitted_at for at in batch.ended_at)
        for batch in engine.record.batches.values()
        if batch.qos is QoS.AFAP
    }
