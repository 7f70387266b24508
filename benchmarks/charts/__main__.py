"""Draws charts of benchmark results: `python -m benchmarks.charts RESULTS_DIR OUT_DIR`.

RESULTS_DIR contains files `*.json`, each with the object that `benchmarks.dispatch`, `benchmarks.refill` or
`benchmarks.submit` printed with `--json`. The median of all runs with the same options is one point. Charts with fewer
than two points are omitted. The same results give identical files.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from benchmarks.charts.charts import charts_of
from benchmarks.charts.drawing import save
from benchmarks.charts.results import Results, results_of
from domain.errors import InvalidInputError


def read(folder: Path) -> Results:
    """Read all results in a directory. Raises InvalidInputError."""
    paths = sorted(folder.glob("*.json"))
    if not paths:
        raise InvalidInputError("RESULTS_DIR", "a folder with *.json files", str(folder))
    objects: dict[str, object] = {}
    for path in paths:
        try:
            objects[path.name] = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise InvalidInputError(path.name, "one JSON object", str(error)) from error
    return results_of(objects)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", metavar="RESULTS_DIR", type=Path)
    parser.add_argument("out", metavar="OUT_DIR", type=Path)
    options = parser.parse_args()
    try:
        results = read(options.results)
    except InvalidInputError as error:
        parser.error(str(error))
    for name in results.ignored:
        print(f"no chart of {name}: not a result of dispatch, refill or submit", file=sys.stderr)
    options.out.mkdir(parents=True, exist_ok=True)
    for name, chart in charts_of(results).items():
        path = options.out / f"{name}.svg"
        save(chart, path)
        print(path)


if __name__ == "__main__":
    main()
