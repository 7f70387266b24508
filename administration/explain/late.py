"""Concludes why a batch misses its deadline, from the time left and the times that sending its jobs takes. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from administration.attention.item import Remedy
from administration.attention.items import later_or_end
from administration.explain.verdict import GATED_SHARE, CallingHosts, ahead_in_words, counted
from administration.forecasts.words import risk_parts
from administration.thresholds.preview import GateStanding
from domain.access import Right
from domain.batches import Batch
from domain.forecasts import ForecastState
from domain.formatting import in_words
from domain.insight import WorkAhead
from domain.ordering import ServiceLevel
from domain.refusals import BEHIND_GATE
from domain.units import HOUR_S, Instant, Seconds
from domain.views import ListedInstance
from hoststats.standing import passing
from muster_client import shapes

LEAST_GAIN = 1.1  # a change that shortens sending by less is not named


@dataclass(frozen=True, slots=True)
class SendingTime:
    """How long sending the `unsent` instances of a batch takes: `present_s` by the latest forecast, None if unknown.

    `per_hour`: requests of all active hosts that could have a version of its app; `per_request`: its instances sent per
    request lately.
    """

    unsent: int
    present_s: Seconds | None
    per_hour: float
    per_request: float

    @property
    def least_s(self) -> float | None:
        """Return the seconds if every request took its jobs; None if none is expected, or if the forecast is shorter:
        then one of the two is wrong, and this one is not certain.

        >>> SendingTime(2440, None, 500.0, 2.0).least_s / 60
        146.4
        """
        least_s = self.unsent / (self.per_hour * self.per_request) * HOUR_S if self.per_hour > 0.0 else None
        is_sooner = least_s is not None and self.present_s is not None and self.present_s < least_s
        return None if is_sooner else least_s

    @property
    def words(self) -> str:
        """Return the time by the forecast and the least one as a sentence; "" if the least one is not known."""
        if self.least_s is None:
            return ""
        what = f"its {counted(self.unsent, 'unsent instance')}"
        least = (
            f"{in_words(self.least_s)} if each of the {self.per_hour:.0f} requests per hour of the app's active hosts"
        )
        forecast = "" if self.present_s is None else f"{in_words(self.present_s)} by the forecast, and "
        return f"Sending {what} takes {forecast}at least {least} took {self.per_request:.1f} of them."


@dataclass(frozen=True, slots=True)
class SendingCause:
    """What makes sending slow, with the change against it, which makes sending up to `gain` times as fast."""

    gain: float
    words: str
    remedy: Remedy | None


def requests_per_hour(standings: Iterable[GateStanding]) -> float:
    """Return the request rate of the active hosts of an app, each once. `standings`: of its processor types."""
    found = list(standings)
    known = passing((one.table, np.ones(one.table.size, dtype=bool)) for one in found)
    return known.calls_per_hour + max((one.newcomers.calls_per_hour for one in found), default=0.0)


def sent_per_request(sent: Iterable[ListedInstance]) -> float:
    """Return the mean number of instances of a batch that a request took; 0 if none is known."""
    found = [(one.host_id, one.sent_at) for one in sent if one.sent_at is not None]
    return len(found) / max(1, len(set(found)))


def cannot_meet(time: SendingTime, risk: shapes.RiskShown, now: Instant) -> str:
    """Return that a batch cannot meet its deadline, or missed it, and how long sending takes at least; "" if it can.

    >>> risk = {"deadline_at": 1380.0, "late_by_s": 60.0, "probability": 1.0, "missed": False}
    >>> cannot_meet(SendingTime(2440, None, 500.0, 2.0), risk, Instant(0.0)).partition(": ")[0]
    'It cannot meet its deadline'
    >>> cannot_meet(SendingTime(20, None, 500.0, 2.0), risk, Instant(0.0))
    ''
    """
    least_s, left_s = time.least_s, risk["deadline_at"] - now
    if least_s is None or (left_s >= least_s and not risk["missed"]):
        return ""
    takes = "takes" if time.unsent == 1 else "take"
    what, least = f"its {counted(time.unsent, 'unsent instance')} {takes}", f"at least {in_words(least_s)}"
    if risk["missed"] and time.present_s is not None:
        return late_in_words(risk, f"{what} {in_words(time.present_s)} to send by the forecast")
    if risk["missed"]:
        return late_in_words(risk, f"{what} {least} to send")
    due = f"the deadline is in {in_words(left_s)}"
    return f"It cannot meet its deadline: {what} {least} to send even if every request took them; {due}."


def slowest_cause(batch: Batch, sample: CallingHosts, ahead: WorkAhead, *, is_first: bool) -> SendingCause | None:
    """Return the cause without which sending would be fastest, None if none is known. `is_first`: it is sent first."""
    unsent, found = max(1, batch.counts.unsent), list[SendingCause]()
    if waits_for := ahead.unsent - ahead.gated:
        level = None
        if not is_first and batch.level is not ServiceLevel.EXPEDITE:
            effect = "set its level to expedite: then only batches sent first and other expedite ones go before it"
            level = Remedy(effect, f"batches/{batch.batch_id}#h-act", Right.OPERATE)
        found.append(SendingCause((waits_for + unsent) / unsent, ahead_in_words(ahead), level))
    gate = next((one for one in sample.held_back if one.code in BEHIND_GATE and one.suggestion), None)
    if gate is not None and sample.takers_calls_per_hour > 0.0:
        gain, remedy, chosen = gate.calls_per_hour / sample.takers_calls_per_hour + 1.0, None, gate.suggestion
        if chosen is not None and chosen.options:
            one = chosen.options[-1]
            effect = f"preview {chosen.key} {one.value:g}: {counted(one.passes, 'more host')} could run its jobs"
            remedy = Remedy(effect, f"percentiles/preview?{chosen.key}={one.value:g}")
        words = f"the gate excludes {gate.hosts} of {counted(sample.hosts, 'host')}, which send requests"
        found.append(SendingCause(gain, words, remedy))
    if 0.0 < sample.gated_share < 1.0:
        gain, share = 1.0 / sample.gated_share, f"{100.0 * sample.gated_share:.3g} %"
        effect = f"raise {GATED_SHARE}: at 1, a request may take up to {gain:.3g} times as many of its jobs"
        words = f"its jobs need hosts above a gate, and at most {share} of a host's jobs may do so"
        found.append(SendingCause(gain, words, Remedy(effect, f"settings/{GATED_SHARE}")))
    best = max(found, key=lambda one: one.gain, default=None)
    return best if best is not None and best.gain >= LEAST_GAIN else None


def late_conclusion(
    batch: Batch,
    risk: shapes.RiskShown,
    state: ForecastState,
    time: SendingTime,
    sample: CallingHosts,
    ahead: WorkAhead,
    cause: str,
    *,
    now: Instant,
    is_first: bool,
) -> tuple[str, Sequence[Remedy]]:
    """Return why a batch misses its deadline in one sentence, and what to do. `cause`: what delays its results most; ""
    if that is sending.
    """
    if cannot := cannot_meet(time, risk, now):
        return cannot, later_or_end(batch)
    found = None if cause else slowest_cause(batch, sample, ahead, is_first=is_first)
    if found is not None:
        return late_in_words(risk, found.words, state), [found.remedy] if found.remedy else later_or_end(batch)
    rest = (
        "the hosts that could run its jobs send too few requests"
        if sample.idle
        else "all hosts that could run its jobs are busy"
    )
    return late_in_words(risk, cause or rest, state), later_or_end(batch)


def late_in_words(risk: shapes.RiskShown | None, cause: str, state: ForecastState = ForecastState.SHOWN) -> str:
    """Return that a batch has missed or may miss its deadline, with the cause; "" without a risk. `state` is that of
    its forecast.

    >>> risk = {"deadline_at": 0.0, "late_by_s": 840.0, "probability": 1.0, "missed": True}
    >>> late_in_words(risk, "2 instances on 1 host are in progress")
    'It missed its deadline by 14 min: 2 instances on 1 host are in progress.'
    >>> late_in_words({**risk, "missed": False}, "", ForecastState.UNSCHEDULABLE)
    'It misses its deadline unless a host can run its jobs.'
    """
    if risk is None:
        return ""
    words = risk_parts(risk, state)[0]
    verb = "" if risk["missed"] or state is ForecastState.UNSCHEDULABLE else "is "
    return f"It {verb}{words}{f': {cause}' if cause else ''}."
