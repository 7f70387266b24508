"""Lists the settings that are thresholds, with the effect of raising or lowering each. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace

from administration.changes import Changes, checked_changes
from administration.names import checked_text
from administration.show import shown
from domain.errors import InvalidInputError
from domain.settings import Settings, meaning_of
from domain.views import SettingChange
from muster_client import shapes


@dataclass(frozen=True, slots=True)
class Effect:
    """A setting's unit, and the effects of a higher and a lower value."""

    unit: str
    higher: str
    lower: str


# All settings that affect which hosts may get a job, when it is due, or whether late jobs are copied.
EFFECTS = {
    "deadline.p_afap": Effect(
        "percentile",
        "fewer hosts get jobs of AFAP and late batches, and due dates stay short",
        "AFAP and late batches are sent faster, but wait for the slowest of more hosts at the end",
    ),
    "deadline.p_late": Effect(
        "percentile",
        "fewer batches are late because of a lost job",
        "the last jobs of a batch are sent sooner",
    ),
    "deadline.p_retry": Effect(
        "percentile",
        "retries and copies wait longer and are lost less often",
        "retries and copies are sent sooner and are lost more often",
    ),
    "deadline.p_tight": Effect(
        "percentile",
        "late jobs go only to the best hosts and may wait for such a host",
        "late jobs are sent sooner, to hosts that return them later",
    ),
    "ranking.min_rows": Effect(
        "rows of hosts",
        "for longer, P is only 0.5 for hosts without a failure and 0.9 for the fastest quarter",
        "percentiles are computed from fewer hosts and are less meaningful",
    ),
    "ranking.min_samples": Effect(
        "results, decayed",
        "newcomers need more results before they get gated jobs; fewer of them pass a gate by chance",
        "newcomers are ranked sooner, based on fewer results",
    ),
    "deadline.afap": Effect(
        "policy",
        "prompt: AFAP batches start on all hosts that finish soon, before deferrable work",
        "table: AFAP batches run only on good hosts before the first forecast, then with due dates that follow the "
        "forecast",
    ),
    "deadline.afap_turn_factor": Effect(
        "times the retry turnaround",
        "slower and busier hosts get AFAP jobs, which are sent sooner and may be reported late",
        "AFAP jobs and jobs of late batches wait for faster hosts; 0: they wait for ranked hosts that pass the gate",
    ),
    "deadline.gate_wait_fraction": Effect(
        "share of the median run time",
        "gates stay closed longer while their jobs wait",
        "gates are relaxed sooner, so jobs go to slower hosts; 0: gates are never relaxed",
    ),
    "deadline.min_gate_wait_s": Effect(
        "s",
        "gates of short jobs are relaxed later",
        "gates of short jobs are relaxed sooner",
    ),
    "deadline.min_slack_s": Effect(
        "s",
        "short jobs have later due dates; lost ones are found later",
        "short jobs have earlier due dates; more are missed and sent again",
    ),
    "deadline.slack_factor": Effect(
        "times R",
        "tight due dates are later while hosts and apps lack data: fewer retries, lost jobs are found later",
        "tight due dates are earlier while hosts and apps lack data: more retries, lost jobs are found sooner",
    ),
    "deadline.reliability_quantile_z": Effect(
        "z of the normal distribution",
        "tight due dates allow for a host's slower days: fewer retries, lost jobs are found later",
        "hosts that work normally miss more due dates; 0: they miss half of them",
    ),
    "ranking.active_s": Effect(
        "s",
        "hosts that have been silent for longer still count in rankings",
        "only hosts that contacted the server recently count in rankings",
    ),
    "ranking.used_s": Effect(
        "s",
        "older host records still count in rankings",
        "only records with recent results count in rankings",
    ),
    "ranking.forgive_s": Effect(
        "s",
        "a failure keeps a host below the gates longer; 0: until it has returned enough valid results",
        "failures are forgiven sooner",
    ),
    "ranking.consecutive_valid_infinite": Effect(
        "valid results",
        "a host needs more valid results after a failure to be ranked by speed alone",
        "a host needs fewer valid results after a failure to be ranked by speed alone",
    ),
    "scheduler.afap_first_fraction": Effect(
        "share of requests",
        "AFAP batches are sent sooner to hosts that would otherwise take them in order",
        "other batches keep more capacity under a steady stream of AFAP batches",
    ),
    "deadline.afap_due_factor": Effect(
        "times the time in which the host finishes with 90 % confidence",
        "fewer AFAP jobs preempt other work on their hosts; they end slightly later",
        "more AFAP jobs preempt other work on their hosts; lost ones are found sooner",
    ),
    "deadline.first_factor": Effect(
        "times the retry turnaround",
        "batches with a deadline are promoted sooner and have more time for retries",
        "batches with a deadline keep their usual place in the order longer; 0: until they are gated",
    ),
    "scheduler.urgent_share_fraction": Effect(
        "share of a host's jobs",
        "good hosts get more gated jobs and fewer ordinary ones",
        "gated jobs are spread over more hosts and wait longer if few hosts pass",
    ),
    "scheduler.newcomer_fraction": Effect(
        "fraction of a batch's first instances",
        "newcomers are ranked sooner when work is scarce; ranked hosts buffer less of it",
        "ranked hosts buffer more of the scarce work; 0: newcomers get only what ranked hosts leave",
    ),
    "feeder.tail_fraction": Effect(
        "share of a batch's jobs",
        "more of the last jobs of a batch may be copied",
        "copies are made closer to the end",
    ),
    "feeder.tail_jobs": Effect(
        "jobs",
        "more of a small batch's last jobs may be copied",
        "copies are made closer to the end of small batches",
    ),
    "lifecycle.tail_fraction": Effect(
        "share of a batch's jobs",
        "more of the last jobs of a batch may be copied",
        "copies are made closer to the end",
    ),
    "lifecycle.tail_overhead_fraction": Effect(
        "share of a batch's jobs",
        "more copies: batches end slightly sooner, and more work is computed twice",
        "fewer copies; 0: none",
    ),
    "lifecycle.tail_late_factor": Effect(
        "times the usual turnaround",
        "fewer jobs are copied, and later",
        "lost jobs are replaced sooner, more work is computed twice; 0: no copies",
    ),
    "lifecycle.tail_unsent_fraction": Effect(
        "instances per job",
        "copies may be made while more first instances wait to be sent",
        "all copies wait until nearly every first instance is sent",
    ),
    "lifecycle.tail_interval_s": Effect(
        "s",
        "slow instances are found later",
        "the last jobs of batches are checked more often",
    ),
    "lifecycle.grace_fraction": Effect(
        "share of the time from dispatch to due date",
        "fewer slightly late jobs are sent again",
        "lost jobs are sent again sooner",
    ),
    "lifecycle.min_grace_s": Effect(
        "s",
        "fewer slightly late jobs with a short due date are sent again",
        "lost jobs with a short due date are sent again sooner",
    ),
    "lifecycle.max_grace_s": Effect(
        "s",
        "fewer slightly late jobs with a distant due date are sent again",
        "lost jobs with a distant due date are sent again sooner",
    ),
    "deadline.rule": Effect(
        "name",
        "muster: the rule described above; proposal: its first design, without slack or retry margin",
        "fixed: always the delay bound, no gates; accelerated: the reference server's batch acceleration",
    ),
}


