"""Forecasts for people: the JSON documents as a chart and sentences. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import exp
from typing import Any

from administration.forecasts.chart import Fan, Mark, Point, chart
from administration.forecasts.instants import instant_of, seen_from
from domain.forecasts import FAR_BOUNDS, ForecastState
from domain.formatting import in_words
from domain.units import Instant

Document = Mapping[str, Any]  # Any: a JSON document

MOST_TOLD = 8  # of the last forecasts; all of them are in the JSON
LITTLE_SHIFT = 0.1  # ln: jobs that take this much longer or shorter are as long as the others
NOT_SHOWN = 0.005  # a share that rounds to 0 %


NOT_SHOWN_WORDS: Mapping[ForecastState, str] = {
    ForecastState.NOT_YET: "no forecast yet",
    ForecastState.FIRST_RESULTS: "first estimate after the first results",
    ForecastState.FAR: f"more than {FAR_BOUNDS:.0f} delay bounds ahead",
    ForecastState.FAILED: "no forecast: the model gave no answer",
}


def not_shown(state: ForecastState) -> str:
    """Why no forecast is shown; empty where one is, or where the batch has ended."""
    return NOT_SHOWN_WORDS.get(state, "")


def forecasts_in_words(shown: Document) -> str:
    """When a batch will be done, why then, and how that changed."""
    return "\n".join(_forecasts(shown))


def _forecasts(shown: Document) -> Iterator[str]:
    over = shown["jobs_validated"] + shown["jobs_failed"]
    failed = f" ({shown['jobs_failed']} failed)" if shown["jobs_failed"] else ""
    name = f" {shown['name']}" if shown["name"] else ""
    yield (
        f"batch {shown['batch_id']}{name} ({shown['app']}, {shown['qos']}) is {shown['state']}: "
        f"{over} of {shown['jobs_total']} jobs over{failed}"
    )
    records: Sequence[Document] = shown["forecasts"]
    yield from _promise(shown)
    if not records:
        yield "It was never forecast: muster estimate run, or wait for muster up to do so."
        return
    yield ""
    yield from _chart(shown, records[-1])
    if shown["ended_at"] is None:
        yield from _reasons(records[-1])
    yield ""
    yield from _last(records)
    yield ""
    yield from accuracy_in_words(shown["app"], shown["accuracy"])


def _promise(shown: Document) -> Iterator[str]:
    now = shown["computed_at"]
    if shown["ended_at"] is not None:
        yield f"ended {seen_from(shown['ended_at'], now)}, {in_words(shown['ended_at'] - shown['created_at'])} in all"
    elif shown["completion_q50_at"] is not None:
        yield f"done about {seen_from(shown['completion_q50_at'], now)}"
        yield f"at latest  {seen_from(shown['completion_q90_at'], now)}"
        yield f"C(B)       {seen_from(shown['completion_at'], now)}, what scheduling goes by"
    else:
        yield not_shown(ForecastState(shown["forecast_state"]))
    if shown["deadline_at"] is not None:
        yield f"deadline   {seen_from(shown['deadline_at'], now)}"
    if shown["at_risk"] is not None:
        yield f"AT RISK: {shown['at_risk']}"


def _chart(shown: Document, last: Document) -> Iterator[str]:
    total = max(shown["jobs_total"], 1)

    def point(at: Instant, counts: Document) -> Point:
        return Point(at, (counts["jobs_validated"] + counts["jobs_failed"]) / total)

    ended_at = shown["ended_at"]
    seen_at = shown["computed_at"] if ended_at is None else ended_at
    made = [point(one["made_at"], one) for one in shown["forecasts"] if one["made_at"] < seen_at]
    points = [Point(shown["created_at"], 0.0), *made, point(seen_at, shown)]
    fan = None
    is_told = ended_at is None and last["q50_at"] is not None
    if is_told:
        fan = Fan(point(last["made_at"], last), last["q10_at"], last["q50_at"], last["q90_at"])
    marks = [] if shown["deadline_at"] is None else [("D", "deadline", shown["deadline_at"])]
    if ended_at is None:
        marks += [("n", "now", seen_at), ("C", "C(B)", shown["completion_at"])]
    if is_told:
        marks += [
            ("1", "q10", last["q10_at"]),
            ("9", "at latest (q90)", last["q90_at"]),
            ("5", "about (q50)", last["q50_at"]),
        ]
    if ended_at is not None:
        marks += [("C", "C(B) at last", shown["completion_at"]), ("E", "end", ended_at)]
    yield from (line.rstrip() for line in chart(points, fan, [Mark(letter, at) for letter, _, at in marks]))
    yield f"       from {instant_of(shown['created_at'])}; " + ", ".join(
        f"{letter} {what}" for letter, what, _ in marks
    )


def _reasons(last: Document) -> Iterator[str]:
    yield ""
    yield f"The last forecast is {last['method_because']}."
    if last["flag"] is not None:
        yield f"LOOK AT IT: {last['flag']}"
    yield from holds_in_words(last["holds"])
    yield from terms_in_words(last["terms"])


def holds_in_words(holds: Sequence[Document]) -> Iterator[str]:
    """What the batch waits for, the weightiest first."""
    if holds:
        yield "What holds it:"
    for hold in holds:
        yield f"  {hold['doubt_fraction']:4.0%} of the doubt: {hold['because']}"


def terms_in_words(terms: Document | None) -> Iterator[str]:
    """The fitted quantities, those that matter."""
    if terms is None:
        return
    yield "What it rests on:"
    lacking = terms["jobs_with_success"]
    quorum = f"; {lacking} of them have a result and lack another for the quorum" if lacking else ""
    yield f"  {terms['jobs_open']} jobs are open{quorum}"
    if terms["sending_s"] > 0:
        yield f"  sending what was never sent takes {in_words(terms['sending_s'])} at the present rate"
    yield f"  an instance is back {in_words(terms['median_turnaround_s'])} after it was sent (median)"
    if abs(terms["shift"]) >= LITTLE_SHIFT:
        yield f"  this batch's jobs take {exp(terms['shift']):.2f} times as long as the app's others"
    lost, errors = terms["loss_fraction"], terms["error_fraction"]
    yield f"  {lost:.1%} of what is sent never comes back, {errors:.1%} of replies are errors"
    if terms["retries_expected"] >= NOT_SHOWN:
        yield f"  retry chains: {terms['retries_expected']:.2f} of the instances out now are expected to need one"


def _last(records: Sequence[Document]) -> Iterator[str]:
    yield f"Last forecasts ({min(len(records), MOST_TOLD)} of {len(records)} kept):"
    for one in reversed(records[-MOST_TOLD:]):
        over = one["jobs_validated"] + one["jobs_failed"]
        yield (
            f"  {instant_of(one['made_at'])}  {over}/{one['jobs_total']} over, by {one['trigger']}, {one['method']}: "
            f"{_told(one)}; C(B) {one['change']}: {one['because']}"
        )


def _told(one: Document) -> str:
    if one["q50_at"] is None:
        return not_shown(ForecastState.FIRST_RESULTS)
    about, latest = in_words(one["q50_at"] - one["made_at"]), in_words(one["q90_at"] - one["made_at"])
    return f"about {about}, at latest {latest} later"


def accuracy_in_words(app: str, accuracy: Document | None) -> Iterator[str]:
    """How good the app's forecasts were."""
    if accuracy is None:
        yield f"No batch of {app} that was forecast has been completed: nothing is known of how good its forecasts are."
        return
    yield (
        f"Forecasts of {app}, over the last {accuracy['batches']} batches: {accuracy['coverage_q90']:.0%} ended before "
        f'"at latest" (90 % should), {accuracy["coverage_q50"]:.0%} before "about" (50 % should);'
    )
    yield (
        f'  "about" was off by {accuracy["median_error_fraction"]:.0%} of the whole time (median), by '
        f"{accuracy['median_remaining_error_fraction']:.0%} of what was left, "
        f"too {'late' if accuracy['bias_fraction'] > 0 else 'early'} by {abs(accuracy['bias_fraction']):.0%}"
    )
    yield f"  spread {accuracy['spread']:.2f}: {accuracy['spread_because']}"


