"""Numbers for a monitoring system, in the text format of Prometheus: how forecasting goes, app by app.

Whichever worker is asked says the same: all of it is in the database.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from aiohttp import web

from batch_estimator.ports import Forecasts
from domain.clock import Clock
from domain.errors import UnavailableError
from domain.forecasts import ForecastHealth
from domain.units import Instant

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
KEPT_S = 10.0  # an answer serves for so long: anybody may ask

Labels = tuple[tuple[str, str], ...]
Sample = tuple[Labels, float]


@dataclass(frozen=True, slots=True)
class Gauge:
    """One metric and its samples."""

    name: str
    meaning: str
    samples: tuple[Sample, ...]

    def lines(self) -> Iterator[str]:
        yield f"# HELP {self.name} {self.meaning}"
        yield f"# TYPE {self.name} gauge"
        for labels, value in self.samples:
            shown = ",".join(f'{label}="{escaped(text)}"' for label, text in labels)
            yield f"{self.name}{{{shown}}} {value!r}"


def escaped(text: str) -> str:
    r"""A label's value: backslashes, quotes and line ends are escaped.

    >>> escaped('a "b"')
    'a \\"b\\"'
    """
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def exposition(gauges: Sequence[Gauge]) -> str:
    """The text; metrics without a sample are left out.

    >>> print(exposition([Gauge("muster_x", "An x.", (((("app", "pi"),), 0.5),))]), end="")
    # HELP muster_x An x.
    # TYPE muster_x gauge
    muster_x{app="pi"} 0.5
    """
    return "".join(f"{line}\n" for gauge in gauges if gauge.samples for line in gauge.lines())


def forecast_gauges(apps: Sequence[ForecastHealth], now: Instant) -> list[Gauge]:
    """What is known of forecasts at `now`. Pure. An app of which no batch was scored has no accuracy."""
    scored = [(app, app.accuracy.accuracy, app.accuracy.spread) for app in apps if app.accuracy is not None]

    def active(name: str, meaning: str, value: Callable[[ForecastHealth], float | None]) -> Gauge:
        found = [(app, value(app)) for app in apps]
        return Gauge(
            f"muster_forecast_{name}", meaning, tuple((_of(app), float(one)) for app, one in found if one is not None)
        )

    def good(name: str, meaning: str, values: Sequence[float]) -> Gauge:
        samples = tuple((_of(app), float(value)) for (app, *_), value in zip(scored, values, strict=True))
        return Gauge(f"muster_forecast_{name}", meaning, samples)

    coverage = tuple(
        ((*_of(app), ("quantile", quantile)), float(share))
        for app, found, _ in scored
        for quantile, share in (
            ("0.1", found.coverage_q10),
            ("0.5", found.coverage_q50),
            ("0.9", found.coverage_q90),
        )
    )
    accuracies = [found for _, found, _ in scored]
    return [
        active("active_batches", "Active batches.", lambda app: app.active_batches),
        active("never_forecast_batches", "Active batches without a forecast.", lambda app: app.never_forecast),
        active("oldest_age_seconds", "Age of the oldest last forecast.", lambda app: _age_s(app.oldest_at, now)),
        active("latest_age_seconds", "Age of the latest forecast.", lambda app: _age_s(app.latest_at, now)),
        good("scored_batches", "Ended batches that say how good forecasts are.", [one.batches for one in accuracies]),
        Gauge("muster_forecast_coverage_ratio", "Share of scored ends not after the quantile.", coverage),
        good(
            "median_error_ratio",
            "Median error of q50, of the whole time.",
            [one.median_error_fraction for one in accuracies],
        ),
        good(
            "median_remaining_error_ratio",
            "Median error of q50, of the time that was left.",
            [one.median_remaining_error_fraction for one in accuracies],
        ),
        good("bias_ratio", "Median of q50 less the end, of the whole time.", [one.bias_fraction for one in accuracies]),
        good("pinball_bounds", "Mean pinball loss, in delay bounds.", [one.pinball for one in accuracies]),
        good("spread", "How much the next forecasts are stretched.", [spread for *_, spread in scored]),
    ]


class Metrics:
    """The handler of /metrics."""

    def __init__(self, forecasts: Forecasts, clock: Clock) -> None:
        self._forecasts = forecasts
        self._clock = clock
        self._kept: tuple[float, str] | None = None  # by the monotonic clock

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/metrics", self.show)]

    async def show(self, request: web.Request) -> web.Response:
        """All metrics as text; 503 while the database does not serve."""
        try:
            text = await self.text()
        except UnavailableError as error:
            return web.Response(status=503, text=f"{error}\n")
        return web.Response(body=text.encode(), headers={"Content-Type": CONTENT_TYPE})

    async def text(self) -> str:
        """The text, at most ten seconds old. Raises UnavailableError."""
        asked_s = self._clock.monotonic()
        if self._kept is None or asked_s - self._kept[0] >= KEPT_S:
            gauges = forecast_gauges(await self._forecasts.health(), self._clock.now())
            self._kept = (asked_s, exposition(gauges))
        return self._kept[1]


def _of(app: ForecastHealth) -> Labels:
    return (("app", app.app_name),)


def _age_s(at: Instant | None, now: Instant) -> float | None:
    return None if at is None else max(0.0, now - at)
