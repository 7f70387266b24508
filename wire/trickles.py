"""Trickle messages of a request: where they stand, and what they say. Pure.

The stock client (7.20.5) writes them after the results, each as

      <msg_from_host>
          <result_name>NAME</result_name>
          <time>SECONDS</time>
    what the app wrote: <variety>V</variety> and text, without escapes
      </msg_from_host>

and sends them in every request until a reply has `<message_ack/>`. The text may hold anything that looks like
structure. The messages are found by these rules:

1. they begin at the first `<msg_from_host>` if no `<result>` stands before it, else at the first one that follows a
   line `</result>` at once;
2. they end with the last `</msg_from_host>` of the request: no app writes anything after it;
3. they are divided where the lines of one's end and the next one's begin follow each other.

Limit: an app that writes these very lines forges a message or hides a result, of the host it runs on and no other.
"""

from __future__ import annotations

from domain.quick import quick_dataclass
from domain.units import Instant
from wire import text
from wire.messages import TrickleUp
from wire.scan import Element, Kind, Part

MAX_TRICKLES = 1000  # decoded per request; `more_trickles` counts the others

_OPEN = b"<msg_from_host>"
_CLOSE = b"</msg_from_host>"
_BETWEEN = b"\n  </msg_from_host>\n  <msg_from_host>\n"
_RESULT = b"<result>"
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
    """Where the messages begin and end; both are the end of the request where there are none."""

    starts_at: int
    ends_at: int

    def __bool__(self) -> bool:
        return self.starts_at < self.ends_at


def find_trickles(body: bytes, start: int, end: int) -> TrickleSpan:
    """Find the messages between two positions."""
    if body.rfind(_OPEN, start, end) < 0:  # nearly every request; what is absent is found to be so fastest backwards
        return TrickleSpan(end, end)
    first = body.find(_OPEN, start, end)
    if body.find(_RESULT, start, first) >= 0:
        after = body.find(_AFTER_RESULT, start, end)
        first = body.find(_OPEN, after, end) if after >= 0 else -1
    closed = body.rfind(_CLOSE, first, end) if first >= 0 else -1
    if closed < 0:
        return TrickleSpan(end, end)
    return TrickleSpan(first, closed + len(_CLOSE))


def decode_trickles(body: bytes, span: TrickleSpan) -> tuple[tuple[TrickleUp, ...], int]:
    """The messages, at most MAX_TRICKLES, and how many more there are. ProtocolError names a wrong field."""
    if not span:
        return (), 0
    inside = body[span.starts_at + len(_OPEN) : span.ends_at - len(_CLOSE)]
    pieces = inside.split(_BETWEEN, MAX_TRICKLES)
    more = 1 + pieces[MAX_TRICKLES].count(_BETWEEN) if len(pieces) > MAX_TRICKLES else 0
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
