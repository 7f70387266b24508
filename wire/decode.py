"""Decodes a client's scheduler request, including the GPUs it reports. Pure. docs/protocol.md.

A request looks like XML but may not be well-formed, because it contains apps' raw stderr. So it is searched, not
parsed. First the reported results are fenced off (see wire/reports.py, also for the limits of this). The rest contains
no text from apps and is read part by part in the stock client's order: GPUs after disk usage, lists of work in progress
at the end. Elements that the server does not use are skipped.
"""

from __future__ import annotations

import re

from domain.apps import ATI, INTEL_GPU, NVIDIA
from domain.units import DAY_S, Instant, Seconds
from wire import text
from wire.messages import CoprocRequest, HeldResult, HostInfo, InProgress, SchedulerRequest
from wire.reports import decode_results, decode_trickles, fence_results, find_trickles
from wire.scan import Element, Kind, Part, Tag, names_in, span_of, value_of

MAX_COPROCS = 32  # of generic types; NVIDIA, ATI and Intel have one entry each

_COUNT = Element("count", Kind.WHOLE, default=b"0")
_PEAK = Element("peak_flops", Kind.NUMBER, default=b"0")
_RAM = Element("available_ram", Kind.NUMBER, default=b"0")
_OPENCL = Element("have_opencl", Kind.WHOLE, default=b"0")
_REQUEST = (
    Element("req_secs", Kind.NUMBER, default=b"0"),
    Element("req_instances", Kind.NUMBER, default=b"0"),
    Element("estimated_delay", Kind.NUMBER, default=b"0"),
)
_DRIVER = (
    Element("drvVersion", Kind.WHOLE, default=b"0"),
    Element("totalGlobalMem", Kind.NUMBER, default=b"0"),
)

_GENERIC = Part("coproc", Element("type", Kind.NAME, default=None), _COUNT, _PEAK, *_REQUEST)


def _vendor(tag: str, own_interface: str) -> Part:
    """Return the description of one vendor's GPUs. `own_interface` is the vendor's interface besides OpenCL."""
    have = Element(own_interface, Kind.WHOLE, default=b"0")
    return Part(tag, _COUNT, Element("name"), _RAM, have, _OPENCL, *_REQUEST, _PEAK, Element("cudaVersion"), *_DRIVER)


_VENDORS = (
    (NVIDIA, _vendor("coproc_cuda", "have_cuda")),
    (ATI, _vendor("coproc_ati", "have_cal")),
    (INTEL_GPU, _vendor("coproc_intel_gpu", "have_level_zero")),  # no client writes this yet
)


def decode_coprocs(body: bytes, start: int, end: int) -> tuple[CoprocRequest, ...]:
    """Decode the GPUs between two positions: generic types first, then NVIDIA, ATI and Intel."""
    found = [_generic(row) for row in _GENERIC.read_all(body, start, end, at_most=MAX_COPROCS)]
    for gpu_type, part in _VENDORS:
        inside = span_of(body, part, start, end)
        if inside is not None:
            found.append(_of_vendor(gpu_type, part.read(body, *inside)))
    return tuple(found)


def _generic(values: tuple[bytes, ...]) -> CoprocRequest:
    gpu_type, count, peak, req_s, instances, delay = values
    return CoprocRequest(
        type=gpu_type.decode(),
        count=int(count),
        peak_flop_per_s=float(peak),
        req_s=Seconds(float(req_s)),
        req_instances=float(instances),
        estimated_delay_s=Seconds(float(delay)),
    )


def _of_vendor(gpu_type: str, values: tuple[bytes, ...]) -> CoprocRequest:
    """Decode the GPUs of one vendor. They are usable if their number is positive and a driver was found."""
    count, available_ram, have_own, have_opencl, req_s, instances, delay, peak, driver, total_ram = values
    return CoprocRequest(
        type=gpu_type,
        count=int(count),
        peak_flop_per_s=float(peak),
        ram_bytes=float(total_ram) or float(available_ram),
        driver_version=int(driver),
        usable=int(count) > 0 and (int(have_own) != 0 or int(have_opencl) != 0),
        req_s=Seconds(float(req_s)),
        req_instances=float(instances),
        estimated_delay_s=Seconds(float(delay)),
    )


MAX_OTHER_RESULTS = 20_000
MAX_IN_PROGRESS = 20_000
MAX_STICKY_FILES = 20_000
MAX_ALTERNATIVE_PLATFORMS = 16

