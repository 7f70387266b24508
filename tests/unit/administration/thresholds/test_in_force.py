"""Gates as set and as in force."""

from __future__ import annotations

import pytest

from administration.thresholds.in_force import concerning, gate_values, gates_in_words, lowered_gates, lowered_in_words
from domain.apps import CPU, VersionState
from domain.ranking import Gate, RelaxedGate
from domain.units import AppId
from tests.builders import an_app_version
from tests.unit.scheduler.arrays import a_catalogue, some_cuts

LOWERED = (RelaxedGate(AppId(1), CPU, Gate.TIGHT, 0.6, 24, 3.5), RelaxedGate(AppId(1), CPU, Gate.LATE, 0.8))


def test_lowered_gate_has_both_values_and_its_cause() -> None:
    catalogue = a_catalogue(cuts=[some_cuts(relaxed=LOWERED)])

    [found] = lowered_gates(catalogue, catalogue.current)  # p_late is set below its relaxed value

    assert (found.gate, found.set_to, found.in_force) == (Gate.TIGHT, 0.9, 0.6)
    assert found.relaxed is not None and (found.relaxed.jobs, found.relaxed.calls_per_hour) == (24, 3.5)
    assert list(lowered_in_words([found])) == ["deadline.p_tight"]


def test_gates_as_set_are_not_lowered() -> None:
    catalogue = a_catalogue(cuts=[some_cuts()])

    assert not lowered_gates(catalogue, catalogue.current)
    assert gates_in_words(gate_values(catalogue, AppId(1)))["p_tight"] == "0.9"


def test_app_without_a_version_has_all_gates() -> None:
    catalogue = a_catalogue(an_app_version(state=VersionState.WITHDRAWN))

    assert {"p_late", "p_tight"} <= set(gates_in_words(gate_values(catalogue, AppId(1))))


def test_bootstrap_caps_gates_without_a_note() -> None:
    catalogue = a_catalogue()

    assert not lowered_gates(catalogue, catalogue.current)
    assert {one.in_force for one in gate_values(catalogue, AppId(1)) if one.gate is Gate.TIGHT} == {0.5}


def test_lowered_gate_concerns_batches_behind_it() -> None:
    catalogue = a_catalogue(cuts=[some_cuts(relaxed=LOWERED)])
    lowered = lowered_gates(catalogue, catalogue.current)
    refused = {"held_back": [{"code": "below_gate"}]}

    def concerned(gate: str, sample: object = refused, copies: int = 0) -> bool:
        batch = {"gate": gate, "sample": sample, "copies_unsent": copies, "retries_unsent": 0}
        return bool(concerning(lowered, batch))

    assert concerned("p_tight") and concerned("p_late") and concerned("none")
    assert not concerned("none", {"held_back": []})
    assert not concerned("p_afap") and not concerned("p_afap", copies=1)
    assert not concerned("p_tight", None)  # nothing waits


@pytest.mark.parametrize(("copies", "retries"), [(0, 0), (1, 0), (0, 1)])
def test_lowered_p_retry_concerns_retries_and_copies(copies: int, retries: int) -> None:
    catalogue = a_catalogue(cuts=[some_cuts(relaxed=(RelaxedGate(AppId(1), CPU, Gate.RETRY, 0.0),))])
    batch = {"gate": "p_afap", "sample": {"held_back": []}, "copies_unsent": copies, "retries_unsent": retries}

    found = concerning(lowered_gates(catalogue, catalogue.current), batch)

    assert [one.gate for one in found] == [Gate.RETRY] * (copies + retries)