def health_in_words(apps: Sequence[Document]) -> Iterator[str]:
    """How forecasting goes, app by app."""
    if not apps:
        yield "No apps yet: muster app add NAME"
    for one in apps:
        never = f"{one['never_forecast']} never forecast"
        yield f"{one['app']}: {one['active_batches']} active batches, {never}{_ages(one)}"
        for line in accuracy_in_words(one["app"], one["accuracy"]):
            yield f"  {line}"


def _ages(one: Document) -> str:
    if one["oldest_age_s"] is None:
        return ""
    oldest, latest = (in_words(max(one[key], 0.0)) for key in ("oldest_age_s", "latest_age_s"))
    return f", last forecasts {latest} to {oldest} old"


def preview_in_words(preview: Document) -> str:
    """When a batch would be done that was submitted now."""
    return "\n".join(_preview(preview))


def _preview(preview: Document) -> Iterator[str]:
    now = preview["computed_at"]
    if preview["q50_at"] is None:
        yield not_shown(ForecastState(preview["forecast_state"]))
        return
    yield f"would be done about {seen_from(preview['q50_at'], now)}, at latest {seen_from(preview['q90_at'], now)}"
    if preview["at_risk"] is not None:
        yield f"AT RISK: {preview['at_risk']}"
    yield f"{preview['method_because']}; what comes before it in the queue is not counted"
