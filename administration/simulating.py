"""What the simulator needs from above it: duties that stand on several services at once."""

from __future__ import annotations

from collections.abc import Sequence

from administration.relaxing import GateRelaxer
from domain.clock import Clock
from domain.units import Seconds
from simulator.services import AnyStore, CatalogueOfTheMoment, Duty

RELAX_EVERY_S = Seconds(600.0)  # clients call every few hours: ten times less often than in production is enough


def duties(store: AnyStore, catalogue: CatalogueOfTheMoment, clock: Clock) -> Sequence[Duty]:
    """Satisfies simulator.services.MoreDuties."""
    relaxer = GateRelaxer(store.insight, store.notes, catalogue.catalogue, clock)
    return [Duty("gates", relaxer.run_once, lambda: RELAX_EVERY_S, tells=bool)]
