"""A tight job that makes the client put other work off is sent within limits, where that is asked for."""

from __future__ import annotations

from typing import Any

from domain.batches import QoS
from domain.refusals import RefusalCode
from domain.units import DAY_S, HOUR_S, Flop, Instant, Seconds, later
from scheduler.asking import HeldElsewhere
from scheduler.choice import Choice
from scheduler.dispatch import choose
from tests.builders import NOW, a_held
from tests.unit.scheduler.arrays import ListArray, a_catalogue, a_group, a_want, an_asking, some_cuts
from tests.unit.scheduler.test_dispatch import ranked

WORK_H = 10.0  # of which the host has done nothing yet, on each of its two processors


def tight(hours: float, jobs: int = 1, **settings: Any) -> Choice:
    """What a good host with two jobs of ten hours is given of a batch as fast as possible without an estimate."""
    held = tuple(
        a_held(
            instance_id=n,
            name=f"old {n}",
            batch_id=9,
            est_runtime_s=Seconds(WORK_H * HOUR_S),
            sent_at=NOW,
            due_at=later(NOW, 30 * DAY_S),
        )
        for n in (1, 2)
    )
    told = tuple(HeldElsewhere(one.name, one.due_at, one.est_runtime_s) for one in held)
    request = an_asking(
        catalogue=a_catalogue(cuts=[some_cuts()], scheduler__urgent_share_fraction=1.0, **settings),
        havs=ranked(),
        held=held,
        in_progress=told,
        wants=(a_want(req_s=Seconds(1e6)),),
    )
    flop = Flop(hours * HOUR_S * 1e9)
    return choose(request, ListArray([a_group(1, jobs, qos=QoS.AFAP, fpops_est_flop=flop)]))


def test_it_is_off_unless_asked_for() -> None:
    assert len(tight(5.0, jobs=2).chosen) == 2


def test_a_tight_job_may_stretch_others_to_the_factor_and_no_further() -> None:
    assert len(tight(2.5, ordering__displace=True).chosen) == 1

    refused = tight(2.6, ordering__displace=True)
    assert not refused.chosen
    assert refused.reasons()[RefusalCode.DISPLACES] == (
        1,
        "old 2 would be stretched to 1.26 of its limit, at most 1.25",
    )
    assert len(tight(2.6, ordering__displace=True, ordering__displace_factor=1.3).chosen) == 1


def test_what_the_same_reply_gives_counts() -> None:
    assert len(tight(2.0, jobs=8, ordering__displace=True).chosen) == 2


def test_relaxed_work_displaces_nothing() -> None:
    catalogue = a_catalogue(ordering__displace=True, deadline__rule="fixed")
    held = (a_held(est_runtime_s=Seconds(WORK_H * HOUR_S), sent_at=NOW, due_at=Instant(NOW + DAY_S)),)
    request = an_asking(catalogue=catalogue, held=held)

    assert choose(request, ListArray([a_group(1, fpops_est_flop=Flop(50 * HOUR_S * 1e9))])).chosen
