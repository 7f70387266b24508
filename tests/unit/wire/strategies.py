"""Generates messages that survive a round trip exactly."""

from __future__ import annotations

import re

from hypothesis import strategies as st

from domain.apps import ATI, INTEL_GPU, NVIDIA
from domain.dispatch import ReportedFile, ReportedResult
from domain.units import DAY_S, Instant, Seconds
from wire import messages

_PRINTABLE = st.characters(codec="utf-8", exclude_categories=["C", "Z"], include_characters=" ")
_VENDORS = (NVIDIA, ATI, INTEL_GPU)

NAMES = st.text(_PRINTABLE, min_size=1, max_size=40).filter(lambda text: text == text.strip())
TEXTS = st.text(_PRINTABLE, max_size=60).map(str.strip)
LINES = st.text(st.one_of(_PRINTABLE, st.just("\n")), max_size=80).map(str.strip)
BLOCKS = LINES.map(lambda text: text + "\n" if text else "")
NUMBERS = st.floats(-1e300, 1e300, allow_nan=False)
SECONDS = NUMBERS.map(Seconds)
WHOLE = st.integers(-(2**63), 2**63 - 1)
WHOLE_INSTANTS = st.integers(0, 2**40).map(float).map(Instant)
FRACTIONS = st.integers(0, 100).map(lambda percent: percent / 100)
# Every reader decodes a literal "&#200;" in stderr as the byte 200, because the client encodes bytes this way.
STDERR = st.text(st.one_of(_PRINTABLE, st.sampled_from("\n<>&]")), max_size=120).map(str.strip)
STDERR = STDERR.filter(lambda text: not re.search(r"&#\d+;", text))

FILES = st.builds(ReportedFile, name=NAMES, nbytes=NUMBERS, md5=st.just("0" * 32), error=LINES)
RESULTS = st.builds(
    ReportedResult,
    name=NAMES,
    state=WHOLE,
    exit_status=WHOLE,
    elapsed_s=SECONDS,
    cpu_s=SECONDS,
    version_num=WHOLE,
    plan_class=st.just("") | NAMES,
    stderr=STDERR,
    files=st.lists(FILES, max_size=3).map(tuple),
)
GENERIC_COPROCS = st.builds(
    messages.CoprocRequest,
    type=NAMES.filter(lambda name: name not in _VENDORS),
    count=WHOLE,
    peak_flop_per_s=NUMBERS,
    req_s=SECONDS,
    req_instances=NUMBERS,
    estimated_delay_s=SECONDS,
)


def _of_vendor(gpu_type: str) -> st.SearchStrategy[list[messages.CoprocRequest]]:
    coproc = st.builds(
        messages.CoprocRequest,
        type=st.just(gpu_type),
        count=st.integers(1, 16),
        peak_flop_per_s=NUMBERS,
        ram_bytes=NUMBERS,
        driver_version=WHOLE,
        usable=st.booleans(),
        req_s=SECONDS,
        req_instances=NUMBERS,
        estimated_delay_s=SECONDS,
    )
    return st.lists(coproc, max_size=1)


COPROCS = st.tuples(st.lists(GENERIC_COPROCS, max_size=2), *map(_of_vendor, _VENDORS)).map(
    lambda kinds: tuple(coproc for kind in kinds for coproc in kind)
)
OTHER_RESULTS = st.builds(messages.HeldResult, name=NAMES, plan_class=st.just("") | NAMES)
CPU_JOBS = st.builds(
    messages.InProgress, name=NAMES, report_deadline=NUMBERS.map(Instant), remaining_s=SECONDS, ncpus=NUMBERS
)
GPU_JOBS = st.builds(
    messages.InProgress,
    name=NAMES,
    report_deadline=NUMBERS.map(Instant),
    remaining_s=SECONDS,
    ncpus=NUMBERS,
    gpu_type=st.sampled_from(_VENDORS),
    gpu_count=NUMBERS,
)
HOSTS = st.builds(
    messages.HostInfo,
    domain_name=TEXTS,
    ip_addr=TEXTS,
    host_cpid=TEXTS,
    timezone_s=WHOLE,
    ncpus=WHOLE,
    cpu_vendor=TEXTS,
    cpu_model=TEXTS,
    cpu_features=st.just(""),
    flop_per_s=NUMBERS,
    iop_per_s=NUMBERS,
    ram_bytes=NUMBERS,
    swap_bytes=NUMBERS,
    disk_total_bytes=NUMBERS,
    disk_free_bytes=NUMBERS,
    os_name=TEXTS,
    os_version=TEXTS,
)
REQUESTS = st.builds(
    messages.SchedulerRequest,
    authenticator=NAMES,
    host_id=WHOLE,
    rpc_seqno=WHOLE,
    client_version=st.tuples(WHOLE, WHOLE, WHOLE),
    dont_send_work=st.booleans(),
    duration_correction_factor=NUMBERS,
    resource_share_fraction=NUMBERS,
    cpu_req_s=SECONDS,
    cpu_req_instances=NUMBERS,
    estimated_delay_s=SECONDS,
    platforms=st.lists(NAMES, max_size=4).map(tuple),
    code_sign_key=BLOCKS,
    on_fraction=NUMBERS,
    active_fraction=NUMBERS,
    gpu_active_fraction=NUMBERS,
    ram_max_used_busy_fraction=FRACTIONS,
    ram_max_used_idle_fraction=FRACTIONS,
    max_ncpus_fraction=FRACTIONS,
    work_buf_min_s=st.integers(0, 80).map(lambda eighths: Seconds(eighths / 8 * DAY_S)),
    disk_project_share_bytes=st.none() | NUMBERS,
    disk_project_used_bytes=NUMBERS,
    host=HOSTS,
    coprocs=COPROCS,
    results=st.lists(RESULTS, max_size=3).map(tuple),
    other_results=st.lists(OTHER_RESULTS, max_size=3).map(tuple),
    in_progress=st.none() | st.lists(CPU_JOBS | GPU_JOBS, max_size=3).map(tuple),
    sticky_files=st.lists(NAMES, max_size=2).map(tuple),
)

