"""Handles the scheduler's HTTP requests: decodes the client's XML and encodes the reply. docs/protocol.md.

A client backs off after any HTTP error and keeps its results, so an error only costs time. The body of an error
response is one line of text; details are in the log.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

import structlog
from aiohttp import hdrs, web

from domain.clock import Clock
from domain.errors import UnavailableError
from domain.formatting import in_words
from scheduler.ports import RequestLimit, RequestObserver
from scheduler.service import RequestService, SchedulerPorts
from wire.decode import decode_request
from wire.encode import encode_reply
from wire.messages import ProtocolError, SchedulerReply, SchedulerRequest

CONTENT_TYPE = "text/xml"

log = structlog.get_logger()


class Answers(Protocol):
    async def answer(self, request: SchedulerRequest) -> SchedulerReply: ...


class SchedulerHandler:
    """Handles POST requests to the scheduler URL. `max_request_bytes` is read again for each request."""

    def __init__(
        self,
        service: Answers,
        observer: RequestObserver,
        max_request_bytes: Callable[[], int],
        limit: RequestLimit | None = None,
    ) -> None:
        self._service = service
        self._observer = observer
        self._max_request_bytes = max_request_bytes
        self._limit = limit

    async def handle(self, request: web.Request) -> web.Response:
        """Return the reply, or an HTTP error with a one-line reason."""
        try:
            body = await self._body(request)
            message = decode_request(body)
            wait_s = self._limit.wait_s(message.authenticator, message.host_id) if self._limit else 0.0
            if wait_s > 0:
                return self._too_soon(message.host_id, wait_s)
            reply = await self._service.answer(message)
            return web.Response(body=encode_reply(reply), content_type=CONTENT_TYPE, charset="utf-8")
        except ProtocolError as error:
            log.info("malformed request", remote=request.remote, status=error.status, why=str(error))
            return self._failed(error.status, str(error))
        except UnavailableError as error:
            log.warning("request not answered", remote=request.remote, why=str(error))
            return self._failed(503, "the project cannot serve requests now; your client will try again")
        except Exception:
            log.exception("request failed", remote=request.remote)
            return self._failed(500, "the project could not handle this request; the error is in the server log")

    async def _body(self, request: web.Request) -> bytes:
        """Return the whole body. Raises ProtocolError: 415 if compressed, 413 if too large, 400 if incomplete."""
        encoding = request.headers.get(hdrs.CONTENT_ENCODING, "identity").strip().lower()
        if encoding not in ("", "identity"):
            raise ProtocolError("Content-Encoding: expected none; send requests uncompressed", 415)
        most = self._max_request_bytes()
        if (request.content_length or 0) > most:
            raise _too_large(most)
        body = bytearray()
        try:
            async for piece in request.content.iter_any():
                body += piece
                if len(body) > most:
                    raise _too_large(most)
        except web.RequestPayloadError:
            raise ProtocolError("scheduler request: connection closed before the end of the body") from None
        return bytes(body)

    def _too_soon(self, host_id: int, wait_s: float) -> web.Response:
        log.info("request rate exceeded", host_id=host_id, wait_s=round(wait_s, 1))
        refused = self._failed(
            503, f"host {host_id} sends requests too often; try again in {in_words(math.ceil(wait_s))}"
        )
        refused.headers[hdrs.RETRY_AFTER] = str(math.ceil(wait_s))
        return refused

    def _failed(self, status: int, why: str) -> web.Response:
        self._observer.request_failed(status)
        return web.Response(status=status, text=" ".join(why.split()) + "\n")


def _too_large(most: int) -> ProtocolError:
    return ProtocolError(f"scheduler request: expected at most {most} bytes, got more", 413)


def build_handler(ports: SchedulerPorts, clock: Clock, limit: RequestLimit | None = None) -> SchedulerHandler:
    """Build the request service and its HTTP handler."""

    def max_request_bytes() -> int:
        return ports.catalogue.catalogue().settings.scheduler.max_request_bytes

    return SchedulerHandler(RequestService(ports, clock), ports.observer, max_request_bytes, limit)
