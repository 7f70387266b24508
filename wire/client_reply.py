"""What a scheduler reply says, for a client that is not the stock one. Pure. PROTOCOL 5.

A server escapes all text, so a reply has no ambiguity; unknown elements are skipped and the order is free.
"""

from __future__ import annotations

import re

from domain.units import Instant, Seconds
from wire import text
from wire.messages import (
    AppElement,
    AppVersionElement,
    DownloadElement,
    FileRef,
    Message,
    ResultElement,
    SchedulerReply,
    UploadElement,
    WorkunitElement,
)
from wire.preferences import read_preferences
from wire.scan import Tag, spans, value_of

_OPEN = b"<scheduler_reply>"
_CLOSE = b"</scheduler_reply>"
_MESSAGE = re.compile(rb'<message(?: priority="(\w++)")?+>([^<]*+)</message>')


def decode_reply(body: bytes) -> SchedulerReply:
    """The server's answer. ProtocolError: not a whole reply, or a wrong or missing field, which it names."""
    start, end = body.find(_OPEN), body.rfind(_CLOSE)
    if start < 0 or end < start:
        raise text.unexpected("scheduler reply", "<scheduler_reply> with its close tag", body)
    reply = body[start + len(_OPEN) : end]
    files = _all(reply, "file_info")
    return SchedulerReply(
        master_url=_text(reply, "master_url"),
        request_delay_s=Seconds(_number(reply, "request_delay", 0.0)),
        project_name=_text(reply, "project_name"),
        project_is_down=_flag(reply, "project_is_down"),
        messages=tuple(_message(found) for found in _MESSAGE.finditer(reply)),
        user_name=_text(reply, "user_name"),
        user_create_at=_instant(reply, "user_create_time"),
        email_hash=_text(reply, "email_hash"),
        cross_project_id=_text(reply, "cross_project_id"),
        host_id=_whole_or_none(reply, "hostid"),
        host_create_at=_instant(reply, "host_create_time"),
        next_rpc_delay_s=_seconds(reply, "next_rpc_delay"),
        send_full_workload=_flag(reply, "send_full_workload"),
        dont_use_dcf=_flag(reply, "dont_use_dcf"),
        preferences=read_preferences(reply),
        code_sign_key=_block(reply, "code_sign_key"),
        code_sign_key_signature=_block(reply, "code_sign_key_signature"),
        acks=_names(reply, "result_ack"),
        ack_trickles=_flag(reply, "message_ack"),
        aborts=_names(reply, "result_abort"),
        aborts_if_not_started=_names(reply, "result_abort_if_not_started"),
        delete_files=tuple(text.name(raw, "delete_file_info") for raw in _all(reply, "delete_file_info")),
        apps=tuple(_app(raw) for raw in _all(reply, "app")),
        downloads=tuple(_download(raw) for raw in files if not _is_upload(raw)),
        uploads=tuple(_upload(raw) for raw in files if _is_upload(raw)),
        app_versions=tuple(_app_version(raw) for raw in _all(reply, "app_version")),
        workunits=tuple(_workunit(raw) for raw in _all(reply, "workunit")),
        results=tuple(_result(raw) for raw in _all(reply, "result")),
    )


def _message(found: re.Match[bytes]) -> Message:
    priority = found[1].decode("ascii", "replace") if found[1] else "low"
    return Message(text.plain(found[2]), priority)


def _app(raw: bytes) -> AppElement:
    return AppElement(_name(raw, "name"), _text(raw, "user_friendly_name"))


def _is_upload(file: bytes) -> bool:
    return b"<upload_url>" in file or b"<xml_signature>" in file


def _download(raw: bytes) -> DownloadElement:
    urls = _all(raw, "download_url") or _all(raw, "url")
    return DownloadElement(
        name=_name(raw, "name"),
        urls=tuple(text.plain(url) for url in urls),
        nbytes=_whole(raw, "nbytes", 0),
        md5=_text(raw, "md5_cksum"),
        signature=_block(raw, "file_signature"),
        executable=_flag(raw, "executable"),
        sticky=_flag(raw, "sticky"),
    )