FILE_REFS = st.lists(
    st.builds(
        messages.FileRef,
        file_name=NAMES,
        open_name=TEXTS,
        main_program=st.booleans(),
        copy_file=st.booleans(),
        optional=st.booleans(),
    ),
    max_size=2,
).map(tuple)
APP_VERSIONS = st.builds(
    messages.AppVersionElement,
    app_name=NAMES,
    version_num=WHOLE,
    platform=TEXTS,
    plan_class=TEXTS,
    avg_ncpus=NUMBERS,
    flop_per_s=NUMBERS,
    api_version=TEXTS,
    file_refs=FILE_REFS,
)
GPU_VERSIONS = st.builds(
    messages.AppVersionElement,
    app_name=NAMES,
    version_num=WHOLE,
    platform=TEXTS,
    coproc_type=NAMES,
    coproc_count=NUMBERS,
    file_refs=FILE_REFS,
)
DOWNLOADS = st.builds(
    messages.DownloadElement,
    name=NAMES,
    urls=st.lists(NAMES, max_size=2).map(tuple),
    nbytes=WHOLE,
    md5=TEXTS,
    signature=BLOCKS,
    executable=st.booleans(),
    sticky=st.booleans(),
)
UPLOADS = st.builds(messages.UploadElement, name=NAMES, url=NAMES, max_bytes=WHOLE, token=LINES)
WORKUNITS = st.builds(
    messages.WorkunitElement,
    name=NAMES,
    app_name=NAMES,
    fpops_est=NUMBERS,
    fpops_bound=NUMBERS,
    memory_bytes=NUMBERS,
    disk_bytes=NUMBERS,
    command_line=TEXTS,
    file_refs=FILE_REFS,
)
RESULT_ELEMENTS = st.builds(
    messages.ResultElement,
    name=NAMES,
    wu_name=NAMES,
    report_deadline=WHOLE_INSTANTS,
    platform=TEXTS,
    version_num=WHOLE,
    plan_class=TEXTS,
    file_refs=FILE_REFS,
    report_immediately=st.booleans(),
)
MESSAGES = st.builds(messages.Message, text=LINES, priority=st.sampled_from(["low", "high", "notice"]))


def _some(strategy: st.SearchStrategy[object]) -> st.SearchStrategy[tuple[object, ...]]:
    return st.lists(strategy, max_size=2).map(tuple)


WISHES = st.integers(0, 2**31 - 1)
PREFERENCES = st.builds(
    messages.ProjectPreferences,
    modified_at=WHOLE_INSTANTS,
    no_cpu=st.booleans(),
    no_gpu=st.booleans(),
    beta=st.booleans(),
    max_jobs=WISHES,
    max_cpus=WISHES,
    app_ids=st.lists(WISHES, max_size=3).map(tuple),
)

REPLIES = st.builds(
    messages.SchedulerReply,
    master_url=TEXTS,
    request_delay_s=SECONDS,
    project_name=TEXTS,
    project_is_down=st.booleans(),
    messages=_some(MESSAGES),
    user_name=TEXTS,
    user_create_at=st.none() | WHOLE_INSTANTS,
    email_hash=TEXTS,
    cross_project_id=TEXTS,
    host_id=st.none() | WHOLE,
    host_create_at=st.none() | WHOLE_INSTANTS,
    next_rpc_delay_s=st.none() | SECONDS,
    send_full_workload=st.booleans(),
    dont_use_dcf=st.booleans(),
    preferences=st.none() | PREFERENCES,
    code_sign_key=BLOCKS,
    code_sign_key_signature=BLOCKS,
    acks=_some(NAMES),
    aborts=_some(NAMES),
    aborts_if_not_started=_some(NAMES),
    delete_files=_some(NAMES),
    apps=_some(st.builds(messages.AppElement, name=NAMES, user_friendly_name=TEXTS)),
    downloads=_some(DOWNLOADS),
    uploads=_some(UPLOADS),
    app_versions=_some(APP_VERSIONS | GPU_VERSIONS),
    workunits=_some(WORKUNITS),
    results=_some(RESULT_ELEMENTS),
)
