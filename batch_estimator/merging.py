"""Which outstanding instances are so alike that one calculation serves them all? Pure."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from batch_estimator.outstanding import Outstanding
from batch_estimator.snapshot import Floats, Ints

MOST_CLASSES = 240
COARSER = 1.5


@dataclass(frozen=True, slots=True, eq=False)
class Classes:
    """Merged instances: their mean, the number (weight) in each, and the class of every instance."""

    mean: Outstanding
    weight: Floats
    of: Ints


def merged(out: Outstanding, weight: Floats, bound_s: float, most: int = MOST_CLASSES) -> Classes:
    """Classes of like ln age, level, spread, loss share, time left and silence; wider ones until few enough."""
    n = len(weight)
    if n <= most // 2:
        return Classes(out, weight, np.arange(n))
    scaled = _scaled(out, bound_s)
    width = 1.0
    while True:
        _, of = np.unique(_codes(scaled, width), return_inverse=True)
        count = int(of.max()) + 1
        if count <= most:
            break
        width *= COARSER
    total = np.bincount(of, weights=weight, minlength=count).astype(np.float64)
    means = [np.bincount(of, weights=weight * getattr(out, column.name)) / total for column in fields(out)]
    return Classes(Outstanding(*means), total, of)


def _scaled(out: Outstanding, bound_s: float) -> Floats:
    """Coordinates in which instances that differ by less than 1 are alike."""
    return np.stack(
        [
            np.log(np.maximum(out.age_s, 60.0)) / 0.2,
            out.mu / 0.4,
            out.sd / 0.4,
            np.log(out.lost / (1.0 - out.lost)) / 0.7,
            out.left_s / (0.04 * bound_s),
            np.log(np.maximum(out.silent_s, 3600.0)) / 0.7,
        ]
    )


def _codes(scaled: Floats, width: float) -> Ints:
    """One number per combination of cells."""
    cells = np.floor(scaled / width).astype(np.int64)
    cells -= cells.min(axis=1, keepdims=True)
    codes = np.zeros(cells.shape[1], dtype=np.int64)
    for row in cells:
        codes = codes * (int(row.max()) + 1) + row
    return codes
