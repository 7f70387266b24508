"""Settings of the order of batches: policy, weights, fair-share, limits, reservations. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from domain.bounds import knob, one_of
from domain.units import DAY_S, HOUR_S, MINUTE_S, Seconds

# Components and sub-components of a priority sum, by Moab's names.
COMPONENTS = ("SERVICE", "TARGET", "CRED", "RESOURCE", "FS")


@dataclass(frozen=True, slots=True)
class SubComponent:
    component: str
    unit: str


SUBCOMPONENTS: Mapping[str, SubComponent] = {
    "QUEUETIME": SubComponent("SERVICE", "min"),
    "XFACTOR": SubComponent("SERVICE", "factor"),
    "DEADLINE": SubComponent("SERVICE", "of 1000"),
    "SPVIOLATION": SubComponent("SERVICE", "0 or 1"),
    "USERPRIO": SubComponent("SERVICE", "priority"),
    "BYPASS": SubComponent("SERVICE", "times"),
    "TARGETQUEUETIME": SubComponent("TARGET", "min^-2"),
    "TARGETXFACTOR": SubComponent("TARGET", "factor^-2"),
    "CLASS": SubComponent("CRED", "number"),
    "QOS": SubComponent("CRED", "level"),
    "PROC": SubComponent("RESOURCE", "cores"),
    "MEM": SubComponent("RESOURCE", "MiB"),
    "DISK": SubComponent("RESOURCE", "MiB"),
    "PE": SubComponent("RESOURCE", "PE"),
    "WALLTIME": SubComponent("RESOURCE", "s"),
    "FSUSER": SubComponent("FS", "points"),
    "FSGROUP": SubComponent("FS", "points"),
    "FSACCOUNT": SubComponent("FS", "points"),
    "FSQOS": SubComponent("FS", "points"),
    "WCACCURACY": SubComponent("FS", "fraction"),
}

HEAVIEST = 1e12
NUMBER = r"-?[0-9]+(?:\.[0-9]+)?"
AMOUNT = r"[0-9]+(?:\.[0-9]+)?(?:e[0-9]{1,2})?"
_NAMES = "|".join((*COMPONENTS, *SUBCOMPONENTS))
_PARAMETER = rf"(?:(?:(?:expedite|normal|standby)\.)?(?:{_NAMES})WEIGHT|(?:{_NAMES})CAP)={NUMBER}"
_QUEUE = rf"[a-z][a-z0-9_-]{{0,31}}=[0-9]/{AMOUNT}/{AMOUNT}"
_TARGET = rf"(?:user|group|account|level):\S{{1,64}}={AMOUNT}[-+%^]?"
_RESOURCE = rf"(?:flop|cpu_s|memory_byte_s|gpu_s)={AMOUNT}"


def words_of(word: str) -> str:
    """The pattern of words of one kind with single spaces between them; no word fits too."""
    return rf"(?:{word}(?: {word})*)?"


@dataclass(frozen=True, slots=True)
class OrderingSettings:
    policy: str = one_of(
        "logical_time",
        "whose batch goes first: logical_time, multifactor, components, equal_access or fifo",
        "logical_time",
        "multifactor",
        "components",
        "equal_access",
        "fifo",
    )
    let_rule: str = one_of("design", "LET = LST + R (design) or LST + R / share (wfq)", "design", "wfq")
    interval_s: Seconds = knob(MINUTE_S, "seconds between orderings of all batches", low=1)

    half_life_s: Seconds = knob(Seconds(7 * DAY_S), "in which usage counts half; 0 = nothing is forgotten", low=0)
    fairshare: str = one_of("ratio", "fair-share as ratio (0.5 = on target) or as rank in the tree", "ratio", "rank")
    damping_factor: float = knob(1.0, "the greater, the less over-use counts in the ratio", low=0.01, high=1000)
    usage_weights: str = knob(
        "flop=1",
        "what a unit of each resource counts as usage",
        pattern=words_of(_RESOURCE),
        expected="words like flop=1 cpu_s=0 memory_byte_s=0 gpu_s=1e12",
    )
    targets: str = knob(
        "",
        "targets of users, groups, accounts and levels in percent, + floor, - ceiling, % or ^ cap",
        pattern=words_of(_TARGET),
        expected="words like user:DEFAULT=20 group:stuart=38+ level:expedite=10-",
    )
    window_s: Seconds = knob(Seconds(2 * DAY_S), "length of a window targets are measured over", low=HOUR_S)
    window_samples: int = knob(10, "how many windows count", low=1, high=24)
    window_decay_factor: float = knob(0.8, "what a window counts of the one after it", low=0, high=1)

    wait_weight: float = knob(10_000.0, "multifactor: weight of the wait", low=-HEAVIEST, high=HEAVIEST)
    fairshare_weight: float = knob(100_000.0, "multifactor: weight of fair-share", low=-HEAVIEST, high=HEAVIEST)
    level_weight: float = knob(100_000.0, "multifactor: weight of the service level", low=-HEAVIEST, high=HEAVIEST)
    queue_weight: float = knob(10_000.0, "multifactor: weight of the queue", low=-HEAVIEST, high=HEAVIEST)
    size_weight: float = knob(0.0, "multifactor: weight of the job size", low=-HEAVIEST, high=HEAVIEST)
    user_weight: float = knob(10_000.0, "multifactor: weight of the user's priority", low=0, high=HEAVIEST)
    max_wait_s: Seconds = knob(Seconds(7 * DAY_S), "multifactor: longer waits count no more", low=1)
    size_favours: str = one_of("large", "multifactor: which job size counts as 1: large or small", "large", "small")

    components: str = knob(
        "QUEUETIMEWEIGHT=1",
        "components: weights and caps by Moab's names; LEVEL.NAMEWEIGHT adds for a service level",
        pattern=words_of(_PARAMETER),
        expected="words like QUEUETIMEWEIGHT=1 XFACTORCAP=50 expedite.XFACTORWEIGHT=1000",
    )
    xfactor_min_s: Seconds = knob(MINUTE_S, "components: shorter batches count as this long in XFACTOR", low=0)
    target_wait_s: Seconds = knob(Seconds(0.0), "components: wait that TARGETQUEUETIME aims at; 0 = none", low=0)
    target_xfactor: float = knob(0.0, "components: XFACTOR that TARGETXFACTOR aims at; 0 = none", low=0)

    queues: str = knob(
        "express=0/1/3 normal=1/0.5/1 bonus=2/0/0",
        "queues as NAME=TIER/NUMBER/RATE: strict tier under equal_access, number in sums, service units per PE-hour",
        pattern=words_of(_QUEUE),
        expected="words like express=0/1/3 normal=1/0.5/1",
    )
    equal_among: str = one_of(
        "submitters", "equal_access: equal among submitters or accounts", "submitters", "accounts"
    )
    bypass_weight: float = knob(1.0, "equal_access: PE a batch gains each time it is passed over", low=0, high=HEAVIEST)

    idle_fraction: float = knob(0.25, "most of the job array one submitter's unsent jobs may take", low=0, high=1)
    idle_jobs: int = knob(4, "jobs a submitter may have there at least", low=1)
    reservation_slots: int = knob(1, "big jobs that slots of the job array are kept for; 0 = none", low=0, high=1000)
    reservation_pe_factor: float = knob(4.0, "from so many PE on a job is big; GPU jobs always are", low=1)
    reservation_age_s: Seconds = knob(DAY_S, "seconds after which a slot is kept no longer", low=60)
    lease_slack_s: Seconds = knob(HOUR_S, "seconds a lease on a host outlives its start", low=0)
    displace: bool = knob(False, "send work that makes the client put other work off, within limits")
    displace_factor: float = knob(1.25, "most a host's own work may be stretched by that", low=1, high=10)
