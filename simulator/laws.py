"""The laws that lengths of time are drawn from: Weibull, log-normal, hyper-exponential. In seconds.

Each knows its mean and can draw a length-biased value: the length of the interval in which a random instant falls,
whose density is x f(x) / mean.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Law(Protocol):
    """A law of positive lengths."""

    @property
    def mean_s(self) -> float: ...

    def draw(self, rng: np.random.Generator, count: int) -> NDArray[np.float64]: ...

    def length_biased_s(self, rng: np.random.Generator) -> float: ...

    def scaled(self, factor: float) -> Law:
        """The same law of lengths `factor` times as long."""
        ...


@dataclass(frozen=True, slots=True)
class Weibull:
    """P(X > x) = exp(-(x / scale)^shape); shape 1 is the exponential law.

    >>> Weibull(1.0, 3600.0).mean_s, round(Weibull(0.5, 3600.0).mean_s)
    (3600.0, 7200)
    """

    shape: float
    scale_s: float

    @property
    def mean_s(self) -> float:
        return float(self.scale_s * math.gamma(1.0 + 1.0 / self.shape))

    def draw(self, rng: np.random.Generator, count: int) -> NDArray[np.float64]:
        return self.scale_s * rng.weibull(self.shape, count)

    def length_biased_s(self, rng: np.random.Generator) -> float:
        """(X / scale)^shape is then Gamma(1 + 1 / shape)."""
        return float(self.scale_s * rng.gamma(1.0 + 1.0 / self.shape) ** (1.0 / self.shape))

    def scaled(self, factor: float) -> Weibull:
        return Weibull(self.shape, self.scale_s * factor)


@dataclass(frozen=True, slots=True)
class LogNormal:
    """ln X is normal; `median_s` = exp of its mean.

    >>> round(LogNormal(3600.0, 1.0).mean_s)
    5935
    """

    median_s: float
    sigma: float

    @property
    def mean_s(self) -> float:
        return self.median_s * math.exp(0.5 * self.sigma**2)

    def draw(self, rng: np.random.Generator, count: int) -> NDArray[np.float64]:
        return rng.lognormal(math.log(self.median_s), self.sigma, count)

    def length_biased_s(self, rng: np.random.Generator) -> float:
        """Log-normal again, its median exp(sigma^2) times as long."""
        return float(rng.lognormal(math.log(self.median_s) + self.sigma**2, self.sigma))

    def scaled(self, factor: float) -> LogNormal:
        return LogNormal(self.median_s * factor, self.sigma)


@dataclass(frozen=True, slots=True)
class HyperExponential:
    """Exponential with mean `means_s[i]` in `fractions[i]` of all cases.

    >>> HyperExponential((0.5, 0.5), (60.0, 180.0)).mean_s
    120.0
    """

    fractions: tuple[float, ...]
    means_s: tuple[float, ...]

    @property
    def mean_s(self) -> float:
        return sum(p * mean_s for p, mean_s in zip(self.fractions, self.means_s, strict=True))

    def draw(self, rng: np.random.Generator, count: int) -> NDArray[np.float64]:
        means_s: NDArray[np.float64] = rng.choice(np.array(self.means_s), count, p=np.array(self.fractions))
        return rng.exponential(1.0, count) * means_s

    def length_biased_s(self, rng: np.random.Generator) -> float:
        """Branch i with probability in proportion to p_i mean_i, and in it Gamma(2)."""
        weights = np.array(self.fractions) * np.array(self.means_s)
        branch = rng.choice(len(weights), p=weights / weights.sum())
        return self.means_s[branch] * float(rng.gamma(2.0))

    def scaled(self, factor: float) -> HyperExponential:
        return HyperExponential(self.fractions, tuple(mean_s * factor for mean_s in self.means_s))
