"""Malformed HTTP requests are refused with a reason: no traceback in log or reply, no status 500."""

from __future__ import annotations

import asyncio
import re
from urllib.parse import urlsplit

import pytest

from tests.acceptance.server import LiveServer

HEAD = b"HTTP/1.1\r\nHost: a\r\n"
FORM = b"Content-Type: application/x-www-form-urlencoded"
MALFORMED = {
    "a path without a slash": b"POST path " + HEAD + b"\r\n",
    "a star": b"GET * " + HEAD + b"\r\n",
    "a tunnel": b"CONNECT a:99999999 " + HEAD + b"\r\n",
    "an absolute address with a wrong port": b"GET http://a:99999/ " + HEAD + b"\r\n",
    "an absolute address cut off": b"GET http://[::1/ " + HEAD + b"\r\n",
    "another scheme": b"GET javascript:alert(1) " + HEAD + b"\r\n",
    "a NUL in the path": b"GET /a\x00b " + HEAD + b"\r\n",
    "high bytes in the path": b"GET /\xff\xfe " + HEAD + b"\r\n",
    "a NUL in a header": b"GET / " + HEAD + b"X: a\x00b\r\n\r\n",
    "a header without a colon": b"GET / " + HEAD + b"no colon\r\n\r\n",
    "a header of 20 kB": b"GET / " + HEAD + b"X: " + b"a" * 20_000 + b"\r\n\r\n",
    "a path of 20 kB": b"GET /" + b"a" * 20_000 + b" " + HEAD + b"\r\n",
    "5,000 headers": b"GET / " + HEAD + b"".join(b"X%d: a\r\n" % number for number in range(5000)) + b"\r\n",
    "HTTP/9.9": b"GET / HTTP/9.9\r\nHost: a\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "no host": b"GET / HTTP/1.1\r\n\r\n",
    "two hosts": b"GET / " + HEAD + b"Host: b\r\n\r\n",
    "TLS": bytes.fromhex("1603010200010001fc0303") + b"x" * 40 + b"\r\n\r\n",
    "no HTTP": b"\x00\x01\x02\x03\r\n\r\n",
    "a chunk without a size": b"POST /scheduler " + HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n",
    "a chunk that is too long": b"POST /scheduler " + HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nabcXXXXX\r\n",
    "two lengths": b"POST /scheduler " + HEAD + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
    "a length below 0": b"POST /scheduler " + HEAD + b"Content-Length: -5\r\n\r\n",
    "length and chunks": b"POST / " + HEAD + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
}
REFUSED = {
    "a host that is none": (b"GET /console/ HTTP/1.1\r\nHost: \xff[::\r\n\r\n", b"Host: expected a host name"),
    "a host with two ports": (b"GET /console/ HTTP/1.1\r\nHost: a:b:c\r\n\r\n", b"Host: expected a host name"),
    "a form in parts": (
        b"POST /console/sign-in " + HEAD + b"Content-Type: multipart/form-data\r\nContent-Length: 3\r\n\r\nabc",
        b"Content-Type: expected application/x-www-form-urlencoded, got multipart/form-data",
    ),
    "a form in an unknown charset": (
        b"POST /console/sign-in " + HEAD + FORM + b"; charset=zzz\r\nContent-Length: 3\r\n\r\na=b",
        b"form: expected text in a known encoding, got 'zzz'",
    ),
}


async def answer_to(server: LiveServer, raw: bytes) -> bytes:
    url = urlsplit(server.url)
    reader, writer = await asyncio.open_connection(url.hostname, url.port)
    writer.write(raw)
    answer = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 30)
    [length] = re.findall(rb"Content-Length: (\d+)", answer)
    answer += await asyncio.wait_for(reader.readexactly(int(length)), 30)
    writer.close()
    return answer


async def test_malformed_http_is_refused_and_logged_once(server: LiveServer, capfd: pytest.CaptureFixture[str]) -> None:
    capfd.readouterr()
    for name, raw in MALFORMED.items():
        answer = await answer_to(server, raw)
        assert answer.startswith(b"HTTP/1.0 400 "), (name, answer[:200])
        assert b"Traceback" not in answer
    await server.measure()
    metrics = (await (await server.http.get(f"{server.url}metrics")).text()).splitlines()
    said = capfd.readouterr()

    assert [line for line in metrics if 'area="malformed"' in line and "pages_total" in line] == [
        f'muster_pages_total{{area="malformed",status="4xx"}} {len(MALFORMED)}.0'
    ]
    lines = [line for line in (said.out + said.err).splitlines() if "malformed HTTP" in line]
    assert len(lines) == 1
    assert "Traceback" not in said.out + said.err


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(("raw", "why"), REFUSED.values(), ids=REFUSED)
async def test_malformed_page_requests_are_refused(shared_pi: LiveServer, raw: bytes, why: bytes) -> None:
    answer = await answer_to(shared_pi, raw)

    assert answer.split(b" ", 2)[1] in (b"400", b"415")
    assert why in answer


async def test_undecodable_form_is_refused(server: LiveServer) -> None:
    body = b"name=\xff\xfe%ff&password=%00"
    head = b"POST /console/sign-in " + HEAD + FORM + b"\r\nContent-Length: %d\r\n\r\n" % len(body)

    answer = await answer_to(server, head + body)

    assert answer.split(b" ", 2)[1] == b"415"
    assert answer.endswith(b"form: expected text in a known encoding, got 'utf-8'\n")
