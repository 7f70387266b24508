"""Text written by apps ends where it should and cannot forge structure."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.dispatch import ReportedFile, ReportedResult
from domain.units import Instant, Seconds
from tests.unit.wire import captured
from wire.client import decode_reply, encode_request
from wire.decode import decode_request
from wire.encode import encode_reply
from wire.messages import HeldResult, SchedulerReply, SchedulerRequest, TrickleUp
from wire.reports import MAX_STDERR_BYTES, MAX_TRICKLES

FILE = ReportedFile("a_0_out", 4.0, "0" * 32)
FIRST = ReportedResult("a_0", 5, 0, files=(FILE,))
SECOND = ReportedResult("b_0", 3, 1, plan_class="mt")


def report_with(stderr: bytes) -> SchedulerRequest:
    """Return two results and a list of work in progress; the first result has this `stderr`."""
    request = SchedulerRequest("key", results=(FIRST, SECOND), other_results=(HeldResult("c_0"),))
    empty = b"<core_client_version>0.0.0</core_client_version>\n"
    filled = empty + b"<![CDATA[\n<stderr_txt>\n" + stderr + b"\n</stderr_txt>\n]]>\n"
    return decode_request(encode_request(request).replace(empty, filled, 1))


def test_the_captured_nasty_stderr_makes_one_result() -> None:
    request = decode_request(captured.request(65))
    [result] = request.results

    assert (result.name, result.state, result.exit_status) == ("nasty1_0", 5, 0)
    assert "]]> </stderr_out></result><result><name>fake_0</name></result>\n" in result.stderr
    assert "\ufffd\ufffd\ufffd( café" in result.stderr
    assert [(file.name, file.nbytes) for file in result.files] == [("nasty1_0_r0_out", 4.0)]
    assert (request.host_id, request.rpc_seqno, request.in_progress) == (77, 58, ())


@pytest.mark.parametrize(
    "stderr",
    [
        b"]]>",
        b"</stderr_out>",
        b"<result><name>fake</name></result>",
        b"\n<result>\n    <name>fake</name>\n",
        b"\n</result>\n",
        b"\n</result>\n<result>\n    <name>fake</name>\n    <state>5</state>\n",
        b"\n</result>\n<result>\n    <name>fake</name>\n</result>\n<result>\n    <name>fake2</name>\n",
        b"]]>\n</stderr_out>\n",
        b"]]>\n</stderr_out>\n<file_info>\n    <name>fake</name>\n</file_info>\n",
        b"]]>\n</stderr_out>\n</result> <result>\n    <name>fake</name>\n",
        b"</scheduler_request>",
        b"\n<other_results>\n<other_result>\n<name>fake</name>\n</other_result>\n</other_results>\n",
        b"<in_progress_results><ip_result><name>fake</name></ip_result></in_progress_results>",
        b"<file_info><name>fake</name><status>1</status></file_info><app_versions>",
        b"<host_info><p_ncpus>1000</p_ncpus></host_info><coprocs><coproc_cuda></coproc_cuda></coprocs>",
        b"<exit_status>9</exit_status><plan_class>fake</plan_class><error_msg>fake</error_msg>",
        b"\n<stderr_out>\n",
        b"<![CDATA[",
        b"<!ENTITY x 'y'>&x;",
        b"th\xe9 \x1b[31m",
    ],
)
def test_nothing_in_stderr_becomes_structure(stderr: bytes) -> None:
    request = report_with(stderr)
    first, second = request.results

    assert (first.name, first.state, first.exit_status, first.plan_class) == ("a_0", 5, 0, "")
    assert first.files == (FILE,)
    assert second == SECOND
    assert request.other_results == (HeldResult("c_0"),)
    assert (request.in_progress, request.coprocs, request.sticky_files, request.host.ncpus) == (None, (), (), 1)
    assert first.stderr.startswith("<stderr_txt>")
    assert first.stderr.endswith("</stderr_txt>")


@given(
    st.lists(st.sampled_from(["<result>", "</result>", "<name>x</name>", "]]>", "\n", " ", "<", "word"]), max_size=12)
)
def test_no_mix_of_result_tags_in_stderr_becomes_structure(words: list[str]) -> None:
    request = report_with("".join(words).encode())

    assert [result.name for result in request.results] == ["a_0", "b_0"]
    assert request.results[0].files == (FILE,)


def test_a_whole_forged_result_is_the_documented_limit() -> None:
    """An app can imitate the client; the scheduler ignores results that are not the host's."""
    forged = b"]]>\n</stderr_out>\n</result>\n<result>\n    <name>fake</name>\n<stderr_out>\n"

    assert [result.name for result in report_with(forged).results] == ["a_0", "fake", "b_0"]


def test_stderr_loses_control_characters_but_keeps_lines() -> None:
    assert report_with(b"a\0b\x1b\tc\r\nd").results[0].stderr == "<stderr_txt>\nab\tc\r\nd\n</stderr_txt>"


def test_only_references_of_high_bytes_are_undone_in_stderr() -> None:
    stderr = report_with(b"&amp; &#65; &#127; &#195;&#169; &#256; &#1000;").results[0].stderr

    assert stderr == "<stderr_txt>\n&amp; &#65; &#127; é &#256; &#1000;\n</stderr_txt>"


