"""Measures the gain from each cheating method.

`python -m benchmarks.cheaters [--only TRICK …] [--seed N] [--set KEY=VALUE …] [--json]` runs each trick of
benchmarks/cheaters/tricks.py on the real services and store.memory, in virtual time: 40 honest hosts, a batch of 400
jobs that gives them validated results, and a target batch of 1,000 jobs. docs/threat-model.md has the table.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, fields

from benchmarks.cheaters.measuring import Gain, measured
from benchmarks.cheaters.tricks import TRICKS
from benchmarks.running import say


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=[trick.name for trick in TRICKS], help="run only these tricks")
    parser.add_argument("--seed", type=int, default=1, help="seed of the population (default: 1)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of the project")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    settings = {key: json.loads(value) for key, _, value in (one.partition("=") for one in options.set)}
    chosen = [trick for trick in TRICKS if not options.only or trick.name in options.only]
    gains: dict[str, Gain] = {}
    for trick in chosen:
        gains[trick.name] = measured(trick, options.seed, settings)
        say(f"{trick.title}: {asdict(gains[trick.name])}")
    if options.json:
        print(json.dumps({name: asdict(gain) for name, gain in gains.items()}))
        return
    columns = [one.name for one in fields(Gain)]
    print(f"{'trick':16}" + "".join(f"{column:>12}" for column in columns))
    for name, gain in gains.items():
        print(f"{name:16}" + "".join(f"{getattr(gain, column):>12}" for column in columns))


if __name__ == "__main__":
    main()
