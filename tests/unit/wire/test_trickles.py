"""Trickle messages are found whatever their text holds, and never change what else a request says."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.units import Instant, Seconds
from wire.client import decode_reply, encode_request
from wire.decode import decode_request
from wire.encode import encode_reply
from wire.messages import HeldResult, ReportedResult, SchedulerReply, SchedulerRequest, TrickleUp
from wire.trickles import MAX_TRICKLES

# What client 7.20.5 sent for an app whose message looks like results.
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
