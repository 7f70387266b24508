"""Which trickle messages of a request are kept. Pure.

All of them are acknowledged: clients repeat a message in every request until it is. Only messages of instances that
the client runs or reports are kept, also of those that move from another record of its computer and of those that
timed out here. A message can so change nothing of another computer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from domain.dispatch import Trickle, TrickleFate
from domain.jobs import InstanceInProgress
from domain.quick import quick_dataclass
from domain.settings import FileSettings
from domain.units import Instant
from scheduler import sanity
from wire.messages import SchedulerRequest

MOST_SENT_AT = Instant(1e12)


@quick_dataclass(frozen=True, slots=True)
class TricklesTaken:
    """`keep` are the messages to store; `dropped` counts the others."""

    keep: tuple[Trickle, ...]
    dropped: Counter[TrickleFate]


def take_trickles(
    request: SchedulerRequest, running: Iterable[InstanceInProgress], *, settings: FileSettings, now: Instant
) -> TricklesTaken:
    """Choose the messages to keep of a request that came at `now` from a host with `running` instances."""
    ids = {one.name: one.instance_id for one in running}
    keep = []
    dropped = Counter[TrickleFate]()
    if request.more_trickles:
        dropped[TrickleFate.TOO_MANY] = request.more_trickles
    for said in request.trickles:
        instance_id = ids.get(said.result_name)
        if instance_id is None:
            dropped[TrickleFate.NOT_IN_PROGRESS] += 1
        elif len(said.text.encode("utf-8", "replace")) > settings.max_trickle_bytes:
            dropped[TrickleFate.TOO_LARGE] += 1
        else:
            sent_at = Instant(sanity.clamped(said.sent_at, 0.0, MOST_SENT_AT))
            text = sanity.text(said.text, settings.max_trickle_bytes)
            keep.append(Trickle(instance_id, sent_at, now, sanity.text(said.variety), text))
    return TricklesTaken(tuple(keep), dropped)