_PODMAN = b"2"  # docker_type
_VERSION = re.compile(r"[\w.+~-]{1,40}", re.ASCII)

_OPEN = b"<scheduler_request>"
_CLOSE = b"</scheduler_request>"

_HEAD = Part(
    "scheduler_request",
    Element("authenticator", Kind.NAME, default=None),
    Element("hostid", Kind.WHOLE, default=b"0"),
    Element("rpc_seqno", Kind.WHOLE, default=b"0"),
    Element("core_client_major_version", Kind.WHOLE, default=b"0"),
    Element("core_client_minor_version", Kind.WHOLE, default=b"0"),
    Element("core_client_release", Kind.WHOLE, default=b"0"),
    Element("resource_share_fraction", Kind.NUMBER, default=b"1"),
    Element("rrs_fraction"),
    Element("prrs_fraction"),
    Element("duration_correction_factor", Kind.NUMBER, default=b"1"),
    Element("allow_multiple_clients"),
    Element("sandbox"),
    Element("dont_send_work", Kind.WHOLE, default=b"0"),
    Element("work_req_seconds"),
    Element("cpu_req_secs", Kind.NUMBER, default=b"0"),
    Element("cpu_req_instances", Kind.NUMBER, default=b"0"),
    Element("estimated_delay", Kind.NUMBER, default=b"0"),
    Element("client_cap_plan_class"),
    Element("platform_name", Kind.NAME),
    Element("alt_platform", Kind.NAMES),
    Element("code_sign_key", Kind.BLOCK, optional=True),
    then=rb"[^<]*+(?=<working_global_preferences>)",
    until=b"<coprocs>",  # which has its own estimated_delay
)

_HOST = Part(
    "host_info",
    Element("timezone", Kind.WHOLE, default=b"0"),
    Element("domain_name", Kind.TEXT, optional=True),
    Element("ip_addr", Kind.TEXT, optional=True),
    Element("host_cpid", Kind.TEXT),
    Element("p_ncpus", Kind.WHOLE, default=b"1"),
    Element("p_vendor", Kind.TEXT),
    Element("p_model", Kind.TEXT),
    Element("p_features"),
    Element("p_fpops", Kind.NUMBER, default=b"0"),
    Element("p_iops", Kind.NUMBER, default=b"0"),
    Element("p_membw"),
    Element("p_calculated"),
    Element("p_vm_extensions_disabled"),
    Element("m_nbytes", Kind.NUMBER, default=b"0"),
    Element("m_cache"),
    Element("m_swap", Kind.NUMBER, default=b"0"),
    Element("d_total", Kind.NUMBER, default=b"0"),
    Element("d_free", Kind.NUMBER, default=b"0"),
    Element("os_name", Kind.TEXT),
    Element("os_version", Kind.TEXT),
)

_PREFERENCES = Part(
    "working_global_preferences",
    Element("work_buf_min_days", Kind.NUMBER, default=b"0"),
    Element("work_buf_additional_days"),
    Element("max_ncpus_pct", Kind.NUMBER, default=b"100"),
    Element("cpu_scheduling_period_minutes"),
    Element("disk_interval"),
    Element("disk_max_used_gb"),
    Element("disk_max_used_pct"),
    Element("disk_min_free_gb"),
    Element("vm_max_used_pct"),
    Element("ram_max_used_busy_pct", Kind.NUMBER, default=b"100"),
    Element("ram_max_used_idle_pct", Kind.NUMBER, default=b"100"),
    begins_inside=True,
)

_TIME_STATS = Part(
    "time_stats",
    Element("on_frac", Kind.NUMBER, default=b"1"),
    Element("connected_frac"),
    Element("cpu_and_network_available_frac"),
    Element("active_frac", Kind.NUMBER, default=b"1"),
    Element("gpu_active_frac", Kind.NUMBER, default=b"1"),
    Element("client_start_time"),
    Element("total_start_time"),
    Element("total_duration"),
    Element("total_active_duration"),
    Element("total_gpu_active_duration"),
    Element("now", Kind.NUMBER),
)

_DISK_USAGE = Part(
    "disk_usage",
    Element("d_boinc_used_total"),
    Element("d_boinc_used_project", Kind.NUMBER, default=b"0"),
    Element("d_project_share", Kind.NUMBER),
)

_OTHER_RESULT = Part(
    "other_result",
    Element("name", Kind.NAME, default=None),
    Element("app_version"),
    Element("plan_class", Kind.NAME, optional=True),
)

