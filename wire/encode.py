"""Encodes the reply to a client. Pure. docs/protocol.md#reply.

Order: head, acknowledgements (of results, of all trickle messages), control, preferences, key, apps, files, app
versions, workunits, results; elements precede the elements that refer to them. Text is escaped; numbers survive a round
trip exactly, except credit, which has six decimals.
"""

from __future__ import annotations

import math
from functools import lru_cache

from domain.units import Instant
from wire.messages import (
    AppElement,
    AppVersionElement,
    DownloadElement,
    FileRef,
    GuiUrl,
    ProjectPreferences,
    ResultElement,
    SchedulerReply,
    UploadElement,
    WorkunitElement,
)
from wire.text import escape

SCHEDULER_VERSION = 708  # of the reference scheduler with this reply format; clients require >= 507
FEED_EVERY_S = 86400
MOST_RENDERED = 2048  # of each kind; a rendered file is half a kilobyte
GPU_TAGS = ("no_cuda", "no_ati", "no_intel_gpu")  # one per GPU type that clients know


def encode_reply(reply: SchedulerReply) -> bytes:
    """Encode a reply in UTF-8."""
    lines = [
        "<scheduler_reply>\n",
        _head(reply),
        render_links(reply.gui_urls, reply.feed_url),
        *[f"<result_ack><name>{escape(name)}</name></result_ack>\n" for name in reply.acks],
        _flag("message_ack", reply.ack_trickles),
        _control(reply),
        render_preferences(reply.preferences) if reply.preferences is not None else "",
        _block("code_sign_key", reply.code_sign_key),
        _block("code_sign_key_signature", reply.code_sign_key_signature),
        *map(render_app, reply.apps),
        *map(render_download, reply.downloads),
        *map(render_upload, reply.uploads),
        *map(render_app_version, reply.app_versions),
        *map(render_workunit, reply.workunits),
        *map(render_result, reply.results),
        "</scheduler_reply>\n",
    ]
    return "".join(lines).encode("utf-8", "replace")


def _head(reply: SchedulerReply) -> str:
    url = f"<master_url>{escape(reply.master_url)}</master_url>\n" if reply.master_url else ""
    messages = [
        f'<message priority="{escape(message.priority)}">{escape(message.text)}</message>\n'
        for message in reply.messages
    ]
    host = f"<hostid>{reply.host_id}</hostid>\n" if reply.host_id is not None else ""
    return (
        f"<scheduler_version>{SCHEDULER_VERSION}</scheduler_version>\n{url}"
        f"<request_delay>{reply.request_delay_s!r}</request_delay>\n{''.join(messages)}"
        f"{_text('project_name', reply.project_name)}{_user(reply)}{host}"
        f"{_credit('host', reply.host_credit) if reply.host_create_at is not None else ''}"
        f"{_instant('host_create_time', reply.host_create_at)}"
        f"{_team(reply)}"
    )


def _user(reply: SchedulerReply) -> str:
    known = "" if reply.user_id is None else f"<userid>{reply.user_id}</userid>\n{_credit('user', reply.user_credit)}"
    return (
        f"{_text('user_name', reply.user_name)}{known}"
        f"{_instant('user_create_time', reply.user_create_at)}{_text('email_hash', reply.email_hash)}"
        f"{_text('cross_project_id', reply.cross_project_id)}{_text('external_cpid', reply.external_cpid)}"
    )


def _credit(of: str, credit: tuple[float, float]) -> str:
    total, average = credit
    return (
        f"<{of}_total_credit>{total:.6f}</{of}_total_credit>\n<{of}_expavg_credit>{average:.6f}</{of}_expavg_credit>\n"
    )


def _team(reply: SchedulerReply) -> str:
    """Render the team. An id of 0 and an empty name tell the client that the volunteer left the team."""
    return (
        f"<teamid>{reply.team_id}</teamid>\n<team_name>{escape(reply.team_name)}</team_name>\n" if reply.user_id else ""
    )


