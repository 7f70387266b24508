"""Plans the number of slots for each kind of work, from the request mix and the batch order, with two caps. Pure.

A partition is an (app, processor type). An instance can run on each processor type that its app has a version for, so
all partitions of an app contain the same instances: they are weighted separately and filled together. Then slots are
reserved for wide jobs. One refill makes only part of the planned change, so that no request waits long.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from domain.apps import ProcessorType
from domain.settings import FeederSettings
from domain.units import AppId, BatchId, SubmitterId

Partition = tuple[AppId, ProcessorType]
Part = tuple[BatchId, bool]  # a batch's urgent (True) or other (False) instances

NO_SUBMITTER = SubmitterId(0)
FIRST_FRACTION = 0.25  # of an app's slots are for the batches that go first (decision 49)


@dataclass(frozen=True, slots=True)
class Supply:
    """The demand of one part of a batch. `instances` is the number of its slots plus the instances that can be read."""

    batch_id: BatchId
    app_id: AppId
    urgent: bool
    gated: bool
    instances: int
    submitter_id: SubmitterId = NO_SUBMITTER

    @property
    def part(self) -> Part:
        return self.batch_id, self.urgent


@dataclass(frozen=True, slots=True)
class Idle:
    """The limit on one submitter's slots while other submitters could use them: a fraction, with a minimum."""

    fraction: float = 1.0
    least: int = 1

    def cap(self, slots: int) -> int:
        """Return the cap as a number of slots.

        >>> Idle(0.25, least=4).cap(100), Idle(0.25, least=4).cap(8)
        (25, 4)
        """
        return max(self.least, math.floor(slots * self.fraction))


NO_IDLE_LIMIT = Idle()


def partition_weights(
    types_of_app: Mapping[AppId, Collection[ProcessorType]], requests: Mapping[ProcessorType, float]
) -> dict[Partition, float]:
    """Return each partition's weight: requests for its processor type divided by the number of apps with that type.

    Before the first request, all types have the same weight.

    >>> weights = partition_weights({AppId(1): ["cpu"], AppId(2): ["cpu", "NVIDIA"]}, {"cpu": 6.0, "NVIDIA": 1.0})
    >>> weights[AppId(1), "cpu"], weights[AppId(2), "cpu"], weights[AppId(2), "NVIDIA"]
    (3.0, 3.0, 1.0)
    """
    sharing: dict[ProcessorType, int] = {}
    for types in types_of_app.values():
        for processor_type in types:
            sharing[processor_type] = sharing.get(processor_type, 0) + 1
    asked = {processor_type: requests.get(processor_type, 0.0) for processor_type in sharing}
    if not any(asked.values()):
        asked = dict.fromkeys(sharing, 1.0)
    return {
        (app_id, processor_type): asked[processor_type] / sharing[processor_type]
        for app_id in sorted(types_of_app)
        for processor_type in sorted(types_of_app[app_id])
    }


def app_weights(weights: Mapping[Partition, float]) -> dict[AppId, float]:
    """Return the sum of the weights of each app's partitions.

    >>> app_weights({(AppId(2), ProcessorType("cpu")): 3.0, (AppId(2), ProcessorType("NVIDIA")): 1.0})
    {2: 4.0}
    """
    totals: dict[AppId, float] = {}
    for (app_id, _), weight in weights.items():
        totals[app_id] = totals.get(app_id, 0.0) + weight
    return totals


