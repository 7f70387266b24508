"""Builds client requests from a captured request and another host's fields. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

MARK = b"\0"
RESULT = b"<result>\n<name>"  # start of each result in a reply; does not occur elsewhere


def authenticator_of(volunteer_id: int) -> bytes:
    """Return the account key of a seeded volunteer."""
    return hashlib.md5(b"volunteer %d" % volunteer_id).hexdigest().encode()


def cpid_of(host_id: int) -> bytes:
    """Return the CPID of a seeded host."""
    return hashlib.md5(b"host %d" % host_id).hexdigest().encode()


@dataclass(slots=True)
class ClientHost:
    """A client's state. Its next request reports the results of the last reply."""

    host_id: int
    held: list[bytes] = field(default_factory=list)
    seqno: int = 1
    number: bytes = b""
    authenticator: bytes = b""
    cpid: bytes = b""

    def __post_init__(self) -> None:
        self.number = str(self.host_id).encode()
        self.authenticator = authenticator_of((self.host_id + 1) // 2)
        self.cpid = cpid_of(self.host_id)


class Template:
    """A captured request, split where hosts differ so that building a request takes one join.

    Every request asks for `jobs` jobs: one per idle processor, without additional seconds of work.
    """

    def __init__(self, capture: bytes, *, jobs: int, code_sign_key: str, address: str) -> None:
        body, report = _without_report(capture)
        for tag, value in (
            (b"cpu_req_secs", b"1.000000"),
            (b"work_req_seconds", b"1.000000"),
            (b"cpu_req_instances", b"%d.000000" % jobs),
            (b"p_ncpus", b"%d" % jobs),
            (b"code_sign_key", b"\n" + code_sign_key.strip().encode() + b"\n"),
            (b"authenticator", MARK),
            (b"hostid", MARK),
            (b"rpc_seqno", MARK),
            (b"host_cpid", MARK),
        ):
            body = _with(body, tag, value)
        self._pieces: tuple[bytes, ...] = tuple(body.split(MARK))
        self._before_name, self._after_name = _with(report, b"name", MARK).split(MARK)
        self._size = sum(map(len, self._pieces))
        self._head = (
            b"POST /scheduler HTTP/1.1\r\nHost: " + address.encode() + b"\r\n"
            b"User-Agent: BOINC client (x86_64-pc-linux-gnu 7.20.5)\r\nAccept: */*\r\n"
            b"Accept-Encoding: deflate, gzip, br, zstd\r\nContent-Type: application/x-www-form-urlencoded\r\n"
            b"Content-Length: "
        )

    def request(self, host: ClientHost, seqno: int) -> bytes:
        """Return an HTTP request that reports every job in progress on the host and requests as many again."""
        before, after = self._before_name, self._after_name
        reports = b"".join([before + name + after for name in host.held])
        number = b"%d" % seqno
        varying = len(host.authenticator) + len(host.number) + len(number) + len(host.cpid) + len(reports)
        a, b, c, d, e, f = self._pieces
        length = b"%d\r\n\r\n" % (self._size + varying)
        fields = (a, host.authenticator, b, host.number, c, number, d, host.cpid, e, reports, f)
        return b"".join((self._head, length, *fields))


def results_of(reply: bytes) -> Sequence[bytes]:
    """Return the names of the results in a reply.

    >>> results_of(b"<workunit>\\n<name>a_1_2</name>\\n</workunit>\\n<result>\\n<name>a_1_2_3</name>\\n</result>\\n")
    [b'a_1_2_3']
    """
    return [piece[: piece.index(b"<")] for piece in reply.split(RESULT)[1:]]


def _without_report(capture: bytes) -> tuple[bytes, bytes]:
    """Return the request with a placeholder for its report, and the report without files, as jobs have no outputs."""
    found = re.search(rb"<result>\n.*?</result>\n", capture, re.DOTALL)
    if found is None:
        raise ValueError("capture: expected a request with a report, got one without")
    report = re.sub(rb"<file_info>.*?</file_info>\n", b"", found.group(), flags=re.DOTALL)
    return capture[: found.start()] + MARK + capture[found.end() :], report


def _with(text: bytes, tag: bytes, value: bytes) -> bytes:
    """Return the text with `value` as the content of the first element of this name."""
    element = b"<" + tag + b">" + value + b"</" + tag + b">"
    changed, count = re.subn(b"<%s>[^<]*</%s>" % (tag, tag), lambda _: element, text, count=1)
    if count != 1:
        raise ValueError(f"capture: expected an element <{tag.decode()}>, got none")
    return changed
