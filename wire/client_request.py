"""A scheduler request as the stock client lays it out. Pure. PROTOCOL 3 and 4."""

from __future__ import annotations

from collections.abc import Iterable

from domain.apps import ATI, INTEL_GPU, NVIDIA
from domain.units import DAY_S
from wire.messages import (
    CoprocRequest,
    HeldResult,
    HostInfo,
    InProgress,
    ReportedFile,
    ReportedResult,
    SchedulerRequest,
    TrickleUp,
)
from wire.text import escape, numeric_references

_GPU_FIELDS: dict[str, str] = {NVIDIA: "ncudas", ATI: "natis", INTEL_GPU: "nintel_gpus"}
_COPROC_TAGS: dict[str, str] = {NVIDIA: "coproc_cuda", ATI: "coproc_ati", INTEL_GPU: "coproc_intel_gpu"}


def encode_request(request: SchedulerRequest) -> bytes:
    """The request in UTF-8; numbers are written so that they are read back exactly."""
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
    """As an app writes it: without escapes."""
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
    """As the stock client does it: raw, but for bytes >= 128."""
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
