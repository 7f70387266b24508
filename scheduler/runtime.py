"""Estimates how long a host needs for a job with an app version: R on average, R_q with 90 % confidence. Pure."""

from __future__ import annotations

import math

from domain.apps import AppVersion
from domain.hosts import DecayedSums, Host, HostAppVersion
from domain.quick import quick_dataclass
from domain.ranking import CutPoints
from domain.settings import DeadlineSettings
from domain.units import Flop, FlopPerSecond, Instant, Seconds

LEAST_AVAILABILITY_FRACTION = 0.01
LEAST_FLOP_PER_S = 1e6  # so that runtimes stay finite if a host reports nonsense
MOST_MEASURED_OVER_A_PRIORI = 250.0  # faster measurements are capped
A_PRIORI_SAMPLES = 1.0  # weight of the a-priori speed, in measurements
POPULATION_SAMPLES = 10.0  # docs/formulas.md#run-times: weight of the app's slack, in samples of the host
LEAST_POPULATION_SAMPLES = 50.0  # with fewer samples, the app uses the slack from the settings
MOST_SLACK = 10.0  # cap of R_q / R, unless the setting is higher: the sample of a timeout grows with the time allowed
ASSUMED_LN_RATIO_SD = 0.4  # assumed spread of ln(turnaround / R) without measurements


@quick_dataclass(frozen=True, slots=True)
class Speed:
    """The speed of a host with an app version. `flop_per_s` is also sent to the client.

    R = fpops_est / `effective_flop_per_s`, which includes the fraction of time the host computes. R_q = R *
    `slack_factor`, before the minimum slack. `samples` is the effective number of measurements behind `flop_per_s`.
    """

    flop_per_s: FlopPerSecond
    a_priori_flop_per_s: FlopPerSecond
    availability_fraction: float
    effective_flop_per_s: FlopPerSecond
    slack_factor: float
    samples: float = 0.0

    def runtime_s(self, fpops_est_flop: Flop) -> Seconds:
        """Return R = fpops_est / flop_per_s / availability, in seconds of wall-clock time.

        >>> Speed(FlopPerSecond(1e9), FlopPerSecond(1e9), 0.5, FlopPerSecond(5e8), 2.5).runtime_s(Flop(3.6e12))
        7200.0
        """
        return Seconds(fpops_est_flop / self.effective_flop_per_s)

    def safe_runtime_s(self, runtime_s: Seconds, min_slack_s: Seconds) -> Seconds:
        """Return R_q = max(R * slack_factor, R + min_slack), within which the host finishes in 90 % of cases.

        >>> speed = Speed(FlopPerSecond(1e9), FlopPerSecond(1e9), 1.0, FlopPerSecond(1e9), 2.5)
        >>> speed.safe_runtime_s(Seconds(7200.0), Seconds(3600.0)), speed.safe_runtime_s(Seconds(60.0), Seconds(3600.0))
        (18000.0, 3660.0)
        """
        return Seconds(max(runtime_s * self.slack_factor, runtime_s + min_slack_s))


def speed_of(
    version: AppVersion,
    host: Host,
    hav: HostAppVersion | None,
    cuts: CutPoints | None,
    *,
    now: Instant,
    settings: DeadlineSettings,
) -> Speed:
    """Return the speed of a host with an app version, using its own measurements where available."""
    a_priori = a_priori_flop_per_s(version, host)
    measured = hav.speed.at_time(now) if hav is not None else DecayedSums()
    tight = hav.tight.at_time(now) if hav is not None else DecayedSums()
    projected = projected_flop_per_s(measured, a_priori)
    gpu = version.plan_class.gpu_type is not None
    share = host.gpu_availability_fraction if gpu else host.cpu_availability_fraction
    availability = 1.0 if share >= 1.0 else max(LEAST_AVAILABILITY_FRACTION, share)
    return Speed(
        flop_per_s=projected,
        a_priori_flop_per_s=a_priori,
        availability_fraction=availability,
        effective_flop_per_s=FlopPerSecond(projected * availability),
        slack_factor=slack_factor(tight, cuts, settings=settings),
        samples=measured.n,
    )


def a_priori_flop_per_s(version: AppVersion, host: Host) -> FlopPerSecond:
    """Return ncpus * benchmark * cpu_speed_fraction + gpu_count * peak * gpu_speed_fraction.

    For a plan class with 2 CPUs and a tenth of a GPU of 1e12, on CPUs of 1e9: 2e9 + 1e11 = 1.02e11.

    >>> from domain.apps import NVIDIA, AppVersion, PlanClass
    >>> from domain.hosts import Coprocessor, Host
    >>> version = AppVersion(1, 1, "linux", 100, PlanClass("cuda", ncpus=2.0, gpu_type=NVIDIA))
    >>> a_priori_flop_per_s(version, Host(1, 1, coprocessors=(Coprocessor(NVIDIA, 1, 1e12),)))
    102000000000.0
    """
    plan = version.plan_class
    total = plan.ncpus * host.flop_per_s * plan.cpu_speed_fraction
    if plan.gpu_type is not None:
        peak = max((gpu.peak_flop_per_s for gpu in host.coprocessors if gpu.type == plan.gpu_type), default=0.0)
        total += plan.gpu_count * peak * plan.gpu_speed_fraction
    return FlopPerSecond(max(LEAST_FLOP_PER_S, total))


