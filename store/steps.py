"""How are guarded steps of instances written, and what do they add to counters and statistics?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import asyncpg

from domain.settlement import InstanceStep
from domain.units import InstanceId
from store.counters import CountChanges
from store.counting import Counted, change_counts
from store.statistics import StatisticsChanges


def distinct_steps(steps: Sequence[InstanceStep]) -> dict[InstanceId, InstanceStep]:
    """The first step of each instance."""
    first: dict[InstanceId, InstanceStep] = {}
    for step in steps:
        first.setdefault(step.instance_id, step)
    return first


def step_columns(steps: Mapping[InstanceId, InstanceStep]) -> tuple[list[object], ...]:
    """The array arguments of sql/settling.sql (step_instances) and sql/sweeping.sql (time_out_instances)."""
    return (
        list(steps),
        [step.from_state for step in steps.values()],
        [step.to_state for step in steps.values()],
        [step.turnaround_sample for step in steps.values()],
    )


def count_steps(
    made: Sequence[asyncpg.Record],
    steps: Mapping[InstanceId, InstanceStep],
    counts: CountChanges,
    statistics: StatisticsChanges,
) -> None:
    """Count the steps that were really made, and enter their events."""
    rows = {row["instance_id"]: row for row in made}
    for instance_id, step in steps.items():  # events count in the order of the steps
        row = rows.get(instance_id)
        if row is None:
            continue
        instants = row["sent_at"], row["due_at"], row["reported_at"]
        change = change_counts(Counted(step.from_state, *instants), Counted(step.to_state, *instants))
        counts.add(row["batch_id"], change)
        statistics.add(step.hav_event)
