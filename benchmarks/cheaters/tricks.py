"""Defines the cheating methods that are measured, and the project on which they are measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.cheaters.clients import Clone, Colluder, Gamer, Garbage, Hostile, Loser, Place, Placed
from domain.units import DAY_S, HOUR_S, Instant, Seconds, later
from simulator.ports import Outage, Participant, Program, ShareOf, Submission
from simulator.scenario import FileScenario, parse_scenario

JOBS = 1000
OUTPUT = {"name": "out", "max_bytes": 10_000}
LEARN_S = Seconds(4 * DAY_S)  # most hosts are ranked after this time
WORKS, LEARNT = "work", "learn"
HERE = "198.51.100.1"

PROJECT: Mapping[str, object] = {
    "name": "cheaters",
    "days": 18,
    "delay_bound_days": 2,
    "population": {"hosts": 40, "computers": "seti", "loss_fraction": 0.02},
    "submitter": [{"name": "ada"}],
    "batch": [
        {"name": LEARNT, "submitter": "ada", "qos": "throughput", "jobs": 400, "fpops_est": 1.2e13},
        {"name": WORKS, "submitter": "ada", "qos": "throughput", "at_hours": 96, "jobs": JOBS, "fpops_est": 1.2e13},
    ],
}


@dataclass(frozen=True, slots=True)
class Times:
    """When a trick begins, when its target batch is submitted, and when it ends."""

    joins_at: Instant
    starts_at: Instant
    ends_at: Instant
    platform: str


Clients = Callable[[Times], Sequence[tuple[Hostile, str]]]  # each client with its network


@dataclass(frozen=True, slots=True)
class Trick:
    """A cheating method: `clients` with their networks. The other fields describe the project."""

    name: str
    title: str
    clients: Clients
    quorum: int = 1
    adaptive_copies: int = 0
    qos: str = "throughput"
    ranked: bool = False  # hosts have percentiles


def _losers(times: Times) -> list[tuple[Hostile, str]]:
    clients = [Loser(f"loser {n}", f"{n:032x}", times.starts_at, times.ends_at, times.platform) for n in range(10)]
    return [(client, f"203.0.113.{n}") for n, client in enumerate(clients)]


def _losers_of_many_computers(times: Times) -> list[tuple[Hostile, str]]:
    return [
        (Loser(f"loser {n}", "", times.starts_at, times.ends_at, times.platform, calls_per_cpid=2), f"203.0.113.{n}")
        for n in range(10)
    ]


def _sybils(times: Times) -> list[tuple[Hostile, str]]:
    return [
        (Hostile(f"sybil {n}", f"{n:032x}", times.starts_at, times.ends_at, times.platform), HERE) for n in range(200)
    ]


def _computers(times: Times) -> list[tuple[Hostile, str]]:
    return [
        (Hostile("computers", f"{n:032x}", times.starts_at, times.ends_at, times.platform), f"203.0.113.{n}")
        for n in range(50)
    ]


def _clones(times: Times) -> list[tuple[Hostile, str]]:
    first = Hostile("cloned", "a" * 32, times.starts_at, times.ends_at, times.platform)
    begins_at = later(times.starts_at, HOUR_S)
    copies = [Clone("cloned", "a" * 32, begins_at, times.ends_at, times.platform, original=first) for _ in range(50)]
    return [(client, HERE) for client in (first, *copies)]


def _garbage(times: Times) -> list[tuple[Hostile, str]]:
    return [
        (Garbage(f"garbage {n}", f"{n:032x}", times.starts_at, times.ends_at, times.platform), f"203.0.113.{n}")
        for n in range(3)
    ]


def _pair(times: Times) -> list[tuple[Hostile, str]]:
    return [
        (
            Colluder(
                f"colluder {n}",
                f"{n:032x}",
                times.joins_at,
                times.ends_at,
                times.platform,
                ncpus=8,
                turns_at=times.starts_at,
            ),
            f"203.0.113.{n}",
        )
        for n in range(2)
    ]


def _gamer(times: Times) -> list[tuple[Hostile, str]]:
    return [(Gamer("gamer", "b" * 32, times.joins_at, times.ends_at, times.platform, ncpus=8), HERE)]


def _no_cheaters(times: Times) -> list[tuple[Hostile, str]]:  # noqa: ARG001  the others' argument
    return []


TRICKS = (
    Trick("none", "no cheaters", _no_cheaters),
    Trick("detach", "10 accounts of 64 CPUs lose everything at each call", _losers),
    Trick("detach-new", "the same, as a new host at every second call", _losers_of_many_computers),
    Trick("detach-ranked", "the same, with ranked hosts", _losers_of_many_computers, ranked=True),
    Trick("sybils", "200 accounts of 64 CPUs at one address return nothing", _sybils),
    Trick("computers", "one account with 50 hosts of 64 CPUs, one address each, returns nothing, quorum 1", _computers),
    Trick("clones", "50 copies of one client return nothing", _clones),
    Trick("garbage", "3 accounts of 64 CPUs return garbage, quorum 1", _garbage),
    Trick("garbage-checked", "the same, quorum 1 with adaptive replication", _garbage, adaptive_copies=2),
    Trick("garbage-quorum", "the same, quorum 2", _garbage, quorum=2),
    Trick("pair", "a colluding pair, quorum 1 with adaptive replication", _pair, adaptive_copies=2),
    Trick("pair-quorum", "a colluding pair, quorum 2 with adaptive replication", _pair, quorum=2, adaptive_copies=2),
    Trick("none-afap", "no cheaters, AFAP", _no_cheaters, qos="afap", ranked=True),
    Trick(
        "percentile",
        "8 CPUs return 4 jobs of each reply at once, abort the rest; AFAP",
        _gamer,
        qos="afap",
        ranked=True,
    ),
)


@dataclass(frozen=True, slots=True)
class Tricked:
    """The project with a trick's cheaters. Satisfies simulator.ports.Scenario."""

    trick: Trick
    place: Place
    base: FileScenario
    cheaters: Sequence[tuple[Hostile, str]]  # each with its network

    @property
    def name(self) -> str:
        return self.trick.name

    @property
    def starts_at(self) -> Instant:
        return self.base.starts_at

    @property
    def horizon_s(self) -> Seconds:
        return self.base.horizon_s

    @property
    def settings(self) -> Mapping[str, object]:
        return self.base.settings if self.trick.ranked else {**self.base.settings, "ranking.min_rows": 1000}

    @property
    def programs(self) -> Sequence[Program]:
        copies = self.trick.adaptive_copies
        return [replace(one, app=replace(one.app, adaptive_copies=copies)) for one in self.base.programs]

    @property
    def submitters(self) -> Sequence[ShareOf]:
        return self.base.submitters

    @property
    def outages(self) -> Sequence[Outage]:
        return ()

    def volunteers(self, seed: int) -> Sequence[Participant]:
        """Return all hosts at their addresses. Each honest host has its own."""
        honest = self.base.volunteers(seed)
        placed = [Placed(one, f"192.0.2.{number}", self.place) for number, one in enumerate(honest)]
        return [*placed, *(Placed(one, network, self.place) for one, network in self.cheaters)]

    def submissions(self, seed: int) -> Sequence[Submission]:
        """Return batches whose jobs have a submitter's default limits and an output to compare."""
        found = []
        for submission in self.base.submissions(seed):
            batch = dict(submission.batch)
            jobs = dict(batch["jobs"])  # type: ignore[call-overload]  # a table, as BatchPlan makes it
            for limit in ("max_errors", "max_instances"):
                del jobs[limit]
            jobs |= {"outputs": [OUTPUT], "quorum": self.trick.quorum}
            batch["jobs"] = jobs
            if batch["name"] == WORKS:
                batch["qos"] = self.trick.qos
            found.append(Submission(submission.at, batch))
        return found


def tricked(trick: Trick, place: Place) -> Tricked:
    """Return the trick's scenario. Cheaters arrive with the target batch or, if they must first gain trust, with the
    first batch.
    """
    base = parse_scenario(PROJECT, folder=Path())
    starts_at, ends_at = later(base.starts_at, LEARN_S), later(base.starts_at, base.horizon_s)
    platform = sorted(base.population.platforms)[0]
    return Tricked(trick, place, base, trick.clients(Times(base.starts_at, starts_at, ends_at, platform)))
