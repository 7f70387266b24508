"""Charts of the project over an hour to a year, and the part of the time axis that a page's address chooses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

from administration.samples import Sampled
from console.charts import Chart, hue
from console.drawing import Axis, Line, Plot
from domain.refusals import RefusalCode, code_in_words
from domain.samples import LATEST_AT, RANGES_S, REFUSED, Window, window_of
from domain.units import Instant
from web.handlers import number_of
from web.moments import length, number, rate, stamp

ASKS = ("range", "from_at", "to_at")  # query parameters
ROWS = 30  # in a table
CODES = 6  # refusals drawn one by one
GAPS, LATE_STEPS = 3, 6  # gaps named above the charts; samples missing at the end of the newest one
PEAKS = 3  # series up to which their peaks are named above a chart
REFUSAL_HUES = {  # of the usual reasons, so that a colour has one meaning in every range; others get the rest
    RefusalCode.NO_APP_VERSION: "c1",
    RefusalCode.BELOW_GATE: "c2",
    RefusalCode.PLATFORM: "c3",
    RefusalCode.NO_RANK: "c4",
    RefusalCode.NOT_YET: "c5",
    RefusalCode.NO_SLOTS: "c6",
    RefusalCode.BUSY_BELOW_GATE: "c7",
}
OTHERS_HUE = "c8"
RETRIED = "retried"  # query parameter: the number of failed jobs that the last form opened again


def window_asked(query: Mapping[str, str], now: Instant, *, usual: str = "hour") -> Window:
    """Return the part of the time axis in an address. Raises InvalidInputError."""
    from_at, to_at = (number_of(query, name, low=0.0, high=LATEST_AT) for name in ASKS[1:])
    return window_of(query.get("range", usual), from_at, to_at, now)


def range_links(
    query: Mapping[str, str], window: Window, now: Instant, *, whole: str = ""
) -> list[tuple[str, str, bool]]:
    """Return a link per range, and to the parts before and after: address, name, whether it is shown now.

    The addresses keep the other parameters of the page, except the result of its last form. `whole` names the page
    without a range. A part that is no range comes last, without an address.

    >>> query = {"q": "pi", "from_at": "1", "retried": "5", "said": "retried"}
    >>> links = range_links(query, Window(Instant(50.0), Instant(60.0)), Instant(65.0))
    >>> [link for link, *_ in links][-3:]
    ['?q=pi&from_at=40&to_at=50', '?q=pi&from_at=60&to_at=70', '']
    """
    kept = {key: value for key, value in query.items() if key not in ASKS and key not in ("said", RETRIED)}
    links = [(f"?{urlencode(kept)}", whole, not asks_a_part(query))] if whole else []
    links += [(f"?{urlencode({**kept, 'range': name})}", name, name == window.name) for name in RANGES_S]
    for name, by_s in (("earlier", -window.length_s), ("later", window.length_s)):
        ends = {"from_at": f"{window.from_at + by_s:.0f}", "to_at": f"{window.to_at + by_s:.0f}"}
        if window.from_at + by_s < now and window.from_at + by_s >= 0.0:
            links.append((f"?{urlencode({**kept, **ends})}", name, False))
    if not window.name and asks_a_part(query):
        links.append(("", f"{stamp(window.from_at)} to {stamp(window.to_at)}", True))
    return links


def asks_a_part(query: Mapping[str, str]) -> bool:
    """Return whether an address chooses a part of the time axis."""
    return any(name in query for name in ASKS)


def refusal_hues(codes: Sequence[str]) -> list[str]:
    """Return the colour of each reason: its own, or one whose reason is not shown.

    >>> refusal_hues(["disk", "below_gate"]), refusal_hues(["below_gate", "disk", "no_slots"])
    (['c1', 'c2'], ['c2', 'c1', 'c6'])
    """
    own = {str(code): hue for code, hue in REFUSAL_HUES.items()}
    free = [hue for code, hue in own.items() if code not in codes]
    return [own[code] if code in own else free.pop(0) for code in codes]


def gaps_of(found: Sampled, until: Instant) -> list[tuple[Instant, Instant]]:
    """Return the latest times without samples, each from the last sample before it to the first one after it, or to
    `until`, if there is none and more than LATE_STEPS are missing.

    >>> from domain.samples import Sample
    >>> samples = [Sample(Instant(at), {"requests": 1.0} if at != 20.0 else {}) for at in (0.0, 10.0, 20.0, 60.0)]
    >>> gaps_of(Sampled(10, samples), Instant(75.0)), gaps_of(Sampled(10, samples), Instant(300.0))
    ([(10.0, 60.0)], [(10.0, 60.0), (60.0, 300.0)])
    """
    samples = found.samples
    around = zip(samples, samples[1:], samples[2:], strict=False)
    gaps = [(before.at, after.at) for before, gap, after in around if not gap.figures]
    if samples and until - samples[-1].at > LATE_STEPS * found.step_s:
        gaps.append((samples[-1].at, until))
    return gaps[-GAPS:]


def begins_at(found: Sampled, window: Window) -> Instant | None:
    """Return when the charts begin if that is after the window does, otherwise None.

    >>> from domain.samples import Sample
    >>> found = Sampled(10, [Sample(Instant(500.0), {"requests": 1.0})])
    >>> begins_at(found, Window(Instant(0.0), Instant(900.0))), begins_at(found, Window(Instant(480.0), Instant(900.0)))
    (500.0, None)
    """
    first_at = found.samples[0].at if found.samples else window.from_at
    return first_at if first_at - window.from_at > LATE_STEPS * found.step_s else None


def charts_of(found: Sampled, window: Window) -> list[Chart]:
    """Return the charts of a period; [] without samples."""
    if not found.samples:
        return []
    requests, busy = found.values("requests"), found.values("busy")
    took_ms = [1000.0 * b / r if r and b is not None else None for r, b in zip(requests, busy, strict=True)]
    each = f"Means over {length(found.step_s)}"
    codes = found.names(REFUSED)
    shown = [name.removeprefix(REFUSED) for name in codes[:CODES]]
    hues = [*refusal_hues(shown), OTHERS_HUE]
    refusals = {code_in_words(code): found.values(f"{REFUSED}{code}") for code in shown}
    if codes[CODES:]:
        rest = zip(*map(found.values, codes[CODES:]), strict=True)
        refusals["others"] = [None if None in row else sum(one or 0.0 for one in row) for row in rest]
    per_minute = {name: [None if one is None else 60.0 * one for one in row] for name, row in refusals.items()}
    rates = {"requests": requests, "dispatches": found.values("sent"), "reports": found.values("reports")}
    work = {name: found.values(key) for name, key in WORK.items()}
    charts = [
        _chart(found, window, ("rates", "Requests and dispatches", f"{each}, per second."), rates, "per second"),
        _chart(found, window, ("work", "Active work", f"{each}, of active batches."), work, ""),
        _chart(
            found, window, ("refusals", "Refusals", f"{each}, per minute, by reason."), per_minute, "per minute", hues
        ),
        _chart(found, window, ("took", "Time per request", f"{each}, in milliseconds."), {"mean": took_ms}, "ms"),
        _chart(
            found,
            window,
            ("hosts", "Active hosts", "Hosts with a request in the 24 hours before."),
            {"hosts": found.values("hosts")},
            "hosts",
        ),
    ]
    return [chart for chart in charts if chart is not None]


WORK = {"open jobs": "jobs_open", "in progress": "in_progress", "unsent": "unsent"}


def _chart(
    found: Sampled,
    window: Window,
    said: tuple[str, str, str],
    series: Mapping[str, Sequence[float | None]],
    unit: str,
    hues: Sequence[str] = tuple(map(hue, range(CODES))),
) -> Chart | None:
    """Return the chart of figures over the window, None without values. The table has every nth sample, and says so.

    A named range begins with the first sample, because older ones need not exist.
    """
    known = [value for values in series.values() for value in values if value is not None]
    if not known:
        return None
    key, title, about = said
    at = [one.at for one in found.samples]
    nth = max(1, len(at) // ROWS)
    shown = [place for place in range(len(at)) if found.samples[place].figures][::-nth]
    are_counts = unit in ("", "hosts")
    form = number if are_counts else rate
    peaks = ", ".join(
        (f"{name} " if len(series) > 1 else "") + form(max(values))
        for name, row in series.items()
        if (values := [one for one in row if one is not None])
    )
    peak = f"{'Peaks' if len(series) > 1 else 'Peak'}: {peaks}." if len(series) <= PEAKS else ""
    listed = f"The table lists 1 value in {nth}." if nth > 1 else ""
    return Chart(
        key,
        title,
        " ".join(filter(None, (about, peak, listed))),
        ("when", *series),
        [(stamp(at[place]), *(form(values[place]) for values in series.values())) for place in shown],
        Plot(
            Axis(
                "", "time", max(window.from_at, at[0] - found.step_s) if window.name else window.from_at, window.to_at
            ),
            Axis(unit, "count" if are_counts else "number"),
            [Line(name, at, values, color) for color, (name, values) in zip(hues, series.items(), strict=False)],
            height=150,
            zoom=True,
        ),
    )