def _control(reply: SchedulerReply) -> str:
    next_s = reply.next_rpc_delay_s
    lines = [
        _flag("project_is_down", reply.project_is_down),
        f"<next_rpc_delay>{next_s!r}</next_rpc_delay>\n" if next_s is not None else "",
        _flag("send_full_workload", reply.send_full_workload),
        _flag("dont_use_dcf", reply.dont_use_dcf),
        *[f"<result_abort><name>{escape(name)}</name></result_abort>\n" for name in reply.aborts],
        *[
            f"<result_abort_if_not_started><name>{escape(name)}</name></result_abort_if_not_started>\n"
            for name in reply.aborts_if_not_started
        ],
        *[f"<delete_file_info>{escape(name)}</delete_file_info>\n" for name in reply.delete_files],
    ]
    return "".join(lines)


# Apps and files are the same in most replies of a worker, so their elements are cached.
@lru_cache(maxsize=MOST_RENDERED)
def render_preferences(wanted: ProjectPreferences) -> str:
    """Render the volunteer's `<project_preferences>`. docs/protocol.md#preferences.

    If the element has changed, the stock client stores it in the project's account file. It stops requesting work for
    disabled processors and passes `project_specific` to apps. `mod_time` makes each change of the preferences change
    the text, and shows which of two copies is newer.

    >>> print(render_preferences(ProjectPreferences(Instant(1.8e9), no_cpu=True, app_ids=(2,))), end="")
    <project_preferences>
    <mod_time>1800000000</mod_time>
    <no_cpu>1</no_cpu>
    <project_specific>
    <apps_selected>
    <app_id>2</app_id>
    </apps_selected>
    </project_specific>
    </project_preferences>
    """
    chosen = "".join([f"<app_id>{app_id}</app_id>\n" for app_id in wanted.app_ids])
    lines = [
        f"<project_preferences>\n<mod_time>{math.floor(wanted.modified_at)}</mod_time>\n",
        "<no_cpu>1</no_cpu>\n" if wanted.no_cpu else "",
        *[f"<{tag}>1</{tag}>\n" for tag in GPU_TAGS if wanted.no_gpu],
        "<project_specific>\n",
        f"<apps_selected>\n{chosen}</apps_selected>\n" if chosen else "",
        "<allow_beta_work>1</allow_beta_work>\n" if wanted.beta else "",
        f"<max_jobs>{wanted.max_jobs}</max_jobs>\n" if wanted.max_jobs else "",
        f"<max_cpus>{wanted.max_cpus}</max_cpus>\n" if wanted.max_cpus else "",
        "</project_specific>\n</project_preferences>\n",
    ]
    return "".join(lines)


@lru_cache(maxsize=MOST_RENDERED)
def render_links(links: tuple[GuiUrl, ...], feed_url: str) -> str:
    """Render `<gui_urls>`, which the client shows with the project, and the feed for its notices."""
    shown = [
        f"<gui_url>\n<name>{escape(one.name)}</name>\n<description>{escape(one.description)}</description>\n"
        f"<url>{escape(one.url)}</url>\n</gui_url>\n"
        for one in links
    ]
    feed = (
        f"<rss_feeds>\n<rss_feed>\n<url>{escape(feed_url)}</url>\n<poll_interval>{FEED_EVERY_S}</poll_interval>\n"
        "</rss_feed>\n</rss_feeds>\n"
    )
    return (f"<gui_urls>\n{''.join(shown)}</gui_urls>\n" if shown else "") + (feed if feed_url else "")


@lru_cache(maxsize=MOST_RENDERED)
def render_app(app: AppElement) -> str:
    """Render an `<app>`."""
    return f"<app>\n<name>{escape(app.name)}</name>\n{_text('user_friendly_name', app.user_friendly_name)}</app>\n"


@lru_cache(maxsize=MOST_RENDERED)
def render_download(file: DownloadElement) -> str:
    """Render the `<file_info>` of a file to be downloaded by the client."""
    urls = "".join([f"<download_url>{escape(url)}</download_url>\n" for url in file.urls])
    return (
        f"<file_info>\n<name>{escape(file.name)}</name>\n{urls}"
        f"{_flag('executable', file.executable)}{_flag('sticky', file.sticky)}"
        f"{_block('file_signature', file.signature)}{_text('md5_cksum', file.md5)}"
        f"<nbytes>{file.nbytes}</nbytes>\n</file_info>\n"
    )


