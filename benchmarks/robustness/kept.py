"""Keeps runs on disk until the code that produced them changes.

A run depends only on its case and the code (simulator/run.py), so it is stored by a digest of both: the case's
scenario, seed, rule and all settings, and every module loaded to make it.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path

import numpy as np
import scipy

from domain.deadline_rules import CLAIRVOYANT
from domain.settings import Settings
from simulator.run import RULE, Case, Ran, deadline_rule
from simulator.services import PACE

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "robustness"
# These modules present results or define the cases.
NOT_OF_A_RUN = (
    "benchmarks/",
    "tests/",
    "simulator/charts.py",
    "simulator/frontier",
    "simulator/sweep.py",
    "simulator/report.py",
    "simulator/sweep.py",
    "simulator/text_charts.py",
)


@dataclass
class KeptRuns:
    """Stores runs in `folder`, in a subdirectory for each state of the code. With `again`, finds only runs of this
    process.
    """

    folder: Path = FOLDER
    again: bool = False
    _now: set[Path] = field(default_factory=set)

    def find(self, case: Case) -> Ran | None:
        path = self._path(case)
        if not path.is_file() or (self.again and path not in self._now):
            return None
        found: Ran = pickle.loads(path.read_bytes())
        return found

    def keep(self, case: Case, ran: Ran) -> None:
        path = self._path(case)
        path.parent.mkdir(parents=True, exist_ok=True)
        begun = path.with_suffix(".part")
        begun.write_bytes(pickle.dumps(ran))
        begun.replace(path)  # replaced atomically
        self._now.add(path)

    def _path(self, case: Case) -> Path:
        return self.folder / self._code / f"{case.scenario.name}-{case.rule}-{case.seed}-{digest_of(case)}.run"

    @cached_property
    def _code(self) -> str:
        return digest_of_files(loaded_modules())


def digest_of(case: Case) -> str:
    """Return a digest of the case with the settings' defaults filled in. The bound ignores settings.

    >>> from simulator.scenario import read_scenario
    >>> small, default = read_scenario("small"), Settings().deadline.p_afap
    >>> digest_of(Case(small, 1, "muster")) == digest_of(Case(small, 1, "muster", {"deadline.p_afap": default}))
    True
    >>> digest_of(Case(small, 1, "muster")) == digest_of(Case(small, 2, "muster"))
    False
    """
    settings: dict[str, object] = {}
    if case.rule != CLAIRVOYANT:
        given = {**PACE, **case.scenario.settings, **case.settings, RULE: deadline_rule(case.rule)}
        settings = {**given, **Settings.from_mapping(given).as_mapping()}
    said = repr((replace(case.scenario, settings={}), case.seed, case.rule, sorted(settings.items())))
    return sha256(said.encode()).hexdigest()[:16]


def loaded_modules() -> list[Path]:
    """Return the project's files that a run in this process would use."""
    files = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    ours = {Path(file) for file in files if file and Path(file).is_relative_to(ROOT)}
    told = {path: path.relative_to(ROOT).as_posix() for path in ours}
    return sorted(path for path, name in told.items() if name[0] != "." and not name.startswith(NOT_OF_A_RUN))


def digest_of_files(files: Sequence[Path]) -> str:
    """Return a digest of the files' text and other inputs that affect the figures."""
    found = sha256(f"{sys.version} {np.__version__} {scipy.__version__}".encode())
    for file in files:
        found.update(file.name.encode() + b"\0" + file.read_bytes())
    return found.hexdigest()[:16]
