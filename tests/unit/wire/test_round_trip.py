"""Encoded messages decode to the same values."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings

from tests.unit.wire import strategies
from wire.client import decode_reply, encode_request
from wire.decode import decode_request
from wire.encode import encode_reply
from wire.messages import SchedulerReply, SchedulerRequest

WIDE = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@WIDE
@given(strategies.REQUESTS)
def test_a_request_comes_back_as_it_was_sent(request: SchedulerRequest) -> None:
    assert decode_request(encode_request(request)) == request


@WIDE
@given(strategies.REPLIES)
def test_a_reply_comes_back_as_it_was_sent(reply: SchedulerReply) -> None:
    assert decode_reply(encode_reply(reply)) == reply