THRESHOLDS = tuple(EFFECTS)

# Settings whose effect can be previewed from current hosts and work, as forms call them; other settings need time or a
# simulation.
TITLES = {
    "deadline.p_afap": "P for AFAP and late batches",
    "deadline.p_late": "P to finish shortly before the target",
    "deadline.p_retry": "P for retries and copies of AFAP and late batches",
    "deadline.p_tight": "P to finish after the target",
    "ranking.min_rows": "Hosts for percentiles of an app",
    "ranking.min_samples": "Results for the rank of a host",
}
FORESEEN = tuple(TITLES)

NEVER_CHANGED = SimpleNamespace(changed_at=None, changed_by=None, why=None)


def gate_meanings() -> dict[str, str]:
    """Return, for each gate's name, the meaning of its threshold.

    >>> gate_meanings()["p_retry"]
    'minimum percentile P of a host for a retry or copy of an AFAP or late job'
    """
    return {key.partition(".")[2]: meaning_of(key) for key in FORESEEN if key.startswith("deadline.")}


def full_key(name: str, keys: Sequence[str] = THRESHOLDS) -> str:
    """Return the full key of a threshold given with or without its section. Raises InvalidInputError if not in `keys`.

    >>> full_key("p_tight"), full_key("ranking.min_rows")
    ('deadline.p_tight', 'ranking.min_rows')
    """
    for key in keys:
        if name in (key, key.partition(".")[2]):
            return key
    raise InvalidInputError("threshold", "one of " + ", ".join(keys), name)


def changes_of(values: Iterable[tuple[str, object]], keys: Sequence[str] = THRESHOLDS) -> Changes:
    """Return validated values by full key. Raises InvalidInputError, also for duplicates.

    >>> changes_of([("p_tight", 0.85), ("min_rows", 10)])
    {'deadline.p_tight': 0.85, 'ranking.min_rows': 10}
    """
    return checked_changes(values, lambda name: full_key(name, keys), "threshold")


def checked_reason(key: str, why: str) -> str:
    """Return the reason for changing a setting. Raises InvalidInputError if a threshold is changed without one."""
    if key in THRESHOLDS and not why.strip():
        raise InvalidInputError("why", f"a reason for the audit trail, because {key} is a threshold", why)
    return checked_text(why, "why")


def thresholds_as_json(settings: Settings, latest: Sequence[SettingChange]) -> list[shapes.ThresholdShown]:
    """Return all thresholds with value, meaning, effects and last change; `latest` changes are newest first.

    `source` is "set" if the value differs from the default, otherwise "default".
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
