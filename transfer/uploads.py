"""Receives uploads from hosts: a header, then the bytes, resumable after a lost connection. docs/protocol.md.

A lost or silent connection is expected and not an error; the bytes received so far are kept.
"""

from __future__ import annotations

import asyncio
import errno
import math
from collections.abc import Callable

import structlog
from aiohttp import ClientError, StreamReader, web

from domain.clock import Clock
from domain.dispatch import Upload
from domain.errors import UnavailableError
from domain.formatting import both_in_words, in_words
from transfer.files import Content, OutputName, parse_output_name
from transfer.ports import UploadRecords
from transfer.project_files import ProjectFiles
from transfer.upload_folder import Finish, UploadFolder
from transfer.urls import UploadTokens
from wire.messages import ProtocolError, SizeQuery, UploadHeader, UploadReply
from wire.uploads import (
    STATUS_DONE,
    STATUS_NEVER,
    STATUS_TRY_AGAIN,
    decode_upload_head,
    encode_upload_reply,
    valid_file_name,
)


class RequestBody:
    """Reads the request body at the consumer's speed. Buffers at most the requested bytes plus one chunk.

    Each wait for bytes is limited to `idle_timeout_s`. The total wait is limited to that plus one second per
    `least_bytes_per_s` received (0: unlimited).
    """

    def __init__(
        self, stream: StreamReader, clock: Clock, *, idle_timeout_s: float, least_bytes_per_s: float = 0.0
    ) -> None:
        self._stream = stream
        self._clock = clock
        self._idle_timeout_s = idle_timeout_s
        self._least_bytes_per_s = least_bytes_per_s
        self._came_bytes = 0
        self._waited_s = 0.0
        self._pending = bytearray()
        self.ended = ""  # why no more bytes follow; empty while they may

    async def read_head(self) -> SizeQuery | UploadHeader:
        """Return the header of the request. Raises ProtocolError, also if the request ends within the header.

        The whole header must arrive within the idle timeout; otherwise single bytes could keep the connection open for
        days.
        """
        try:
            async with asyncio.timeout(self._idle_timeout_s):
                return await self._head()
        except TimeoutError:
            raise ProtocolError(
                f"upload request: expected a whole header, none within {in_words(self._idle_timeout_s)}", 408
            ) from None

    async def _head(self) -> SizeQuery | UploadHeader:
        while True:
            start = decode_upload_head(bytes(self._pending))
            if start is not None:
                del self._pending[: start.payload_at]
                return start.message
            if self.ended:
                raise ProtocolError(f"upload request: expected a whole header, got {len(self._pending)} bytes")
            await self._fill()

    async def read(self, nbytes: int) -> bytes:
        """Return the next `nbytes` bytes. At the end of input it returns fewer, and `ended` has the reason."""
        while len(self._pending) < nbytes and not self.ended:
            await self._fill()
        chunk = bytes(self._pending[:nbytes])
        del self._pending[:nbytes]
        return chunk

    def arrived(self) -> bytes:
        """Return the bytes that were received but not read yet."""
        return bytes(self._pending)

    async def skip(self, nbytes: int) -> None:
        """Read and discard bytes, so that the client receives the reply before the connection closes."""
        nbytes -= len(self._pending)
        self._pending.clear()
        while nbytes > 0 and not self.ended:
            await self._fill()
            nbytes -= len(self._pending)
            self._pending.clear()

    def _patience_s(self) -> float:
        """Return how many more seconds the upload may wait in total."""
        if not self._least_bytes_per_s:
            return math.inf
        return self._idle_timeout_s + self._came_bytes / self._least_bytes_per_s - self._waited_s

    async def _fill(self) -> None:
        patience_s = self._patience_s()
        too_slow = f"fewer than {self._least_bytes_per_s:g} bytes/s received"
        if patience_s <= 0:
            self.ended = too_slow
            return
        began_s = self._clock.monotonic()
        try:
            async with asyncio.timeout(min(self._idle_timeout_s, patience_s)):
                chunk = await self._stream.readany()
        except TimeoutError:
            silent = patience_s >= self._idle_timeout_s
            self.ended = f"nothing received for {in_words(self._idle_timeout_s)}" if silent else too_slow
        except (ConnectionError, ClientError) as error:
            self.ended = f"the connection broke ({type(error).__name__})"
        else:
            self._pending += chunk
            self._came_bytes += len(chunk)
            self._waited_s += self._clock.monotonic() - began_s
            if not chunk:
                self.ended = "the request ended"