def projected_flop_per_s(measured: DecayedSums, a_priori: FlopPerSecond) -> FlopPerSecond:
    """Return the measured speed, weighted with the a-priori speed while measurements are few.

    exp((n ln m + k ln a) / (n + k)) with k = 1 and m = 1 / mean(elapsed seconds per estimated flop), at most 250 a.
    With the geometric mean, an a-priori value that is wrong by a factor of 100 in either direction is wrong by a factor
    of 1.5 after ten results.

    >>> projected_flop_per_s(DecayedSums(n=3.0, total=3.0 / 1.6e10), FlopPerSecond(1e9)) / 8e9
    1.0
    """
    if measured.n <= 0.0 or measured.total <= 0.0:
        return a_priori
    speed = min(measured.n / measured.total, MOST_MEASURED_OVER_A_PRIORI * a_priori)
    weight = measured.n / (measured.n + A_PRIORI_SAMPLES)
    return FlopPerSecond(a_priori * (speed / a_priori) ** weight)


def slack_factor(tight: DecayedSums, cuts: CutPoints | None, *, settings: DeadlineSettings) -> float:
    """Return R_q / R = exp(mean + z sd) of ln(turnaround / R) of tight instances, or the setting `slack_factor` without
    data.

    The host's n samples are pooled with 10 pseudo-samples distributed like the app's tight instances or, with fewer
    than 50 of those, around the setting: mean = (sum + 10 M) / (n + 10), mean square = (sum_sq + 10 (S^2 + M^2)) / (n +
    10). Capped at 10, or at a higher setting: a timeout adds the sample ln(time allowed / R), which itself depends on
    this factor. If half of all instances were lost, the two would increase each other without limit.

    >>> round(slack_factor(DecayedSums(), None, settings=DeadlineSettings()), 6)
    2.5
    >>> host = DecayedSums(n=30.0, total=9.0, total_sq=2.7)  # always 1.35 R
    >>> app = CutPoints(1, "cpu", 0.0, 60, (), (), tight_n=100.0, tight_mean=0.3, tight_sd=0.2)
    >>> round(slack_factor(host, app, settings=DeadlineSettings()), 3)  # sd = 0.1: exp(0.3 + 0.12816)
    1.534
    >>> lost = DecayedSums(n=30.0, total=30 * math.log(40.0), total_sq=30 * math.log(40.0) ** 2)
    >>> slack_factor(lost, app, settings=DeadlineSettings())
    10.0
    """
    z = settings.reliability_quantile_z
    if cuts is not None and cuts.tight_n >= LEAST_POPULATION_SAMPLES:
        mean, sd = cuts.tight_mean, cuts.tight_sd
    else:
        sd = ASSUMED_LN_RATIO_SD
        mean = math.log(settings.slack_factor) - z * sd
    n = tight.n + POPULATION_SAMPLES
    pooled_mean = (tight.total + POPULATION_SAMPLES * mean) / n
    pooled_square = (tight.total_sq + POPULATION_SAMPLES * (sd * sd + mean * mean)) / n
    ln_slack = pooled_mean + z * math.sqrt(max(0.0, pooled_square - pooled_mean**2))
    most = max(MOST_SLACK, settings.slack_factor)
    return most if ln_slack > math.log(most) else math.exp(ln_slack)


def runtime_behind_s(safe_runtime_s: Seconds, cuts: CutPoints | None, settings: DeadlineSettings) -> Seconds:
    """Return R of a host with the app's slack that has R_q = `safe_runtime_s` = max(R slack, R + min_slack).

    >>> day = Seconds(86_400.0)
    >>> [runtime_behind_s(one, None, DeadlineSettings()) for one in (day, Seconds(3660.0))]
    [34560.0, 60.0]
    >>> app = CutPoints(1, "cpu", 0.0, 60, (), (), tight_n=100.0, tight_mean=math.log(1.25))
    >>> round(runtime_behind_s(day, app, DeadlineSettings()))  # the app's hosts keep to 1.25 R
    69120
    """
    slack = slack_factor(DecayedSums(), cuts, settings=settings)
    return Seconds(max(0.0, min(safe_runtime_s / slack, safe_runtime_s - settings.min_slack_s)))