_IN_PROGRESS = Part(
    "ip_result",
    Element("name", Kind.NAME, default=None),
    Element("report_deadline", Kind.NUMBER, default=b"0"),
    Element("time_remaining", Kind.NUMBER, default=b"0"),
    Element("avg_ncpus", Kind.NUMBER, default=b"1"),
    Element("ncudas", Kind.NUMBER, optional=True),
    Element("natis", Kind.NUMBER, optional=True),
    Element("nintel_gpus", Kind.NUMBER, optional=True),
)

_STICKY_FILE = Part(
    "file_info",
    Element("name", Kind.NAME, default=None),
    Element("nbytes"),
    Element("status", Kind.WHOLE, default=b"1"),
)
_STATUS_PRESENT = 1

_COPROCS = Tag("coprocs")
_OTHER_RESULTS = Tag("other_results")
_IN_PROGRESS_RESULTS = Tag("in_progress_results")


def decode_request(body: bytes) -> SchedulerRequest:
    """Decode a scheduler request.

    Raises ProtocolError if it is not a request, is truncated, has no account key or has a wrong field; the message
    names the field, the expected and the actual value. Results after the first reports.MAX_RESULTS are ignored, because
    the client repeats results that are not acknowledged.
    """
    start, end = _bounds(body)
    trickle_span = find_trickles(body, start, end)
    fence = fence_results(body, start, trickle_span.starts_at)
    before = fence.opens_at
    head, at = _HEAD.read_next(body, start, before, start)
    authenticator, host_id, rpc_seqno, major, minor, release, share_fraction, dcf = head[:8]
    dont_send_work, cpu_req, cpu_instances, delay, platform, alternatives, code_sign_key = head[8:]
    (buffer_days, ncpus_pct, busy_pct, idle_pct), at = _PREFERENCES.read_next(body, start, before, at)
    (on, active, gpu_active, client_now), at = _TIME_STATS.read_next(body, start, before, at)
    host_values, at = _HOST.read_next(body, start, before, at)
    (used_bytes, share_bytes), at = _DISK_USAGE.read_next(body, start, before, at)
    coprocs = span_of(body, _COPROCS, at, before)
    after = trickle_span.ends_at if trickle_span else max(fence.closes_at, at)  # lists of work in progress
    trickles, more_trickles = decode_trickles(body, trickle_span)
    return SchedulerRequest(
        authenticator=authenticator.decode(),
        host_id=int(host_id),
        rpc_seqno=int(rpc_seqno),
        client_version=(int(major), int(minor), int(release)),
        dont_send_work=int(dont_send_work) != 0,
        duration_correction_factor=float(dcf),
        resource_share_fraction=float(share_fraction),
        cpu_req_s=Seconds(float(cpu_req)),
        cpu_req_instances=float(cpu_instances),
        estimated_delay_s=Seconds(float(delay)),
        platforms=_platforms(platform, alternatives),
        code_sign_key=_key(code_sign_key),
        on_fraction=float(on),
        active_fraction=float(active),
        gpu_active_fraction=float(gpu_active),
        client_now=Instant(float(client_now)) if client_now else None,
        ram_max_used_busy_fraction=float(busy_pct) / 100,
        ram_max_used_idle_fraction=float(idle_pct) / 100,
        max_ncpus_fraction=float(ncpus_pct) / 100,
        work_buf_min_s=Seconds(float(buffer_days) * DAY_S),
        disk_project_share_bytes=float(share_bytes) if share_bytes else None,
        disk_project_used_bytes=float(used_bytes),
        host=_host(host_values, _software(body, start, before)),
        coprocs=() if coprocs is None else decode_coprocs(body, *coprocs),
        results=decode_results(body, fence),
        other_results=_other_results(body, after, end),
        in_progress=_in_progress(body, after, end),
        sticky_files=_sticky_files(body, after, end),
        trickles=trickles,
        more_trickles=more_trickles,
    )


def _bounds(body: bytes) -> tuple[int, int]:
    """Return where the content of the request begins and where it ends."""
    start = body.find(_OPEN)
    if start < 0:
        raise text.unexpected("scheduler request", _OPEN.decode(), body)
    closed = body.rfind(_CLOSE, start)
    if closed < 0 or body[closed + len(_CLOSE) :].strip():
        raise text.unexpected("scheduler request", f"{_CLOSE.decode()} at its end", body[-60:])
    return start, closed


