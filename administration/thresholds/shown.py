"""Formats thresholds, their preview and their replay as text. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast  # the values of a JSON document

from administration.thresholds.conclusion import conclusion_of
from domain.formatting import in_words

if TYPE_CHECKING:
    from administration.thresholds.replay import Replayed


def thresholds_as_text(rows: Sequence[Mapping[str, object]]) -> str:
    """List all thresholds (keys.thresholds_as_json) with value, effects, and the user who last changed them.

    >>> row = {"key": "deadline.p_tight", "value": 0.8, "default": 0.9, "source": "set", "unit": "percentile"}
    >>> texts = {"meaning": "least percentile", "higher": "fewer hosts", "lower": "more hosts"}
    >>> print(thresholds_as_text([row | texts | {"changed_by": "ada", "why": "they waited"}]))
    deadline.p_tight = 0.8 percentile (default 0.9)
      least percentile
      higher: fewer hosts
      lower: more hosts
      last changed by ada: they waited
    """
    return "\n".join(line for row in rows for line in _threshold(row))


def _threshold(row: Mapping[str, object]) -> Iterator[str]:
    default = "the default" if row["source"] == "default" else f"default {_plain(row['default'])}"
    yield f"{row['key']} = {_plain(row['value'])} {row['unit']} ({default})"
    yield f"  {row['meaning']}"
    yield f"  higher: {row['higher']}"
    yield f"  lower: {row['lower']}"
    if row["changed_by"] is not None:
        yield f"  last changed by {row['changed_by']}: {row['why'] or 'no reason given'}"


def _plain(value: object) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def preview_as_text(found: Mapping[str, Any]) -> str:
    """Format a preview (service.py) as text."""
    return "\n".join(_lines(found))


def _lines(found: Mapping[str, Any]) -> Iterator[str]:
    for one in found["changes"]:
        yield _change(one["key"], one["from"], one["to"])
    yield from stale_in_words(found["stale_cut_points"], found["computed_at"])
    yield ""
    age_s = found["computed_at"] - found["hosts_read_at"]
    read = f" (read {in_words(age_s)} ago)" if age_s >= 1.0 else ""
    read += f", estimated from one host in {found['one_in']}" if found["one_in"] > 1 else ""
    yield f"Recently active hosts{read}, and requests per hour from hosts that pass:"
    if not found["hosts"]:
        yield "  no app has a version yet"
    for one in found["hosts"]:
        small = ", too few to rank: P 0.5 without a failure" if one["small_population"] else ""
        yield (
            f"  {one['app']} {one['processor_type']}: {one['havs']} with a record, {one['newcomers']} without{small}"
        )
        for gate in one["gates"]:
            yield f"    {gate['gate']:8} {_of_side(gate['old'])}  ->  {_of_side(gate['new'])}"
    yield ""
    yield "Gated jobs waiting now, and the time to send them at one job per request:"
    if not found["waiting"]:
        yield "  none"
    for wait in found["waiting"]:
        sides = f"{_of_wait(wait['old'])}  ->  {_of_wait(wait['new'])}"
        yield f"  {wait['app']} {wait['gate']:8} {wait['jobs']} jobs: {sides}"


def replayed_in_words(found: Replayed) -> str:
    """Describe what was simulated; shown above the table of figures."""
    sample = found.sample
    simulated = (
        f"{sample.hosts} of {sample.hosts_active} recently active hosts, and {sample.jobs} of the "
        f"{sample.jobs_open} open jobs of {sample.batches} waiting batches, simulated {found.comparison.seeds} times:"
    )
    now, changed = found.as_json()["now"], found.as_json()["changed"]
    concluded = conclusion_of(cast("Mapping[str, Any]", now), cast("Mapping[str, Any]", changed)).words
    return "\n".join((*(_change(key, before, after) for key, before, after in found.changes), concluded, simulated))


def _change(key: str, before: object, after: object) -> str:
    return f"{key}: {before:g} -> {after:g}" if _are_numbers(before, after) else f"{key}: {before} -> {after}"


def _are_numbers(*values: object) -> bool:
    return all(isinstance(value, (int, float)) for value in values)


def _of_side(side: Mapping[str, Any]) -> str:
    lowered = f" (lowered from {side['asked']:g})" if side["threshold"] != side["asked"] else ""
    passed = side["havs"] + side["newcomers"]
    return f">= {side['threshold']:g}{lowered}: {passed} pass, {side['calls_per_hour']:.1f} requests/h"


def _of_wait(wait: Mapping[str, Any]) -> str:
    if wait["send_s"] is None:
        return f">= {wait['threshold']:g}: never, no passing host makes requests"
    return f">= {wait['threshold']:g}: {in_words(wait['send_s'])} ({wait['calls_per_hour']:.1f} requests/h)"


def stale_in_words(stale: Iterable[Mapping[str, Any]], now: float) -> Iterator[str]:
    """Yield one line for each stale set of cut points.

    >>> list(stale_in_words([{"app": "pi", "processor_type": "cpu", "computed_at": 0.0}], 260_000.0))
    ['pi cpu: hosts were last ranked 3 d ago; too old, the bootstrap rule applies']
    """
    for one in stale:
        ago = in_words(now - one["computed_at"])
        yield (
            f"{one['app']} {one['processor_type']}: hosts were last ranked {ago} ago; too old, "
            "the bootstrap rule applies"
        )
