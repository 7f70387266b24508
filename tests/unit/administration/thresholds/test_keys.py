"""Every scheduling setting is a threshold with effects, here and in the operator manual."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from administration.thresholds.keys import FORESEEN, THRESHOLDS, changes_of, thresholds_as_json
from domain.errors import InvalidInputError
from domain.ranking import Gate
from domain.settings import Settings
from domain.views import SettingChange
from tests.builders import NOW
from tests.facts import states

HANDBOOK = Path(__file__).parents[4] / "docs" / "operating.md"


def test_all_deadline_settings_and_gates_are_thresholds() -> None:
    keys = Settings().as_mapping()

    assert set(THRESHOLDS) <= set(keys)
    assert {key for key in keys if key.startswith("deadline.")} <= set(THRESHOLDS)
    assert {key for key in keys if re.match(r"lifecycle\.tail_|lifecycle\..*grace|feeder\.tail_", key)} <= set(
        THRESHOLDS
    )
    percentiles = {gate for gate in Gate if gate.value.startswith("p_")}
    assert {f"deadline.{gate.value}" for gate in percentiles} <= set(FORESEEN)


@pytest.mark.parametrize("key", THRESHOLDS)
def test_manual_lists_each_threshold_with_its_default(key: str) -> None:
    default = Settings().as_mapping()[key]
    text = str(int(default)) if isinstance(default, float) and default.is_integer() else str(default)
    rows = [line for line in HANDBOOK.read_text().splitlines() if line.startswith("|") and f"`{key}`" in line]

    assert any(text in re.sub("[`)]", " ", row).split() for row in rows), (key, text)


def test_thresholds_show_the_source_of_their_value() -> None:
    changes = [
        SettingChange("deadline.p_tight", 0.85, 0.8, NOW, "ada", "jobs waited"),
        SettingChange("deadline.p_tight", 0.9, 0.85, NOW, "bob", "older"),
    ]
    rows = {row["key"]: row for row in thresholds_as_json(Settings().changed("deadline.p_tight", 0.8), changes)}

    assert tuple(rows) == THRESHOLDS
    assert (rows["deadline.p_tight"]["source"], rows["deadline.p_tight"]["changed_by"]) == ("set", "ada")
    assert (rows["deadline.p_late"]["source"], rows["deadline.p_late"]["changed_by"]) == ("default", None)
    assert all(row["unit"] and row["meaning"] and row["higher"] and row["lower"] for row in rows.values())


def test_some_thresholds_can_be_set_but_not_previewed() -> None:
    assert changes_of([("gate_wait_fraction", 0.5)]) == {"deadline.gate_wait_fraction": 0.5}
    with states(InvalidInputError, "threshold:", "one of deadline.p_afap", "ranking.min_samples", "'rule'") as caught:
        changes_of([("rule", "fixed")], FORESEEN)
    assert "gate_wait_fraction" not in str(caught.value)
