"""Which settings are thresholds, and what happens when one is set higher or lower. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace

from administration.changes import Changes, checked_changes
from administration.show import shown
from domain.errors import InvalidInputError
from domain.settings import Settings, meaning_of
from domain.views import SettingChange
from muster_client import shapes


@dataclass(frozen=True, slots=True)
class Effect:
    """In what a setting is counted, and what follows from a higher and from a lower value."""

    unit: str
    higher: str
    lower: str


# Every setting that decides who may have a job, by when it is due, or whether one of the last is copied.
EFFECTS = {
    "deadline.p_afap": Effect(
        "percentile",
        "fewer hosts get AFAP jobs before there is a forecast, and they keep short due dates",
        "such batches start faster, and end when the slowest of more hosts does",
    ),
    "deadline.p_late": Effect(
        "percentile",
        "a lost job makes its batch late less often",
        "the last jobs of a batch find a host sooner",
    ),
    "deadline.p_retry": Effect(
        "percentile",
        "retries wait longer, and are seldom lost again",
        "retries are sent sooner, and lost again more often",
    ),
    "deadline.p_tight": Effect(
        "percentile",
        "late jobs go to the best hosts only, and may wait for one",
        "late jobs are sent sooner, to hosts that return them later",
    ),
    "ranking.min_rows": Effect(
        "rows of hosts",
        "the rough rule holds for longer: P 0.5 without a failure, 0.9 for the fastest quarter",
        "percentiles are given among few hosts, and say little",
    ),
    "ranking.min_samples": Effect(
        "results, decayed",
        "lucky newcomers stay out, good ones get gated jobs later",
        "newcomers are ranked sooner, by less",
    ),
    "deadline.afap": Effect(
        "policy",
        "prompt: AFAP batches start with all hosts that are done soon, before work that can wait",
        "table: before a forecast with good hosts only, then with due dates that follow the forecast",
    ),
    "deadline.afap_turn_factor": Effect(
        "times a retry's time",
        "slower and busier hosts get AFAP jobs, which are sent sooner and may come back late",
        "AFAP jobs wait for faster hosts; 0: for good ones",
    ),
    "deadline.gate_wait_fraction": Effect(
        "share of the median run time",
        "gates hold while their jobs wait longer",
        "gates give way sooner, jobs go to slower hosts; 0: gates never give way",
    ),
    "deadline.min_gate_wait_s": Effect(
        "s",
        "gates of short jobs hold longer",
        "gates of short jobs give way sooner",
    ),
    "deadline.min_slack_s": Effect(
        "s",
        "short jobs have later due dates, and are missed later",
        "short jobs have earlier due dates; more are missed and sent again",
    ),
    "deadline.slack_factor": Effect(
        "times R",
        "tight due dates are later until hosts and their app have data: fewer retries, lost jobs found later",
        "they are earlier: more retries, lost jobs found sooner",
    ),
    "deadline.reliability_quantile_z": Effect(
        "z of the normal distribution",
        "tight due dates leave room for more of a host's slow days: fewer retries, lost jobs found later",
        "more of the due dates are missed though the host works; 0: half of them",
    ),
    "ranking.active_s": Effect(
        "s",
        "hosts that are silent for longer still count among those a host is compared with",
        "only hosts that called lately count",
    ),
    "ranking.used_s": Effect(
        "s",
        "older records still count among those a host is compared with",
        "only records with recent results count",
    ),
    "ranking.forgive_s": Effect(
        "s",
        "a failure keeps a host below the gates for longer; 0: until it has enough valid results",
        "failures are forgiven sooner",
    ),
    "ranking.consecutive_valid_infinite": Effect(
        "valid results",
        "a host needs more valid results after a failure to be ranked by its speed alone",
        "it needs fewer",
    ),
    "scheduler.afap_first_fraction": Effect(
        "share of requests",
        "AFAP batches are sent sooner by hosts that take them in their turn",
        "a steady stream of AFAP batches leaves more room for the order of all batches",
    ),
    "deadline.afap_due_factor": Effect(
        "times as far ahead",
        "fewer AFAP jobs are computed before everything else on their computers, and they are over a little later",
        "more of them are; what is lost is found sooner",
    ),
    "deadline.first_factor": Effect(
        "times a retry's time",
        "batches with a deadline are sent sooner, and have more time for retries",
        "they wait longer where the order of all batches has them; 0: until they are gated",
    ),
    "scheduler.urgent_share_fraction": Effect(
        "share of a host's jobs",
        "good hosts get more gated jobs, and less of the ordinary work",
        "gated jobs are spread over more hosts, and wait longer where few may have them",
    ),
    "scheduler.newcomer_fraction": Effect(
        "last share of a batch's first instances",
        "newcomers are ranked sooner where work is scarce, and ranked hosts store less of it",
        "ranked hosts store more of scarce work; 0: newcomers get ungated work only as others leave it",
    ),
    "feeder.tail_fraction": Effect(
        "share of a batch's jobs",
        "more of a batch's last jobs may be copied",
        "copies are made closer to the end",
    ),
    "feeder.tail_jobs": Effect(
        "jobs",
        "more of a small batch's last jobs may be copied",
        "copies are made closer to the end of small batches",
    ),
    "lifecycle.tail_fraction": Effect(
        "share of a batch's jobs",
        "more of a batch's last jobs may be copied",
        "copies are made closer to the end",
    ),
    "lifecycle.tail_overhead_fraction": Effect(
        "share of a batch's jobs",
        "more copies: batches end a little sooner, more is computed twice",
        "fewer copies; 0: none",
    ),
    "lifecycle.tail_late_factor": Effect(
        "times the usual time",
        "jobs are copied later, and fewer of them",
        "jobs that are lost are found sooner, more is computed twice; 0: no copies",
    ),
    "lifecycle.tail_unsent_fraction": Effect(
        "instances per job",
        "copies may be made while more first instances wait to be sent",
        "copies wait until nearly all is sent, those that were made as well",
    ),
    "lifecycle.tail_interval_s": Effect(
        "s",
        "slow hosts are found later",
        "the last jobs of batches are read more often",
    ),
    "lifecycle.grace_fraction": Effect(
        "share of the time given",
        "fewer jobs are sent again that come back a little late",
        "lost jobs are sent again sooner",
    ),
    "lifecycle.min_grace_s": Effect(
        "s",
        "the same for jobs with a short due date",
        "the same for jobs with a short due date",
    ),
    "lifecycle.max_grace_s": Effect(
        "s",
        "the same for jobs with a distant due date",
        "the same for jobs with a distant due date",
    ),
    "deadline.rule": Effect(
        "name",
        "muster: as above; proposal: the proposal's pseudo-code, without slack",
        "fixed: always the delay bound, no gates; accelerated: the reference server's batch acceleration",
    ),
}


THRESHOLDS = tuple(EFFECTS)

# What a preview can foresee from hosts and work as they are; the others show in time, or in a simulation.
FORESEEN = (
    "deadline.p_afap",
    "deadline.p_late",
    "deadline.p_retry",
    "deadline.p_tight",
    "ranking.min_rows",
    "ranking.min_samples",
)

NEVER_CHANGED = SimpleNamespace(changed_at=None, changed_by=None, why=None)


def full_key(name: str, keys: Sequence[str] = THRESHOLDS) -> str:
    """The key of a threshold, which may be given without its section. Raises InvalidInputError unless it is in `keys`.

    >>> full_key("p_tight"), full_key("ranking.min_rows")
    ('deadline.p_tight', 'ranking.min_rows')
    """
    for key in keys:
        if name in (key, key.partition(".")[2]):
            return key
    raise InvalidInputError("threshold", "one of " + ", ".join(keys), name)


def changes_of(values: Iterable[tuple[str, object]], keys: Sequence[str] = THRESHOLDS) -> Changes:
    """New values by full key, each one of `keys`, within its range and given once. Raises InvalidInputError.

    >>> changes_of([("p_tight", 0.85), ("min_rows", 10)])
    {'deadline.p_tight': 0.85, 'ranking.min_rows': 10}
    """
    return checked_changes(values, lambda name: full_key(name, keys), "threshold")


def thresholds_as_json(settings: Settings, latest: Sequence[SettingChange]) -> list[shapes.ThresholdShown]:
    """Every threshold with its value, its meaning and effect, and who set it last and why; `latest`: newest first.

    `source` is "set" where the value is not the default, however it came about, else "default".
    """
    values, defaults = settings.as_mapping(), Settings().as_mapping()
    last: dict[str, SettingChange] = {}
    for change in latest:
        last.setdefault(change.key, change)
    return [
        shown(
            shapes.ThresholdShown,
            EFFECTS[key],
            last.get(key, NEVER_CHANGED),
            key=key,
            value=values[key],
            default=defaults[key],
            source="default" if values[key] == defaults[key] else "set",
            meaning=meaning_of(key),
            previewed=key in FORESEEN,
        )
        for key in THRESHOLDS
    ]
