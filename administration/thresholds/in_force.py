"""States each gate's value: as set, as in force, and why it is temporarily lowered. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from administration.thresholds.keys import gate_meanings
from administration.thresholds.preview import gates_in_use, gates_of
from domain.apps import CPU, ProcessorType
from domain.catalogue import Catalogue
from domain.ranking import Gate, RelaxedGate, gate_in_words
from domain.refusals import BEHIND_GATE
from domain.units import AppId
from scheduler.gates import reachable

Document = Mapping[str, Any]  # Any: a JSON document


@dataclass(frozen=True, slots=True)
class GateValue:
    """A gate on one processor type of an app. `relaxed` says for which jobs it was lowered, None before a ranking."""

    app: str
    processor_type: ProcessorType
    gate: Gate
    set_to: float
    in_force: float
    relaxed: RelaxedGate | None = None

    @property
    def meaning(self) -> str:
        return gate_meanings()[self.gate.value]


def gate_values(catalogue: Catalogue, app_id: AppId) -> Sequence[GateValue]:
    """Return the gates of an app in use, by processor type."""
    settings = catalogue.settings.deadline
    set_to, found = gates_of(settings), []
    for kind in sorted(catalogue.processor_types(app_id)) or [CPU]:  # an app without a version has none
        cuts = catalogue.cut_points.get((app_id, kind))
        in_force = gates_of(reachable(settings, cuts))
        relaxed = {} if cuts is None else {one.gate: one for one in cuts.relaxed}
        found += [
            GateValue(catalogue.apps[app_id].name, kind, gate, set_to[gate], in_force[gate], relaxed.get(gate))
            for gate in gates_in_use(settings)
        ]
    return found


def lowered_gates(catalogue: Catalogue, app_ids: Iterable[AppId]) -> Sequence[GateValue]:
    """Return the gates of these apps that are temporarily lowered, because hosts that pass request too rarely."""
    found = (one for app_id in sorted(app_ids) for one in gate_values(catalogue, app_id))
    return [one for one in found if one.relaxed is not None and one.in_force < one.set_to]


def concerning(lowered: Iterable[GateValue], batch: Document) -> Sequence[GateValue]:
    """Return the lowered gates behind which unsent instances of a batch (a BatchExplained) may wait."""
    if batch["sample"] is None:
        return []
    behind = {batch["gate"]}
    refused = any(one["code"] in BEHIND_GATE for one in batch["sample"]["held_back"])
    if (batch["gate"] == Gate.NONE and refused) or batch["gate"] == Gate.LATE:
        behind |= {Gate.LATE, Gate.TIGHT}  # hosts that finish after C need the higher one
    if batch["copies_unsent"] or batch["retries_unsent"]:
        behind.add(Gate.RETRY)
    return [one for one in lowered if one.gate in behind]


def lowered_in_words(lowered: Iterable[GateValue]) -> dict[str, str]:
    """Return, by key of the setting, the values in force of lowered gates.

    >>> lowered_in_words(GateValue(app, "cpu", Gate.TIGHT, 0.9, at) for app, at in (("fold", 0.5), ("dock", 0.6)))
    {'deadline.p_tight': '0.5 in force for fold cpu, 0.6 in force for dock cpu'}
    """
    found: dict[str, list[str]] = {}
    for one in lowered:
        words = f"{one.in_force:g} in force for {one.app} {one.processor_type}"
        found.setdefault(f"deadline.{one.gate.value}", []).append(words)
    return {key: ", ".join(words) for key, words in found.items()}


def gates_in_words(values: Iterable[GateValue]) -> dict[str, str]:
    """Return the value of each gate of one app; if its processor types differ, for each.

    >>> cpu, gpu = (GateValue("fold", kind, Gate.TIGHT, 0.9, at) for kind, at in (("cpu", 0.5), ("nvidia", 0.9)))
    >>> gates_in_words([cpu]), gates_in_words([cpu, gpu])
    ({'p_tight': '0.5 (lowered from 0.9)'}, {'p_tight': 'cpu 0.5 (lowered from 0.9); nvidia 0.9'})
    """
    of_gates: dict[str, dict[str, str]] = {}
    for one in values:
        of_gates.setdefault(one.gate.value, {})[one.processor_type] = gate_in_words(one.in_force, one.set_to)
    return {
        gate: "; ".join(f"{kind} {words}" for kind, words in of_types.items())
        if len(set(of_types.values())) > 1
        else next(iter(of_types.values()))
        for gate, of_types in of_gates.items()
    }