WRITE_BYTES = 256 * 1024  # bytes buffered per disk write
IDLE_TIMEOUT_S = 300.0  # the stock client drops a connection without progress after this time

NOT_ACCEPTED = "no upload expected: the job was not sent, or its result has already been reported"
OTHER_CONTENT = "a file with this name and different content has already been uploaded"
ELSEWHERE = "the upload continues on another connection"
_DONE = UploadReply(STATUS_DONE)
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


class UploadHandler:
    """Handles POST requests to the upload URL. `max_bytes()` returns the current maximum file size.

    Parts are in `folder`, complete files in `files`. The order is: the file is stored, then recorded, then
    acknowledged. If files go to a bucket, the copy in the directory is deleted once the file is recorded.
    """

    def __init__(
        self,
        folder: UploadFolder,
        files: ProjectFiles,
        tokens: UploadTokens,
        records: UploadRecords,
        clock: Clock,
        *,
        max_bytes: Callable[[], int],
        idle_timeout_s: float = IDLE_TIMEOUT_S,
        least_bytes_per_s: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._folder = folder
        self._files = files
        self._tokens = tokens
        self._records = records
        self._clock = clock
        self._max_bytes = max_bytes
        self._idle_timeout_s = idle_timeout_s
        self._least_bytes_per_s = least_bytes_per_s
        self._log = structlog.get_logger("transfer.uploads")

    async def answer(self, request: web.Request) -> web.Response:
        """Return the reply to an upload or a size query."""
        body = RequestBody(
            request.content,
            self._clock,
            idle_timeout_s=self._idle_timeout_s,
            least_bytes_per_s=self._least_bytes_per_s(),
        )
        try:
            message = await body.read_head()
        except ProtocolError as error:
            return web.Response(status=error.status, text=f"{error}\n")
        try:
            reply = await (self._size(message) if isinstance(message, SizeQuery) else self._take(message, body))
        except (OSError, UnavailableError) as error:
            reply = self._not_now(message, error)
        if reply.status != STATUS_DONE:
            self._log.info("upload rejected", file=message.name, status=reply.status, because=reply.message)
        return web.Response(body=encode_upload_reply(reply), content_type="text/xml", charset="utf-8")

    async def _size(self, query: SizeQuery) -> UploadReply:
        """Return how many bytes need not be sent again: all of a recorded file, all but one of a part, otherwise 0."""
        output = parse_output_name(query.name)
        if output is None:
            if not valid_file_name(query.name):
                return _refused("not a valid output file name")
            return UploadReply(STATUS_DONE, file_size=0)
        part = await asyncio.to_thread(self._folder.part_size, output.name)
        size = await self._recorded_size(output) if part is None else max(0, part - 1)
        return UploadReply(STATUS_DONE, file_size=size)

    async def _recorded_size(self, output: OutputName) -> int:
        """Return the complete file's size if recorded, otherwise 0. Records a file left by a stopped server."""
        expected = await self._records.expected(output.instance_id, output.name)
        if expected is None:
            return 0
        if expected.recorded is not None:
            [found] = await self._files.outputs([expected.recorded])
            return 0 if found is None else found.stat.nbytes
        content = await asyncio.to_thread(self._folder.whole, output.name) if expected.accepted else None
        if content is None or (await self._record(output, content)).status != STATUS_DONE:
            return 0
        return content.nbytes

    async def _take(self, header: UploadHeader, body: RequestBody) -> UploadReply:
        refusal = self._refusal(header)
        if refusal:
            return _refused(refusal)
        output = parse_output_name(header.name)
        if output is None:
            return _refused("not a valid output file name")
        content = Content(header.nbytes, header.md5)
        expected = await self._records.expected(output.instance_id, output.name)
        if expected is None:
            return _refused("no instance has this output")
        if not expected.accepted and expected.recorded != Upload(output.name, *content):
            return _refused(NOT_ACCEPTED if expected.recorded is None else OTHER_CONTENT)
        if await asyncio.to_thread(self._folder.whole, output.name) == content:
            await body.skip(header.nbytes - header.offset)
            return await self._record(output, content)
        if expected.recorded == Upload(output.name, *content) and await self._files.in_bucket(expected.recorded):
            await body.skip(header.nbytes - header.offset)
            return _DONE
        at = await asyncio.to_thread(self._folder.begin, output.name, header.offset)
        if at < header.offset:
            return _again(f"bytes {at} to {header.offset} are missing: query the size")
        if header.offset:
            self._log.info("upload resumed", file=header.name, offset=header.offset, nbytes=header.nbytes)
        return await self._receive(output, header, body)

    def _refusal(self, header: UploadHeader) -> str:
        """Return why this upload is permanently refused, empty if it is allowed."""
        if not self._tokens.right(header.token, header.name, header.max_bytes):
            return "the token does not match this file and size"
        most = min(header.max_bytes, self._max_bytes())
        if header.nbytes > most:
            has, taken = both_in_words(header.nbytes, most)
            return f"the file has {has}, the limit is {taken}"
        if header.offset > header.nbytes:
            return f"offset {header.offset} is beyond the end of the file at {header.nbytes}"
        return ""

    async def _receive(self, output: OutputName, header: UploadHeader, body: RequestBody) -> UploadReply:
        at = header.offset
        while True:
            try:
                chunk = await body.read(min(WRITE_BYTES, header.nbytes - at))
            except asyncio.CancelledError:  # the server is stopping: keep the bytes received so far
                await asyncio.to_thread(self._folder.append, output.name, body.arrived(), at=at)
                raise
            if chunk and not await asyncio.to_thread(self._folder.append, output.name, chunk, at=at):
                return _again(ELSEWHERE)
            at += len(chunk)
            if at == header.nbytes:
                return await self._finish(output, Content(header.nbytes, header.md5))
            if body.ended:
                await asyncio.to_thread(self._folder.sync, output.name)
                return _again(f"{at} of {header.nbytes} bytes received: {body.ended}")

    async def _finish(self, output: OutputName, content: Content) -> UploadReply:
        finish = await asyncio.to_thread(self._folder.finish, output.name, nbytes=content.nbytes, md5=content.md5)
        match finish:
            case Finish.WHOLE:
                return await self._record(output, content)
            case Finish.WRONG_MD5:
                return _again("the MD5 of the file does not match the header: send the whole file again")
            case Finish.TOO_SHORT:
                return _again(ELSEWHERE)
            case Finish.OTHER_CONTENT:
                return await self._replace(output, content)

    async def _replace(self, output: OutputName, content: Content) -> UploadReply:
        """Replace the file of a host that lost its work and uploads again. Until the report, the latest file counts.

        The record is changed first. Until the part is renamed, a size query returns the part's size minus one byte. A
        bucket keeps both files: there the old one is stored first, and then the part takes its place in the directory.
        """
        old = await asyncio.to_thread(self._folder.whole, output.name)
        if old is not None and await self._files.keep(self._folder.path(output.name), Upload(output.name, *old)):
            if not await asyncio.to_thread(self._folder.replace, output.name, nbytes=content.nbytes, md5=content.md5):
                return _again(ELSEWHERE)
            return await self._record(output, content)
        if not await self._put_on_record(output, content, replace=True):
            return _refused(OTHER_CONTENT)
        if not await asyncio.to_thread(self._folder.replace, output.name, nbytes=content.nbytes, md5=content.md5):
            return _again(ELSEWHERE)
        await asyncio.to_thread(self._folder.mark_recorded, output.name)
        self._log.info("upload replaced", file=output.name, nbytes=content.nbytes)
        return _DONE

    async def _record(self, output: OutputName, content: Content) -> UploadReply:
        """Store and record a complete file. In a bucket it replaces no other file, so the newest record counts."""
        path, upload = self._folder.path(output.name), Upload(output.name, *content)
        elsewhere = await self._files.keep(path, upload)
        if not await self._put_on_record(output, content, replace=elsewhere):
            return _again("the file could not be recorded: query the size")  # it ended or was replaced meanwhile
        await asyncio.to_thread(self._folder.drop_whole if elsewhere else self._folder.mark_recorded, output.name)
        return _DONE

    async def _put_on_record(self, output: OutputName, content: Content, *, replace: bool) -> bool:
        return await self._records.record_upload(
            output.instance_id,
            name=output.name,
            nbytes=content.nbytes,
            md5=content.md5,
            completed_at=self._clock.now(),
            replace=replace,
        )

    def _not_now(self, message: SizeQuery | UploadHeader, error: Exception) -> UploadReply:
        self._log.error("upload failed", file=message.name, error=str(error))
        if isinstance(error, OSError) and error.errno in _NO_ROOM:
            return _again("no space left on the server")
        return _again("the server cannot accept files at the moment")


def _again(message: str) -> UploadReply:
    return UploadReply(STATUS_TRY_AGAIN, message)


def _refused(message: str) -> UploadReply:
    return UploadReply(STATUS_NEVER, message)
