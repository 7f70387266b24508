"""Runs one input against a target and reports failures: an exception, too much time, or too much memory.

Time is CPU time of all threads, because the machine may be busy. A slow input is run again, because of possible garbage
collection; the shortest time counts.
"""

from __future__ import annotations

import hashlib
import resource
import signal
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

MOST_S = 0.1
ENDLESS_S = 60.0
MOST_BYTES = 50 * 1024 * 1024
AGAIN = 3

Run = Callable[[bytes], None]


@dataclass(frozen=True, slots=True)
class Finding:
    """An input that the target did not handle properly."""

    target: str
    kind: str  # crash, hang, endless or memory
    what: str
    raw: bytes

    @property
    def name(self) -> str:
        """Return one file name for all inputs that fail at the same place, to keep findings few."""
        place = self.what if self.kind in ("crash", "endless") else self.target
        return f"{self.kind}-{hashlib.sha256(place.encode()).hexdigest()[:12]}"

    def save(self, folder: Path) -> Path:
        """Save the input if it is the smallest of this name, with its effect."""
        folder = folder / self.target
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / self.name
        if not path.exists() or path.stat().st_size > len(self.raw):
            path.write_bytes(self.raw)
            path.with_suffix(".txt").write_text(self.what + "\n", encoding="utf-8")
        return path


class EndlessError(BaseException):
    """An input used a minute of CPU time; targets must not catch this."""


def end_what_is_endless(within_s: float = ENDLESS_S) -> None:
    """Make `tried` stop an input after this much CPU time of this process; a stopped process does not count."""

    def give_up(number: int, frame: object) -> None:
        raise EndlessError

    signal.signal(signal.SIGPROF, give_up)
    signal.setitimer(signal.ITIMER_PROF, within_s)


def tried(target: str, run: Run, raw: bytes, *, endless_s: float = 0.0) -> Finding | None:
    """Run it once (more often if slow); None if all was well. `endless_s` 0: without limit."""
    before_bytes = peak_bytes()
    began_s = time.process_time()
    if endless_s:
        end_what_is_endless(endless_s)
    try:
        run(raw)
    except Exception as error:
        return Finding(target, "crash", where(error), raw)
    except EndlessError as error:
        return Finding(target, "endless", where(error), raw)
    finally:
        if endless_s:
            signal.setitimer(signal.ITIMER_PROF, 0.0)
    took_s = time.process_time() - began_s
    more_bytes = peak_bytes() - before_bytes
    if more_bytes > MOST_BYTES:
        return Finding(target, "memory", f"{more_bytes} bytes more than before", raw)
    if took_s > MOST_S and (least_s := min(_timed(run, raw) for _ in range(AGAIN))) > MOST_S:
        return Finding(target, "hang", f"{least_s:.3f} s of {len(raw)} bytes", raw)
    return None


def _timed(run: Run, raw: bytes) -> float:
    began_s = time.process_time()
    run(raw)
    return time.process_time() - began_s


def peak_bytes() -> int:
    """Return the peak memory of the process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def where(error: BaseException) -> str:
    """Return the error and its stack, which identify a finding."""
    frames = traceback.extract_tb(error.__traceback__)
    places = [f"{Path(frame.filename).name}:{frame.name}:{frame.lineno}" for frame in frames[-3:]]
    return f"{type(error).__name__} at {' < '.join(reversed(places))}"
