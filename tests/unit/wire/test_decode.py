"""Requests of the stock client, and malformed requests."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.units import Instant, Seconds
from tests.facts import states
from tests.unit.wire import captured
from wire.client import encode_request
from wire.decode import MAX_IN_PROGRESS, decode_request
from wire.messages import CoprocRequest, HeldResult, HostInfo, InProgress, ProtocolError, SchedulerRequest
from wire.reports import MAX_RESULTS

LINUX = "x86_64-pc-linux-gnu"
KEY = "0123456789abcdef0123456789abcdef"
REQUESTS = captured.numbers_of_requests_with(b"<scheduler_request>")
FIRST_CONTACT = captured.request(7)
SMALL = b"<scheduler_request>\n<authenticator>key</authenticator>\n</scheduler_request>\n"


def capture(number: int) -> SchedulerRequest:
    return decode_request(captured.request(number))


def changed(old: bytes, new: bytes, body: bytes = FIRST_CONTACT) -> bytes:
    assert body.count(old) == 1
    return body.replace(old, new)


# ------------------------------------------------------------------ what the stock client says


def test_there_are_as_many_captures_as_expected() -> None:
    assert len(REQUESTS) == 42


@pytest.mark.parametrize("number", REQUESTS)
def test_every_captured_request_is_understood(number: int) -> None:
    request = capture(number)

    assert request.client_version == (7, 20, 5)
    assert request.host.ncpus == 2
    assert request.host.os_version == "Debian GNU/Linux 12 (bookworm) [6.1.0-13-amd64|libc 2.36]"
    assert request.disk_project_share_bytes is not None


def test_a_first_contact_describes_its_host() -> None:
    request = capture(7)
    host = request.host

    assert (request.authenticator, request.host_id, request.rpc_seqno) == (KEY, 0, 0)
    assert (request.cpu_req_s, request.cpu_req_instances, request.code_sign_key) == (1.0, 0.0, "")
    assert (request.platforms, request.dont_send_work) == ((LINUX,), False)
    assert (request.ram_max_used_busy_fraction, request.ram_max_used_idle_fraction) == (0.5, 0.9)
    assert (request.max_ncpus_fraction, request.work_buf_min_s) == (1.0, 0.0001 * 86400)
    assert (request.on_fraction, request.active_fraction, request.gpu_active_fraction) == (1.0, 1.0, 1.0)
    assert request.client_now == 1795194405.416239
    assert request.disk_project_share_bytes == 89093313576.960007
    assert (request.coprocs, request.results, request.other_results, request.in_progress) == ((), (), (), None)
    assert (host.domain_name, host.ip_addr, host.host_cpid) == ("host1.example", "192.0.2.10", "1" * 32)
    assert (host.timezone_s, host.ncpus, host.cpu_vendor) == (0, 2, "GenuineIntel")
    assert host.cpu_model == "Example(R) CPU @ 2.50GHz [Family 6 Model 85 Stepping 7]"
    assert (host.flop_per_s, host.iop_per_s) == (1e9, 1e9)
    assert (host.ram_bytes, host.swap_bytes) == (25276514304.0, 0.0)
    assert (host.disk_total_bytes, host.disk_free_bytes) == (270553174016.0, 81101209600.0)
    assert (host.os_name, host.cpu_features) == ("Linux Debian", "")


def test_a_success_is_reported_with_its_file() -> None:
    request = capture(12)
    [result] = request.results

    assert (request.host_id, request.rpc_seqno, request.cpu_req_s) == (41, 1, 360.0)
    assert (result.name, result.state, result.exit_status, result.version_num) == ("wu_001_0", 5, 0, 100)
    assert (result.elapsed_s, result.cpu_s, result.plan_class) == (1.012842, 0.0, "")
    assert result.stderr.startswith("<stderr_txt>\ntestapp argc=4")
    assert result.stderr.endswith("\n'\n\n</stderr_txt>")
    [file] = result.files
    assert (file.name, file.nbytes) == ("wu_001_0_r0_out", 29.0)
    assert (file.md5, file.error) == ("c3a78b50de1435f6cc1c7881b035f929", "")


def test_an_idle_client_asks_for_both_processors() -> None:
    request = capture(14)

    assert (request.cpu_req_s, request.cpu_req_instances, request.rpc_seqno) == (360.0, 2.0, 3)
    assert request.code_sign_key.startswith("1024\nc0c2c9e15ed89b14")
    assert request.code_sign_key.endswith("10001\n.\n")
    assert request.results == ()


def test_a_success_and_a_failure_are_reported_together() -> None:
    success, failure = capture(15).results

    assert (success.name, success.state, success.exit_status, success.elapsed_s) == ("wu_003_0", 5, 0, 2.017379)
    assert (failure.name, failure.state, failure.exit_status) == ("wu_002_0", 3, 3)
    assert "process exited with code 3" in failure.stderr
    assert [file.name for file in failure.files] == ["wu_002_0_r0_out"]


def test_work_in_progress_and_its_delay_are_decoded() -> None:
    request = capture(18)

    assert (request.estimated_delay_s, request.cpu_req_s) == (51.610294, 2384.549963)
    assert request.duration_correction_factor == 0.868579
    assert [held.name for held in request.other_results] == ["wu_005_0", "wu_004_0", "wu_007_0", "wu_006_0"]
    assert request.in_progress is not None
    assert request.in_progress[1] == InProgress("wu_004_0", Instant(1795194641.0), Seconds(51.61), 1.0)
    assert len(request.in_progress) == 4


def test_aborted_results_say_who_aborted_them() -> None:
    running, finished, unstarted = capture(21).results

    assert (running.exit_status, running.state, running.elapsed_s) == (203, 6, 9.037661)
    assert running.stderr.startswith("<message>\naborted by user</message>")
    assert (finished.exit_status, finished.state, len(finished.files)) == (0, 5, 1)
    assert (unstarted.exit_status, unstarted.state, unstarted.stderr, unstarted.files) == (203, 6, "", ())


def test_server_and_user_aborts_are_distinguished() -> None:
    assert {result.exit_status for result in capture(23).results if result.state == 6} == {202}


def test_an_output_that_is_too_big_has_exit_status_0_but_state_3() -> None:
    [result] = capture(36).results

    assert (result.name, result.exit_status, result.state, result.files) == ("toobig_0", 0, 3, ())
    assert "-131 (file size too big)" in result.stderr


def test_a_failed_download_has_state_1() -> None:
    [result] = capture(38).results

    assert (result.name, result.exit_status, result.state) == ("dl404_0", -186, 1)
    assert "-224 (permanent HTTP error)" in result.stderr


def test_declared_gpu_without_driver_is_listed_as_unusable() -> None:
    generic, nvidia = capture(41).coprocs

    assert generic == CoprocRequest("fake_gpu", 1, peak_flop_per_s=1e12, req_s=Seconds(1.0))
    assert nvidia == CoprocRequest("NVIDIA", 0, usable=False, req_s=Seconds(1.0))


def test_net_information_may_be_suppressed() -> None:
    host = capture(41).host

    assert (host.domain_name, host.ip_addr, host.host_cpid) == ("", "", "2" * 32)


def test_work_is_asked_per_type_of_processor() -> None:
    request = capture(42)

    assert request.cpu_req_s == 348.5
    assert [(coproc.type, coproc.req_s) for coproc in request.coprocs] == [("fake_gpu", 160.0), ("NVIDIA", 360.0)]


def test_a_busy_gpu_has_a_delay_of_its_own() -> None:
    request = capture(45)

    assert request.estimated_delay_s == 0.0
    assert request.cpu_req_instances == 0.9
    assert [coproc.estimated_delay_s for coproc in request.coprocs] == [44.877035, 0.0]
    assert request.coprocs[1].req_instances == 2.0
    assert request.other_results == (HeldResult("gcpu_0"), HeldResult("gtight_0", "fake"))


def test_a_refused_upload_shows_only_as_an_error_of_the_file() -> None:
    [result] = capture(49).results

    assert (result.exit_status, result.state) == (0, 5)
    assert [file.error for file in result.files] == ["permanent upload error"]


def test_a_client_starts_counting_again_after_a_new_host_id() -> None:
    request = capture(52)

    assert (request.host_id, request.rpc_seqno, request.cpu_req_instances) == (77, 0, 1.0)


def test_a_user_may_ask_for_no_new_work() -> None:
    request = capture(54)

    assert request.dont_send_work
    assert (request.cpu_req_s, [coproc.req_s for coproc in request.coprocs]) == (0.0, [0.0, 0.0])


def test_an_unacknowledged_result_is_reported_again() -> None:
    request = capture(57)

    assert ([result.name for result in request.results], request.rpc_seqno) == (["noack_0"], 22)


def test_a_wrong_account_key_is_still_a_request() -> None:
    assert capture(60).authenticator == "badbadbad"


def test_anonymous_platform_is_decoded() -> None:
    assert capture(61).platforms == ("anonymous",)


def test_a_client_with_a_full_buffer_lists_its_queue() -> None:
    request = capture(62)

    assert request.cpu_req_s == 0.0
    assert request.in_progress is not None
    assert [(job.name, job.remaining_s) for job in request.in_progress] == [("fb2_0", 762.49), ("fb1_0", 762.49)]


def test_cpu_time_is_decoded_if_apps_report_it() -> None:
    [result] = capture(64).results

    assert (result.cpu_s, result.elapsed_s) == (14.280240, 19.156757)
    assert capture(64).in_progress == ()


# ------------------------------------------------------------------ requests that look different


@pytest.mark.parametrize("number", REQUESTS)
@pytest.mark.parametrize(
    "opening",
    [
        *(b"<scheduler_request>", b"<global_preferences>", b"<time_stats>", b"<host_info>", b"<disk_usage>"),
        *(b"<coproc>", b"<coproc_cuda>", b"<result>", b"<file_info>", b"<other_result>", b"<ip_result>"),
    ],
)
def test_an_unknown_element_in_any_part_changes_nothing(number: int, opening: bytes) -> None:
    body = captured.request(number)
    stderr_at = body.find(b"<stderr_out>")
    if opening == b"<result>" and stderr_at >= 0:
        body, rest = body[:stderr_at], body[stderr_at:]
    else:
        rest = b""

    strange = body.replace(opening, opening + b"\n<new_in_8.4>1</new_in_8.4>", 1) + rest

    assert decode_request(strange) == capture(number)


def test_the_order_within_a_part_does_not_matter() -> None:
    body = changed(b"    <hostid>0</hostid>\n", b"")
    body = changed(b"    <estimated_delay>", b"    <hostid>7</hostid>\n    <estimated_delay>", body)

    assert decode_request(body) == replace(capture(7), host_id=7)


def test_alternative_platforms_follow_the_primary_one() -> None:
    alternative = b"    <alt_platform>\n        <name>i686-pc-linux-gnu</name>\n    </alt_platform>\n"
    body = changed(b"<working_global_preferences>", alternative + b"<working_global_preferences>")
    strange = changed(b"    <hostid>0</hostid>\n", b"    <new/><hostid>0</hostid>\n", body)

    assert decode_request(body).platforms == (LINUX, "i686-pc-linux-gnu")
    assert decode_request(strange).platforms == (LINUX, "i686-pc-linux-gnu")


def test_a_request_with_an_account_key_alone_has_defaults() -> None:
    assert decode_request(SMALL) == SchedulerRequest("key")


def test_an_empty_key_is_no_key() -> None:
    for key in (b"", b" \n "):
        element = b"<code_sign_key>" + key + b"</code_sign_key>"
        body = changed(b"<working_global_preferences>", element + b"<working_global_preferences>")
        assert decode_request(body).code_sign_key == ""


def test_a_delay_of_a_gpu_is_not_taken_for_the_cpus() -> None:
    coprocs = b"<coprocs><coproc><type>t</type><estimated_delay>9</estimated_delay></coproc></coprocs>"

    request = decode_request(SMALL.replace(b"</s", coprocs + b"</s"))

    assert request.estimated_delay_s == 0.0
    assert request.coprocs == (CoprocRequest("t", 0, estimated_delay_s=Seconds(9.0)),)


def test_text_before_the_request_is_ignored() -> None:
    assert decode_request(b'<?xml version="1.0" encoding="ISO-8859-1" ?>\n' + SMALL) == SchedulerRequest("key")


def test_each_byte_of_a_name_beyond_ascii_has_its_own_reference() -> None:
    body = changed(b"host1.example", b"th&#195;&#169; &amp; &#x3C; &unknown;")

    assert decode_request(body).host.domain_name == "thé & < &unknown;"


def test_bytes_that_are_not_utf8_are_replaced() -> None:
    assert decode_request(changed(b"host1.example", b"th\xe9")).host.domain_name == "th\ufffd"


def test_control_characters_are_removed_from_names() -> None:
    assert decode_request(changed(b"host1.example", b"\0a\x1bb\x7f")).host.domain_name == "ab"
    assert decode_request(SMALL.replace(b"key<", b"k\0e&#0;y\n<")).authenticator == "key"


def test_a_long_description_is_cut_off() -> None:
    assert len(decode_request(changed(b"host1.example", b"x" * 9000)).host.domain_name) == 4000


@pytest.mark.parametrize(
    ("interface", "count", "usable"),
    [("have_cuda", 1, True), ("have_opencl", 1, True), ("have_cal", 1, False), ("have_cuda", 0, False)],
)
def test_an_nvidia_gpu_is_usable_with_a_driver(interface: str, count: int, usable: bool) -> None:
    gpu = f"<count>{count}</count><{interface}>1</{interface}>"
    gpu += "<drvVersion>53500</drvVersion><available_ram>2e9</available_ram>"
    body = SMALL.replace(b"</s", f"<coprocs><coproc_cuda>{gpu}</coproc_cuda></coprocs></s".encode())

    expected = CoprocRequest("NVIDIA", count, ram_bytes=2e9, driver_version=53500, usable=usable)
    assert decode_request(body).coprocs == (expected,)


def test_gpus_of_every_vendor_have_their_name() -> None:
    gpus = b"<coproc_intel_gpu><count>1</count></coproc_intel_gpu><coproc_ati><count>2</count></coproc_ati>"
    body = SMALL.replace(b"</s", b"<coprocs>" + gpus + b"</coprocs></s")

    assert [(coproc.type, coproc.count) for coproc in decode_request(body).coprocs] == [("ATI", 2), ("intel_gpu", 1)]


@pytest.mark.parametrize(("field", "gpu"), [("ncudas", "NVIDIA"), ("natis", "ATI"), ("nintel_gpus", "intel_gpu")])
def test_a_gpu_job_in_progress_names_its_type(field: str, gpu: str) -> None:
    job = f"<ip_result><name>j</name><{field}>0.5</{field}></ip_result>"
    body = SMALL.replace(b"</s", f"<in_progress_results>{job}</in_progress_results></s".encode())

    assert decode_request(body).in_progress == (
        InProgress("j", Instant(0.0), Seconds(0.0), gpu_type=gpu, gpu_count=0.5),
    )


def test_only_sticky_files_that_are_there_are_listed() -> None:
    files = b"<file_info><name>a</name><status>1</status></file_info>\n"
    files += b"<file_info><name>b</name><status>-114</status></file_info>\n<app_versions>"
    for number in (7, 12):
        body = captured.request(number).replace(b"<app_versions>", files)
        assert decode_request(body).sticky_files == ("a",)


# ------------------------------------------------------------------ what is no request


@pytest.mark.parametrize("number", [7, 18, 21, 45, 49, 65])
def test_every_truncation_is_a_protocol_error(number: int) -> None:
    body = captured.request(number).rstrip()

    for end in range(len(body)):
        with pytest.raises(ProtocolError):
            decode_request(body[:end])


@pytest.mark.parametrize(
    ("body", "facts"),
    [
        (b"", ("scheduler request:", "<scheduler_request>", "''")),
        (b"<html>", ("scheduler request:", "<scheduler_request>", "'<html>'")),
        (SMALL + b"more", ("scheduler request:", "</scheduler_request>", "'<authenticator>key")),
        (b"<scheduler_request></scheduler_request>", ("authenticator:", "scheduler_request", "none")),
        (SMALL.replace(b"key", b""), ("authenticator:", "scheduler_request", "none")),
        (SMALL.replace(b"key", b"k" * 256), ("authenticator:", "at most 255")),
        (changed(b"<hostid>0", b"<hostid>x"), ("hostid:", "whole", "'x'")),
        (changed(b"<hostid>0", b"<hostid>"), ("hostid:", "whole", "''")),
        (changed(b"<hostid>0", b"<hostid>1.5"), ("hostid:", "whole", "'1.5'")),
        (changed(b"<hostid>0", b"<hostid>9223372036854775808"), ("hostid:", "whole", "at most 64")),
        (
            changed(b"<hostid>0", b"<hostid>" + b"9" * 10_000),
            ("hostid:", "whole", "'999999999999999999999999999999999999999999999999999999999999...'"),
        ),
        (changed(b"<rpc_seqno>0", b"<rpc_seqno>1_0"), ("rpc_seqno:", "whole", "'1_0'")),
        (changed(b"<on_frac>1.0", b"<on_frac>NaN"), ("on_frac:", "finite", "'NaN00000'")),
        (changed(b"<on_frac>1.000000", b"<on_frac>nan"), ("on_frac:", "finite", "'nan'")),
        (changed(b"<m_swap>0.000000", b"<m_swap>-inf"), ("m_swap:", "finite", "'-inf'")),
        (changed(b"<m_swap>0.000000", b"<m_swap>1e999"), ("m_swap:", "finite", "'1e999'")),
        (changed(b"<m_swap>0.000000", b"<m_swap>" + b"9" * 400), ("m_swap:", "finite")),
        (changed(b"<m_swap>0.000000", b"<m_swap>\xd9\xa3"), ("m_swap:", "finite", "'\\xd9\\xa3'")),
        (changed(b"min_days>0.000100", b"min_days>1e305"), ("work_buf_min_days:", "finite")),
        (SMALL.replace(b"</s", b"<result>\n</s"), ("</result>:", "scheduler_request", "none")),
        (SMALL.replace(b"</s", b"<result></result></s"), ("name:", "result", "none")),
    ],
)
def test_a_wrong_request_says_what_is_wrong(body: bytes, facts: tuple[str, ...]) -> None:
    with states(ProtocolError, *facts) as refusal:
        decode_request(body)

    assert refusal.value.status == 400


@pytest.mark.parametrize("number", ["-5", "0", "1e300", "-1e300", "0.1", "1e-300", "9" * 290])
def test_negative_and_absurd_numbers_pass(number: str) -> None:
    body = changed(b"<p_fpops>1000000000.000000", f"<p_fpops>{number}".encode())

    assert decode_request(body).host.flop_per_s == float(number)


@given(st.binary(max_size=300))
def test_random_bytes_are_a_protocol_error_or_a_request(content: bytes) -> None:
    for body in (content, SMALL.replace(b"</s", content + b"</s"), SMALL.replace(b"key", content)):
        try:
            decode_request(body)
        except ProtocolError as refusal:
            assert str(refusal)


@given(st.data())
def test_a_damaged_request_is_a_protocol_error_or_a_request(data: st.DataObject) -> None:
    body = bytearray(captured.request(data.draw(st.sampled_from([12, 45, 65]))))
    for _ in range(data.draw(st.integers(1, 8))):
        start = data.draw(st.integers(0, len(body)))
        body[start : start + data.draw(st.integers(0, 30))] = data.draw(st.binary(max_size=10))
    try:
        decode_request(bytes(body))
    except ProtocolError as refusal:
        assert str(refusal)


# ------------------------------------------------------------------ hostile input


def test_entities_are_not_expanded() -> None:
    bomb = b'<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]>\n'
    body = bomb + changed(b"host1.example", b"&b;")

    assert decode_request(body).host.domain_name == "&b;"


def test_deep_nesting_is_skipped() -> None:
    nested = b"<x>" * 100_000 + b"</x>" * 100_000

    assert decode_request(SMALL.replace(b"</s", nested + b"</s")) == SchedulerRequest("key")


@pytest.mark.parametrize(
    "flood",
    [
        b"<result>",
        b"<result>\n",
        b"\n</result>\n<result>\n",
        b"<result>\n<stderr_out>\n",
        b"\n</result>\n<result>\n<stderr_out>\n",
        b"<result>\n</stderr_out>\n",
        b"<stderr_out>",
        b"\n<stderr_out>\n\n</stderr_out>\n",
        b"<result><name>a</name></result>",
        b"<file_info>",
        b"<file_info><name>",
        b"<ip_result>",
        b"<in_progress_results>",
        b"<other_results><other_result>",
        b"<coprocs><coproc>",
        b"<alt_platform><name>",
        b"<host_info>",
        b"<hostid>",
        b"<platform_name>",
        b"&#",
        b"&#1;",
        b"<",
        b"</",
        b"<![CDATA[",
        b"]]>",
        b"\n",
    ],
)
@pytest.mark.parametrize("closing", [b"", b"\n</result>\n", b"\n</stderr_out>\n</result>\n"])
def test_five_megabytes_of_anything_end(flood: bytes, closing: bytes) -> None:
    """Decoding is linear: quadratic decoding would take hours and run into the test time-out."""
    content = flood * (5_000_000 // len(flood)) + closing
    body = SMALL.replace(b"</s", b"<result>\n<name>r</name>\n" * (closing != b"") + content + b"</s")
    try:
        request = decode_request(body)
    except ProtocolError as refusal:
        assert len(str(refusal)) < 300
    else:
        assert request.authenticator == "key"
        assert len(request.results) <= MAX_RESULTS


def test_five_megabytes_within_the_head_end() -> None:
    for flood in (b"&#65;", b" ", b"1", b"<x>", b"<alt_platform><name>a</name></alt_platform>"):
        body = SMALL.replace(
            b"<auth", b"<platform_name>" + flood * (5_000_000 // len(flood)) + b"</platform_name><auth"
        )
        try:
            assert decode_request(body).authenticator == "key"
        except ProtocolError as refusal:
            assert "platform_name: expected at most 255 characters" in str(refusal)


def test_results_beyond_the_limit_are_left_for_the_next_request() -> None:
    result = b"<result>\n    <name>r%d</name>\n</result>\n"
    body = SMALL.replace(b"</s", b"".join(result % number for number in range(MAX_RESULTS + 5)) + b"</s")

    results = decode_request(body).results

    assert (len(results), results[-1].name) == (MAX_RESULTS, f"r{MAX_RESULTS - 1}")


def test_a_queue_of_absurd_length_is_refused() -> None:
    jobs = b"<ip_result><name>j</name></ip_result>" * (MAX_IN_PROGRESS + 1)
    body = SMALL.replace(b"</s", b"<in_progress_results>" + jobs + b"</in_progress_results></s")

    with states(ProtocolError, "ip_result:", "at most 20000", 20001):
        decode_request(body)


WSL = (
    b"<wsl><distro><distro_name>U</distro_name><docker_version>4.9.3</docker_version><docker_type>2</docker_type>"
    b"</distro></wsl>"
)


@pytest.mark.parametrize(
    ("added", "software"),
    [
        (b"", ""),
        (b"<docker_version>24.0.7</docker_version><docker_type>1</docker_type>", "docker/24.0.7"),
        (b"<virtualbox_version>7.0.8r1</virtualbox_version>", "virtualbox/7.0.8r1"),
        (WSL + b"<virtualbox_version>6.1</virtualbox_version>", "podman/4.9.3 virtualbox/6.1"),
        (b"<docker_version>24 or so</docker_version>", ""),
    ],
)
def test_containers_and_virtualbox_are_decoded(added: bytes, software: str) -> None:
    body = changed(b"</host_info>", added + b"</host_info>")
    host = decode_request(body).host
    assert host == replace(decode_request(FIRST_CONTACT).host, software=software)


def test_disabled_extensions_hide_virtualbox() -> None:
    body = changed(b"</host_info>", b"<virtualbox_version>7.0</virtualbox_version></host_info>")
    old, new = (b"<p_vm_extensions_disabled>%d</p_vm_extensions_disabled>" % one for one in (0, 1))
    assert old in body
    assert decode_request(body.replace(old, new)).host.software == ""


@pytest.mark.parametrize("software", ["", "docker/24.0.7", "podman/4.9.3 virtualbox/7.0"])
def test_software_survives_a_round_trip(software: str) -> None:
    request = SchedulerRequest("key", host=HostInfo(software=software))
    assert decode_request(encode_request(request)).host.software == software
