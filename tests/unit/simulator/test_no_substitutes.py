"""The simulator replaces nothing that decides: inspects the services of a run down to the last function."""

from __future__ import annotations

import ast
import functools
import inspect
import operator
import sys
import types
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import pytest

import simulator
from administration.simulations.process import simulated_tasks
from simulator.engine import Engine
from simulator.run import warnings_only
from simulator.services import Services
from simulator.virtual_time import run_without_threads
from tests.memory import MemoryStore
from tests.unit.simulator.rig import PlainScenario, a_batch

FOLDER = Path(simulator.__file__).parent
DECIDING = ("feeder", "scheduler", "jobs", "hoststats", "batch_estimator", "lifecycle", "priority", "wire", "domain")
AROUND = ("administration", "runtime", "cli", "simulator")
OURS = (*DECIDING, *AROUND)

# What services depend on in a run: time, the catalogue, absent files, and recording of events.
PLUMBING = {
    "VirtualClock",
    "CatalogueOfTheMoment",
    "NoFiles",
    "OneKey",
    "NoPauses",
    "RunRecord",
    "RecordedForecasts",
    "RecordedLedger",
    "RecordedOverdue",
    "RecordedUnsettled",
}
BUILT_BY = "Services"  # its lambdas select the current settings of each service


def a_run() -> Engine:
    engine = Engine(
        PlainScenario(batches=[a_batch("rush", jobs=10), a_batch("bulk", qos="throughput", jobs=10)]),
        1,
        store=lambda clock: MemoryStore(),
        settings={},
        more_tasks=simulated_tasks,
        watch=lambda at: None,
    )
    with warnings_only():
        run_without_threads(engine.run())
    return engine


def owner_of(thing: object) -> str:
    return (getattr(thing, "__module__", None) or "").partition(".")[0]


def parts_of(thing: object) -> Iterator[object]:
    """Yield what an object of ours refers to, and what a function closes over."""
    if isinstance(thing, dict):
        yield from (*thing.keys(), *thing.values())
    elif isinstance(thing, (list, tuple, set, frozenset, deque)):
        yield from thing
    elif isinstance(thing, types.MethodType):
        yield from (thing.__self__, thing.__func__)
    elif isinstance(thing, functools.partial):
        yield from (thing.func, *thing.args, *thing.keywords.values())
    elif isinstance(thing, types.FunctionType):
        yield from (cell.cell_contents for cell in thing.__closure__ or ())
        yield from (thing.__defaults__, thing.__kwdefaults__, getattr(thing, "__wrapped__", None))
    elif isinstance(thing, functools._lru_cache_wrapper):
        yield thing.__wrapped__
    elif owner_of(type(thing)) in OURS:
        yield from vars(thing).values() if hasattr(thing, "__dict__") else ()
        slots = {name for kind in type(thing).__mro__ for name in getattr(kind, "__slots__", ())}
        yield from (getattr(thing, name) for name in sorted(slots) if hasattr(thing, name))


def of_the_simulator(thing: object) -> str | None:
    """Return the name of an object that belongs to the simulator."""
    if isinstance(thing, types.FunctionType):
        return thing.__qualname__.partition(".")[0] if owner_of(thing) == "simulator" else None
    return type(thing).__name__ if owner_of(type(thing)) == "simulator" else None


def own_parts(roots: list[object]) -> set[str]:
    """Return everything reachable from these without passing through the simulator's own parts or the store."""
    found: set[str] = set()
    seen: set[int] = set()
    waiting = list(roots)
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen or isinstance(thing, (type, types.ModuleType)) or owner_of(type(thing)) == "store":
            continue
        seen.add(id(thing))
        name = of_the_simulator(thing)
        if name is not None:
            found.add(name)
        else:
            waiting.extend(parts_of(thing))
    return found


