"""Computes the input of the slot plan: the instances, gate and shards of each ready batch. Pure."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from domain.apps import CPU, ProcessorType
from domain.batches import Batch, QoS, complete_at
from domain.catalogue import Catalogue
from domain.deadline_rules import traits_of
from domain.ranking import Gate
from domain.settings import DeadlineSettings, Settings
from domain.units import SHARDS, AppId, BatchId, Instant, Seconds
from feeder.partitions import Idle, Part, Supply, app_weights, capacities, partition_weights, plan, with_kept
from lifecycle.tail import in_tail
from priority.equal_access import EQUAL_ACCESS, Claim, owner_of, shuffled


@dataclass(frozen=True, slots=True)
class FeedMode:
    """How a batch's first instances are fed. With `gate` NONE, any host may get them."""

    gate: Gate
    tail: bool

    @property
    def everywhere(self) -> bool:
        """Return whether all workers hold the first instances, so that a fast host finds them at any worker."""
        return self.gate is not Gate.NONE or self.tail


def feed_mode(
    batch: Batch,
    *,
    now: Instant,
    median_r_q_s: Seconds | None,
    settings: Settings,
    is_accelerated: bool = False,
) -> FeedMode:
    """Return how a batch is fed now. `median_r_q_s` is the median R_q over its app's hosts, None if unknown.

    `is_accelerated`: batch acceleration reserves its jobs for low-turnaround hosts.
    """
    gate = gate_of(batch, now=now, median_r_q_s=median_r_q_s, settings=settings.deadline)
    return FeedMode(Gate.LOW_TURNAROUND if is_accelerated else gate, in_tail(batch, settings.feeder))


def gate_of(batch: Batch, *, now: Instant, median_r_q_s: Seconds | None, settings: DeadlineSettings) -> Gate:
    """Return the gate that applies to a batch's first instances.

    AFAP batches without an estimate are gated, and so are batches with C - now < median R_q, for which x > C on half of
    the hosts (docs/formulas.md#due-dates, rows 2, 4, 5). Without a median, no batch counts as late. Once C has passed,
    the default rule gates only AFAP batches (decision 0084).
    """
    completion_at = complete_at(batch, None)
    if completion_at is None:
        return Gate.AFAP if batch.qos is QoS.AFAP else Gate.NONE
    is_past = completion_at <= now and batch.qos is not QoS.AFAP
    if median_r_q_s is None or (is_past and traits_of(settings).afap_first):
        return Gate.NONE
    return Gate.LATE if completion_at - now < median_r_q_s else Gate.NONE


@dataclass(frozen=True, slots=True)
class BatchSupply:
    """A ready batch during a refill.

    `urgent_read` and `handed_back_read` count instances of the urgent range that are neither in the array nor in
    flight. `readable`: there may be more to read. `groups_out`: some of its groups are in back-off. `taken` slots left
    the array since the batch was read.
    """

    batch: Batch
    mode: FeedMode
    held_urgent: int
    held_other: int
    urgent_read: int
    handed_back_read: int
    readable: bool
    groups_out: bool
    taken: int = 0

    @property
    def unheld(self) -> int:
        """Return the estimated number of first instances, over all shards, that are not in the array."""
        known = self.held_urgent + self.urgent_read + self.held_other + self.taken
        return max(0, self.batch.counts.unsent - known)

    def supplies(self, owned: Collection[int]) -> tuple[Supply, Supply]:
        """Return two supplies: the batch's urgent instances and its other instances."""
        batch = self.batch
        gated = self.mode.gate is not Gate.NONE
        urgent, other = self._within_room(
            self.held_urgent + self.urgent_read, self.held_other + self.unread(len(owned))
        )
        return (
            Supply(batch.batch_id, batch.app_id, True, True, urgent, batch.submitter_id),
            Supply(batch.batch_id, batch.app_id, False, gated, other, batch.submitter_id),
        )

    def _within_room(self, urgent: int, other: int) -> tuple[int, int]:
        """Limit both counts to what usage limits allow until the next ordering pass, urgent instances first."""
        most = self.batch.sent_most
        if most is None:
            return urgent, other
        room = max(0, most - self.batch.counts.sent - self.taken)
        return min(urgent, room), min(other, max(0, room - urgent))

    def unread(self, owned: int) -> int:
        """Estimate the number of first instances this worker can still read. The database counts whole batches only.

        It is the number of unread instances or, for sharded work, the owned share of the batch minus its slots; at
        least one while there may be any.
        """
        if self.groups_out or not self.readable or not self.unheld:
            return self.handed_back_read
        share = 1.0 if self.mode.everywhere else owned / SHARDS
        ours = math.ceil((self.unheld + self.held_other) * share)
        return max(1, ours - self.held_other, self.handed_back_read)


def targets(
    batches: Sequence[BatchSupply],
    *,
    catalogue: Catalogue,
    requests: Mapping[ProcessorType, float],
    owned: Collection[int],
    slots: int,
    now: Instant,
) -> dict[Part, int]:
    """Return how many of the slots each part of each batch should have."""
    ordering = catalogue.settings.ordering
    supplies = [supply for batch in batches for supply in batch.supplies(owned)]
    instances: dict[AppId, int] = {}
    for supply in supplies:
        instances[supply.app_id] = instances.get(supply.app_id, 0) + supply.instances
    # Work without any app version is included: its refusals show the operator what is missing.
    types = {app_id: catalogue.processor_types(app_id) or {CPU} for app_id, count in instances.items() if count}
    capacity = capacities(slots, weights=app_weights(partition_weights(types, requests)), instances=instances)
    planned = plan(
        supplies,
        capacity,
        catalogue.settings.feeder,
        turns=_turns(batches, supplies, slots, ordering.equal_among) if ordering.policy == EQUAL_ACCESS else (),
        idle=Idle(ordering.idle_fraction, ordering.idle_jobs),
        first=going_first([one.batch for one in batches], catalogue, now),
    )
    kept = catalogue.reserved.kept
    return with_kept(planned, supplies, kept, slots=slots) if kept else planned


def going_first(batches: Iterable[Batch], catalogue: Catalogue, now: Instant) -> set[BatchId]:
    """Return the batches that requests prefer to deferrable work, on any processor type."""
    return {one.batch_id for one in batches if catalogue.first_from(one.app_id, one.qos, one.deadline_at) < now}


def _turns(
    batches: Sequence[BatchSupply], supplies: Sequence[Supply], slots: int, equal_among: str
) -> Sequence[BatchId]:
    """Return the batch of each slot, alternating between submitters (or accounts) with equal usage: a batch's key is
    its owner's usage. Each slot counts with the processor equivalents of its job.
    """

    instances: dict[BatchId, int] = {}
    for supply in supplies:
        instances[supply.batch_id] = instances.get(supply.batch_id, 0) + supply.instances
    held: dict[int, float] = {}
    for one in batches:
        owner = owner_of(one.batch, equal_among)
        held[owner] = min(held.get(owner, math.inf), one.batch.order_key)
    claims = (
        Claim(
            batch.batch_id,
            owner_of(batch, equal_among),
            batch.order_tier,
            batch.job_pe,
            instances[batch.batch_id],
            batch.created_at,
        )
        for batch in (one.batch for one in batches)
    )
    return shuffled(claims, held_pe=held, slots=slots)
