"""Decides whether a reported result succeeded and, if not, why. Pure.

States and exit statuses are those of the client (docs/protocol.md#reports).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from domain.dispatch import ReportedFile, ReportedResult, Upload
from domain.jobs import Output, output_file_name
from lifecycle.states import Event

STATE_DOWNLOADING = 1
STATE_UPLOADED = 5
STATE_ABORTED = 6
STATE_UPLOAD_FAILED = 7

EXIT_DOWNLOAD_FAILED = -186
EXIT_TOO_MANY_RESTARTS = -226

# The client's statuses 196 to 203 apply only in state 6; in state 3 they are the exit code of the program.
_GIVEN_UP: Mapping[int, tuple[Event, str]] = MappingProxyType(
    {
        200: (Event.UNSTARTED, "its due date passed before the client started it"),
        202: (Event.SERVER_ABORTED, "aborted by the server"),
        203: (Event.USER_ABORTED, "aborted by the user"),
    }
)
_STOPPED: Mapping[int, str] = MappingProxyType(
    {
        196: "it used more disk than the job allows (exit status 196)",
        197: "it ran longer than the job's fpops_bound allows (exit status 197)",
        198: "it used more memory than the job allows (exit status 198)",
        201: "the GPU it needs is missing (exit status 201)",
    }
)
_CAUSES: Mapping[int, str] = MappingProxyType(
    {
        EXIT_DOWNLOAD_FAILED: "the client could not download its files (exit status -186)",
        EXIT_TOO_MANY_RESTARTS: "the program ended too often without a finish file (exit status -226)",
    }
)


class Judgement(NamedTuple):
    """The event that a report stands for, and the reason in words (empty for a success)."""

    event: Event
    reason: str


def judge_report(result: ReportedResult, outputs: Sequence[Output] = (), uploads: Iterable[Upload] = ()) -> Judgement:
    """Judge a reported result by the job's `outputs` and the uploads on the server.

    A success requires state 5, exit status 0 and all required outputs on the server, with the MD5 and size that the
    client reported and within max_bytes. An optional output is checked in the same way if the client reports an upload.

    >>> judge_report(ReportedResult("pi_1_1_1", state=3, exit_status=3)).reason
    'the program ended with exit status 3'
    """
    if result.state == STATE_ABORTED and result.exit_status in _GIVEN_UP:
        return Judgement(*_GIVEN_UP[result.exit_status])
    reason = _program_fault(result) or _outputs_fault(result, outputs, uploads) or _client_fault(result)
    return Judgement(Event.FAILED, reason) if reason else Judgement(Event.SUCCEEDED, "")


def _program_fault(result: ReportedResult) -> str:
    if result.state == STATE_ABORTED and result.exit_status in _STOPPED:
        return _STOPPED[result.exit_status]
    if result.exit_status in _CAUSES:
        return _CAUSES[result.exit_status]
    return f"the program ended with exit status {result.exit_status}" if result.exit_status != 0 else ""


def _outputs_fault(result: ReportedResult, outputs: Sequence[Output], uploads: Iterable[Upload]) -> str:
    """Describe the first invalid output, or return an empty string if all are valid."""
    if not outputs:
        return ""
    uploaded = {upload.name: upload for upload in uploads}
    claimed = {file.name: file for file in result.files}
    for position, output in enumerate(outputs):
        name = output_file_name(result.name, position)
        fault = _output_fault(output, name, claimed.get(name), uploaded.get(name))
        if fault:
            return fault
    return ""


def _output_fault(output: Output, file_name: str, claimed: ReportedFile | None, uploaded: Upload | None) -> str:
    if claimed is None:
        missing = f"output {output.name} was not produced, or is larger than {output.max_bytes} bytes"
        return "" if output.optional else missing
    if claimed.error:
        return "" if output.optional else f"output {output.name} was not uploaded: {claimed.error}"
    if uploaded is None:
        return f"output {output.name} ({file_name}) is not on the server"
    if uploaded.md5.lower() != claimed.md5.lower():
        return f"output {output.name} has MD5 {uploaded.md5} on the server, the client claims {claimed.md5 or 'none'}"
    if uploaded.nbytes != claimed.nbytes:
        return f"output {output.name} has {uploaded.nbytes} bytes on the server, the client claims {claimed.nbytes:.0f}"
    if uploaded.nbytes > output.max_bytes:
        return f"output {output.name} has {uploaded.nbytes} bytes, the job allows {output.max_bytes}"
    return ""


def _client_fault(result: ReportedResult) -> str:
    if result.state == STATE_UPLOADED:
        return ""
    if result.state == STATE_DOWNLOADING:
        return "the client could not download its files (state 1)"
    if result.state == STATE_UPLOAD_FAILED:
        return "the client could not upload its outputs (state 7)"
    return f"the client ended it in state {result.state} with exit status 0, not in state {STATE_UPLOADED} (uploaded)"
