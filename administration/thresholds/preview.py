"""What would a change of thresholds do? Rows that pass, calls from them, and how long gated jobs would wait. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from administration.thresholds.waiting import BehindGate, TypeOf, gates_of
from domain.apps import ProcessorType
from domain.deadline_rules import traits_of
from domain.insight import Newcomers
from domain.ranking import BOOTSTRAP_P, CutPoints, Gate
from domain.settings import DeadlineSettings, Settings
from domain.units import AppId, HostId, Instant, Seconds
from hoststats.ports import Table
from hoststats.ranking import Floats
from hoststats.standing import Passing, opens, passing, percentiles, time_to_send_s
from scheduler.gates import reachable


@dataclass(frozen=True, slots=True, eq=False)
class Standing:
    """The hosts of one (app, processor type): rows (STANDING_FIELDS) of those that called lately, and newcomers."""

    table: Table
    cuts: CutPoints | None
    newcomers: Newcomers


@dataclass(frozen=True, slots=True)
class Side:
    """One gate as it is or would be. `asked` is the setting, `threshold` what holds: lower while too few can reach it.

    `newcomers` hosts without a row pass, too; they are not among `passing.rows`, but among its calls.
    """

    asked: float
    threshold: float
    passing: Passing
    newcomers: int = 0


@dataclass(frozen=True, slots=True)
class GateOfType:
    """One gate of one (app, processor type)."""

    gate: Gate
    old: Side
    new: Side


@dataclass(frozen=True, slots=True)
class TypePreview:
    """One (app, processor type). `small_population`: the bootstrap rule gives percentiles, as things are."""

    app_id: AppId
    processor_type: ProcessorType
    rows: int
    newcomers: int
    small_population: bool
    gates: tuple[GateOfType, ...]


@dataclass(frozen=True, slots=True)
class Wait:
    """How long the jobs behind a gate wait, at one job per call. `send_s` None: no host behind the gate calls."""

    threshold: float
    calls_per_hour: float
    send_s: Seconds | None


@dataclass(frozen=True, slots=True)
class WaitPreview:
    """Unsent instances of an app behind one gate."""

    app_id: AppId
    gate: Gate
    jobs: int
    old: Wait
    new: Wait


class Population:
    """The hosts as one setting of the thresholds sees them."""

    def __init__(
        self,
        standings: Mapping[TypeOf, Standing],
        settings: Settings,
        *,
        now: Instant,
        low_turnaround: frozenset[HostId] = frozenset(),
        ranked: Mapping[TypeOf, Floats] | None = None,
    ) -> None:
        """`ranked` are the percentiles, where they are known."""
        self._standings = standings
        self._now = now
        self._low_turnaround = low_turnaround
        self._low = np.fromiter(low_turnaround, np.int64, len(low_turnaround))
        self.settings = settings
        self._strict = traits_of(settings.deadline).strict_gates
        self._p: Mapping[TypeOf, Floats] = ranked or {
            of_type: percentiles(one.table, one.cuts, now=now, settings=settings.ranking)
            for of_type, one in standings.items()
        }

    def under(self, settings: Settings) -> Population:
        """The same hosts as other settings see them; they are ranked anew where those rank otherwise."""
        ranked = self._p if settings.ranking == self.settings.ranking else None
        return Population(self._standings, settings, now=self._now, low_turnaround=self._low_turnaround, ranked=ranked)

    def is_small(self, of_type: TypeOf) -> bool:
        """Whether the bootstrap rule holds."""
        cuts = self._standings[of_type].cuts
        return cuts is None or cuts.n < self.settings.ranking.min_rows

    def side(self, of_type: TypeOf, gate: Gate) -> Side:
        """One gate on one processor type."""
        settings = self.settings.deadline
        threshold = gates_of(reachable(settings, self._standings[of_type].cuts))[gate]
        passed = self.passing({of_type: threshold})
        newcomers = self._newcomers(of_type, threshold)
        return Side(gates_of(settings)[gate], threshold, passed, newcomers.hosts)

    def passing(self, thresholds: Mapping[TypeOf, float]) -> Passing:
        """Rows that reach their threshold, and the calls from their hosts and from newcomers who do.

        A newcomer to several processor types of an app calls but once: of those only the most numerous are counted.
        """
        found = passing(
            (self._standings[of_type].table, opens(self._p[of_type], threshold, strict=self._strict))
            for of_type, threshold in thresholds.items()
        )
        newcomers = [self._newcomers(of_type, threshold).calls_per_hour for of_type, threshold in thresholds.items()]
        return replace(found, calls_per_hour=found.calls_per_hour + max(newcomers, default=0.0))

    def low_turnaround(self, types: Iterable[TypeOf]) -> Passing:
        """Rows of the hosts that the jobs of accelerated batches are for, and the calls from them."""
        tables = [self._standings[of_type].table for of_type in types]
        return passing((table, np.isin(table["host_id"], self._low)) for table in tables)

    def _newcomers(self, of_type: TypeOf, threshold: float) -> Newcomers:
        """Hosts without a row pass where the bootstrap rule gives them 0.5 and that is enough."""
        enough = threshold < BOOTSTRAP_P if self._strict else threshold <= BOOTSTRAP_P
        return self._standings[of_type].newcomers if self.is_small(of_type) and enough else Newcomers()


def types_previewed(standings: Mapping[TypeOf, Standing], old: Population, new: Population) -> tuple[TypePreview, ...]:
    """Every gate of every (app, processor type), as it is and as it would be."""
    return tuple(
        TypePreview(
            *of_type,
            rows=int(standing.table.size),
            newcomers=standing.newcomers.hosts,
            small_population=old.is_small(of_type),
            gates=tuple(
                GateOfType(gate, old.side(of_type, gate), new.side(of_type, gate))
                for gate in gates_asked(old.settings.deadline)
            ),
        )
        for of_type, standing in standings.items()
    )


def waits_previewed(behind: Mapping[BehindGate, int], old: Population, new: Population) -> tuple[WaitPreview, ...]:
    """How long what waits behind each gate would take to be sent."""
    return tuple(
        WaitPreview(
            place.app_id,
            place.gate,
            jobs,
            _wait(old, place.gate, jobs, {(place.app_id, kind): before for kind, before, _ in place.thresholds}),
            _wait(new, place.gate, jobs, {(place.app_id, kind): after for kind, _, after in place.thresholds}),
        )
        for place, jobs in sorted(behind.items(), key=lambda one: (one[0].app_id, one[0].gate, one[0].thresholds))
    )


def _wait(population: Population, gate: Gate, jobs: int, thresholds: Mapping[TypeOf, float]) -> Wait:
    passed = population.low_turnaround(thresholds) if gate is Gate.LOW_TURNAROUND else population.passing(thresholds)
    rate = passed.calls_per_hour
    return Wait(min(thresholds.values()), rate, time_to_send_s(jobs, rate))


def gates_asked(settings: DeadlineSettings) -> Iterable[Gate]:
    """The gates a deadline rule has.

    >>> [gate.value for gate in gates_asked(DeadlineSettings())]
    ['p_afap', 'p_late', 'p_retry', 'p_tight']
    """
    return tuple(gate for gate in traits_of(settings).gates if gate in gates_of(settings))
