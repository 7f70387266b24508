"""Fits simple distributions to a table of computers and prints one JSON object.

    python -m benchmarks.hosts TABLE.csv …

The numbers of cores form a table of probabilities. For each group of cores, the speed per core is fitted by maximum
likelihood, weighted by computers, as log-normal, Weibull and gamma; `ks` are their Kolmogorov-Smirnov distances over
the groups, weighted by computers. The parameters are those of the Weibull distribution, which is the best or tied for
the best on the three tables in `simulator/host_models.py`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
from scipy import optimize, stats

from simulator.host_models import CORES, Floats, HostTable, read_host_table

LAW = "weibull"
LAWS = {
    "lognormal": lambda a, b: stats.lognorm(s=b, scale=a),
    "weibull": lambda a, b: stats.weibull_min(c=b, scale=a),
    "gamma": lambda a, b: stats.gamma(a=b, scale=a),
}


def fit(table: HostTable) -> dict[str, object]:
    weight = table.computers / table.computers.sum()
    group = np.array([int(np.argmin(np.abs(np.log(np.array(CORES) / cores)))) for cores in table.cores])
    shares = [float(weight[group == place].sum()) for place in range(len(CORES))]
    fits = {law: [_fitted(law, table, weight, group == place) for place in range(len(CORES))] for law in LAWS}
    distance = {
        law: sum(share * found[2] for share, found in zip(shares, found_of_law, strict=True) if found is not None)
        for law, found_of_law in fits.items()
    }
    total = table.cores * table.flop_per_s
    return {
        "computers": int(table.computers.sum()),
        "shares": [round(share, 4) for share in shares],
        "parameters": [None if one is None else [round(one[0], 3), round(one[1], 3)] for one in fits[LAW]],
        "ks": {law: round(value, 4) for law, value in distance.items()},
        "mean_cores": round(float(weight @ table.cores), 3),
        "median_gflops_per_computer": round(_weighted_median(total, weight) / 1e9, 3),
        "of_fit": _of_fit(shares, fits[LAW]),
    }


def _fitted(law: str, table: HostTable, weight: Floats, mine: np.ndarray) -> tuple[float, float, float] | None:
    x, w = table.flop_per_s[mine] / 1e9, weight[mine]
    if len(x) < 3:
        return None
    w = w / w.sum()

    def loss(parameters: Floats) -> float:
        return -float(w @ LAWS[law](*np.exp(parameters)).logpdf(x))

    begin = {"lognormal": [np.log(2.0), -1.0], "weibull": [np.log(3.0), 1.0], "gamma": [-1.0, 2.0]}[law]
    found = optimize.minimize(loss, begin, method="Nelder-Mead", options={"maxiter": 4000})
    a, b = np.exp(found.x)
    order = np.argsort(x)
    reached = np.cumsum(w[order])
    expected = LAWS[law](a, b).cdf(x[order])
    distance = max(np.abs(reached - expected).max(), np.abs(reached - w[order] - expected).max())
    return float(a), float(b), float(distance)


def _of_fit(shares: list[float], found: list[tuple[float, float, float] | None]) -> dict[str, float]:
    """Return the same figures for a million computers drawn from the fit."""
    rng = np.random.default_rng(1)
    known = [place for place, one in enumerate(found) if one is not None]
    p = np.array([shares[place] for place in known])
    place = rng.choice(known, 1_000_000, p=p / p.sum())
    cores, speed = np.array(CORES)[place], np.empty(len(place))
    for one in known:
        a, b, _ = found[one]  # type: ignore[misc]  # `known` are those that are not None
        speed[place == one] = LAWS[LAW](a, b).rvs(size=int((place == one).sum()), random_state=rng)
    return {
        "mean_cores": round(float(cores.mean()), 3),
        "median_gflops_per_computer": round(float(np.median(cores * speed)), 3),
    }


def _weighted_median(values: Floats, weight: Floats) -> float:
    order = np.argsort(values)
    return float(values[order][np.searchsorted(np.cumsum(weight[order]), 0.5)])


if __name__ == "__main__":
    print(json.dumps({Path(name).stem: fit(read_host_table(Path(name))) for name in sys.argv[1:]}))
