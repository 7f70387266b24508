"""Which slots do ordinary jobs leave to big ones? Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from domain.units import BatchId
from feeder.partitions import Part, Supply


def with_kept(
    target: Mapping[Part, int], supplies: Sequence[Supply], kept: Collection[BatchId], *, slots: int
) -> dict[Part, int]:
    """The plan with at least one slot for each of the `kept` batches that has instances, its urgent ones first.

    While there are no slots left it is taken from the part with the most, the last in order among equals.

    >>> small = Supply(BatchId(1), 1, urgent=False, gated=False, instances=900)
    >>> big = Supply(BatchId(2), 2, urgent=False, gated=False, instances=3)
    >>> with_kept({(1, False): 10, (2, False): 0}, [small, big], [BatchId(2)], slots=10)
    {(1, False): 9, (2, False): 1}
    """
    planned = dict(target)
    has = {batch_id for (batch_id, _), count in planned.items() if count > 0}
    parts: dict[BatchId, Part] = {}
    for one in supplies:  # a batch's urgent instances come before the others
        if one.batch_id in kept and one.batch_id not in has and one.instances > 0:
            parts.setdefault(one.batch_id, one.part)
    used = sum(planned.values())
    for part in parts.values():
        if used >= slots:
            donors = [one for one, count in planned.items() if count > 0 and one[0] not in kept]
            if not donors:
                break
            planned[max(reversed(donors), key=planned.__getitem__)] -= 1
            used -= 1
        planned[part] = 1
        used += 1
    return planned