def test_services_contain_no_simulator_parts_but_ports() -> None:
    engine = a_run()
    rounds = [task.run_once for task in simulated_tasks(engine.store, engine.services.catalogue, engine.clock)]

    found = own_parts([*vars(engine.services).values(), *rounds])

    assert {"RecordedLedger", "RecordedUnsettled", "RecordedOverdue", "VirtualClock"} <= found  # deep enough
    assert found - PLUMBING <= {BUILT_BY}


@pytest.fixture(scope="module")
def services() -> Services:
    return a_run().services


class Better:
    """A possible substitute, in the place of a production part."""

    def __init__(self, instead_of: object) -> None:
        self.instead_of = instead_of


Better.__module__ = "simulator.better"


@pytest.mark.parametrize(
    "place",
    [
        "requests._giver._decide",
        "requests._elements",
        "feeder._refiller",
        "feeder.array",
        "jobs.validator",
        "jobs.sweeper",
        "jobs.mover",
        "jobs.copier._work",
        "jobs.accelerator._catalogue",
        "orderer._work",
        "orderer._explained_by",
        "reserver._work",
        "reserver._sent",
        "class_looker._catalogue",
        "ranking.statistics",
        "ranking.timer",
        "estimator._self_check",
        "estimator._run_fit",
    ],
)
def test_the_search_finds_a_substitute_wherever_it_is(services: Services, place: str) -> None:
    path, _, name = place.rpartition(".")
    holder = operator.attrgetter(path)(services)
    was = getattr(holder, name)

    object.__setattr__(holder, name, Better(was))
    found = own_parts(list(vars(services).values()))
    object.__setattr__(holder, name, was)

    assert "Better" in found
    assert "Better" not in own_parts(list(vars(services).values()))


def test_wrapped_substitute_function_is_found() -> None:
    substitute = types.FunctionType(owner_of.__code__, {})
    substitute.__module__ = "simulator.better"

    for wrapped in (substitute, functools.partial(substitute), functools.lru_cache(substitute), deque([substitute])):
        assert "owner_of" in own_parts([{"known": wrapped}])


def test_deciding_modules_are_unpatched_after_a_run() -> None:
    a_run()
    replaced = [
        f"{name}.{attribute}"
        for name, module in sorted(sys.modules.items())
        if name.partition(".")[0] in DECIDING
        for attribute, thing in vars(module).items()
        if (inspect.isfunction(thing) or inspect.isclass(thing)) and owner_of(thing) in AROUND
    ]
    members = [
        f"{name}.{attribute}.{member}"
        for name, module in sorted(sys.modules.items())
        if name.partition(".")[0] in DECIDING
        for attribute, thing in vars(module).items()
        if inspect.isclass(thing) and owner_of(thing) in DECIDING
        for member, function in vars(thing).items()
        if inspect.isfunction(function) and owner_of(function) == "simulator"
    ]

    assert replaced == members == []


def sources() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(FOLDER.glob("*.py")):
        yield path.name, ast.parse(path.read_text(encoding="utf-8"))


def imported_from(tree: ast.Module) -> dict[str, str]:
    """Return the names in a module and the packages they come from."""
    return {
        (alias.asname or alias.name): node.module.partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }


def test_no_class_of_the_simulator_is_a_kind_of_a_deciding_one() -> None:
    kinds = [
        f"{name}: {node.name}"
        for name, tree in sources()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for base in node.bases
        if isinstance(base, ast.Name) and base.id != "MusterError" and imported_from(tree).get(base.id) in DECIDING
    ]

    assert kinds == []


def test_every_service_of_a_run_is_built_by_its_own_package() -> None:
    (tree,) = [tree for name, tree in sources() if name == "services.py"]
    functions = [ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)]
    builders = [
        name for name in functions if name.rpartition(".")[2].startswith(("build", "Estimator", "RequestService"))
    ]
    packages = {name.partition(".")[0] if "." in name else imported_from(tree).get(name) for name in builders}

    assert packages >= {"feeder", "scheduler", "jobs", "hoststats", "batch_estimator"}
    assert packages <= set(DECIDING)
