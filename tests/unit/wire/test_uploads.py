"""Upload headers, size queries and their replies."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.facts import states
from tests.unit.wire import captured
from wire import uploads
from wire.messages import ProtocolError, SizeQuery, UploadHeader, UploadReply
from wire.uploads import UploadStart, decode_upload_head

NAMES = st.text(min_size=1, max_size=60).filter(uploads.valid_file_name)
SIZES = st.integers(0, 2**63 - 1)
TOKENS = st.from_regex(r"[0-9a-f]{0,64}(\n[0-9a-f]{1,64}){0,3}", fullmatch=True).map(str.strip)
HEADERS = st.builds(
    UploadHeader,
    name=NAMES,
    token=TOKENS,
    max_bytes=SIZES,
    nbytes=SIZES,
    md5=st.from_regex(r"[0-9a-f]{32}", fullmatch=True),
    offset=SIZES,
)
REPLIES = st.builds(
    UploadReply,
    status=st.integers(-1, 1),
    message=st.text(st.characters(codec="utf-8", exclude_categories=["C"]), max_size=80).map(str.strip),
    file_size=st.none() | SIZES,
)


def a_head(**changes: str) -> bytes:
    fields = {"name": "f", "xml_signature": "t", "max_nbytes": "9", "nbytes": "5", "md5_cksum": "a" * 32, "offset": "0"}
    lines = "".join(f"<{field}>{value}</{field}>\n" for field, value in (fields | changes).items() if value != "absent")
    return f"<data_server_request>\n<file_upload>\n{lines}<data>\nhello".encode()


def test_a_captured_upload_is_understood() -> None:
    body = captured.request(11)

    start = decode_upload_head(body)

    assert start is not None
    assert body[start.payload_at :] == b"result for input for wu_001\n\n"
    header = start.message
    assert isinstance(header, UploadHeader)
    assert header.token.startswith("4e3dc480651a0122793059569294d9f8a676671c172097d75f3789d24eccd6e9\n6cce")
    assert header.token.endswith("\n.")
    assert (header.name, header.max_bytes, header.nbytes) == ("wu_001_0_r0_out", 100_000, 29)
    assert (header.md5, header.offset) == ("c3a78b50de1435f6cc1c7881b035f929", 0)


def test_a_captured_resumed_upload_says_where_it_goes_on() -> None:
    body = captured.request(33)

    start = decode_upload_head(body)

    assert start is not None
    assert isinstance(start.message, UploadHeader)
    assert (start.message.nbytes, start.message.offset) == (10266, 5000)
    assert len(body) - start.payload_at == 5266


def test_captured_upload_without_signature_has_a_plain_token() -> None:
    start = decode_upload_head(captured.request(56))

    assert start is not None
    assert isinstance(start.message, UploadHeader)
    assert start.message.token == "any-token-min1"


def test_a_captured_size_query_names_its_file() -> None:
    body = captured.request(30)

    assert decode_upload_head(body) == UploadStart(SizeQuery("big1_0_r0_out"), len(body.rstrip()))


@pytest.mark.parametrize("number", [11, 30, 31, 56])
def test_every_part_of_a_header_is_incomplete_until_it_is_whole(number: int) -> None:
    body = captured.request(number)
    whole = decode_upload_head(body)
    assert whole is not None

    for end in range(whole.payload_at):
        assert decode_upload_head(body[:end]) is None
    assert decode_upload_head(body[: whole.payload_at]) == whole


def test_nothing_in_the_file_is_taken_for_a_header() -> None:
    body = captured.request(11)
    start = decode_upload_head(body)
    assert start is not None
    hostile = b"<data>\n<name>other</name></data_server_request><get_file_size>x</get_file_size>"

    assert decode_upload_head(body[: start.payload_at] + hostile) == start


@given(HEADERS, st.binary(max_size=50))
def test_a_header_comes_back_as_it_was_sent(header: UploadHeader, content: bytes) -> None:
    head = uploads.encode_upload_header(header)

    assert decode_upload_head(head + content) == UploadStart(header, len(head))


@given(NAMES)
def test_a_size_query_comes_back_as_it_was_sent(name: str) -> None:
    start = decode_upload_head(uploads.encode_size_query(SizeQuery(name)))

    assert start is not None
    assert start.message == SizeQuery(name)


@given(REPLIES)
def test_a_reply_comes_back_as_it_was_sent(reply: UploadReply) -> None:
    assert uploads.decode_upload_reply(uploads.encode_upload_reply(reply)) == reply


@pytest.mark.parametrize(
    ("number", "reply"),
    [
        (11, UploadReply(0)),
        (30, UploadReply(0, file_size=0)),
        (34, UploadReply(0, file_size=50_000)),
        (35, UploadReply(1, "transient blah")),
    ],
)
def test_a_captured_reply_is_understood_and_written_alike(number: int, reply: UploadReply) -> None:
    assert uploads.decode_upload_reply(captured.reply(number)) == reply
    assert uploads.encode_upload_reply(reply) == captured.reply(number)


@pytest.mark.parametrize(
    ("head", "facts"),
    [
        (b"GET / HTTP/1.1", ("upload request:", "<data_server_request>", "'GET")),
        (b"\xff\x00", ("upload request",)),
        (a_head(name="absent"), ("name:", "file_upload", "none")),
        (a_head(name="n" * 256), ("name:", "at most 255")),
        (a_head(md5_cksum="abc"), ("md5_cksum:", "32", "'abc'")),
        (a_head(offset="-1"), ("offset:", "whole", ">= 0", "'-1'")),
        (a_head(nbytes="NaN"), ("nbytes:", "whole", "'NaN'")),
        (a_head(nbytes="1_0"), ("nbytes:", "whole", "'1_0'")),
        (a_head(max_nbytes="9" * 30), ("max_nbytes:", "whole", "at most 64")),
        (b"<data_server_request></data_server_request>", ("get_file_size:", "data_server_request", "none")),
    ],
)
def test_a_wrong_header_says_what_is_wrong(head: bytes, facts: tuple[str, ...]) -> None:
    with states(ProtocolError, *facts):
        decode_upload_head(head)


def test_a_header_without_end_is_refused() -> None:
    endless = b"<data_server_request>\n" + b"x" * uploads.MAX_HEAD_BYTES

    with pytest.raises(ProtocolError, match="expected at most 16384 bytes") as refusal:
        decode_upload_head(endless)

    assert refusal.value.status == 413


@given(st.binary(max_size=200))
def test_random_bytes_are_a_protocol_error_or_nothing(content: bytes) -> None:
    for data in (content, b"<data_server_request>" + content + b"<data>\n"):
        try:
            decode_upload_head(data)
        except ProtocolError as refusal:
            assert str(refusal)


@pytest.mark.parametrize("body", [b"", b"nope", b"<data_server_reply></data_server_reply>"])
def test_a_reply_without_status_is_refused(body: bytes) -> None:
    with pytest.raises(ProtocolError):
        uploads.decode_upload_reply(body)


@pytest.mark.parametrize("name", ["pi_17_0_out", "a", "naïve file", "x" * 255, "a.b.c", "'quoted'"])
def test_an_ordinary_name_is_valid(name: str) -> None:
    assert uploads.valid_file_name(name)


@pytest.mark.parametrize(
    "name",
    [
        *("", " a", "a ", "x" * 256, "é" * 128),
        *("a/b", "a\\b", "a..b", "a%20b", ".hidden", "a<b", "a&b"),
        *("a\nb", "a\0b", "a\x7f", "\u202eexe", "\ud800"),
    ],
)
def test_a_name_that_could_harm_is_not_valid(name: str) -> None:
    assert not uploads.valid_file_name(name)
