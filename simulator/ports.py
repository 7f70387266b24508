"""Defines the interface between the engine and a scenario: volunteers, submissions and their times.

The engine advances the clock, carries messages and runs the services. Between two requests, a volunteer's host acts on
its own. All randomness belongs to the scenario, which is a function of its seed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from domain.apps import App, AppVersion, PlanClass, ProcessorType
from domain.ranking import CutPoints
from domain.units import Instant, Seconds
from wire.messages import SchedulerReply, SchedulerRequest


@dataclass(frozen=True, slots=True)
class Program:
    """An app and its versions. The store assigns their ids; ids given here are ignored.

    Plan classes come from the versions; versions have no files. `cuts` are a project's rankings, used until the first
    ranking of the simulation.
    """

    app: App
    versions: tuple[AppVersion, ...]
    cuts: tuple[CutPoints, ...] = ()


@dataclass(frozen=True, slots=True)
class ShareOf:
    """A submitter's name and shares."""

    submitter: str
    shares: float = 1.0


@dataclass(frozen=True, slots=True)
class HeldInstance:
    """An instance of a batch that a host has in progress when the batch is submitted.

    `volunteer` is the host's place in the scenario's volunteers, `age_s` the time since its dispatch, `due_s` the time
    to its due date (negative if it has passed), and `done_fraction` the computed part of its job. `later_fraction` of
    the host's results return after a longer time than its age.
    """

    volunteer: int
    age_s: Seconds
    due_s: Seconds
    done_fraction: float
    gpu_type: ProcessorType | None = None
    later_fraction: float = 1.0


@dataclass(frozen=True, slots=True)
class Submission:
    """A batch to submit. `batch` is the table passed to `jobs.spec.parse_batch`.

    Names must be unique, because they identify batches in results and in the clairvoyant bound. `logical_end_at` is the
    batch's place in the order by logical time, None for the place of a new batch. `median_turnaround_s` is the usual
    turnaround of its results in a project, None for a batch that has none yet.
    """

    at: Instant
    batch: Mapping[str, object]
    held: tuple[HeldInstance, ...] = ()
    logical_end_at: Instant | None = None
    median_turnaround_s: Seconds | None = None


@dataclass(frozen=True, slots=True)
class HeldJob:
    """A job that a client has had for a while: the names of its result and workunit, its command line, its estimated
    size and run time, the computed part, and `later_fraction` as in HeldInstance.
    """

    name: str
    job: str
    command_line: str
    flop: float
    estimate_s: Seconds
    due_at: Instant
    done_fraction: float
    version_num: int
    plan_class: PlanClass
    later_fraction: float = 1.0


@dataclass(frozen=True, slots=True)
class Outage:
    """A server outage. While `start_at` <= now < `end_at`, no request is answered and no periodic task runs."""

    start_at: Instant
    end_at: Instant


@dataclass(frozen=True, slots=True)
class VolunteerFacts:
    """Facts about a volunteer's host that are known only to the simulation.

    `run` counts the instances that ran, `deadline_mode` those of them that ran in deadline mode, which preempted other
    jobs, of this project or another, for `preempted_s` seconds in total. `lost` counts instances that can never return
    a result because they were lost on the host, or with it when it left.
    """

    run: int = 0
    deadline_mode: int = 0
    preempted_s: Seconds = Seconds(0.0)
    lost: int = 0


class Participant(Protocol):
    """One volunteer's host. The engine calls `advance` at each instant that `next_event` returns, then `request`."""

    @property
    def authenticator(self) -> str:
        """The account key in the host's requests. All hosts of one volunteer share it."""
        ...

    def next_event(self, now: Instant) -> Instant:
        """Return when the host must be advanced next, at or after `now`, or math.inf for never again."""
        ...

    def advance(self, now: Instant) -> None:
        """Advance to `now`: compute and finish jobs, switch on and off, leave."""
        ...

    def request(self, now: Instant) -> SchedulerRequest | None:
        """Return the client's request at `now`, None if it does not contact the server.

        The `files` of a reported result count as uploaded just before. All correct outputs of a job have the same MD5,
        and each wrong output has a different one.
        """
        ...

    def receive(self, reply: SchedulerReply, now: Instant) -> None:
        """Process the reply to the last request."""
        ...

    def unanswered(self, now: Instant) -> None:
        """Handle a request without a reply: back off, and keep the results for the next report."""
        ...

    def facts(self) -> VolunteerFacts: ...

    def processor_use_s(self, instants: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return two cumulative CPU times for each of these instants (ascending): the project's share while the host
        was on, and the part of it that its jobs used. Advances the host to the last instant.
        """
        ...


class Scenario(Protocol):
    """A project with its volunteers and submitters. A seed gives the same volunteers and submissions under every rule.
    Each call of `volunteers` creates new objects.
    """

    @property
    def name(self) -> str: ...

    @property
    def starts_at(self) -> Instant: ...

    @property
    def horizon_s(self) -> Seconds:
        """The maximum simulated time. A simulation ends earlier when every batch has ended."""
        ...

    @property
    def settings(self) -> Mapping[str, object]:
        """The project's settings that differ from their defaults, by key."""
        ...

    @property
    def programs(self) -> Sequence[Program]: ...

    @property
    def submitters(self) -> Sequence[ShareOf]:
        """Return all submitters named in batches."""
        ...

    @property
    def outages(self) -> Sequence[Outage]:
        """Return the outages in chronological order, without overlaps."""
        ...

    def volunteers(self, seed: int) -> Sequence[Participant]: ...

    def submissions(self, seed: int) -> Sequence[Submission]:
        """Return the submissions in chronological order."""
        ...