def capacities(slots: int, *, weights: Mapping[AppId, float], instances: Mapping[AppId, int]) -> dict[AppId, int]:
    """Return the slots per app: in proportion to its weight, up to its instances; other apps get unused slots.

    As long as slots remain, each app with work first gets max(1, slots // (4 * apps)), regardless of its weight.

    >>> capacities(100, weights={AppId(1): 3.0, AppId(2): 1.0}, instances={AppId(1): 1000, AppId(2): 1000})
    {1: 69, 2: 31}
    >>> capacities(100, weights={AppId(1): 3.0, AppId(2): 1.0}, instances={AppId(1): 10, AppId(2): 1000})
    {1: 10, 2: 90}
    """
    hungry = [app_id for app_id in sorted(instances) if instances[app_id] > 0]
    given = dict.fromkeys(hungry, 0)
    left = slots
    floor = max(1, slots // (4 * len(hungry))) if hungry else 0
    for app_id in hungry:
        given[app_id] = min(floor, instances[app_id], left)
        left -= given[app_id]
    while left > 0:
        open_apps = [app_id for app_id in hungry if given[app_id] < instances[app_id]]
        if not open_apps:
            break
        for app_id, share in _divided(left, open_apps, weights).items():
            more = min(share, instances[app_id] - given[app_id])
            given[app_id] += more
            left -= more
    return given


def plan(
    supplies: Sequence[Supply],
    capacity: Mapping[AppId, int],
    settings: FeederSettings,
    *,
    turns: Sequence[BatchId] = (),
    idle: Idle = NO_IDLE_LIMIT,
    first: Collection[BatchId] = (),
) -> dict[Part, int]:
    """Return how many slots each part of each batch should have; `supplies` are in the batches' order.

    Within an app, slots are filled in order. Gated work gets at most `feeder.gated_share_fraction` of them, a batch at
    most `feeder.batch_share_fraction`, and a submitter at most what `idle` allows, while other work could use them.
    Slots that the caps leave free go to work limited by a single cap, ungated work first, and then to any work. With
    `turns`, which lists the batch of each slot, a batch first gets its number of turns. Batches in `first` share a
    quarter of the slots regardless of their position, so that requests that prefer them can find them.

    >>> first = Supply(BatchId(1), AppId(1), urgent=False, gated=True, instances=900)
    >>> second = Supply(BatchId(2), AppId(1), urgent=False, gated=False, instances=900)
    >>> half = FeederSettings(gated_share_fraction=0.5, batch_share_fraction=0.5)
    >>> plan([first, second], {AppId(1): 100}, half)
    {(1, False): 50, (2, False): 50}
    >>> plan([first], {AppId(1): 100}, half)
    {(1, False): 100}
    >>> third = Supply(BatchId(3), AppId(1), urgent=False, gated=False, instances=900)
    >>> plan([first, second, third], {AppId(1): 100}, half, first=[3])
    {(1, False): 50, (2, False): 25, (3, False): 25}
    """
    target = {supply.part: 0 for supply in supplies}
    shares = settings.gated_share_fraction, settings.batch_share_fraction
    for app_id, slots in capacity.items():
        of_app = [supply for supply in supplies if supply.app_id == app_id]
        filling = _Filling(slots, of_app, target)
        gated_cap, batch_cap = (_cap(slots, share) for share in shares)
        if leading := {supply.batch_id for supply in of_app if supply.batch_id in first and supply.instances}:
            each = max(1, math.floor(slots * FIRST_FRACTION) // len(leading))
            filling.fill(gated_cap=gated_cap, batch_cap=batch_cap, turns=dict.fromkeys(leading, each))
        if turns:
            filling.fill(gated_cap=gated_cap, batch_cap=batch_cap, turns=Counter(turns[:slots]))
        filling.fill(gated_cap=gated_cap, batch_cap=batch_cap, submitter_cap=idle.cap(slots))
        filling.fill(gated_cap=gated_cap, batch_cap=batch_cap)
        filling.fill(gated_cap=gated_cap, batch_cap=slots)
        filling.fill(gated_cap=slots, batch_cap=batch_cap)
        filling.fill(gated_cap=slots, batch_cap=slots)
    return target


class _Filling:
    """Distributes the slots of one app."""

    def __init__(self, slots: int, supplies: Sequence[Supply], target: dict[Part, int]) -> None:
        self._left = slots
        self._supplies = supplies
        self._target = target
        self._gated = 0
        self._of_batch: dict[BatchId, int] = {}
        self._of_submitter: dict[SubmitterId, int] = {}

    def fill(
        self,
        *,
        gated_cap: int,
        batch_cap: int,
        submitter_cap: int | None = None,
        turns: Mapping[BatchId, int] | None = None,
    ) -> None:
        """Give each supply, in order, as many slots as it can use and the caps allow."""
        for supply in self._supplies:
            if self._left == 0:
                return
            of_batch = self._of_batch.get(supply.batch_id, 0)
            more = min(supply.instances - self._target[supply.part], self._left, batch_cap - of_batch)
            of_submitter = self._of_submitter.get(supply.submitter_id, 0)
            if supply.gated:
                more = min(more, gated_cap - self._gated)
            if submitter_cap is not None:
                more = min(more, submitter_cap - of_submitter)
            if turns is not None:
                more = min(more, turns.get(supply.batch_id, 0) - of_batch)
            if more > 0:
                self._of_submitter[supply.submitter_id] = of_submitter + more
                self._target[supply.part] += more
                self._left -= more
                self._of_batch[supply.batch_id] = of_batch + more
                self._gated += more if supply.gated else 0


def _cap(slots: int, fraction: float) -> int:
    """Return a fraction as a number of slots: at least one, unless the fraction is 0."""
    return max(math.floor(slots * fraction), 1 if fraction > 0 else 0)


def _divided(slots: int, apps: Sequence[AppId], weights: Mapping[AppId, float]) -> dict[AppId, int]:
    """Return `slots` divided in proportion to the weights, as integers with that sum (largest remainders first)."""
    total = sum(weights.get(app_id, 0.0) for app_id in apps)
    exact = {app_id: slots * (weights.get(app_id, 0.0) / total if total > 0 else 1 / len(apps)) for app_id in apps}
    shares = {app_id: math.floor(exact[app_id]) for app_id in apps}
    by_remainder = sorted(apps, key=lambda app_id: (shares[app_id] - exact[app_id], app_id))
    for app_id in by_remainder[: slots - sum(shares.values())]:
        shares[app_id] += 1
    return shares


def with_kept(
    target: Mapping[Part, int], supplies: Sequence[Supply], kept: Collection[BatchId], *, slots: int
) -> dict[Part, int]:
    """Return the plan with at least one slot for each `kept` batch that has instances, preferably an urgent one.

    If no slot is free, one is taken from the part with the most slots (of equal parts, the last in order).

    >>> small = Supply(BatchId(1), 1, urgent=False, gated=False, instances=900)
    >>> big = Supply(BatchId(2), 2, urgent=False, gated=False, instances=3)
    >>> with_kept({(1, False): 10, (2, False): 0}, [small, big], [BatchId(2)], slots=10)
    {(1, False): 9, (2, False): 1}
    """
    planned = dict(target)
    has = {batch_id for (batch_id, _), count in planned.items() if count > 0}
    parts: dict[BatchId, Part] = {}
    for one in supplies:  # a batch's urgent instances come first
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


MOST_CHANGED = 1000  # maximum number of slots that one refill places or drops, because a refill blocks requests


def approached(planned: Mapping[Part, int], held: Mapping[Part, int], *, free: int) -> dict[Part, int]:
    """Return how many slots each part should have after this refill, with `free` slots free.

    Each part gets its share, rounded up, of the slots that may be added, while any are left. Parts over the plan shrink
    to it.

    >>> approached({(1, True): 30, (1, False): 4000, (2, False): 970}, {(2, False): 3000}, free=2000)
    {(1, True): 8, (1, False): 992, (2, False): 970}
    """
    lacks = {part: max(0, count - held.get(part, 0)) for part, count in planned.items()}
    total, left = sum(lacks.values()), most_added(free)
    if total <= left:
        return dict(planned)
    share = left / total
    target = {}
    for part, lack in lacks.items():
        added = min(math.ceil(lack * share), left)
        left -= added
        target[part] = held.get(part, 0) + added if lack else planned[part]
    return target


def most_added(free: int) -> int:
    """Return how many slots may be added if `free` are free. Further slots only replace old ones.

    >>> [most_added(free) for free in (5000, 400, 0)]
    [1000, 700, 500]
    """
    return (MOST_CHANGED + min(max(0, free), MOST_CHANGED)) // 2
