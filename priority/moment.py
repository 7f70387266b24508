"""What does a policy know besides the batch: the project, the submitters' standing, and the time? Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from domain.ordered_work import LeafStanding
from domain.ordering import BatchFacts, Request, ServiceLevel
from domain.units import Instant
from priority.fair_share import LeafId
from priority.measures import processor_equivalents

UNKNOWN = LeafStanding()
ONE_CORE = Request()


@dataclass(frozen=True, slots=True)
class Moment:
    """One instant of the project: the same for every batch that is ordered.

    `reference` is the component-wise median of hosts seen in 7 days; `largest_pe` the processor equivalents of the
    largest feasible host. `queue_tiers`, `queue_numbers` and `level_deltas` are by name and service level.
    """

    now: Instant
    standings: Mapping[LeafId, LeafStanding] = field(default_factory=dict)
    reference: Request = ONE_CORE
    largest_pe: float = 1.0
    pool_flop_per_s: float = 0.0
    queue_tiers: Mapping[str, int] = field(default_factory=dict)
    queue_numbers: Mapping[str, float] = field(default_factory=dict)
    level_deltas: Mapping[ServiceLevel, float] = field(default_factory=dict)
    held_by_account: Mapping[int, float] = field(default_factory=dict)
    usage_snapshot_id: int | None = None

    def standing_of(self, facts: BatchFacts) -> LeafStanding:
        return self.standings.get(facts.leaf, UNKNOWN)


@lru_cache(maxsize=4096)
def request_pe(request: Request, reference: Request) -> float:
    """Processor equivalents of one job on the reference host.

    >>> request_pe(Request(1.0, memory_bytes=4e9), Request(8.0, memory_bytes=16e9))
    2.0
    """
    return processor_equivalents(request.amounts(), reference.amounts())
