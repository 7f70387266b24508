"""What was chosen for a request, and why the rest was not. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from domain.apps import AppVersion, ProcessorType
from domain.batches import Batch
from domain.dispatch import Assignment
from domain.jobs import JobClass, Ready
from domain.refusals import Refusal, RefusalCode
from domain.units import AppId, BatchId, FlopPerSecond, JobClassId


@dataclass(frozen=True, slots=True)
class Chosen:
    """One job for the host: what to write, and what the reply needs to describe it.

    `slot` is to be given back to the array when the assignment is not committed.
    `flop_per_s` is the speed the client is told: its estimate is fpops_est over it.
    """

    assignment: Assignment
    slot: Ready
    batch: Batch
    job_class: JobClass
    version: AppVersion
    flop_per_s: FlopPerSecond


@dataclass(frozen=True, slots=True)
class Refused:
    """Why something was not given. Fields that do not apply are None.

    About the whole request, an app on a processor type, or a class of jobs of a batch.
    """

    refusal: Refusal
    processor_type: ProcessorType | None = None
    app_id: AppId | None = None
    batch_id: BatchId | None = None
    job_class_id: JobClassId | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """The decision about one request. `examined` counts the groups that were looked at."""

    chosen: tuple[Chosen, ...]
    refused: tuple[Refused, ...]
    examined: int

    def reasons(self) -> Mapping[RefusalCode, tuple[int, str]]:
        """Per code: how often it was met and its first sentence, for the message to the volunteer."""
        found: dict[RefusalCode, tuple[int, str]] = {}
        for refused in self.refused:
            count, sentence = found.get(refused.refusal.code, (0, refused.refusal.detail))
            found[refused.refusal.code] = (count + 1, sentence)
        return found
