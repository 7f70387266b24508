"""Defines what the engine needs from a scenario: volunteers, submissions and their times.

The engine advances the clock, carries messages and runs the services. A volunteer's host decides for itself between two
calls, and all randomness belongs to the scenario, which is a function of its seed.
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
    """An app and its versions. The store assigns their ids; ids given here are ignored.

    Plan classes come from the versions; versions have no files.
    """

    app: App
    versions: tuple[AppVersion, ...]


@dataclass(frozen=True, slots=True)
class ShareOf:
    """A submitter's name and shares."""

    submitter: str
    shares: float = 1.0


@dataclass(frozen=True, slots=True)
class Submission:
    """A batch to submit: `batch` is the table that `jobs.spec.parse_batch` takes.

    Its name identifies the batch in results and in the clairvoyant bound, so names are unique.
    """

    at: Instant
    batch: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Outage:
    """While `start_at` <= now < `end_at` no call is answered, and no periodic task runs."""

    start_at: Instant
    end_at: Instant


@dataclass(frozen=True, slots=True)
class VolunteerFacts:
    """Facts about a volunteer's host that only the simulation knows.

    `run` instances got a processor at some time, `deadline_mode` of them in deadline mode, which kept other jobs, of
    this project or another, from running for `preempted_s` seconds in all. `lost` instances can never return a result:
    they were lost on the host, or with it when it left.
    """

    run: int = 0
    deadline_mode: int = 0
    preempted_s: Seconds = Seconds(0.0)
    lost: int = 0


class Participant(Protocol):
    """One host. The engine calls `advance` at every instant `next_event` returns, then `request`."""

    @property
    def authenticator(self) -> str:
        """The account key its requests carry; hosts of one volunteer share it."""
        ...

    def next_event(self, now: Instant) -> Instant:
        """Return when the host must be advanced next, at or after `now`; math.inf: never again."""
        ...

    def advance(self, now: Instant) -> None:
        """Advance to `now`: compute, finish jobs, switch on and off, leave."""
        ...

    def request(self, now: Instant) -> SchedulerRequest | None:
        """Return the request of a call at `now`; None if the client does not call.

        `files` of a reported result count as uploaded just before. The MD5 of an output is the same for every right
        answer to a job, and differs for every wrong answer.
        """
        ...

    def receive(self, reply: SchedulerReply, now: Instant) -> None:
        """Process the reply to the last call."""
        ...

    def unanswered(self, now: Instant) -> None:
        """Handle a call without a reply: back off, and keep the results to report."""
        ...

    def facts(self) -> VolunteerFacts: ...

    def processor_use_s(self, instants: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return two cumulated CPU times at each of these instants, in order: the project's share while the host was
        on, and the part used by its jobs. Advances the host to the last instant.
        """
        ...


class Scenario(Protocol):
    """A project with its volunteers and submitters. The same seed gives the same volunteers and submissions under every
    rule; each call of `volunteers` returns new ones.
    """

    @property
    def name(self) -> str: ...

    @property
    def starts_at(self) -> Instant: ...

    @property
    def horizon_s(self) -> Seconds:
        """The simulation ends this long after its start, or when every batch has ended."""
        ...

    @property
    def settings(self) -> Mapping[str, object]:
        """The project's settings that differ from the default, by key."""
        ...

    @property
    def programs(self) -> Sequence[Program]: ...

    @property
    def submitters(self) -> Sequence[ShareOf]:
        """Return every submitter named in a batch."""
        ...

    @property
    def outages(self) -> Sequence[Outage]:
        """Return the outages in order; they do not overlap."""
        ...

    def volunteers(self, seed: int) -> Sequence[Participant]: ...

    def submissions(self, seed: int) -> Sequence[Submission]:
        """Return the submissions in order of time."""
        ...
