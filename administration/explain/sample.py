"""Dry runs for the hosts with the latest requests: how many would get the work, and why the rest would not."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from administration.explain.dry_run import Untouched, assumed_context, refusal_of_all
from administration.explain.verdict import CallingHosts, HostAnswer, calling_hosts
from domain.catalogue import Catalogue
from domain.clock import Clock
from domain.dispatch import RequestView
from domain.insight import Caller
from domain.refusals import Refusal
from domain.units import Instant, Seconds
from feeder.array import JobArray
from scheduler.busy import busy_at_start
from scheduler.choice import Chosen
from scheduler.context import SchedulingContext
from scheduler.trace import DecisionTrace, traced
from store.postgres import PostgresStore

SAMPLE_HOSTS = 200
AT_A_TIME = 50  # the number of hosts that the store reads in one round trip


async def sample_of(
    store: PostgresStore, array: JobArray, catalogue: Catalogue, clock: Clock, *, most: int = SAMPLE_HOSTS
) -> CallingHosts:
    """Make a dry run for each of the `most` hosts with the latest requests, as if there were no other work.

    Hosts are evaluated in groups in a thread, while the next group is read, so that client requests are not delayed.
    """
    now = clock.now()
    answers: list[HostAnswer] = []
    callers = await store.insight.recent_callers(most)
    groups = [callers[first : first + AT_A_TIME] for first in range(0, len(callers), AT_A_TIME)]
    read = await read_views(store, groups[0]) if groups else []
    for group, following in zip(groups, [*groups[1:], ()], strict=False):
        answered, read = await asyncio.gather(
            asyncio.to_thread(all_answers, group, read, array, catalogue, now), read_views(store, following)
        )
        answers += answered
    return await asyncio.to_thread(calling_hosts, answers, catalogue.settings.as_mapping())


async def read_views(store: PostgresStore, callers: Sequence[Caller]) -> Sequence[RequestView]:
    """Return the request views of these hosts, in order."""
    return await asyncio.gather(*(store.ledger.read(caller.key) for caller in callers))


def all_answers(
    callers: Sequence[Caller], views: Sequence[RequestView], array: JobArray, catalogue: Catalogue, now: Instant
) -> list[HostAnswer]:
    """Return what each host would get, in order. Hosts deleted since they were listed are omitted."""
    return [
        _answer(caller, view, array, catalogue, now)
        for caller, view in zip(callers, views, strict=True)
        if view.host is not None
    ]


def _answer(caller: Caller, view: RequestView, array: JobArray, catalogue: Catalogue, now: Instant) -> HostAnswer:
    rate, refused = caller.calls_per_hour(now), refusal_of_all(view, catalogue)
    if refused is not None:
        return HostAnswer(caller.host_id, rate, 0, 0.0, (refused,))
    context = assumed_context(view, catalogue, now=now)
    found = traced(context, Untouched(array))
    chosen = found.choice.chosen
    return HostAnswer(caller.host_id, rate, len(chosen), free_s(context, chosen), () if chosen else _refusals(found))


def _refusals(found: DecisionTrace) -> tuple[Refusal, ...]:
    passed_over = [Refusal(code, why) for step in found.steps for code, _, why in step.passed_over]
    return (*(one.refusal for one in found.choice.refused), *passed_over)


def free_s(context: SchedulingContext, chosen: Sequence[Chosen]) -> Seconds:
    """Return the seconds until the host could start the first of these jobs, after all its work; 0 without jobs."""
    if not chosen:
        return Seconds(0.0)
    queue = busy_at_start(context).queue
    return min(queue[one.version.processor_type].start_s(max(1.0, one.job_class.ncpus)) for one in chosen)