def _key(value: bytes) -> str:
    key_text = value.decode().strip()
    return key_text + "\n" if key_text else ""


def _platforms(primary: bytes, alternatives: bytes) -> tuple[str, ...]:
    names = [primary.decode()] if primary else []
    if alternatives:
        names += names_in(alternatives, "alt_platform", at_most=MAX_ALTERNATIVE_PLATFORMS)
    return tuple(names)


def _software(body: bytes, start: int, end: int) -> str:
    """Return the container engine and VirtualBox of a host; on Windows the first engine inside WSL.

    VirtualBox is left out if the processor's extensions for it are disabled.
    """
    if b"<docker_version>" not in body and b"<virtualbox_version>" not in body:
        return ""
    host = span_of(body, _HOST, start, end)
    if host is None:
        return ""
    podman = value_of(body, b"<docker_type>", *host) == _PODMAN
    disabled = value_of(body, b"<p_vm_extensions_disabled>", *host) == b"1"
    versions = {
        "podman" if podman else "docker": value_of(body, b"<docker_version>", *host),
        "virtualbox": None if disabled else value_of(body, b"<virtualbox_version>", *host),
    }
    texts = {name: text.line(raw) for name, raw in versions.items() if raw}
    return " ".join(f"{name}/{found}" for name, found in texts.items() if _VERSION.fullmatch(found))


def _host(values: tuple[bytes, ...], software: str) -> HostInfo:
    """Decode the host description, without its list of CPU features: a kilobyte that is not used."""
    timezone, domain_name, ip_addr, host_cpid, ncpus, vendor, model = values[:7]
    fpops, iops, ram, swap, disk_total, disk_free, os_name, os_version = values[7:]
    return HostInfo(
        domain_name=domain_name.decode().strip(),
        ip_addr=ip_addr.decode().strip(),
        host_cpid=host_cpid.decode().strip(),
        timezone_s=int(timezone),
        ncpus=int(ncpus),
        cpu_vendor=vendor.decode().strip(),
        cpu_model=model.decode().strip(),
        flop_per_s=float(fpops),
        iop_per_s=float(iops),
        ram_bytes=float(ram),
        swap_bytes=float(swap),
        disk_total_bytes=float(disk_total),
        disk_free_bytes=float(disk_free),
        os_name=os_name.decode().strip(),
        os_version=os_version.decode().strip(),
        software=software,
    )


def _other_results(body: bytes, start: int, end: int) -> tuple[HeldResult, ...]:
    inside = span_of(body, _OTHER_RESULTS, start, end)
    if inside is None:
        return ()
    rows = _OTHER_RESULT.read_all(body, *inside, at_most=MAX_OTHER_RESULTS)
    return tuple([HeldResult(name.decode(), plan_class.decode()) for name, plan_class in rows])


def _in_progress(body: bytes, start: int, end: int) -> tuple[InProgress, ...] | None:
    inside = span_of(body, _IN_PROGRESS_RESULTS, start, end)
    if inside is None:
        return None
    rows = _IN_PROGRESS.read_all(body, *inside, at_most=MAX_IN_PROGRESS)
    return tuple([_job_in_progress(row) for row in rows])


def _job_in_progress(values: tuple[bytes, ...]) -> InProgress:
    name, deadline, remaining, ncpus, cudas, atis, intel_gpus = values
    gpu_type, gpu_count = "", b"0"
    if cudas or atis or intel_gpus:
        counts = ((NVIDIA, cudas), (ATI, atis), (INTEL_GPU, intel_gpus))
        gpu_type, gpu_count = next((kind, count) for kind, count in counts if count)
    return InProgress(
        name=name.decode(),
        report_deadline=Instant(float(deadline)),
        remaining_s=Seconds(float(remaining)),
        ncpus=float(ncpus),
        gpu_type=gpu_type,
        gpu_count=float(gpu_count),
    )


def _sticky_files(body: bytes, start: int, end: int) -> tuple[str, ...]:
    """Return the names of the sticky files present; the client also lists broken ones."""
    if body.rfind(_STICKY_FILE.open, start, end) < 0:
        return ()
    listed_until = body.find(b"<app_versions>", start, end)
    rows = _STICKY_FILE.read_all(body, start, listed_until if listed_until >= 0 else end, at_most=MAX_STICKY_FILES)
    return tuple(name.decode() for name, status in rows if int(status) == _STATUS_PRESENT)