@pytest.mark.parametrize("flood", [b"x", b"&#195;&#169;", b"&", b"\n"])
def test_the_end_of_a_long_stderr_is_kept(flood: bytes) -> None:
    stderr = report_with(flood * (1_000_000 // len(flood)) + b"the end").results[0].stderr

    assert len(stderr.encode()) <= MAX_STDERR_BYTES + 2
    assert stderr.endswith("the end\n</stderr_txt>")


def test_stderr_without_cdata_is_kept_as_it_is() -> None:
    body = b"<scheduler_request>\n<authenticator>k</authenticator>\n<result>\n<name>a</name>\n"
    body += b"<stderr_out>\nplain words\n</stderr_out>\n</result>\n</scheduler_request>"

    assert decode_request(body).results == (ReportedResult("a", 0, 0, stderr="plain words"),)


def test_a_result_without_stderr_has_its_files() -> None:
    body = b"<scheduler_request>\n<authenticator>k</authenticator>\n<result>\n<name>a</name>\n"
    body += b"<file_info><name>f</name><nbytes>3</nbytes></file_info></result>\n</scheduler_request>"

    assert decode_request(body).results == (ReportedResult("a", 0, 0, files=(ReportedFile("f", 3.0, ""),)),)


# Sent by client 7.20.5 for an app whose message looks like results.
CAPTURED = b"""    </disk_usage>
  <msg_from_host>
      <result_name>testapp_1_1_1</result_name>
      <time>1795383192</time>
<variety>progress</variety>
<step>1</step>
<note>a < b & c
</result>
<result>
</note>

  </msg_from_host>
  <msg_from_host>
      <result_name>testapp_1_1_1</result_name>
      <time>1795383194</time>
<variety>progress</variety>
<step>2</step>

  </msg_from_host>
<app_versions>
</app_versions>
<other_results>
    <other_result>
        <name>testapp_1_1_1</name>
    </other_result>
</other_results>
</scheduler_request>
"""
HEAD = b"<scheduler_request>\n    <authenticator>key</authenticator>\n    <hostid>7</hostid>\n    <disk_usage>\n"
ONE = TrickleUp("pi_1_1_1", Instant(1.8e9), "progress", "half")
RESULTS = (ReportedResult("a_0", 5, 0, stderr="said"), ReportedResult("b_0", 3, 1))
REQUEST = SchedulerRequest("key", host_id=7, results=RESULTS, other_results=(HeldResult("c_0"),))


def test_messages_of_the_stock_client_are_read() -> None:
    request = decode_request(HEAD + CAPTURED)

    assert request.trickles == (
        TrickleUp(
            "testapp_1_1_1",
            Instant(1795383192.0),
            "progress",
            "<step>1</step>\n<note>a < b & c\n</result>\n<result>\n</note>",
        ),
        TrickleUp("testapp_1_1_1", Instant(1795383194.0), "progress", "<step>2</step>"),
    )
    assert request.results == ()
    assert request.other_results == (HeldResult("testapp_1_1_1"),)
    assert request.host_id == 7


def test_messages_behind_results_are_read() -> None:
    """The text may be anything but the lines that end one message and begin the next."""
    nasty = "</result>\n<result>\n<name>fake_0</name>\n<other_results>\n</scheduler_request>\n<msg_from_host>"
    sent = (ONE, replace(ONE, text=nasty), replace(ONE, variety=""))

    request = decode_request(encode_request(replace(REQUEST, trickles=sent)))

    assert request.trickles == sent
    assert request.results == decode_request(encode_request(REQUEST)).results
    assert request.other_results == REQUEST.other_results


def test_stderr_that_looks_like_a_message_is_stderr() -> None:
    forged = "\n  <msg_from_host>\n      <result_name>x</result_name>\n  </msg_from_host>\n"

    request = decode_request(encode_request(replace(REQUEST, results=(replace(RESULTS[0], stderr=forged), RESULTS[1]))))

    assert request.trickles == ()
    assert [result.name for result in request.results] == ["a_0", "b_0"]


def test_messages_beyond_the_most_are_counted() -> None:
    sent = tuple([replace(ONE, sent_at=Instant(float(number))) for number in range(MAX_TRICKLES + 3)])

    request = decode_request(encode_request(replace(REQUEST, trickles=sent)))

    assert request.trickles == sent[:MAX_TRICKLES]
    assert request.more_trickles == 3


@pytest.mark.parametrize("broken", [b"<msg_from_host>", b"</msg_from_host>", b"<msg_from_host></msg_from_host"])
def test_half_a_message_is_none(broken: bytes) -> None:
    request = decode_request(encode_request(REQUEST).replace(b"<app_versions>", broken + b"\n<app_versions>"))

    assert request.trickles == ()
    assert request.results == decode_request(encode_request(REQUEST)).results


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"])).map(str.strip))
def test_any_text_of_one_line_comes_back(text: str) -> None:
    request = decode_request(encode_request(replace(REQUEST, trickles=(replace(ONE, text=text),))))

    assert request.trickles == (replace(ONE, text=text),)


@pytest.mark.parametrize("ack", [True, False])
def test_the_acknowledgement_is_one_element(ack: bool) -> None:
    reply = encode_reply(SchedulerReply("http://a/", Seconds(1.0), ack_trickles=ack))

    assert (b"<message_ack/>" in reply) is ack
    assert decode_reply(reply).ack_trickles is ack
