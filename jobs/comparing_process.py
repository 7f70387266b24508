"""Child process that compares outputs, one job at a time. A hostile output can exhaust or kill only this process.

    python -m jobs.comparing_process MAX_MEMORY_BYTES MAX_READ_S

It reads one line of JSON per job. It writes a line at the start of each step (`{"step": "parse", "instance": 7}`) and
then a line with the groups. If the process exits without a reply, the last step tells the parent which output was being
read.

The process exits together with its parent, even in the middle of a job: the kernel closes the other end of standard
input and sends SIGIO, which terminates the process. A thread waiting for end of input would not run while a large
output is parsed, and a signal on the parent's death exists only on Linux.
"""

from __future__ import annotations

import fcntl
import json
import os
import resource
import select
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from domain.jobs import ValidatorKind
from domain.units import InstanceId
from jobs.comparisons import Compared, Comparison, OutputFile, compare_here
from lifecycle.leaves import ReadingLimits


def encode_task(comparison: Comparison, paths: Mapping[str, Path], limits: ReadingLimits) -> bytes:
    """Encode a job as one line for the process. `paths` are by file name, and lack files that are not read."""
    return _line(
        {
            "validator": comparison.validator,
            "tolerance": comparison.tolerance,
            "around": comparison.around,
            "limits": [limits.max_bytes, limits.max_values, limits.max_depth],
            "outputs": [
                [
                    instance_id,
                    [[file.name, str(paths.get(file.file_name, "")), file.nbytes, file.md5] for file in files],
                ]
                for instance_id, files in comparison.outputs.items()
            ],
        }
    )


def decode_compared(answer: Mapping[str, Any]) -> Compared:
    """Decode the last line of a reply."""
    return Compared(
        {InstanceId(instance_id): group for instance_id, group in answer["groups"]},
        {InstanceId(instance_id): why for instance_id, why in answer["because"]},
    )


def _decoded(task: Mapping[str, Any]) -> tuple[Comparison, ReadingLimits]:
    outputs = {
        InstanceId(instance_id): tuple(OutputFile(*file) for file in files) for instance_id, files in task["outputs"]
    }
    validator = ValidatorKind(task["validator"])
    return Comparison(validator, task["tolerance"], outputs, task["around"]), ReadingLimits(*task["limits"])


def _answer(task: Mapping[str, Any], max_read_s: int) -> Mapping[str, object]:
    comparison, limits = _decoded(task)

    def contents(file: OutputFile) -> bytes | None:
        try:
            with Path(file.file_name).open("rb") as opened:
                return opened.read(limits.max_bytes + 1)
        except FileNotFoundError:
            return None

    def notify(step: str, instance_id: InstanceId) -> None:
        signal.setitimer(signal.ITIMER_PROF, max_read_s)  # in processor time: SIGPROF terminates this process
        _say({"step": step, "instance": instance_id})

    try:
        found = compare_here(comparison, contents, limits, notify)
    except OSError as error:
        return {"failed": str(error)}
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
    return {"groups": list(found.groups.items()), "because": list(found.because.items())}


@contextmanager
def _ends_with_parent() -> Iterator[None]:
    """Within the block, exit when the parent exits. The parent sends nothing until it has the reply."""
    number = sys.stdin.fileno()
    flags = fcntl.fcntl(number, fcntl.F_GETFL)
    fcntl.fcntl(number, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(number, fcntl.F_SETFL, flags | os.O_ASYNC)
    try:
        if select.select([number], [], [], 0)[0]:  # the parent exited before the signal was enabled
            signal.raise_signal(signal.SIGIO)
        yield
    finally:
        fcntl.fcntl(number, fcntl.F_SETFL, flags)


def _say(message: Mapping[str, object]) -> None:
    sys.stdout.buffer.write(_line(message))
    sys.stdout.buffer.flush()


def _line(message: Mapping[str, object]) -> bytes:
    return json.dumps(message).encode() + b"\n"


def main() -> None:
    """Process tasks until the end of input. If a task exceeds the memory limit, report this and exit."""
    max_memory_bytes, max_read_s = int(sys.argv[1]), int(sys.argv[2])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # sent by a terminal; the parent stops this process instead
    resource.setrlimit(resource.RLIMIT_AS, (max_memory_bytes, max_memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGIO, signal.SIG_DFL)
    for line in sys.stdin.buffer:
        try:
            with _ends_with_parent():
                answer = _answer(json.loads(line), max_read_s)
        except MemoryError:
            _say({"no_memory": True})
            return
        _say(answer)


if __name__ == "__main__":
    main()
