"""What the engine needs of a scenario: who calls, who submits, and when; in its own words.

The engine turns the clock, carries the messages and runs the services. What a volunteer's computer does between
two calls is the volunteer's own business, and so is all that is random: a scenario is a function of its seed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from domain.apps import App, AppVersion
from domain.units import Instant, Seconds
from wire.messages import SchedulerReply, SchedulerRequest


@dataclass(frozen=True, slots=True)
class Program:
    """An app and its versions. Their ids are given by the store: what stands here is ignored.

    Plan classes are those of the versions; versions have no files.
    """

    app: App
    versions: tuple[AppVersion, ...]


@dataclass(frozen=True, slots=True)
class ShareOf:
    """A submitter by name, and the shares it has."""

    submitter: str
    shares: float = 1.0


@dataclass(frozen=True, slots=True)
class Submission:
    """A batch on its way in: `batch` is the table that `jobs.spec.parse_batch` takes.

    Its name says which batch it is, in the results and for the clairvoyant bound: no two have the same.
    """

    at: Instant
    batch: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Outage:
    """While `start_at` <= now < `end_at` nobody gets an answer, and no duty runs."""

    start_at: Instant
    end_at: Instant


@dataclass(frozen=True, slots=True)
class VolunteerFacts:
    """What a volunteer's computer has lived through, as only the simulation can know.

    `run` instances got a processor at some time, `deadline_mode` of them out of turn because their deadline was in
    danger; by that others, of this project or another, were kept from running for `preempted_s` seconds in all. `lost`
    instances it got can never come back with a result: they were lost on it, or with it when it left.
    """

    run: int = 0
    deadline_mode: int = 0
    preempted_s: Seconds = Seconds(0.0)
    lost: int = 0


class Participant(Protocol):
    """One computer. The engine calls `advance` at every instant `next_event` named, and then asks for a request."""

    @property
    def authenticator(self) -> str:
        """The account key its requests carry; computers of one person share it."""
        ...

    def next_event(self, now: Instant) -> Instant:
        """When it must be looked at next, at or after `now`; math.inf: never again."""
        ...

    def advance(self, now: Instant) -> None:
        """Live until `now`: compute, finish, be switched on and off, leave."""
        ...

    def request(self, now: Instant) -> SchedulerRequest | None:
        """The call it makes at `now`; None when it makes none.

        `files` of a result it reports are taken as uploaded just before. The MD5 of an output is the same for
        every right answer to a job, and another one for every wrong answer.
        """
        ...

    def receive(self, reply: SchedulerReply, now: Instant) -> None:
        """The answer to the call it just made."""
        ...

    def unanswered(self, now: Instant) -> None:
        """The call it just made came to nothing: it backs off, and keeps what it had to report."""
        ...

    def facts(self) -> VolunteerFacts: ...

    def processor_use_s(self, instants: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """CPU seconds that were the project's share while it was on, and those in which its jobs ran, until each of
        these instants, in order. It lives until the last one.
        """
        ...


class Scenario(Protocol):
    """A project, its people and what they do. The same seed gives the same volunteers and submissions, whatever the
    rule; every call of `volunteers` gives new ones."""

    @property
    def name(self) -> str: ...

    @property
    def starts_at(self) -> Instant: ...

    @property
    def horizon_s(self) -> Seconds:
        """The simulation ends so long after its start, or when every batch has ended."""
        ...

    @property
    def settings(self) -> Mapping[str, object]:
        """Settings of the project that are not the default, by key."""
        ...

    @property
    def programs(self) -> Sequence[Program]: ...

    @property
    def submitters(self) -> Sequence[ShareOf]:
        """Everybody named in a batch."""
        ...

    @property
    def outages(self) -> Sequence[Outage]:
        """In order, apart from each other."""
        ...

    def volunteers(self, seed: int) -> Sequence[Participant]: ...

    def submissions(self, seed: int) -> Sequence[Submission]:
        """In the order of their instants."""
        ...
