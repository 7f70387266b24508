"""Measures the CPU time of ordering all batches.

`python -m benchmarks.ordering [--batches N] [--submitters N] [--no-service] [--json]`. `policies`: the pure code alone,
by policy (policies.py); `full_ms` is the slowest of them. `reference_ratio` is the multi-factor's full ordering over a
fixed pure-Python operation timed in the same run. `service`: the periodic task of the background process, on an
embedded database in a temporary folder (service.py).
"""

from __future__ import annotations

import argparse
import json

from benchmarks.ordering.policies import measure
from benchmarks.ordering.service import measure_service
from benchmarks.running import in_folder
from domain.clock import SystemClock


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, default=10_000, help="waiting batches")
    parser.add_argument("--submitters", type=int, default=1_000, help="submitters of the batches")
    parser.add_argument("--no-service", action="store_true", help="skip the database")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    asked = parser.parse_args()
    answers = measure(asked.batches, asked.submitters)
    if not asked.no_service:
        batches, submitters = asked.batches, asked.submitters
        service = in_folder(lambda folder: measure_service(batches, submitters, folder, SystemClock()))
        answers["service"] = service
    if asked.json:
        print(json.dumps(answers))
        return
    for name, value in answers.items():
        print(f"{name:24} {value}")


if __name__ == "__main__":
    main()
