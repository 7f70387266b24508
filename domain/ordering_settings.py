"""Settings for the order of batches: policy, weights, fair-share, limits, reservations. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from domain.bounds import knob, one_of
from domain.queue_hosts import QUEUE_HOSTS
from domain.units import DAY_S, HOUR_S, MINUTE_S, Seconds

# Components and subcomponents of a priority, named as in Moab.
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
AMOUNT = r"[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]{1,2})?"
_NAMES = "|".join((*COMPONENTS, *SUBCOMPONENTS))
_PARAMETER = rf"(?:(?:(?:expedite|normal|standby)\.)?(?:{_NAMES})WEIGHT|(?:{_NAMES})CAP)={NUMBER}"
_QUEUE = rf"[a-z][a-z0-9_-]{{0,31}}=[0-9]/{AMOUNT}/{AMOUNT}"
_TARGET = rf"(?:user|group|account|level):\S{{1,64}}={AMOUNT}[-+%^]?"
_RESOURCE = rf"(?:flop|cpu_s|memory_byte_s|gpu_s)={AMOUNT}"


def words_of(word: str) -> str:
    """Return the pattern for zero or more words of one kind, separated by single spaces."""
    return rf"(?:{word}(?: {word})*)?"


@dataclass(frozen=True, slots=True)
class OrderingSettings:
    policy: str = one_of(
        "logical_time",
        "ordering policy: logical_time, multifactor, components, equal_access or fifo",
        "logical_time",
        "multifactor",
        "components",
        "equal_access",
        "fifo",
    )
    let_rule: str = one_of(
        "design",
        "rank value: earlier work / share + this batch (design), or (earlier work + this batch) / share (wfq)",
        "design",
        "wfq",
    )
    interval_s: Seconds = knob(MINUTE_S, "interval between ordering passes over all batches", low=1)

    half_life_s: Seconds = knob(Seconds(7 * DAY_S), "half-life of recorded usage; 0 = usage does not decay", low=0)
    fairshare: str = one_of(
        "ratio", "fair-share factor: ratio (0.5 = on target) or rank in the account tree", "ratio", "rank"
    )
    damping_factor: float = knob(
        1.0, "damping of the fair-share ratio; larger values penalise over-use less", low=0.01, high=1000
    )
    usage_weights: str = knob(
        "flop=1",
        "usage charged per unit of each resource",
        pattern=words_of(_RESOURCE),
        expected="NAME=NUMBER words, such as flop=1 cpu_s=0 memory_byte_s=0 gpu_s=1e12",
    )
    targets: str = knob(
        "",
        "usage targets of users, groups, accounts and service levels in percent; suffix: + floor, - ceiling, % or ^ "
        "cap",
        pattern=words_of(_TARGET),
        expected="targets such as user:DEFAULT=20 group:stuart=38+ level:expedite=10-",
    )
    keep_usage_s: Seconds = knob(
        Seconds(400 * DAY_S),
        "time for which the history of usage is kept by day; earlier usage is kept by month",
        low=31 * DAY_S,
    )
    window_s: Seconds = knob(Seconds(2 * DAY_S), "length of one usage window for targets", low=HOUR_S)
    window_samples: int = knob(10, "number of usage windows", low=1, high=24)
    window_decay_factor: float = knob(0.8, "weight of a usage window relative to the next newer window", low=0, high=1)

    wait_weight: float = knob(10_000.0, "multifactor: weight of the waiting time", low=-HEAVIEST, high=HEAVIEST)
    fairshare_weight: float = knob(100_000.0, "multifactor: weight of fair-share", low=-HEAVIEST, high=HEAVIEST)
    level_weight: float = knob(100_000.0, "multifactor: weight of the service level", low=-HEAVIEST, high=HEAVIEST)
    queue_weight: float = knob(10_000.0, "multifactor: weight of the queue", low=-HEAVIEST, high=HEAVIEST)
    size_weight: float = knob(0.0, "multifactor: weight of the job size", low=-HEAVIEST, high=HEAVIEST)
    user_weight: float = knob(10_000.0, "multifactor: weight of the user's priority", low=0, high=HEAVIEST)
    max_wait_s: Seconds = knob(Seconds(7 * DAY_S), "multifactor: waiting time at which the factor reaches 1", low=1)
    size_favours: str = one_of(
        "large", "multifactor: job size favoured by the size factor: large or small", "large", "small"
    )

    components: str = knob(
        "QUEUETIMEWEIGHT=1",
        "components: weights and caps under Moab's names; LEVEL.NAMEWEIGHT adds to a service level's weight",
        pattern=words_of(_PARAMETER),
        expected="NAME=NUMBER words, such as QUEUETIMEWEIGHT=1 XFACTORCAP=50 expedite.XFACTORWEIGHT=1000",
    )
    soft_limits: str = one_of(
        "last",
        "batches over a soft limit: after all other batches (last), or, under components, lowered by SPVIOLATION "
        "(penalty)",
        "last",
        "penalty",
    )
    xfactor_min_s: Seconds = knob(MINUTE_S, "components: minimum run time assumed in XFACTOR", low=0)
    target_wait_s: Seconds = knob(Seconds(0.0), "components: target wait of TARGETQUEUETIME; 0 = none", low=0)
    target_xfactor: float = knob(0.0, "components: target of TARGETXFACTOR; 0 = none", low=0)

    queues: str = knob(
        "express=0/1/3 normal=1/0.5/1 bonus=2/0/0",
        "queues as NAME=TIER/NUMBER/RATE: tier under equal_access, value in priority sums, service units per PE-hour",
        pattern=words_of(_QUEUE),
        expected="queues such as express=0/1/3 normal=1/0.5/1",
    )
    queue_hosts: str = knob(
        "",
        "conditions on the hosts of queues, as QUEUE:CONDITION,CONDITION: only hosts that meet all conditions get jobs "
        "of the queue's batches; a queue without conditions uses all hosts",
        pattern=words_of(QUEUE_HOSTS),
        expected="words like big:ncpus>=8,ram_bytes>=32e9 lab:label=lab|cluster",
    )
    equal_among: str = one_of(
        "submitters", "equal_access: share equally among submitters or accounts", "submitters", "accounts"
    )
    bypass_weight: float = knob(
        1.0, "equal_access: PE credited to a batch each time another batch overtakes it", low=0, high=HEAVIEST
    )

    accrual: str = one_of(
        "eligible",
        "count queue time only while jobs of the batch could be sent (eligible), or also while it is blocked (always)",
        "eligible",
        "always",
    )
    idle_fraction: float = knob(0.25, "maximum share of the job array for one submitter's unsent jobs", low=0, high=1)
    idle_jobs: int = knob(4, "minimum number of array slots granted to each submitter", low=1)
    reservation_slots: int = knob(1, "maximum number of big jobs with reserved array slots; 0 = none", low=0, high=1000)
    reservation_pe_factor: float = knob(4.0, "minimum PE of a big job; GPU jobs always count as big", low=1)
    reservation_age_s: Seconds = knob(DAY_S, "maximum age of a slot reservation", low=60)
    lease_slack_s: Seconds = knob(HOUR_S, "time a host lease remains valid after its planned start", low=0)
    displace: bool = knob(False, "send tight jobs even if they delay a host's other work, within displace_factor")
    displace_factor: float = knob(
        1.25, "maximum factor by which tight jobs may delay a host's other work", low=1, high=10
    )
