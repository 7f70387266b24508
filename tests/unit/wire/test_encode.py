"""Replies, read as the stock client reads them."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from domain.units import Instant, Seconds
from tests.facts import states
from tests.unit.wire import captured
from tests.unit.wire.test_signing import VECTOR_KEY, VECTOR_SIGNATURE
from wire import encode
from wire.client import decode_reply
from wire.messages import (
    AppElement,
    AppVersionElement,
    DownloadElement,
    FileRef,
    GuiUrl,
    Message,
    ProjectPreferences,
    ProtocolError,
    ResultElement,
    SchedulerReply,
    UploadElement,
    WorkunitElement,
)

LINUX = "x86_64-pc-linux-gnu"
FULL = SchedulerReply(
    master_url="http://example.org/",
    request_delay_s=Seconds(7.0),
    project_name="Test Project",
    messages=(Message("3 < 4 & so on"), Message("down soon", "notice")),
    user_name="Ada",
    user_id=7,
    user_credit=(1234.5, 0.25),
    user_create_at=Instant(1.7e9),
    email_hash="ab",
    cross_project_id="cd",
    external_cpid="ef",
    host_id=41,
    host_credit=(7.0, 0.5),
    host_create_at=Instant(1.7e9),
    team_id=3,
    team_name="Night & Day",
    gui_urls=(GuiUrl("Your account", "Credit & more", "http://example.org/volunteers/account"),),
    feed_url="http://example.org/notices.php",
    next_rpc_delay_s=Seconds(3600.0),
    send_full_workload=True,
    dont_use_dcf=True,
    preferences=ProjectPreferences(Instant(1.7e9), no_gpu=True, beta=True, max_jobs=4, max_cpus=2, app_ids=(1, 3)),
    code_sign_key=VECTOR_KEY,
    code_sign_key_signature=VECTOR_SIGNATURE,
    acks=("old_0",),
    aborts=("bad_0",),
    aborts_if_not_started=("late_0",),
    delete_files=("gone",),
    apps=(AppElement("pi", "Digits of pi"),),
    downloads=(
        DownloadElement("pi_1", ("http://example.org/download/pi_1",), 99, signature=VECTOR_SIGNATURE, executable=True),
        DownloadElement("in_1", ("http://a/in_1", "http://b/in_1"), 5, md5="0" * 32, sticky=True),
    ),
    uploads=(UploadElement("out_1", "http://example.org/upload", 1000, "a\nb"),),
    app_versions=(
        AppVersionElement(
            "pi",
            100,
            LINUX,
            "cuda",
            0.1,
            2e11,
            "7.5.0",
            coproc_type="NVIDIA",
            coproc_count=0.5,
            file_refs=(FileRef("pi_1", main_program=True),),
        ),
    ),
    workunits=(WorkunitElement("w", "pi", 3e9, 3e11, 1e8, 1e7, "1 0", (FileRef("in_1", "in", copy_file=True),)),),
    results=(
        ResultElement(
            "w_0",
            "w",
            Instant(1795280806.9),
            LINUX,
            100,
            "cuda",
            (FileRef("out_1", "out", copy_file=True, optional=True),),
        ),
    ),
)


def lines_of(reply: SchedulerReply) -> list[str]:
    return encode.encode_reply(reply).decode().splitlines()


def test_the_parts_stand_in_the_order_the_client_needs() -> None:
    tags = [child.tag for child in ET.fromstring(encode.encode_reply(FULL))]

    assert tags == [
        *("scheduler_version", "master_url", "request_delay", "message", "message", "project_name", "user_name"),
        *("userid", "user_total_credit", "user_expavg_credit", "user_create_time", "email_hash", "cross_project_id"),
        *("external_cpid", "hostid", "host_total_credit", "host_expavg_credit", "host_create_time"),
        *("teamid", "team_name", "gui_urls", "rss_feeds"),
        *("result_ack", "next_rpc_delay", "send_full_workload", "dont_use_dcf", "result_abort"),
        *("result_abort_if_not_started", "delete_file_info", "project_preferences"),
        *("code_sign_key", "code_sign_key_signature"),
        *("app", "file_info", "file_info", "file_info", "app_version", "workunit", "result"),
    ]


def test_a_reply_without_work_is_short() -> None:
    assert encode.encode_reply(SchedulerReply("http://p/", Seconds(60.0))) == (
        b"<scheduler_reply>\n"
        b"<scheduler_version>708</scheduler_version>\n"
        b"<master_url>http://p/</master_url>\n"
        b"<request_delay>60.0</request_delay>\n"
        b"</scheduler_reply>\n"
    )


def test_credit_has_six_decimals() -> None:
    lines = lines_of(FULL)

    assert "<user_total_credit>1234.500000</user_total_credit>" in lines
    assert "<host_expavg_credit>0.500000</host_expavg_credit>" in lines
    assert {"<userid>7</userid>", "<teamid>3</teamid>", "<team_name>Night &amp; Day</team_name>"} <= set(lines)


def test_a_deadline_is_whole_seconds_rounded_down() -> None:
    assert "<report_deadline>1795280806</report_deadline>" in lines_of(FULL)


def test_text_is_escaped() -> None:
    assert '<message priority="low">3 &lt; 4 &amp; so on</message>' in lines_of(FULL)


def test_host_id_is_only_in_the_reply_that_creates_the_host() -> None:
    assert not any("hostid" in line for line in lines_of(SchedulerReply("", Seconds(1.0))))


@pytest.mark.parametrize(
    ("tag", "number"), [("code_sign_key", 7), ("code_sign_key", 53), ("code_sign_key_signature", 53)]
)
def test_keys_are_laid_out_as_clients_have_accepted_them(tag: str, number: int) -> None:
    accepted = captured.reply(number)
    start, end = accepted.index(f"<{tag}>".encode()), accepted.index(f"</{tag}>".encode())
    understood = decode_reply(accepted)

    written = encode.encode_reply(understood)

    assert accepted[start:end] in written


def test_a_file_signature_stands_on_lines_of_its_own() -> None:
    rendered = encode.render_download(FULL.downloads[0])

    assert f"<file_signature>\n{VECTOR_SIGNATURE}</file_signature>\n" in rendered


def test_an_upload_token_stands_on_lines_of_its_own() -> None:
    assert "<xml_signature>\na\nb\n</xml_signature>\n" in encode.render_upload(FULL.uploads[0])


def test_a_gpu_version_names_its_gpu_and_a_cpu_version_none() -> None:
    gpu = encode.render_app_version(FULL.app_versions[0])
    cpu = encode.render_app_version(AppVersionElement("pi", 100, LINUX))

    assert "<coproc>\n<type>NVIDIA</type>\n<count>0.5</count>\n</coproc>\n" in gpu
    assert "coproc" not in cpu


def test_an_app_without_a_title_has_only_its_name() -> None:
    assert encode.render_app(AppElement("pi")) == "<app>\n<name>pi</name>\n</app>\n"


def test_a_project_that_is_down_says_so() -> None:
    reply = SchedulerReply("", Seconds(33.0), project_is_down=True, messages=(Message("down", "notice"),))

    assert "<project_is_down/>" in lines_of(reply)


# ------------------------------------------------------------------ the client's side


def test_a_captured_first_reply_is_understood() -> None:
    reply = decode_reply(captured.reply(7))

    assert (reply.host_id, reply.request_delay_s, reply.user_name) == (41, 1.0, "Tester")
    assert reply.code_sign_key == VECTOR_KEY
    assert [(file.name, file.executable) for file in reply.downloads] == [
        (f"testapp_1.00_{LINUX}", True),
        ("wu_001_in", False),
    ]
    assert reply.downloads[1].urls == ("http://127.0.0.1:18123/proj/download/wu_001_in",)
    assert [(file.name, file.max_bytes) for file in reply.uploads] == [("wu_001_0_r0_out", 100_000)]
    assert reply.uploads[0].url == "http://127.0.0.1:18123/proj/file_upload_handler"
    assert reply.workunits[0].file_refs == (FileRef("wu_001_in", "in", copy_file=True),)
    assert reply.results[0].report_deadline == 1795280806.0
    assert reply.app_versions[0].file_refs == (FileRef(f"testapp_1.00_{LINUX}", main_program=True),)


def test_captured_control_elements_are_understood() -> None:
    reply = decode_reply(captured.reply(22))

    assert (reply.aborts, reply.aborts_if_not_started) == (("A_0", "NOSUCH_0"), ("B_0", "D_0"))
    assert (reply.acks, reply.delete_files, reply.next_rpc_delay_s) == (("NOSUCH_1",), ("shapp_1.00.sh",), 25.0)
    assert [message.priority for message in reply.messages] == ["high", "low", "notice", "low"]


def test_a_project_that_is_down_is_understood() -> None:
    reply = decode_reply(captured.reply(29))

    assert (reply.project_is_down, reply.request_delay_s) == (True, 33.0)


def test_the_smallest_reply_is_understood() -> None:
    assert decode_reply(captured.reply(28)) == SchedulerReply("", Seconds(0.0))


def test_the_smallest_reply_with_work_is_understood() -> None:
    reply = decode_reply(captured.reply(55))

    assert [file.token for file in reply.uploads] == ["any-token-min1"]
    assert reply.workunits[0].fpops_est == 3e9


@pytest.mark.parametrize("number", [24, 26, 27])
def test_what_is_no_reply_is_a_protocol_error(number: int) -> None:
    with pytest.raises(ProtocolError, match="scheduler reply: expected"):
        decode_reply(captured.reply(number))


@pytest.mark.parametrize(
    ("old", "new", "facts"),
    [
        (b"<hostid>41", b"<hostid>x", ("hostid:", "whole", "'x'")),
        (b"<request_delay>7.0", b"<request_delay>nan", ("request_delay:", "finite", "'nan'")),
        (b"<wu_name>w</wu_name>", b"", ("wu_name:", "scheduler_reply", "none")),
    ],
)
def test_a_wrong_reply_says_what_is_wrong(old: bytes, new: bytes, facts: tuple[str, ...]) -> None:
    with states(ProtocolError, *facts):
        decode_reply(encode.encode_reply(FULL).replace(old, new))
