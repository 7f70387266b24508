"""Dry runs for the hosts with the latest requests: how many would get the work, and why the rest would not."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from administration.explain.dry_run import Untouched, assumed_context, refusal_of_all
from administration.show import shown
from domain.catalogue import Catalogue
from domain.clock import Clock
from domain.dispatch import RequestView
from domain.insight import Caller
from domain.refusals import RefusalCode
from domain.units import Instant
from feeder.array import JobArray
from muster_client import shapes
from scheduler.trace import DecisionTrace, traced
from store.postgres import PostgresStore

SAMPLE_HOSTS = 200
AT_A_TIME = 50  # the number of hosts that the store reads in one round trip


@dataclass(frozen=True, slots=True)
class ReasonCount:
    """The number of hosts that would get no job, by reason. A host with several reasons counts in each."""

    code: RefusalCode
    hosts: int
    calls_per_hour: float
    example: str
    example_host_id: int


@dataclass(frozen=True, slots=True)
class CallingHosts:
    """What the sampled hosts would get of some work, each evaluated on its own, and their request rate.

    `takers` hosts would get `jobs` jobs in total, if each was the first to request work.
    """

    hosts: int = 0
    calls_per_hour: float = 0.0
    takers: int = 0
    takers_calls_per_hour: float = 0.0
    jobs: int = 0
    held_back: tuple[ReasonCount, ...] = ()


class _Tally:
    """Counts hosts by reason."""

    def __init__(self) -> None:
        self.hosts: dict[RefusalCode, list[float]] = {}
        self.examples: dict[RefusalCode, tuple[str, int]] = {}

    def note(self, reasons: dict[RefusalCode, str], caller: Caller, rate: float) -> None:
        for code, why in reasons.items():
            self.hosts.setdefault(code, []).append(rate)
            self.examples.setdefault(code, (why, caller.host_id))

    def held_back(self) -> tuple[ReasonCount, ...]:
        """Return the reasons with their numbers of hosts, most frequent first."""
        rows = [ReasonCount(code, len(rates), sum(rates), *self.examples[code]) for code, rates in self.hosts.items()]
        return tuple(sorted(rows, key=lambda row: (-row.calls_per_hour, -row.hosts, row.code)))


async def sample_of(
    store: PostgresStore, array: JobArray, catalogue: Catalogue, clock: Clock, *, most: int = SAMPLE_HOSTS
) -> CallingHosts:
    """Make a dry run for each of the `most` hosts with the latest requests, as if there were no other work.

    Hosts are evaluated in groups in a thread, while the next group is read, so that client requests are not delayed.
    """
    now = clock.now()
    tally = _Tally()
    hosts, rates, taking, jobs = 0, 0.0, list[float](), 0
    callers = await store.insight.recent_callers(most)
    groups = [callers[first : first + AT_A_TIME] for first in range(0, len(callers), AT_A_TIME)]
    read = await _read(store, groups[0]) if groups else []
    for group, following in zip(groups, [*groups[1:], ()], strict=False):
        answers, after = await asyncio.gather(
            asyncio.to_thread(_all_answers, group, read, array, catalogue, now), _read(store, following)
        )
        read = after
        for caller, given, reasons in answers:
            rate = caller.calls_per_hour(now)
            hosts, rates = hosts + 1, rates + rate
            if given:
                taking.append(rate)
                jobs += given
            else:
                tally.note(reasons, caller, rate)
    return CallingHosts(hosts, rates, len(taking), sum(taking), jobs, tally.held_back())


async def _read(store: PostgresStore, callers: Sequence[Caller]) -> Sequence[RequestView]:
    """Return the request views of these hosts, in order."""
    return await asyncio.gather(*(store.ledger.read(caller.key) for caller in callers))


def _all_answers(
    callers: Sequence[Caller], views: Sequence[RequestView], array: JobArray, catalogue: Catalogue, now: Instant
) -> list[tuple[Caller, int, dict[RefusalCode, str]]]:
    """Return what each host would get, in order. Hosts deleted since they were listed are omitted."""
    return [
        (caller, *_answer(view, array, catalogue, now))
        for caller, view in zip(callers, views, strict=True)
        if view.host is not None
    ]


def _answer(
    view: RequestView, array: JobArray, catalogue: Catalogue, now: Instant
) -> tuple[int, dict[RefusalCode, str]]:
    """Return how many jobs the host would get and, if none, each reason with its first sentence."""
    refused = refusal_of_all(view, catalogue)
    if refused is not None:
        return 0, {refused.code: refused.detail}
    found = traced(assumed_context(view, catalogue, now=now), Untouched(array))
    return len(found.choice.chosen), _reasons(found)


def _reasons(found: DecisionTrace) -> dict[RefusalCode, str]:
    reasons = {code: why for code, (_, why) in found.choice.reasons().items()}
    for step in found.steps:
        for code, _, why in step.passed_over:
            reasons.setdefault(code, why)
    return reasons


def sample_as_json(sample: CallingHosts) -> shapes.SampleShown:
    """Return the sample as JSON, most frequent reason first."""
    rate = round(sample.calls_per_hour, 3)
    takers_rate = round(sample.takers_calls_per_hour, 3)
    held_back = [shown(shapes.HeldBack, one, calls_per_hour=round(one.calls_per_hour, 3)) for one in sample.held_back]
    would_take = shapes.WouldTake(hosts=sample.takers, calls_per_hour=takers_rate, jobs=sample.jobs)
    return shown(shapes.SampleShown, sample, calls_per_hour=rate, would_take=would_take, held_back=held_back)
