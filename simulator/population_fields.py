"""Parses and checks the population of a scenario file, and reads its host table, if any. Errors name the field."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

from domain.errors import InvalidInputError
from domain.units import DAY_S, HOUR_S
from jobs.fields import Fields
from simulator.availability import Hours, HyperExponential, Law, LogNormal, OnOff, Weibull
from simulator.host_models import FITTED, FittedHosts, HostTable, read_host_table
from simulator.population import MOST_TIMEZONE_H, Arrivals, GpuKind, HostPopulation, Presence

MOST_HOSTS = 1_000_000
FRACTIONS = (
    "loss_fraction",
    "error_fraction",
    "garbage_fraction",
    "unreliable_hosts_fraction",
    "unreliable_error_fraction",
    "unreliable_garbage_fraction",
    "silent_hosts_fraction",
)
NUMBERS = ("gigabytes_per_core", "disk_gigabytes")
SIGMAS = ("speed_sigma", "stretch_sigma", "size_sigma", "buffer_sigma")
KNOWN = (
    *FRACTIONS,
    *NUMBERS,
    *SIGMAS,
    "hosts",
    "lost_jobs",
    "computers",
    "mean_stay_days",
    "replaced",
    "arrivals",
    "presence",
    "gpus",
    "platforms",
    "time_zones_hours",
    "hosts_per_volunteer",
    "share_fraction",
    "buffer_min_days",
    "buffer_additional_days",
)
LAWS: Mapping[str, tuple[str, ...]] = {
    "weibull": ("shape", "scale_hours"),
    "exponential": ("mean_hours",),
    "lognormal": ("median_hours", "sigma"),
    "hyperexponential": ("fractions", "means_hours"),
}
LEAST_SHAPE, MOST_SHAPE = 0.1, 20.0  # of a Weibull; below, single durations exceed any simulation
MOST_SIGMA = 5.0  # maximum sigma of a logarithm: 5 % of values are then above 3,700 times the median
LEAST_MEAN_S, MOST_MEAN_S = 60.0, 3650 * DAY_S  # bounds of mean on and off durations


def parse_population(values: Mapping[str, object], *, folder: Path, where: str = "population") -> HostPopulation:
    """Return the population defined by a `[population]` table. A host table's path is relative to `folder`.

    >>> parse_population({"hosts": 0}, folder=Path())
    Traceback (most recent call last):
    domain.errors.InvalidInputError: population.hosts: expected a whole number from 1 to 1000000, got 0
    """
    fields = Fields(values, known=KNOWN, where=where)
    usual = HostPopulation(())
    share = fraction_of(fields, "share_fraction", usual.share)
    if share <= 0.0:
        raise InvalidInputError(fields.path("share_fraction"), "a number above 0 and at most 1", share)
    return HostPopulation(
        arrivals=(_residents(fields), *(_arrivals(fields, n, one) for n, one in enumerate(fields.tables("arrivals")))),
        computers=_computers(fields, folder),
        presences=_presences(fields),
        gpus=_gpus(fields),
        platforms=_platforms(fields),
        forgets_lost=fields.choice("lost_jobs", ("stalled", "forgotten"), default="stalled") == "forgotten",
        time_zones_hours=within(fields, "time_zones_hours", 0.0, float(MOST_TIMEZONE_H), usual.time_zones_hours),
        hosts_per_volunteer=fields.number("hosts_per_volunteer", low=1.0, default=1.0),
        share=share,
        buffer_min_s=fields.number("buffer_min_days", default=0.1) * DAY_S,
        buffer_additional_s=fields.number("buffer_additional_days", default=0.5) * DAY_S,
        **{name: within(fields, name, 0.0, MOST_SIGMA, getattr(usual, name)) for name in SIGMAS},
        **{name: _above(fields, name, getattr(usual, name)) for name in NUMBERS},
        **{name: fraction_of(fields, name, getattr(usual, name)) for name in FRACTIONS},
    )


def fraction_of(fields: Fields, name: str, default: float | None = None) -> float:
    """Return a number from 0 to 1."""
    value = fields.number(name, default=default)
    if value > 1.0:
        raise InvalidInputError(fields.path(name), "a number from 0 to 1", value)
    return value


def within(fields: Fields, name: str, low: float, high: float, default: float | None = None) -> float:
    """Return a number from `low` to `high`."""
    value = fields.number(name, default=default)
    if not low <= value <= high:
        raise InvalidInputError(fields.path(name), f"a number from {low:g} to {high:g}", value)
    return value


def _above(fields: Fields, name: str, default: float) -> float:
    return fields.number(name, above=0.0, default=default)


def _stay_s(fields: Fields) -> float:
    return _above(fields, "mean_stay_days", 1.0) * DAY_S if fields.has("mean_stay_days") else math.inf


def _residents(fields: Fields) -> Arrivals:
    return Arrivals(
        fields.whole("hosts", 1, MOST_HOSTS),
        mean_stay_s=_stay_s(fields),
        replaced=fields.flag("replaced", default=True),
    )


def _arrivals(population: Fields, number: int, values: Mapping[str, object]) -> Arrivals:
    known = ("hosts", "at_hours", "over_hours", "mean_stay_days", "replaced")
    fields = Fields(values, known=known, where=f"{population.path('arrivals')}[{number}]")
    return Arrivals(
        fields.whole("hosts", 1, MOST_HOSTS),
        fields.number("at_hours") * HOUR_S,
        fields.number("over_hours", default=0.0) * HOUR_S,
        _stay_s(fields),
        replaced=fields.flag("replaced", default=False),
    )


def _computers(fields: Fields, folder: Path) -> FittedHosts | HostTable:
    """Return the fitted population of the given name, or the host table in the given file."""
    name = fields.text("computers", most=4096, default="seti")
    if name in FITTED:
        return FITTED[name]
    path = folder / name
    if not path.is_file():
        expected = f"one of {', '.join(FITTED)}, or a CSV file of computers"
        raise InvalidInputError(fields.path("computers"), expected, name)
    return read_host_table(path)


def _platforms(fields: Fields) -> dict[str, float]:
    given = fields.table("platforms")
    if not given:
        return {"windows_x86_64": 0.85, "x86_64-pc-linux-gnu": 0.15}
    of = Fields(given, known=tuple(given), where=fields.path("platforms"))
    if "" in given:
        raise InvalidInputError(fields.path("platforms"), "names of platforms", "")
    return {name: of.number(name, above=0.0) for name in given}


def _gpus(fields: Fields) -> tuple[GpuKind, ...]:
    known = ("share", "type", "count", "median_tflops", "sigma", "gigabytes")
    kinds = []
    for number, values in enumerate(fields.tables("gpus")):
        one = Fields(values, known=known, where=f"{fields.path('gpus')}[{number}]")
        kinds.append(
            GpuKind(
                fraction_of(one, "share"),
                _type(one),
                one.whole("count", 1, 16, default=1),
                _above(one, "median_tflops", 5.0) * 1e12,
                within(one, "sigma", 0.0, MOST_SIGMA, 0.6),
                _above(one, "gigabytes", 6.0) * 1e9,
            )
        )
    if sum(kind.share for kind in kinds) > 1.0 + 1e-9:
        raise InvalidInputError(fields.path("gpus"), "shares with a sum of at most 1", sum(k.share for k in kinds))
    return tuple(kinds)


def _type(gpu: Fields) -> str:
    name = gpu.text("type", most=64, default="NVIDIA")
    if not name:
        raise InvalidInputError(gpu.path("type"), "a name", name)
    return name


def _presences(fields: Fields) -> tuple[Presence, ...]:
    tables = fields.tables("presence")
    if not tables:
        return USUAL
    return tuple(_presence(one, f"{fields.path('presence')}[{number}]") for number, one in enumerate(tables))


def _presence(values: Mapping[str, object], where: str) -> Presence:
    fields = Fields(values, known=("share", "on", "off", "hours", "spread_sigma"), where=where)
    if fields.has("on") != fields.has("off"):
        raise InvalidInputError(where, "both `on` and `off`, or neither for hosts that are always on", dict(values))
    process = OnOff(_law(fields, "on"), _law(fields, "off")) if fields.has("on") else OnOff()
    return Presence(
        fields.number("share", above=0.0, default=1.0),
        process,
        _hours(fields) if fields.has("hours") else None,
        within(fields, "spread_sigma", 0.0, MOST_SIGMA, 0.0),
    )


def _hours(fields: Fields) -> Hours:
    path = fields.path("hours")
    given = Fields(fields.table("hours"), known=("from", "hours", "weekend_hours", "sd_hours"), where=path)
    hours = Hours(
        given.number("from"),
        within(given, "hours", 0.0, 24.0),
        within(given, "weekend_hours", 0.0, 24.0, 0.0),
        within(given, "sd_hours", 0.0, 24.0, 0.5),
    )
    if hours.hours <= 0.0 and hours.weekend_hours <= 0.0:
        raise InvalidInputError(f"{path}.hours", "a number above 0, or weekend_hours above 0", hours.hours)
    if hours.from_hour >= 24.0:
        raise InvalidInputError(f"{path}.from", "an hour from 0 to less than 24", hours.from_hour)
    return hours


def _law(fields: Fields, name: str) -> Law:
    path = fields.path(name)
    values = fields.table(name)
    kind = Fields(values, known=tuple(values), where=path).choice("law", tuple(LAWS))
    law = _law_of(kind, Fields(values, known=("law", *LAWS[kind]), where=path), values)
    if not LEAST_MEAN_S <= law.mean_s <= MOST_MEAN_S:
        expected = f"durations with a mean of {LEAST_MEAN_S:g} s to 10 years ({MOST_MEAN_S:.0f} s)"
        raise InvalidInputError(path, expected, law.mean_s)
    return law


def _law_of(kind: str, given: Fields, values: Mapping[str, object]) -> Law:
    match kind:
        case "weibull":
            shape = within(given, "shape", LEAST_SHAPE, MOST_SHAPE)
            return Weibull(shape, given.number("scale_hours", above=0.0) * HOUR_S)
        case "exponential":
            return Weibull(1.0, given.number("mean_hours", above=0.0) * HOUR_S)
        case "lognormal":
            median_s = given.number("median_hours", above=0.0) * HOUR_S
            return LogNormal(median_s, within(given, "sigma", 0.0, MOST_SIGMA))
        case _:
            return _hyperexponential(values, given)


def _hyperexponential(values: Mapping[str, object], given: Fields) -> HyperExponential:
    fractions, means = (_numbers(values, name, given.path(name)) for name in LAWS["hyperexponential"])
    if len(fractions) != len(means) or abs(sum(fractions) - 1.0) > 1e-6:
        expected = "as many fractions as means_hours, with a sum of 1"
        raise InvalidInputError(given.path("fractions"), expected, list(fractions))
    return HyperExponential(tuple(p / sum(fractions) for p in fractions), tuple(mean * HOUR_S for mean in means))


def _numbers(values: Mapping[str, object], name: str, path: str) -> tuple[float, ...]:
    given = values.get(name)
    if not isinstance(given, list) or not given or not all(_is_positive(one) for one in given):
        raise InvalidInputError(path, "a list of numbers above 0", given)
    return tuple(float(one) for one in given)


def _is_positive(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0.0 < value < math.inf


# Defaults of a scenario: a quarter of the hosts are always on; on intervals between short breaks have the Weibull shape
# and scale of published simulations of BOINC; the other owners switch their hosts on at home or at work.
_ON = Weibull(0.393, 2.964 * HOUR_S)
_BREAKS = LogNormal(0.5565 * HOUR_S, 1.6)
USUAL = (
    Presence(0.25),
    Presence(0.45, OnOff(_ON, _BREAKS), spread_sigma=0.5),
    Presence(0.20, OnOff(_ON, _BREAKS), Hours(8.0, 14.0, 14.0, 1.0), spread_sigma=0.5),
    Presence(0.10, OnOff(), Hours(8.0, 10.0, 0.0, 0.5)),
)
