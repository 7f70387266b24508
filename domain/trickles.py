"""Messages that an app sends while its job runs (trickle-ups)."""

from __future__ import annotations

from enum import StrEnum

from domain.quick import quick_dataclass
from domain.units import InstanceId, Instant


@quick_dataclass(frozen=True, slots=True)
class Trickle:
    """One message of an instance. `sent_at` is by the client's clock; `trickle_id` is 0 until it is stored."""

    instance_id: InstanceId
    sent_at: Instant
    received_at: Instant
    variety: str  # the kind of message, as the app names it
    text: str
    trickle_id: int = 0


class TrickleFate(StrEnum):
    """What became of a message. Every one is acknowledged: clients repeat a message until it is."""

    KEPT = "kept"
    TOO_LARGE = "too_large"
    TOO_MANY = "too_many"  # of its instance, or of the request
    NOT_IN_PROGRESS = "not_in_progress"  # the client neither runs nor reports that instance
