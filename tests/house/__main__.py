"""The command: `python -m tests.house --help`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from tests.house.measure import measured


def main() -> None:
    parser = argparse.ArgumentParser(description="Measures the shape of the code, without tests and benchmarks.")
    parser.add_argument("--json", action="store_true", help="print one JSON line")
    parser.add_argument("--root", type=Path, default=Path(__file__).parents[2], help="another checkout")
    asked = parser.parse_args()
    found = measured(asked.root)
    if asked.json:
        print(json.dumps(found))
        return
    for name, value in found.items():
        print(f"{name:32} {json.dumps(value)}")


if __name__ == "__main__":
    main()