def _upload(raw: bytes) -> UploadElement:
    return UploadElement(
        name=_name(raw, "name"),
        url=_text(raw, "upload_url") or _text(raw, "url"),
        max_bytes=_whole(raw, "max_nbytes", 0),
        token=_text(raw, "xml_signature"),
    )


def _app_version(raw: bytes) -> AppVersionElement:
    coproc = b"".join(_all(raw, "coproc"))
    return AppVersionElement(
        app_name=_name(raw, "app_name"),
        version_num=_whole(raw, "version_num", 0),
        platform=_text(raw, "platform"),
        plan_class=_text(raw, "plan_class"),
        avg_ncpus=_number(raw, "avg_ncpus", 1.0),
        flop_per_s=_number(raw, "flops", 1e9),
        api_version=_text(raw, "api_version"),
        coproc_type=_text(coproc, "type"),
        coproc_count=_number(coproc, "count", 0.0),
        file_refs=_file_refs(raw),
    )


def _workunit(raw: bytes) -> WorkunitElement:
    return WorkunitElement(
        name=_name(raw, "name"),
        app_name=_name(raw, "app_name"),
        fpops_est=_number(raw, "rsc_fpops_est", 0.0),
        fpops_bound=_number(raw, "rsc_fpops_bound", 0.0),
        memory_bytes=_number(raw, "rsc_memory_bound", 0.0),
        disk_bytes=_number(raw, "rsc_disk_bound", 0.0),
        command_line=_text(raw, "command_line"),
        file_refs=_file_refs(raw),
    )


def _result(raw: bytes) -> ResultElement:
    return ResultElement(
        name=_name(raw, "name"),
        wu_name=_name(raw, "wu_name"),
        report_deadline=Instant(_number(raw, "report_deadline", 0.0)),
        platform=_text(raw, "platform"),
        version_num=_whole(raw, "version_num", 0),
        plan_class=_text(raw, "plan_class"),
        file_refs=_file_refs(raw),
    )


def _file_refs(raw: bytes) -> tuple[FileRef, ...]:
    return tuple(
        FileRef(
            file_name=_name(ref, "file_name"),
            open_name=_text(ref, "open_name"),
            main_program=_flag(ref, "main_program"),
            copy_file=_flag(ref, "copy_file"),
            optional=_flag(ref, "optional"),
        )
        for ref in _all(raw, "file_ref")
    )


# ------------------------------------------------------------------ single elements


def _raw(part: bytes, tag: str) -> bytes | None:
    return value_of(part, f"<{tag}>".encode(), 0, len(part))


def _all(part: bytes, tag: str) -> list[bytes]:
    return [part[start:end] for start, end in spans(part, Tag(tag), 0, len(part))]


def _text(part: bytes, tag: str) -> str:
    return text.plain(_raw(part, tag) or b"")


def _block(part: bytes, tag: str) -> str:
    return text.block(_raw(part, tag) or b"")


def _name(part: bytes, tag: str) -> str:
    name = text.name(_raw(part, tag) or b"", tag)
    if not name:
        raise text.missing(tag, "scheduler_reply")
    return name


def _names(reply: bytes, tag: str) -> tuple[str, ...]:
    return tuple(_name(raw, "name") for raw in _all(reply, tag))


def _flag(part: bytes, tag: str) -> bool:
    """`<a/>` and `<a>1</a>` are both true."""
    if f"<{tag}/>".encode() in part:
        return True
    raw = _raw(part, tag)
    return raw is not None and text.whole(raw, tag) != 0


def _number(part: bytes, tag: str, default: float) -> float:
    raw = _raw(part, tag)
    return default if raw is None else text.number(raw, tag)


def _whole(part: bytes, tag: str, default: int) -> int:
    raw = _raw(part, tag)
    return default if raw is None else text.whole(raw, tag)


def _whole_or_none(part: bytes, tag: str) -> int | None:
    raw = _raw(part, tag)
    return None if raw is None else text.whole(raw, tag)


def _seconds(part: bytes, tag: str) -> Seconds | None:
    raw = _raw(part, tag)
    return None if raw is None else Seconds(text.number(raw, tag))


def _instant(part: bytes, tag: str) -> Instant | None:
    raw = _raw(part, tag)
    return None if raw is None else Instant(text.number(raw, tag))
