"""Defines the stages in which a request searches the ready jobs. Pure. Decisions 33 and 36."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import dropwhile, takewhile
from typing import assert_never

from domain.apps import ProcessorType
from domain.batches import AFAP, THROUGHPUT, goes_first, is_late
from domain.deadline_rules import traits_of
from domain.jobs import draw
from domain.refusals import Refusal
from domain.units import AppId, InstanceId
from scheduler.context import SchedulingContext
from scheduler.deadline import retry_turnaround_s
from scheduler.evaluation import ClassEvaluator
from scheduler.gates import lowest_gate
from scheduler.ports import SlotGroup

RankedGroup = tuple[int, SlotGroup]  # a group and its place in the order


class Stage(StrEnum):
    """The stages in order. Each stage searches the groups from the start."""

    LEASED = "leased"  # a job of the batch that leases the host, or a job for processors idle until then
    GATED = "gated"  # jobs that require a percentile, as long as the host reaches one, up to their share
    PROMPT = "prompt"  # other jobs of AFAP batches and batches due soon, before deferrable jobs, in a share of requests
    LOCALITY = "locality"  # jobs whose sticky files are on the host
    BETA = "beta"  # apps being tested, for volunteers who opted in
    ALL = "all"  # all jobs in order
    LEFT_OVER = "left_over"  # gated jobs beyond their share, if there is nothing else
    UNPAID = "unpaid"  # work that is not charged, if there is nothing else at all


GATED_ALONE = frozenset({Stage.GATED, Stage.LEFT_OVER})  # these stages send only gated jobs
WITHOUT_SHARE = frozenset({Stage.LEFT_OVER, Stage.LEASED, Stage.UNPAID})  # not limited by the share of gated jobs


def stages_of(context: SchedulingContext, groups: Sequence[SlotGroup]) -> tuple[Stage, ...]:
    """Return, in order, the stages in which the request can find something in these groups.

    LEASED is not included: for a leased host, it runs before them.
    """
    if not groups:
        return ()
    settings = context.catalogue.settings
    traits = traits_of(settings.deadline)
    has_gates = bool(traits.gates)
    share = settings.scheduler.afap_first_fraction  # of requests, so that AFAP batches do not starve deferrable work
    has = (
        (Stage.GATED, has_gates),
        (Stage.PROMPT, traits.afap_first and draw(InstanceId(context.seed)) < share),
        (Stage.LOCALITY, bool(context.sticky_files)),
        (Stage.BETA, context.volunteer.beta and bool(_tested(context))),
        (Stage.ALL, True),
        (Stage.LEFT_OVER, has_gates),
        (Stage.UNPAID, _some_unpaid(groups)),
    )
    return tuple([stage for stage, is_one in has if is_one])


def groups_of(
    stage: Stage,
    groups: Sequence[SlotGroup],
    context: SchedulingContext,
    evaluator: ClassEvaluator,
    kind: ProcessorType,
) -> Iterator[RankedGroup]:
    """Return the groups that a stage searches, in order. A group is omitted only if the stage cannot send its jobs."""
    ranked = _paid_for(groups)
    match stage:
        case Stage.ALL:
            return ranked
        case Stage.GATED | Stage.LEFT_OVER:
            return _behind_open_gates(ranked, context, evaluator, kind)
        case Stage.PROMPT:
            return _in_a_hurry(ranked, context, kind)
        case Stage.LEASED:
            lease = evaluator.guard.lease
            return (one for one in ranked if lease is not None and one[1].batch.batch_id == lease.batch_id)
        case Stage.LOCALITY:
            files = context.sticky_files
            return (one for one in ranked if one[1].sticky_files and one[1].sticky_files <= files)
        case Stage.BETA:
            tested = _tested(context)
            return (one for one in ranked if one[1].batch.app_id in tested)
        case Stage.UNPAID:
            return dropwhile(_is_paid, enumerate(groups))
        case _:
            assert_never(stage)


def is_afap_of(apps: Container[AppId], group: SlotGroup) -> bool:
    """Return whether the group belongs to an AFAP batch of one of the apps."""
    return group.batch.qos is AFAP and group.batch.app_id in apps


def _tested(context: SchedulingContext) -> set[AppId]:
    return {app_id for app_id, app in context.catalogue.apps.items() if app.beta}


def _in_a_hurry(
    ranked: Iterable[RankedGroup], context: SchedulingContext, kind: ProcessorType
) -> Iterator[RankedGroup]:
    """Yield groups of AFAP batches, and of batches whose deadline leaves time for only a few retries (decision 0049),
    at last those whose deadline has passed (decision 0084).

    A retry takes T_retry on these processors. A deadline beyond the job's delay bound is never near.
    """
    catalogue, now, late = context.catalogue, context.now, list[RankedGroup]()
    factor = catalogue.settings.deadline.first_factor
    for one in ranked:
        batch = one[1].batch
        within_s = 0.0
        if batch.deadline_at is not None:
            bound_s = one[1].job_class.delay_bound_s
            retry_s = retry_turnaround_s(catalogue.cut_points.get((batch.app_id, kind)), bound_s)
            within_s = min(factor * retry_s, bound_s)
        if goes_first(batch, within_s=within_s, now=now):
            if is_late(batch.deadline_at, now):
                late.append(one)
            else:
                yield one
    yield from late


def _paid_for(groups: Sequence[SlotGroup]) -> Iterator[RankedGroup]:
    """Yield the groups that are charged to an account."""
    return takewhile(_is_paid, enumerate(groups)) if _some_unpaid(groups) else enumerate(groups)


def _some_unpaid(groups: Sequence[SlotGroup]) -> bool:
    """Return whether there are unpaid groups, which are always last in the order."""
    return bool(groups) and groups[-1].batch.unpaid


def _is_paid(one: RankedGroup) -> bool:
    return not one[1].batch.unpaid


def _behind_open_gates(
    ranked: Iterable[RankedGroup], context: SchedulingContext, evaluator: ClassEvaluator, kind: ProcessorType
) -> Iterator[RankedGroup]:
    """Yield groups that may require a percentile, if the host reaches the lowest gate in the group's app."""
    if evaluator.traits.accelerates:
        yield from _accelerated(ranked, context)
        return
    reached: dict[AppId, bool] = {}
    for place, group in ranked:
        batch = group.batch
        if batch.qos is THROUGHPUT and not group.urgent:
            continue
        is_open = reached.get(batch.app_id)
        if is_open is None:
            best = evaluator.best(batch.app_id, kind)
            is_open = not isinstance(best, Refusal) and best.for_gated.percentile.passes(
                lowest_gate(evaluator.gates(best.for_gated))
            )
            reached[batch.app_id] = is_open
        if is_open:
            yield place, group


def _accelerated(ranked: Iterable[RankedGroup], context: SchedulingContext) -> Iterator[RankedGroup]:
    """Yield groups of accelerated batches, for a low-turnaround host."""
    acceleration = context.catalogue.acceleration
    if acceleration is not None and context.host.host_id in acceleration.hosts:
        yield from (one for one in ranked if acceleration.covers(one[1].batch.batch_id, one[1].batch.app_id))
