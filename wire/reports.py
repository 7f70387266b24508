"""Decodes the results and trickle messages of a request, and separates them from text written by apps. Pure.
docs/protocol.md.

A result contains an app's unescaped stderr, which may imitate any structure. Real structure can be recognised because
the stock client writes `<result>`, `</result>`, `<stderr_out>` and `</stderr_out>` on lines of their own, and nothing
before the first `<result>` or after the last `</result>` comes from an app. So

1. the results lie between the first `<result>` and the last `</result>` of the request;
2. they are split where a line `</result>` is followed by a line `<result>`;
3. a piece whose `<stderr_out>` is not closed on a line of its own was split inside stderr: it is joined with
   the next piece;
4. within a result, stderr extends from the first `<stderr_out>` to the last line `</stderr_out>`.

Limit: an app can forge a result by writing, on lines of their own, `</stderr_out>`, `</result>`, `<result>` and a
complete result, which no reader can detect. It can name only results of its own host, because the scheduler accepts
reports only for results assigned to that host. Trickle messages, also written by apps, follow the results and are found
first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from domain.dispatch import ReportedFile, ReportedResult
from domain.quick import quick_dataclass
from domain.units import Instant, Seconds
from wire import text
from wire.messages import TrickleUp
from wire.scan import MAX_TEXT_CHARS, Element, Kind, Part, Tag, span_of, spans

MAX_RESULTS = 1000  # per request; the client reports further results again
MAX_FILES_PER_RESULT = 1000
MAX_STDERR_BYTES = 64 * 1024  # the client sends at most 63 KB of an app's output
_MAX_STDERR_ESCAPED_BYTES = 6 * MAX_STDERR_BYTES  # a byte >= 128 takes six

_OPEN = b"<result>"
_CLOSE = b"</result>"
_BETWEEN = b"\n</result>\n<result>\n"
_STDERR_OPEN = b"<stderr_out>"
_STDERR_CLOSE = b"</stderr_out>"
_STDERR_CLOSE_LINE = b"\n</stderr_out>"
_CDATA_OPEN = b"<![CDATA["
_CDATA_CLOSE = b"]]>"
_VERSION_CLOSE = b"</core_client_version>"
_VERSION_BYTES = 400  # longer than the line with the client's version

_HIGH_BYTE = re.compile(rb"&#(1(?:2[89]|[3-9][0-9])|2(?:[0-4][0-9]|5[0-5]));")

_RESULT = Part(
    "result",
    Element("name", Kind.NAME, default=None),
    Element("final_cpu_time", Kind.NUMBER, default=b"0"),
    Element("final_elapsed_time", Kind.NUMBER, default=b"0"),
    Element("exit_status", Kind.WHOLE, default=b"0"),
    Element("state", Kind.WHOLE, default=b"0"),
    Element("platform"),
    Element("version_num", Kind.WHOLE, default=b"0"),
    Element("plan_class", Kind.NAME, optional=True),
    Element("final_peak_working_set_size"),
    Element("final_peak_swap_size"),
    Element("final_peak_disk_usage"),
    Element("app_version_num"),
    then=rb"[^<]*+\Z",
)

_FILE = Part(
    "file_info",
    Element("name", Kind.NAME, default=None),
    Element("nbytes", Kind.NUMBER, default=b"0"),
    Element("max_nbytes"),
    Element("md5_cksum", Kind.NAME),
    Element("upload_url"),
)


_ERROR = Tag("error_msg")


@quick_dataclass(frozen=True, slots=True)
class StderrFence:
    """The bounds of the reported results. Text before `opens_at` or after `closes_at` does not come from an app.

    Without results, `opens_at` is the end of the request and `closes_at` its start.
    """

    opens_at: int
    closes_at: int


def fence_results(body: bytes, start: int, end: int) -> StderrFence:
    """Find the results between two positions. Raises ProtocolError if there is a `<result>` but none is closed."""
    opened = body.rfind(_OPEN, start, end)  # a backward search is the fastest way to find out that there is none
    if opened < 0:
        return StderrFence(end, start)
    if body.rfind(_OPEN, start, opened) >= 0:
        opened = body.find(_OPEN, start, opened)
    closed = body.rfind(_CLOSE, opened, end)
    if closed < 0:
        raise text.missing("</result>", "scheduler_request")
    return StderrFence(opened, closed)


def decode_results(body: bytes, fence: StderrFence) -> tuple[ReportedResult, ...]:
    """Decode the reported results, at most MAX_RESULTS. Raises ProtocolError naming the wrong field."""
    if fence.opens_at > fence.closes_at:
        return ()
    region = body[fence.opens_at + len(_OPEN) : fence.closes_at]
    pieces = region.split(_BETWEEN, MAX_RESULTS)[:MAX_RESULTS]
    return tuple([_result(piece) for piece in (pieces if len(pieces) == 1 else _rejoined(pieces))])


def _rejoined(pieces: list[bytes]) -> Iterator[bytes]:
    """Join pieces that were split inside stderr (rule 3). Linear: each piece is searched twice."""
    open_pieces: list[bytes] = []
    for piece in pieces:
        open_pieces.append(piece)
        cut_inside_stderr = len(open_pieces) > 1 or _STDERR_OPEN in piece
        if cut_inside_stderr and _STDERR_CLOSE_LINE not in piece:
            continue
        yield _BETWEEN.join(open_pieces) if len(open_pieces) > 1 else piece
        open_pieces = []
    if open_pieces:
        yield _BETWEEN.join(open_pieces)


def _result(piece: bytes) -> ReportedResult:
    stderr_at, files_at = _stderr_bounds(piece)
    name, cpu_s, elapsed_s, exit_status, state, version_num, plan_class = _RESULT.read(piece, 0, stderr_at)
    return ReportedResult(
        name=name.decode(),
        state=int(state),
        exit_status=int(exit_status),
        elapsed_s=Seconds(float(elapsed_s)),
        cpu_s=Seconds(float(cpu_s)),
        version_num=int(version_num),
        plan_class=plan_class.decode(),
        stderr=_stderr(piece[stderr_at:files_at]) if stderr_at < files_at else "",
        files=_files(piece, files_at),
    )


def _stderr_bounds(piece: bytes) -> tuple[int, int]:
    """Return where stderr begins and ends (rule 4); without stderr, twice the position before the files."""
    opened = piece.find(_STDERR_OPEN)
    if opened < 0:
        files_at = piece.find(_FILE.open)
        at = files_at if files_at >= 0 else len(piece)
        return at, at
    closed = piece.rfind(_STDERR_CLOSE_LINE, opened)
    if closed < 0:
        closed = piece.rfind(_STDERR_CLOSE, opened)
    return opened, closed if closed >= 0 else len(piece)


def _stderr(element: bytes) -> str:
    """Return the output of the app and the client: the content of the CDATA section or, without one, of the element.

    The client's text is in `<message>`, the app's in `<stderr_txt>`. Only the end of too long a text is kept.
    """
    version_end = element.find(_VERSION_CLOSE, 0, _VERSION_BYTES)
    content = element[version_end + len(_VERSION_CLOSE) if version_end >= 0 else len(_STDERR_OPEN) :].strip()
    if content.startswith(_CDATA_OPEN):
        content = content.removeprefix(_CDATA_OPEN).removesuffix(_CDATA_CLOSE).strip()
    content = content[-_MAX_STDERR_ESCAPED_BYTES:]
    if b"&#" in content:
        content = _HIGH_BYTE.sub(_byte, content)
    kept = content.translate(None, text.CONTROL_BYTES)[-MAX_STDERR_BYTES:]
    return kept.decode("utf-8", "replace")


def _byte(match: re.Match[bytes]) -> bytes:
    return bytes((int(match[1]),))


def _files(piece: bytes, start: int) -> tuple[ReportedFile, ...]:
    """Decode the uploaded files after stderr. A file whose upload was permanently refused has an error."""
    end = len(piece)
    rows = _FILE.read_all(piece, start, end, at_most=MAX_FILES_PER_RESULT)
    if not rows:
        return ()
    if piece.rfind(_ERROR.open, start, end) < 0:
        return tuple([ReportedFile(name.decode(), float(nbytes), md5.decode()) for name, nbytes, md5 in rows])
    errors = (_error(piece, *inside) for inside in spans(piece, _FILE, start, end))
    return tuple(
        ReportedFile(name.decode(), float(nbytes), md5.decode(), error)
        for (name, nbytes, md5), error in zip(rows, errors, strict=True)
    )


def _error(piece: bytes, start: int, end: int) -> str:
    inside = span_of(piece, _ERROR, start, end)
    return "" if inside is None else text.plain(piece[inside[0] : inside[1]])[:MAX_TEXT_CHARS]


# ---- trickle messages
# The stock client (7.20.5) writes them after the results, each as
#
#     <msg_from_host>
#         <result_name>NAME</result_name>
#         <time>SECONDS</time>
#     what the app wrote: <variety>V</variety> and text, without escapes
#     </msg_from_host>
#
# and sends them in every request until a reply contains `<message_ack/>`. The text may imitate any structure. The
# messages are found by these rules:
#
# 1. they begin at the first `<msg_from_host>` if no `<result>` precedes it, otherwise at the first one right after a
#    line `</result>`;
# 2. they end with the last `</msg_from_host>` of the request, because apps write nothing after it;
# 3. they are split where the last lines of one message are followed by the first lines of the next.
#
# Limit: an app that writes these exact lines can forge a message or hide a result, but only of its own host.

MAX_TRICKLES = 1000  # decoded per request; `more_trickles` counts the rest

_TRICKLE_OPEN = b"<msg_from_host>"
_TRICKLE_CLOSE = b"</msg_from_host>"
_TRICKLE_BETWEEN = b"\n  </msg_from_host>\n  <msg_from_host>\n"
_TRICKLE_RESULT = b"<result>"
_AFTER_RESULT = b"\n</result>\n  <msg_from_host>\n"
_VARIETY_OPEN = b"<variety>"
_VARIETY_CLOSE = b"</variety>"
_MOST_VARIETY_BYTES = 255

_HEAD = Part(
    "msg_from_host",
    Element("result_name", Kind.NAME, default=None),
    Element("time", Kind.NUMBER, default=b"0"),
)
_HEAD_CLOSE = b"</time>"


@quick_dataclass(frozen=True, slots=True)
class TrickleSpan:
    """Where the messages begin and end. Both are the end of the request if there are none."""

    starts_at: int
    ends_at: int

    def __bool__(self) -> bool:
        return self.starts_at < self.ends_at


def find_trickles(body: bytes, start: int, end: int) -> TrickleSpan:
    """Find the messages between two positions."""
    if (
        body.rfind(_TRICKLE_OPEN, start, end) < 0
    ):  # the usual case; a backward search is the fastest way to find nothing
        return TrickleSpan(end, end)
    first = body.find(_TRICKLE_OPEN, start, end)
    if body.find(_TRICKLE_RESULT, start, first) >= 0:
        after = body.find(_AFTER_RESULT, start, end)
        first = body.find(_TRICKLE_OPEN, after, end) if after >= 0 else -1
    closed = body.rfind(_TRICKLE_CLOSE, first, end) if first >= 0 else -1
    if closed < 0:
        return TrickleSpan(end, end)
    return TrickleSpan(first, closed + len(_TRICKLE_CLOSE))


def decode_trickles(body: bytes, span: TrickleSpan) -> tuple[tuple[TrickleUp, ...], int]:
    """Decode at most MAX_TRICKLES messages and count the rest. Raises ProtocolError naming the wrong field."""
    if not span:
        return (), 0
    inside = body[span.starts_at + len(_TRICKLE_OPEN) : span.ends_at - len(_TRICKLE_CLOSE)]
    pieces = inside.split(_TRICKLE_BETWEEN, MAX_TRICKLES)
    more = 1 + pieces[MAX_TRICKLES].count(_TRICKLE_BETWEEN) if len(pieces) > MAX_TRICKLES else 0
    return tuple([_trickle(piece) for piece in pieces[:MAX_TRICKLES]]), more


def _trickle(piece: bytes) -> TrickleUp:
    head_end = piece.find(_HEAD_CLOSE)
    head_end = head_end + len(_HEAD_CLOSE) if head_end >= 0 else len(piece)
    name, sent_at = _HEAD.read(piece, 0, head_end)
    content = piece[head_end:].strip()
    variety = b""
    if content.startswith(_VARIETY_OPEN):
        closed = content.find(_VARIETY_CLOSE, 0, len(_VARIETY_OPEN) + _MOST_VARIETY_BYTES + len(_VARIETY_CLOSE))
        if closed >= 0:
            variety = content[len(_VARIETY_OPEN) : closed]
            content = content[closed + len(_VARIETY_CLOSE) :].strip()
    return TrickleUp(name.decode(), Instant(float(sent_at)), _clean(variety), _clean(content))


def _clean(value: bytes) -> str:
    return value.translate(None, text.CONTROL_BYTES).decode("utf-8", "replace")
