"""How a crowd volunteer brings its outputs: a size query for large files, resume, then the bytes."""

from __future__ import annotations

import hashlib

import aiohttp

from demo.crowd.jobs import Task
from domain.clock import Clock
from domain.errors import MusterError
from wire.messages import ReportedFile, SizeQuery, UploadHeader
from wire.uploads import STATUS_DONE, STATUS_NEVER, decode_upload_reply, encode_size_query, encode_upload_header

SIZE_QUERY_FROM_BYTES = 8192
TRIES = 5
PAUSE_S = 1.0


class UploadFailedError(MusterError):
    """The server did not take an output."""


async def upload_output(
    session: aiohttp.ClientSession, clock: Clock, task: Task, name: str, content: bytes
) -> ReportedFile:
    """Bring one output; tried again while the server says so. Raises UploadFailedError."""
    md5 = hashlib.md5(content, usedforsecurity=False).hexdigest()
    why = ""
    for attempt in range(TRIES):
        try:
            offset = 0
            if len(content) >= SIZE_QUERY_FROM_BYTES or attempt > 0:
                offset = await _size_here(session, task.upload_url, name)
            if offset >= len(content):
                return ReportedFile(name, len(content), md5)
            head = UploadHeader(name, task.tokens[name], task.max_bytes[name], len(content), md5, offset)
            body = encode_upload_header(head) + content[offset:]
            async with session.post(task.upload_url, data=body) as response:
                reply = decode_upload_reply(await response.read())
        except (aiohttp.ClientError, MusterError, TimeoutError) as error:
            why = str(error) or type(error).__name__
        else:
            if reply.status == STATUS_DONE:
                return ReportedFile(name, len(content), md5)
            why = reply.message
            if reply.status == STATUS_NEVER:
                break
        await clock.sleep(PAUSE_S)
    raise UploadFailedError(f"{name}: {why}")


async def _size_here(session: aiohttp.ClientSession, url: str, name: str) -> int:
    async with session.post(url, data=encode_size_query(SizeQuery(name))) as response:
        return decode_upload_reply(await response.read()).file_size or 0
