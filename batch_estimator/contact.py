"""When will a host that is silent be heard of again? Pure.

Seen at a random instant, hosts have been silent for s with a density u(s) proportional to the share of
gaps between contacts longer than s (renewal theory). So the hosts' silences of this moment are all the
data it takes: P(still silent at s + x | silent for s) = u(s + x) / u(s). Gaps have long tails and some
hosts have left: u is taken as Lomax (Pareto II), under which the longer a host has been silent the
longer it is expected to stay so.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from batch_estimator.snapshot import Floats

SHORTEST_S, LONGEST_S = 60.0, 40 * 86400.0
SCALES_S = tuple(float(scale) for scale in np.geomspace(900.0, 4 * 86400.0, 17))


@dataclass(frozen=True, slots=True)
class Silence:
    """u(s) ~ (1 + s / scale)^-(shape + 1) for silences s."""

    shape: float
    scale_s: float

    def ended(self, silent_s: Floats, after_s: Floats) -> Floats:
        """Probability that a host silent for `silent_s` is heard of within `after_s` more; broadcasts.

        1 - u(s + x) / u(s) = 1 - ((s + c) / (s + x + c))^(k + 1).

        >>> law = Silence(shape=1.0, scale_s=100.0)
        >>> law.ended(np.array([0.0, 300.0]), np.array([100.0, 400.0])).round(4).tolist()
        [0.75, 0.75]
        """
        start = silent_s + self.scale_s
        ended: Floats = 1.0 - np.exp((self.shape + 1.0) * (np.log(start) - np.log(start + after_s)))
        return ended


def silence_law(silences_s: Floats, weights: Floats) -> Silence:
    """The greatest likelihood over a row of scales c; for each, k = W / sum w ln(1 + s / c).

    Silences over 40 days are of hosts that nobody counts on, and left out.

    >>> law = silence_law(np.array([0.0, 3600.0, 7200.0, 86400.0, 864000.0]), np.ones(5))
    >>> round(law.shape, 2), round(law.scale_s)
    (0.33, 900)
    """
    known = np.isfinite(silences_s) & (silences_s <= LONGEST_S)
    s, w = np.maximum(silences_s[known], SHORTEST_S), weights[known]
    scales = np.array(SCALES_S)
    logs = np.log1p(s[:, None] / scales[None, :])
    total = float(np.sum(w))
    per_scale = w @ logs
    shapes = total / per_scale
    likelihood = total * np.log(shapes / scales) - (shapes + 1.0) * per_scale
    best = int(np.argmax(likelihood))
    return Silence(float(shapes[best]), float(scales[best]))
