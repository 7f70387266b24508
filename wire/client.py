"""The client side of the protocol: encodes requests and decodes replies. Pure. docs/protocol.md.

Requests have the layout of the stock client's. The server escapes all text, so replies are unambiguous; unknown
elements are skipped, and elements may be in any order.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from domain.apps import ATI, INTEL_GPU, NVIDIA
from domain.dispatch import ReportedFile, ReportedResult
from domain.units import DAY_S, Instant, Seconds
from wire import text
from wire.encode import GPU_TAGS
from wire.messages import (
    AppElement,
    AppVersionElement,
    CoprocRequest,
    DownloadElement,
    FileRef,
    GuiUrl,
    HeldResult,
    HostInfo,
    InProgress,
    Message,
    ProjectPreferences,
    ResultElement,
    SchedulerReply,
    SchedulerRequest,
    TrickleUp,
    UploadElement,
    WorkunitElement,
)
from wire.scan import Tag, spans, value_of
from wire.text import escape, numeric_references

__all__ = ["decode_reply", "encode_request"]


_GPU_FIELDS: dict[str, str] = {NVIDIA: "ncudas", ATI: "natis", INTEL_GPU: "nintel_gpus"}
_COPROC_TAGS: dict[str, str] = {NVIDIA: "coproc_cuda", ATI: "coproc_ati", INTEL_GPU: "coproc_intel_gpu"}


def encode_request(request: SchedulerRequest) -> bytes:
    """Encode a request in UTF-8; numbers survive a round trip exactly."""
    version = ".".join(map(str, request.client_version))
    platform = request.platforms[0] if request.platforms else ""
    parts = [
        "<scheduler_request>\n",
        *_head(request),
        *_preferences(request),
        *_time_stats(request),
        *_host(request.host),
        *_disk_usage(request),
        *_coprocs(request.coprocs),
        *(_result(result, platform, version) for result in request.results),
        *map(_trickle, request.trickles),
        *(_sticky_file(name) for name in request.sticky_files),
        "<app_versions>\n</app_versions>\n<other_results>\n",
        *map(_other_result, request.other_results),
        "</other_results>\n",
        *_in_progress(request.in_progress),
        "</scheduler_request>\n",
    ]
    return "".join(parts).encode("utf-8")


def _trickle(trickle: TrickleUp) -> str:
    """Encode a trickle message as an app writes it, without escapes."""
    variety = f"<variety>{trickle.variety}</variety>\n" if trickle.variety else ""
    return (
        f"  <msg_from_host>\n      <result_name>{escape(trickle.result_name)}</result_name>\n"
        f"      <time>{trickle.sent_at:.0f}</time>\n{variety}{trickle.text}\n\n  </msg_from_host>\n"
    )


def _head(request: SchedulerRequest) -> Iterable[str]:
    major, minor, release = request.client_version
    yield _element("authenticator", request.authenticator)
    yield _element("hostid", request.host_id)
    yield _element("rpc_seqno", request.rpc_seqno)
    yield _element("core_client_major_version", major)
    yield _element("core_client_minor_version", minor)
    yield _element("core_client_release", release)
    yield _element("resource_share_fraction", request.resource_share_fraction)
    yield _element("duration_correction_factor", request.duration_correction_factor)
    yield _element("dont_send_work", int(request.dont_send_work))
    yield _element("work_req_seconds", request.cpu_req_s)
    yield _element("cpu_req_secs", request.cpu_req_s)
    yield _element("cpu_req_instances", request.cpu_req_instances)
    yield _element("estimated_delay", request.estimated_delay_s)
    yield _element("client_cap_plan_class", 1)
    yield _element("platform_name", request.platforms[0] if request.platforms else "")
    for platform in request.platforms[1:]:
        yield f"    <alt_platform>\n    {_element('name', platform)}    </alt_platform>\n"
    if request.code_sign_key:
        yield f"    <code_sign_key>\n{_text(request.code_sign_key.strip())}\n</code_sign_key>\n"


def _preferences(request: SchedulerRequest) -> Iterable[str]:
    yield "<working_global_preferences>\n<global_preferences>\n"
    yield _element("work_buf_min_days", request.work_buf_min_s / DAY_S)
    yield _element("max_ncpus_pct", _percent(request.max_ncpus_fraction))
    yield _element("ram_max_used_busy_pct", _percent(request.ram_max_used_busy_fraction))
    yield _element("ram_max_used_idle_pct", _percent(request.ram_max_used_idle_fraction))
    yield "</global_preferences>\n</working_global_preferences>\n"


def _percent(fraction: float) -> float:
    return round(fraction * 100, 6)


def _time_stats(request: SchedulerRequest) -> Iterable[str]:
    yield "<time_stats>\n"
    yield _element("on_frac", request.on_fraction)
    yield _element("active_frac", request.active_fraction)
    yield _element("gpu_active_frac", request.gpu_active_fraction)
    if request.client_now is not None:
        yield _element("now", request.client_now)
    yield "</time_stats>\n"


def _host(host: HostInfo) -> Iterable[str]:
    yield "<host_info>\n"
    yield _element("timezone", host.timezone_s)
    if host.domain_name:
        yield _element("domain_name", host.domain_name)
    if host.ip_addr:
        yield _element("ip_addr", host.ip_addr)
    yield _element("host_cpid", host.host_cpid)
    yield _element("p_ncpus", host.ncpus)
    yield _element("p_vendor", host.cpu_vendor)
    yield _element("p_model", host.cpu_model)
    yield _element("p_features", host.cpu_features)
    yield _element("p_fpops", host.flop_per_s)
    yield _element("p_iops", host.iop_per_s)
    yield _element("m_nbytes", host.ram_bytes)
    yield _element("m_swap", host.swap_bytes)
    yield _element("d_total", host.disk_total_bytes)
    yield _element("d_free", host.disk_free_bytes)
    yield _element("os_name", host.os_name)
    yield _element("os_version", host.os_version)
    for name, _, version in (one.partition("/") for one in host.software.split()):
        yield _element("virtualbox_version" if name == "virtualbox" else "docker_version", version)
        if name != "virtualbox":
            yield _element("docker_type", 2 if name == "podman" else 1)
    yield "</host_info>\n"


def _disk_usage(request: SchedulerRequest) -> Iterable[str]:
    yield "    <disk_usage>\n"
    yield _element("d_boinc_used_project", request.disk_project_used_bytes)
    if request.disk_project_share_bytes is not None:
        yield _element("d_project_share", request.disk_project_share_bytes)
    yield "    </disk_usage>\n"


def _coprocs(coprocs: tuple[CoprocRequest, ...]) -> Iterable[str]:
    if coprocs:
        yield "    <coprocs>\n"
        yield from map(_coproc, coprocs)
        yield "    </coprocs>\n"


def _coproc(coproc: CoprocRequest) -> str:
    work = (
        _element("req_secs", coproc.req_s)
        + _element("req_instances", coproc.req_instances)
        + _element("estimated_delay", coproc.estimated_delay_s)
    )
    count, peak = _element("count", coproc.count), _element("peak_flops", coproc.peak_flop_per_s)
    tag = _COPROC_TAGS.get(coproc.type)
    if tag is None:
        return f"<coproc>\n{_element('type', coproc.type)}{count}{peak}{work}</coproc>\n"
    have = _element("have_opencl", int(coproc.usable))
    ram, driver = _element("available_ram", coproc.ram_bytes), _element("drvVersion", coproc.driver_version)
    total = _element("totalGlobalMem", coproc.ram_bytes)
    return f"<{tag}>\n{count}{ram}{have}{work}{peak}{driver}{total}</{tag}>\n"


def _result(result: ReportedResult, platform: str, version: str) -> str:
    plan_class = _element("plan_class", result.plan_class) if result.plan_class else ""
    return (
        f"<result>\n{_element('name', result.name)}"
        f"{_element('final_cpu_time', result.cpu_s)}{_element('final_elapsed_time', result.elapsed_s)}"
        f"{_element('exit_status', result.exit_status)}{_element('state', result.state)}"
        f"{_element('platform', platform)}{_element('version_num', result.version_num)}{plan_class}"
        f"{_element('app_version_num', result.version_num)}{_stderr(result.stderr, version)}"
        f"{''.join(map(_file, result.files))}</result>\n"
    )


def _stderr(stderr: str, version: str) -> str:
    """Encode stderr as the stock client does: raw, except for bytes >= 128."""
    content = f"<![CDATA[\n{numeric_references(stderr)}\n]]>\n" if stderr else ""
    return f"<stderr_out>\n<core_client_version>{version}</core_client_version>\n{content}</stderr_out>\n"


def _file(file: ReportedFile) -> str:
    error = f"    <error_msg>\n{_text(file.error)}\n</error_msg>\n" if file.error else ""
    return (
        f"<file_info>\n{_element('name', file.name)}{_element('nbytes', file.nbytes)}"
        f"{_element('md5_cksum', file.md5)}{error}</file_info>\n"
    )


def _sticky_file(name: str) -> str:
    return f"<file_info>\n{_element('name', name)}{_element('status', 1)}</file_info>\n"


def _other_result(result: HeldResult) -> str:
    plan_class = _element("plan_class", result.plan_class) if result.plan_class else ""
    inside = f"{_element('name', result.name)}{_element('app_version', 0)}{plan_class}"
    return f"    <other_result>\n{inside}    </other_result>\n"


def _in_progress(jobs: tuple[InProgress, ...] | None) -> Iterable[str]:
    if jobs is not None:
        yield "<in_progress_results>\n"
        yield from map(_ip_result, jobs)
        yield "</in_progress_results>\n"


def _ip_result(job: InProgress) -> str:
    gpu = _GPU_FIELDS.get(job.gpu_type)
    return (
        f"    <ip_result>\n{_element('name', job.name)}{_element('report_deadline', job.report_deadline)}"
        f"{_element('time_remaining', job.remaining_s)}{_element('avg_ncpus', job.ncpus)}"
        f"{_element(gpu, job.gpu_count) if gpu else ''}    </ip_result>\n"
    )


def _element(tag: str, value: str | float) -> str:
    return f"    <{tag}>{_text(value) if isinstance(value, str) else repr(value)}</{tag}>\n"


def _text(value: str) -> str:
    return numeric_references(escape(value))


_OPEN = b"<scheduler_reply>"
_CLOSE = b"</scheduler_reply>"
_MESSAGE = re.compile(rb'<message(?: priority="(\w++)")?+>([^<]*+)</message>')


def decode_reply(body: bytes) -> SchedulerReply:
    """Decode a reply. Raises ProtocolError if it is incomplete, or naming a field that is wrong or missing."""
    start, end = body.find(_OPEN), body.rfind(_CLOSE)
    if start < 0 or end < start:
        raise text.unexpected("scheduler reply", "<scheduler_reply> with its closing tag", body)
    reply = body[start + len(_OPEN) : end]
    files = _all(reply, "file_info")
    return SchedulerReply(
        master_url=_text_in(reply, "master_url"),
        request_delay_s=Seconds(_number(reply, "request_delay", 0.0)),
        project_name=_text_in(reply, "project_name"),
        project_is_down=_flag(reply, "project_is_down"),
        messages=tuple(_message(found) for found in _MESSAGE.finditer(reply)),
        user_name=_text_in(reply, "user_name"),
        user_id=_whole_or_none(reply, "userid"),
        user_credit=_credit(reply, "user"),
        user_create_at=_instant(reply, "user_create_time"),
        email_hash=_text_in(reply, "email_hash"),
        cross_project_id=_text_in(reply, "cross_project_id"),
        external_cpid=_text_in(reply, "external_cpid"),
        host_id=_whole_or_none(reply, "hostid"),
        host_credit=_credit(reply, "host"),
        host_create_at=_instant(reply, "host_create_time"),
        team_id=_whole(reply, "teamid", 0),
        team_name=_text_in(reply, "team_name"),
        gui_urls=tuple(_gui_url(raw) for raw in _all(reply, "gui_url")),
        feed_url="".join([_text_in(raw, "url") for raw in _all(reply, "rss_feed")[:1]]),
        next_rpc_delay_s=_seconds(reply, "next_rpc_delay"),
        send_full_workload=_flag(reply, "send_full_workload"),
        dont_use_dcf=_flag(reply, "dont_use_dcf"),
        preferences=decode_preferences(reply),
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
        results=tuple(_result_in(raw) for raw in _all(reply, "result")),
    )


def _credit(reply: bytes, of: str) -> tuple[float, float]:
    return _number(reply, f"{of}_total_credit", 0.0), _number(reply, f"{of}_expavg_credit", 0.0)


def _gui_url(raw: bytes) -> GuiUrl:
    return GuiUrl(_text_in(raw, "name"), _text_in(raw, "description"), _text_in(raw, "url"))


def _message(found: re.Match[bytes]) -> Message:
    priority = found[1].decode("ascii", "replace") if found[1] else "low"
    return Message(text.plain(found[2]), priority)


def decode_preferences(document: bytes) -> ProjectPreferences | None:
    """Decode the first `<project_preferences>` in a document; None without one. Raises ProtocolError."""
    found = next(iter(_all(document, "project_preferences")), None)
    if found is None:
        return None
    return ProjectPreferences(
        Instant(float(_whole(found, "mod_time", 0))),
        no_cpu=_flag(found, "no_cpu"),
        no_gpu=all(_flag(found, tag) for tag in GPU_TAGS),
        beta=_flag(found, "allow_beta_work"),
        max_jobs=_whole(found, "max_jobs", 0),
        max_cpus=_whole(found, "max_cpus", 0),
        app_ids=tuple(text.whole(app_id, "app_id") for app_id in _all(found, "app_id")),
    )


def _app(raw: bytes) -> AppElement:
    return AppElement(_name(raw, "name"), _text_in(raw, "user_friendly_name"))


def _is_upload(file: bytes) -> bool:
    return b"<upload_url>" in file or b"<xml_signature>" in file


def _download(raw: bytes) -> DownloadElement:
    urls = _all(raw, "download_url") or _all(raw, "url")
    return DownloadElement(
        name=_name(raw, "name"),
        urls=tuple(text.plain(url) for url in urls),
        nbytes=_whole(raw, "nbytes", 0),
        md5=_text_in(raw, "md5_cksum"),
        signature=_block(raw, "file_signature"),
        executable=_flag(raw, "executable"),
        sticky=_flag(raw, "sticky"),
    )


def _upload(raw: bytes) -> UploadElement:
    return UploadElement(
        name=_name(raw, "name"),
        url=_text_in(raw, "upload_url") or _text_in(raw, "url"),
        max_bytes=_whole(raw, "max_nbytes", 0),
        token=_text_in(raw, "xml_signature"),
    )


def _app_version(raw: bytes) -> AppVersionElement:
    coproc = b"".join(_all(raw, "coproc"))
    return AppVersionElement(
        app_name=_name(raw, "app_name"),
        version_num=_whole(raw, "version_num", 0),
        platform=_text_in(raw, "platform"),
        plan_class=_text_in(raw, "plan_class"),
        avg_ncpus=_number(raw, "avg_ncpus", 1.0),
        flop_per_s=_number(raw, "flops", 1e9),
        api_version=_text_in(raw, "api_version"),
        coproc_type=_text_in(coproc, "type"),
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
        command_line=_text_in(raw, "command_line"),
        file_refs=_file_refs(raw),
    )


def _result_in(raw: bytes) -> ResultElement:
    return ResultElement(
        name=_name(raw, "name"),
        wu_name=_name(raw, "wu_name"),
        report_deadline=Instant(_number(raw, "report_deadline", 0.0)),
        platform=_text_in(raw, "platform"),
        version_num=_whole(raw, "version_num", 0),
        plan_class=_text_in(raw, "plan_class"),
        file_refs=_file_refs(raw),
        report_immediately=_flag(raw, "report_immediately"),
    )


def _file_refs(raw: bytes) -> tuple[FileRef, ...]:
    return tuple(
        FileRef(
            file_name=_name(ref, "file_name"),
            open_name=_text_in(ref, "open_name"),
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


def _text_in(part: bytes, tag: str) -> str:
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
    """Return a boolean element: `<a/>` and `<a>1</a>` are both true."""
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
