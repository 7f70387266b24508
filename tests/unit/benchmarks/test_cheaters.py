"""The benchmark of cheaters runs on the real services, and distinguishes right from wrong answers."""

from __future__ import annotations

from benchmarks.cheaters.measuring import measured
from benchmarks.cheaters.tricks import TRICKS


def test_garbage_is_believed_at_a_quorum_of_one() -> None:
    """Without a check, three clients that compute nothing take every job at once."""
    [trick] = [one for one in TRICKS if one.name == "garbage"]
    gain = measured(trick, 1, {})
    assert (gain.jobs, gain.failed, gain.unfinished) == (1000, 0, 0)
    assert gain.wrong == gain.taken > 900
    assert gain.makespan_h < 1.0
