"""Hosts for tests of the client, with defaults for irrelevant values."""

from __future__ import annotations

import math
import random
from dataclasses import replace

from domain.units import HostId, Instant, Seconds
from simulator.availability import Availability
from simulator.client import SimulatedVolunteer
from simulator.processors import Processors, Task
from simulator.traits import Fates, Gpu, Traits
from simulator.work_buffer import Buffer
from wire.messages import (
    AppElement,
    AppVersionElement,
    FileRef,
    ResultElement,
    SchedulerReply,
    SchedulerRequest,
    WorkunitElement,
)

START = Instant(1_000_000.0)
HOUR = 3600.0
DAY = 86400.0


def on_during(*hours: tuple[float, float]) -> Availability:
    """On between these hours after START, and never again."""
    return Availability(iter([(START + a * HOUR, START + b * HOUR) for a, b in hours]), start_at=START)


def always_on() -> Availability:
    return on_during((0.0, 1e6))


def processors(
    count: int = 1, *, share: float = 1.0, margin_s: float = 0.0, availability: Availability | None = None
) -> Processors:
    return Processors(count, share, Seconds(margin_s), availability or always_on(), START)


def a_task(name: str, hours: float, *, due_hours: float = 1e5, ncpus: float = 1.0, lost: bool = False) -> Task:
    length_s = hours * HOUR
    return Task(name, Instant(START + due_hours * HOUR), length_s, length_s, length_s, ncpus=ncpus, lost=lost)


def at(hours: float) -> Instant:
    return Instant(START + hours * HOUR)


def traits(
    *,
    ncpus: int = 1,
    share: float = 1.0,
    first_hours: float = 0.0,
    joins_hours: float = 0.0,
    leaves_hours: float = math.inf,
    gpu: Gpu | None = None,
    buffer: Buffer = Buffer(Seconds(0.0), Seconds(10.0 * HOUR)),  # noqa: B008
    stretch: float = 1.0,
) -> Traits:
    """Return a host of 1 Gflop/s per CPU; jobs of 3.6e12 flop take an hour."""
    return Traits(
        number=7,
        authenticator="key",
        ncpus=ncpus,
        flop_per_s=1e9,
        stretch=stretch,
        ram_bytes=8e9,
        disk_bytes=5e10,
        platform="x86_64-pc-linux-gnu",
        os_name="Linux",
        share=share,
        buffer=buffer,
        joins_at=at(joins_hours),
        first_call_at=at(max(first_hours, joins_hours)),
        leaves_at=START + leaves_hours * HOUR,
        gpu=gpu,
    )


def volunteer(
    of: Traits,
    *,
    availability: Availability | None = None,
    loss: float = 0.0,
    error: float = 0.0,
    garbage: float = 0.0,
    forgets: bool = False,
) -> SimulatedVolunteer:
    fates = Fates(loss, error, garbage, 0.0, seed=1, draw=random.Random(1), forgets=forgets)
    return SimulatedVolunteer(of, availability or always_on(), fates, random.Random(2))


def a_reply(
    *names: str,
    due_hours: float = 1000.0,
    hours: float = 1.0,
    delay_s: float = 60.0,
    contact_s: float = 0.0,
    ncpus: float = 1.0,
    gpu: str = "",
) -> SchedulerReply:
    """Return a reply with jobs of these hours on 1 Gflop/s, one per name, one output each."""
    return SchedulerReply(
        "http://project.invalid/",
        Seconds(delay_s),
        host_id=None,
        next_rpc_delay_s=Seconds(contact_s),
        send_full_workload=True,
        apps=(AppElement("pi"),),
        app_versions=(
            AppVersionElement("pi", 1, "x86_64-pc-linux-gnu", avg_ncpus=ncpus, coproc_type=gpu, coproc_count=1.0),
        ),
        workunits=tuple(
            WorkunitElement(f"job_{name}", "pi", hours * 3.6e12, 1e15, 1e9, 1e9) for name in dict.fromkeys(names)
        ),
        results=tuple(
            ResultElement(
                name,
                f"job_{name}",
                at(due_hours),
                "x86_64-pc-linux-gnu",
                1,
                file_refs=(FileRef(f"{name}_r0"),),
            )
            for name in names
        ),
    )


def first_reply(contact_s: float = 0.0) -> SchedulerReply:
    """Return a reply without jobs that assigns a host id."""
    return replace(a_reply(contact_s=contact_s), host_id=HostId(1))


def next_call(one: SimulatedVolunteer, now: Instant) -> tuple[Instant, SchedulerRequest]:
    """Advance to the volunteer's next call; return its time and request."""
    while True:
        event_at = one.next_event(now)
        assert event_at < math.inf, "it never calls again"
        now = event_at
        one.advance(now)
        request = one.request(now)
        if request is not None:
            return now, request
