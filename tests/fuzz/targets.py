"""Lists the fuzz targets: every place that reads untrusted bytes. Each takes bytes and must not raise.

A target catches expected errors (a refusal that names the field); anything else raised is a finding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.fuzz.api import api_seeds, api_target
from tests.fuzz.scheduling import answer_seeds, answer_target, decode_target
from tests.fuzz.short import shortened
from tests.fuzz.uploading import upload_seeds, upload_target
from tests.fuzz.watch import Run
from wire.decode import decode_request

CAPTURES = Path(__file__).parents[1] / "captures"
FINDINGS = Path(__file__).parent / "findings"
WHOLE_OF = 6  # one request in this many stays as captured


@dataclass(frozen=True, slots=True)
class Target:
    """`make` returns the function under test, `seeds` the initial inputs."""

    make: Callable[[], Run]
    seeds: Callable[[], Sequence[bytes]]


def captured(opening: bytes) -> list[bytes]:
    """Return the bodies of the stock client's requests that begin with this text."""
    bodies = (path.read_bytes() for path in sorted(CAPTURES.glob("*.request.xml")))
    return [body for body in bodies if body.lstrip().startswith(opening)]


@cache
def scheduler_requests() -> tuple[bytes, ...]:
    """Return the requests without unread elements, and some of them whole."""
    whole = captured(b"<scheduler_request>")
    return (*(shortened(raw, decode_request) for raw in whole), *whole[::WHOLE_OF])


TARGETS: Mapping[str, Target] = {
    "decode": Target(lambda: decode_target, scheduler_requests),
    "answer": Target(answer_target, lambda: [*scheduler_requests(), *answer_seeds()]),
    "upload": Target(upload_target, lambda: [*captured(b"<data_server_request>"), *upload_seeds()]),
    "api": Target(api_target, api_seeds),
}
