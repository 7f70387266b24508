"""In which order are the ready jobs looked at? Pure. DESIGN section 5: gated, locality, beta, everything."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import dropwhile, takewhile
from typing import assert_never

from domain.apps import ProcessorType
from domain.batches import QoS, goes_first
from domain.jobs import draw
from domain.refusals import Refusal
from domain.settings import AfapPolicy, DeadlineRule
from domain.units import AppId, InstanceId
from scheduler.asking import Asking
from scheduler.deadline import retry_turnaround_s
from scheduler.gates import lowest_gate
from scheduler.ports import SlotGroup
from scheduler.verdict import Judge, has_low_turnaround, is_accelerated

Placed = tuple[int, SlotGroup]  # a group and its place in the order


class Pass(StrEnum):
    """Passes in their order; each walks the groups from the start."""

    LEASED = "leased"  # a job of the batch that the host is held for, or for processors that are idle until then
    GATED = "gated"  # jobs that ask for a percentile, while the host has one, up to the urgent share
    PROMPT = "prompt"  # other jobs of AFAP batches, and of those due soon, before what can wait, in a share of requests
    LOCALITY = "locality"  # jobs whose sticky files the host holds
    BETA = "beta"  # apps being tested, for volunteers who opted in
    ALL = "all"  # everything in order
    LEFT_OVER = "left_over"  # gated jobs beyond the urgent share, when there is nothing else
    UNPAID = "unpaid"  # work that is charged nothing, when there is nothing else at all


WITHOUT_SHARE = frozenset({Pass.LEFT_OVER, Pass.LEASED, Pass.UNPAID})  # not bound by the share of urgent jobs


def passes_of(asking: Asking, groups: Sequence[SlotGroup]) -> tuple[Pass, ...]:
    """The passes a request's walk over these groups has, in order: those that may look at something.

    LEASED is not one of them: it comes first for a host that is held, and is a pass of its own.
    """
    if not groups:
        return ()
    settings, tested = asking.catalogue.settings, asking.volunteer.beta and bool(_tested(asking))
    has_gates = settings.deadline.rule is not DeadlineRule.FIXED
    has = (
        (Pass.GATED, has_gates),
        (Pass.PROMPT, _afap_first(asking)),
        (Pass.LOCALITY, bool(asking.sticky_files)),
        (Pass.BETA, tested),
        (Pass.ALL, True),
        (Pass.LEFT_OVER, has_gates),
        (Pass.UNPAID, _some_unpaid(groups)),
    )
    return tuple([one_pass for one_pass, is_one in has if is_one])


def groups_in(
    one_pass: Pass, groups: Sequence[SlotGroup], asking: Asking, judge: Judge, kind: ProcessorType
) -> Iterator[Placed]:
    """The groups that are looked at in one of the request's passes, in order; never wrong in leaving one out."""
    placed = _paid_for(groups)
    match one_pass:
        case Pass.LEASED:
            return (one for one in placed if judge.held is not None and one[1].batch.batch_id == judge.held.batch_id)
        case Pass.GATED | Pass.LEFT_OVER:
            return _behind_open_gates(placed, asking, judge, kind)
        case Pass.PROMPT:
            return _in_a_hurry(placed, asking, kind)
        case Pass.LOCALITY:
            files = asking.sticky_files
            return (one for one in placed if one[1].sticky_files and one[1].sticky_files <= files)
        case Pass.BETA:
            tested = _tested(asking)
            return (one for one in placed if one[1].batch.app_id in tested)
        case Pass.ALL:
            return placed
        case Pass.UNPAID:
            return dropwhile(_is_paid, enumerate(groups))
        case _:
            assert_never(one_pass)


def is_prompt_of(apps: Container[AppId], group: SlotGroup) -> bool:
    """Whether a group is of an AFAP batch of one of the apps."""
    return group.batch.qos is QoS.AFAP and group.batch.app_id in apps


def _tested(asking: Asking) -> set[AppId]:
    """The apps being tested."""
    return {app_id for app_id, app in asking.catalogue.apps.items() if app.beta}


def _afap_first(asking: Asking) -> bool:
    """Whether AFAP batches go before what can wait: not in every request, so that no stream of them starves it."""
    settings = asking.catalogue.settings
    is_prompt = settings.deadline.rule is DeadlineRule.MUSTER and settings.deadline.afap is AfapPolicy.PROMPT
    return is_prompt and draw(InstanceId(asking.seed)) < settings.scheduler.afap_first_fraction


def _in_a_hurry(placed: Iterable[Placed], asking: Asking, kind: ProcessorType) -> Iterator[Placed]:
    """Groups of AFAP batches, and of those whose deadline leaves room for a few retries only (decision 49).

    A retry takes T_retry on these processors; and no deadline is near that is further ahead than a job's delay bound.
    """
    catalogue, now = asking.catalogue, asking.now
    factor = catalogue.settings.deadline.first_factor
    for one in placed:
        batch = one[1].batch
        within_s = 0.0
        if batch.deadline_at is not None:
            bound_s = one[1].job_class.delay_bound_s
            retry_s = retry_turnaround_s(catalogue.cut_points.get((batch.app_id, kind)), bound_s)
            within_s = min(factor * retry_s, bound_s)
        if goes_first(batch, within_s=within_s, now=now):
            yield one


def _paid_for(groups: Sequence[SlotGroup]) -> Iterator[Placed]:
    """The groups that somebody is charged for."""
    return takewhile(_is_paid, enumerate(groups)) if _some_unpaid(groups) else enumerate(groups)


def _some_unpaid(groups: Sequence[SlotGroup]) -> bool:
    """They stand behind all others, whatever the order."""
    return bool(groups) and groups[-1].batch.unpaid


def _is_paid(one: Placed) -> bool:
    return not one[1].batch.unpaid


def _behind_open_gates(placed: Iterable[Placed], asking: Asking, judge: Judge, kind: ProcessorType) -> Iterator[Placed]:
    """Groups that may ask for a percentile, of apps in which the host reaches the lowest gate."""
    settings = asking.catalogue.settings.deadline
    if settings.rule is DeadlineRule.ACCELERATED:
        yield from _accelerated(placed, asking)
        return
    reached: dict[AppId, bool] = {}
    ungated = QoS.THROUGHPUT
    for place, group in placed:
        batch = group.batch
        if batch.qos is ungated and not group.urgent:
            continue
        is_open = reached.get(batch.app_id)
        if is_open is None:
            best = judge.best(batch.app_id, kind)
            is_open = not isinstance(best, Refusal) and best.for_gated.percentile.passes(
                lowest_gate(judge.gates(best.for_gated))
            )
            reached[batch.app_id] = is_open
        if is_open:
            yield place, group


def _accelerated(placed: Iterable[Placed], asking: Asking) -> Iterator[Placed]:
    """Groups of accelerated batches, for a low-turnaround host."""
    acceleration = asking.catalogue.acceleration
    if acceleration is not None and has_low_turnaround(asking):
        yield from (one for one in placed if is_accelerated(acceleration, one[1]))
