"""What `muster restore` did. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NewIds:
    """Unsent instances that were given new ids, and id sequences that were moved forward."""

    instances: int
    sequences: int
