"""What is fuzzed: every place where bytes of strangers are read. Each target takes bytes and may raise nothing.

What a target expects (a refusal that names the field) it takes; anything else that is raised is a finding.
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
WHOLE_OF = 6  # one request in so many is kept as it came


@dataclass(frozen=True, slots=True)
class Target:
    """`make` gives what runs an input, `seeds` the inputs that others are made of."""

    make: Callable[[], Run]
    seeds: Callable[[], Sequence[bytes]]


def captured(opening: bytes) -> list[bytes]:
    """The bodies of the stock client's requests that begin so."""
    bodies = (path.read_bytes() for path in sorted(CAPTURES.glob("*.request.xml")))
    return [body for body in bodies if body.lstrip().startswith(opening)]


@cache
def scheduler_requests() -> tuple[bytes, ...]:
    """What is read of each, and some of them whole."""
    whole = captured(b"<scheduler_request>")
    return (*(shortened(raw, decode_request) for raw in whole), *whole[::WHOLE_OF])


TARGETS: Mapping[str, Target] = {
    "decode": Target(lambda: decode_target, scheduler_requests),
    "answer": Target(answer_target, lambda: [*scheduler_requests(), *answer_seeds()]),
    "upload": Target(upload_target, lambda: [*captured(b"<data_server_request>"), *upload_seeds()]),
    "api": Target(api_target, api_seeds),
}
