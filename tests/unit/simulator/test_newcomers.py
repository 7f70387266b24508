"""Hosts that join a project with ranked hosts get waiting work from their first call on."""

from __future__ import annotations

import pytest

from domain.units import Instant
from simulator.engine import Engine
from simulator.ports import Participant, VolunteerFacts
from simulator.run import warnings_only
from simulator.scenario import read_scenario
from simulator.virtual_time import run_without_threads
from tests.memory import MemoryStore
from tests.unit.simulator.rig import no_more_tasks
from wire.messages import SchedulerReply, SchedulerRequest

Call = tuple[Instant, SchedulerRequest, SchedulerReply]


class Heard:
    """Satisfies simulator.ports.Participant: wraps another one and records its calls and replies."""

    def __init__(self, volunteer: Participant) -> None:
        self._volunteer = volunteer
        self._request: SchedulerRequest | None = None
        self.calls: list[Call] = []
        self.next_event = volunteer.next_event
        self.advance = volunteer.advance
        self.unanswered = volunteer.unanswered
        self.processor_use_s = volunteer.processor_use_s

    @property
    def authenticator(self) -> str:
        return self._volunteer.authenticator

    def request(self, now: Instant) -> SchedulerRequest | None:
        self._request = self._volunteer.request(now)
        return self._request

    def receive(self, reply: SchedulerReply, now: Instant) -> None:
        assert self._request is not None
        self.calls.append((now, self._request, reply))
        self._volunteer.receive(reply, now)

    def facts(self) -> VolunteerFacts:
        return self._volunteer.facts()


class HeardEngine(Engine):
    """A run of the scenario whose volunteers' messages are recorded."""

    def __init__(self, seed: int) -> None:
        super().__init__(
            read_scenario("newcomers"),
            seed,
            store=lambda clock: MemoryStore(),
            settings={},
            more_tasks=no_more_tasks,
            watch=lambda at: None,
        )
        self.heard = [Heard(one) for one in self.volunteers]
        self.volunteers = self.heard


@pytest.fixture(scope="module")
def run() -> HeardEngine:
    engine = HeardEngine(1)
    with warnings_only():
        run_without_threads(engine.run())
    return engine


def joined_late(run: HeardEngine) -> list[Heard]:
    return [one for one in run.heard if one.calls and one.calls[0][0] > run.scenario.starts_at + 6 * 86_400.0]


def test_the_scenario_has_newcomers_among_ranked_hosts(run: HeardEngine) -> None:
    (cuts,) = run.services.catalogue.catalogue().cut_points.values()
    assert cuts.n >= 20
    assert len(joined_late(run)) == 18
    assert run.record.jobs_open > 0  # there was work until the end


def test_a_newcomer_has_work_from_its_first_call_on(run: HeardEngine) -> None:
    for one in joined_late(run):
        _, request, reply = one.calls[0]
        assert request.cpu_req_s > 0
        assert reply.results, reply.messages


def is_idle(request: SchedulerRequest) -> bool:
    """Return whether the client has fewer tasks, other projects' included, than processors, and requests more."""
    return request.cpu_req_s > 0 and len(request.in_progress or ()) < request.host.ncpus


def test_no_idle_host_is_refused_waiting_work(run: HeardEngine) -> None:
    idle = [(request, reply) for one in run.heard for _, request, reply in one.calls if is_idle(request)]
    assert len(idle) > 60
    assert [reply.messages for _, reply in idle if not reply.results] == []
