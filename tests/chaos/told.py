"""Records the server's replies to volunteers, for comparison with the database."""

from __future__ import annotations

from dataclasses import dataclass, field

from domain.jobs import instance_id_of


@dataclass(slots=True)
class Told:
    """One round's jobs (host and instance), acknowledged reports and outputs, and counts.

    A failure may be acknowledged without effect if its instance had ended before: only results count as reports.
    """

    jobs: set[tuple[int, int]] = field(default_factory=set)
    reports: set[tuple[int, int]] = field(default_factory=set)
    failures: set[tuple[int, int]] = field(default_factory=set)
    outputs: dict[str, tuple[int, str]] = field(default_factory=dict)  # name -> bytes, MD5
    requests: int = 0
    answered: int = 0
    repeated: int = 0  # requests and uploads resent on purpose
    refused_outputs: list[str] = field(default_factory=list)  # permanently, although the server had requested them
    broken: int = 0

    def note_job(self, host_id: int, name: str) -> None:
        self.jobs.add((host_id, numbered(name)))

    def note_report(self, host_id: int, name: str, *, success: bool) -> None:
        (self.reports if success else self.failures).add((host_id, numbered(name)))


def numbered(name: str) -> int:
    """Return the instance id in a result's name."""
    instance_id = instance_id_of(name)
    assert instance_id is not None, name
    return instance_id
