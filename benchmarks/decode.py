"""Measures decoding a request and encoding a reply, compared with parsing the same requests with lxml.

    python -m benchmarks.decode --json

Both run alternately over the well-formed captured requests, so that a busy machine slows both equally. `ratio_to_lxml`
compares our complete decoding with lxml's parsing alone, before anything is read from its tree. `decode_report_us` is
for the request that benchmarks.dispatch sends, `encode_reply_us` for a reply with four jobs.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import Any

from lxml import etree

from wire.client import decode_reply
from wire.decode import decode_request
from wire.encode import encode_reply

CAPTURES = Path(__file__).parents[1] / "tests" / "captures"
REPLY_WITH_FOUR_JOBS = "17-work-fetch-four-jobs.reply.xml"
REQUEST_WITH_A_REPORT = "12-report-success.request.xml"


def captured_requests() -> list[bytes]:
    """Return the captured scheduler requests that an XML parser accepts."""
    bodies = [path.read_bytes() for path in sorted(CAPTURES.glob("*.request.xml"))]
    return [body for body in bodies if body.startswith(b"<scheduler_request>") and _well_formed(body)]


def _well_formed(body: bytes) -> bool:
    try:
        etree.fromstring(body)
    except etree.XMLSyntaxError:
        return False
    return True


def microseconds_each(function: Callable[[Any], object], inputs: Sequence[object], loops: int) -> float:
    """Return the mean time of one call, over `loops` passes through `inputs`."""
    started = time.perf_counter_ns()
    for _ in range(loops):
        for value in inputs:
            function(value)
    return (time.perf_counter_ns() - started) / (loops * len(inputs) * 1000)


def measure(*, repeats: int, loops: int) -> dict[str, float]:
    """Return medians over `repeats` rounds, each of which runs every function."""
    requests = captured_requests()
    report = [(CAPTURES / REQUEST_WITH_A_REPORT).read_bytes()]
    replies = [decode_reply((CAPTURES / REPLY_WITH_FOUR_JOBS).read_bytes())]
    rows = [
        (
            microseconds_each(decode_request, requests, loops),
            microseconds_each(etree.fromstring, requests, loops),
            microseconds_each(decode_request, report, loops * len(requests)),
            microseconds_each(encode_reply, replies, loops * len(requests)),
        )
        for _ in range(repeats)
    ]
    decode_us, lxml_us, report_us, encode_us = (median(column) for column in zip(*rows, strict=True))
    return {
        "requests": len(requests),
        "mean_bytes": round(fmean(map(len, requests))),
        "repeats": repeats,
        "decode_request_us": round(decode_us, 2),
        "lxml_fromstring_us": round(lxml_us, 2),
        "ratio_to_lxml": round(median(ours / theirs for ours, theirs, *_ in rows), 3),
        "decode_report_us": round(report_us, 2),
        "encode_reply_us": round(encode_us, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--repeats", type=int, default=9, help="rounds (at least 5)")
    parser.add_argument("--loops", type=int, default=30, help="passes through the captures per round")
    arguments = parser.parse_args()
    result = measure(repeats=max(5, arguments.repeats), loops=arguments.loops)
    if arguments.json:
        print(json.dumps(result))
    else:
        for key, value in result.items():
            print(f"{key:20} {value}")


if __name__ == "__main__":
    main()