def render_upload(file: UploadElement) -> str:
    """Render the `<file_info>` of a file to be uploaded by the client."""
    return (
        f"<file_info>\n<name>{escape(file.name)}</name>\n<max_nbytes>{file.max_bytes}</max_nbytes>\n"
        f"<upload_url>{escape(file.url)}</upload_url>\n"
        f"<xml_signature>\n{escape(file.token)}\n</xml_signature>\n</file_info>\n"
    )


def render_app_version(version: AppVersionElement) -> str:
    """Render an `<app_version>`; only GPU versions have `coproc`."""
    coproc = (
        f"<coproc>\n<type>{escape(version.coproc_type)}</type>\n<count>{version.coproc_count!r}</count>\n</coproc>\n"
        if version.coproc_type
        else ""
    )
    return (
        f"<app_version>\n<app_name>{escape(version.app_name)}</app_name>\n"
        f"<version_num>{version.version_num}</version_num>\n<platform>{escape(version.platform)}</platform>\n"
        f"{_text('plan_class', version.plan_class)}<avg_ncpus>{version.avg_ncpus!r}</avg_ncpus>\n"
        f"<flops>{version.flop_per_s!r}</flops>\n{_text('api_version', version.api_version)}"
        f"{_text('cmdline', version.arguments)}{coproc}"
        f"{_shared_file_refs(version.file_refs)}</app_version>\n"
    )


def render_workunit(workunit: WorkunitElement) -> str:
    """Render a `<workunit>`: the job without its deadline, which belongs to its result."""
    return (
        f"<workunit>\n<name>{escape(workunit.name)}</name>\n<app_name>{escape(workunit.app_name)}</app_name>\n"
        f"<rsc_fpops_est>{workunit.fpops_est!r}</rsc_fpops_est>\n"
        f"<rsc_fpops_bound>{workunit.fpops_bound!r}</rsc_fpops_bound>\n"
        f"<rsc_memory_bound>{workunit.memory_bytes!r}</rsc_memory_bound>\n"
        f"<rsc_disk_bound>{workunit.disk_bytes!r}</rsc_disk_bound>\n"
        f"{_text('command_line', workunit.command_line)}{_shared_file_refs(workunit.file_refs)}</workunit>\n"
    )


def render_result(result: ResultElement) -> str:
    """Render a `<result>` with its deadline in whole seconds, rounded down."""
    return (
        f"<result>\n<name>{escape(result.name)}</name>\n<wu_name>{escape(result.wu_name)}</wu_name>\n"
        f"<report_deadline>{math.floor(result.report_deadline)}</report_deadline>\n"
        f"<platform>{escape(result.platform)}</platform>\n<version_num>{result.version_num}</version_num>\n"
        f"{_text('plan_class', result.plan_class)}{_REPORT_NOW if result.report_immediately else ''}"
        f"{_file_refs(result.file_refs)}</result>\n"
    )


def _file_refs(refs: tuple[FileRef, ...]) -> str:
    return "".join([_file_ref(ref) for ref in refs])


_shared_file_refs = lru_cache(maxsize=MOST_RENDERED)(_file_refs)


def _file_ref(ref: FileRef) -> str:
    return (
        f"<file_ref>\n<file_name>{escape(ref.file_name)}</file_name>\n"
        f"{_text('open_name', ref.open_name)}"
        f"{_MAIN_PROGRAM if ref.main_program else ''}{_COPY_FILE if ref.copy_file else ''}"
        f"{_OPTIONAL if ref.optional else ''}</file_ref>\n"
    )


_MAIN_PROGRAM, _COPY_FILE, _OPTIONAL = "<main_program/>\n", "<copy_file/>\n", "<optional/>\n"
_REPORT_NOW = "<report_immediately/>\n"


def _flag(tag: str, value: bool) -> str:
    return f"<{tag}/>\n" if value else ""


def _text(tag: str, value: str) -> str:
    return f"<{tag}>{escape(value)}</{tag}>\n" if value else ""


def _instant(tag: str, at: Instant | None) -> str:
    return "" if at is None else f"<{tag}>{math.floor(at)}</{tag}>\n"


def _block(tag: str, value: str) -> str:
    """Render a key or a signature on separate lines."""
    return f"<{tag}>\n{escape(value.strip())}\n</{tag}>\n" if value else ""
