"""Encodes and decodes file uploads and their replies. Pure. docs/protocol.md.

An upload is a text header followed by the raw bytes of the file, without closing tags. The header ends with the first
`<data>` line, so file content cannot be mistaken for a header.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from wire import text
from wire.messages import ProtocolError, SizeQuery, UploadHeader, UploadReply

MAX_HEAD_BYTES = 16 * 1024
MAX_FILE_NAME_BYTES = 255

STATUS_DONE = 0
STATUS_TRY_AGAIN = 1
STATUS_NEVER = -1

_OPEN = b"<data_server_request>"
_CLOSE = b"</data_server_request>"
_DATA = b"<data>\n"
_HEAD_TOO_LONG_STATUS = 413

# Possessive: each attempt ends at the next "<", so that any input is read in linear time.
_FIELD = re.compile(rb"<(\w++)>([^<]*+)</")
_MD5 = re.compile(r"[0-9a-f]{32}")

_CLIENT_VERSION = """\
    <core_client_major_version>7</core_client_major_version>
    <core_client_minor_version>20</core_client_minor_version>
    <core_client_release>5</core_client_release>
"""


@dataclass(frozen=True, slots=True)
class UploadStart:
    """The header of an upload request, and the position of the first byte of the file.

    A size query has no file; its `payload_at` is the end of the request.
    """

    message: SizeQuery | UploadHeader
    payload_at: int


def valid_file_name(name: str) -> bool:
    """Return whether clients accept a file with that name and a server can store it safely.

    At most 255 bytes of UTF-8; printable; no leading or trailing blank; no leading dot; none of
    `/ \\ % < > &` and no `..`.

    >>> valid_file_name("pi_17_0_out"), valid_file_name("../etc/passwd"), valid_file_name(".hidden")
    (True, False, False)
    """
    if not name or not name.isprintable() or name != name.strip() or name.startswith("."):
        return False
    if ".." in name or any(character in name for character in "/\\%<>&"):
        return False
    return len(name.encode()) <= MAX_FILE_NAME_BYTES


def valid_open_name(name: str) -> bool:
    """Return whether a program can open a file under that name in its folder: file names, joined by slashes.

    >>> [valid_open_name(name) for name in ("out/model.nc", "/etc/passwd", "a//b", "../a")]
    [True, False, False, False]
    """
    return len(name.encode("utf-8", "replace")) <= MAX_FILE_NAME_BYTES and all(map(valid_file_name, name.split("/")))


def decode_upload_head(data: bytes) -> UploadStart | None:
    """Decode the header of an upload request from its first bytes.

    Returns None if the header is incomplete: call again with more bytes. Names are not checked: use `valid_file_name`.
    Raises ProtocolError if it is not an upload request, is longer than MAX_HEAD_BYTES, or has a missing or wrong field.
    """
    if not _may_begin_request(data):
        raise text.unexpected("upload request", _OPEN.decode(), data)
    data_at = data.find(_DATA, 0, MAX_HEAD_BYTES)
    close_at = data.find(_CLOSE, 0, data_at if data_at >= 0 else MAX_HEAD_BYTES)
    if close_at >= 0:
        return UploadStart(_size_query(data[:close_at]), close_at + len(_CLOSE))
    if data_at >= 0:
        return UploadStart(_upload_header(data[:data_at]), data_at + len(_DATA))
    if len(data) >= MAX_HEAD_BYTES:
        raise ProtocolError(f"upload header: expected at most {MAX_HEAD_BYTES} bytes", _HEAD_TOO_LONG_STATUS)
    return None


def _may_begin_request(data: bytes) -> bool:
    start = data[: len(_OPEN) + 64].lstrip()
    return start.startswith(_OPEN) or _OPEN.startswith(start)


def _size_query(head: bytes) -> SizeQuery:
    fields = dict(_FIELD.findall(head))
    if b"get_file_size" not in fields:
        raise text.missing("get_file_size", "data_server_request")
    return SizeQuery(text.name(fields[b"get_file_size"], "get_file_size"))


def _upload_header(head: bytes) -> UploadHeader:
    fields = dict(_FIELD.findall(head))
    for required in (b"name", b"max_nbytes", b"nbytes", b"md5_cksum", b"offset"):
        if required not in fields:
            raise text.missing(required.decode(), "file_upload")
    md5 = text.line(fields[b"md5_cksum"]).lower()
    if not _MD5.fullmatch(md5):
        raise text.unexpected("md5_cksum", "32 hexadecimal digits", fields[b"md5_cksum"])
    return UploadHeader(
        name=text.name(fields[b"name"], "name"),
        token=text.plain(fields.get(b"xml_signature", b"")),
        max_bytes=_size(fields, b"max_nbytes"),
        nbytes=_size(fields, b"nbytes"),
        md5=md5,
        offset=_size(fields, b"offset"),
    )


def _size(fields: dict[bytes, bytes], field: bytes) -> int:
    value = text.whole(fields[field], field.decode())
    if value < 0:
        raise text.unexpected(field.decode(), "a whole number >= 0", fields[field])
    return value


def encode_upload_reply(reply: UploadReply) -> bytes:
    """Encode the reply to an upload or a size query."""
    lines = ["<data_server_reply>", f"    <status>{reply.status}</status>"]
    if reply.message:
        lines.append(f"    <message>{text.escape(reply.message)}</message>")
    if reply.file_size is not None:
        lines.append(f"    <file_size>{reply.file_size}</file_size>")
    lines.append("</data_server_reply>\n")
    return "\n".join(lines).encode("utf-8", "replace")


# ------------------------------------------------------------------ the client's side


def encode_size_query(query: SizeQuery) -> bytes:
    """Encode the request that a client sends before it uploads a large file."""
    name = text.escape(query.name)
    request = f"<data_server_request>\n{_CLIENT_VERSION}    <get_file_size>{name}</get_file_size>\n"
    return (request + "</data_server_request>\n").encode()


def encode_upload_header(header: UploadHeader) -> bytes:
    """Encode the header of an upload, up to and including the `<data>` line."""
    return (
        f"<data_server_request>\n{_CLIENT_VERSION}<file_upload>\n<file_info>\n"
        f"<name>{text.escape(header.name)}</name>\n"
        f"<xml_signature>\n{text.escape(header.token)}</xml_signature>\n"
        f"<max_nbytes>{header.max_bytes}</max_nbytes>\n</file_info>\n"
        f"<nbytes>{header.nbytes}</nbytes>\n<md5_cksum>{header.md5}</md5_cksum>\n"
        f"<offset>{header.offset}</offset>\n<data>\n"
    ).encode()


def decode_upload_reply(body: bytes) -> UploadReply:
    """Decode the server's reply. Raises ProtocolError if it is invalid or has no status."""
    if b"<data_server_reply>" not in body or b"</data_server_reply>" not in body:
        raise text.unexpected("upload reply", "<data_server_reply> with its closing tag", body)
    fields = dict(_FIELD.findall(body))
    if b"status" not in fields:
        raise text.missing("status", "data_server_reply")
    size = fields.get(b"file_size")
    return UploadReply(
        status=text.whole(fields[b"status"], "status"),
        message=text.plain(fields.get(b"message", b"")),
        file_size=None if size is None else text.whole(size, "file_size"),
    )
