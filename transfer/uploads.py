"""Takes what hosts upload, however often the connection breaks. PROTOCOL 7.2.

An upload: 1 read the header; 2 refuse what the project never gave leave for, before a byte is written;
3 go on where the part ends; 4 take bytes until the file is complete or the connection ends; 5 verify the
MD5 and put the file in its place; 6 record it; only then tell the client "done".
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable

import structlog
from aiohttp import web

from domain.clock import Clock
from domain.errors import UnavailableError
from domain.sizes import both_in_words
from transfer.body import RequestBody
from transfer.names import OutputName, parse_output_name
from transfer.ports import UploadRecords
from transfer.tokens import UploadTokens
from transfer.upload_folder import Finish, UploadFolder
from wire.errors import ProtocolError
from wire.messages import SizeQuery, UploadHeader, UploadReply
from wire.uploads import STATUS_DONE, STATUS_NEVER, STATUS_TRY_AGAIN, encode_upload_reply, valid_file_name

WRITE_BYTES = 256 * 1024  # bytes gathered before they go to disk
IDLE_TIMEOUT_S = 300.0  # the stock client gives up on a connection that is this long without progress

_DONE = UploadReply(STATUS_DONE)
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


class Uploads:
    """POST of the upload address. `max_bytes()` is the most a file may weigh at the moment."""

    def __init__(
        self,
        folder: UploadFolder,
        tokens: UploadTokens,
        records: UploadRecords,
        clock: Clock,
        *,
        max_bytes: Callable[[], int],
        idle_timeout_s: float = IDLE_TIMEOUT_S,
        least_bytes_per_s: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._folder = folder
        self._tokens = tokens
        self._records = records
        self._clock = clock
        self._max_bytes = max_bytes
        self._idle_timeout_s = idle_timeout_s
        self._least_bytes_per_s = least_bytes_per_s
        self._log = structlog.get_logger("transfer.uploads")

    async def answer(self, request: web.Request) -> web.Response:
        """The reply to an upload or a size query."""
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
            self._log.info("upload not taken", file=message.name, status=reply.status, because=reply.message)
        return web.Response(body=encode_upload_reply(reply), content_type="text/xml", charset="utf-8")

    async def _size(self, query: SizeQuery) -> UploadReply:
        """How many bytes need not be sent again: the full size only of a file whose upload is recorded.

        A client that hears the full size sends nothing more and reports the job. Whatever a file looks like, the
        database row decides; a part counts one byte less than it has.
        """
        output = parse_output_name(query.name)
        if output is None:
            if not valid_file_name(query.name):
                return _refused("no output has such a name")
            return UploadReply(STATUS_DONE, file_size=0)
        nbytes = await asyncio.to_thread(self._folder.whole_size, output.name)
        if nbytes is None:
            return UploadReply(STATUS_DONE, file_size=await asyncio.to_thread(self._folder.part_size, output.name))
        recorded = await self._records.recorded_bytes(output.instance_id, output.name)
        if recorded is None:
            reply = await self._record_if_whole(output)
            if reply.status != STATUS_DONE:
                return reply
        elif recorded != nbytes:
            return _again(
                f"the server's file has {nbytes} bytes where {recorded} were recorded; its operator must look"
            )
        return UploadReply(STATUS_DONE, file_size=nbytes)

    async def _take(self, header: UploadHeader, body: RequestBody) -> UploadReply:
        refusal = self._refusal(header)
        if refusal:
            return _refused(refusal)
        output = parse_output_name(header.name)
        if output is None:
            return _refused("no output has such a name")
        before = await asyncio.to_thread(self._folder.whole, output.name)
        if before is not None:
            await body.skip(header.nbytes - header.offset)
            return await self._record(output, header) if before == (header.nbytes, header.md5) else _other_content()
        at = await asyncio.to_thread(self._folder.begin, output.name, header.offset)
        if at < header.offset:
            return _again(f"the bytes from {at} to {header.offset} are not here: ask for the size")
        if header.offset:
            self._log.info("upload resumed", file=header.name, offset=header.offset, nbytes=header.nbytes)
        return await self._receive(output, header, body)

    def _refusal(self, header: UploadHeader) -> str:
        """Why this upload will never be taken; empty when it may be."""
        if not self._tokens.right(header.token, header.name, header.max_bytes):
            return "the token is not for this file and size"
        most = min(header.max_bytes, self._max_bytes())
        if header.nbytes > most:
            has, taken = both_in_words(header.nbytes, most)
            return f"the file has {has}, at most {taken} are taken"
        if header.offset > header.nbytes:
            return f"the offset {header.offset} lies behind the end of the file at {header.nbytes}"
        return ""

    async def _receive(self, output: OutputName, header: UploadHeader, body: RequestBody) -> UploadReply:
        at = header.offset
        while True:
            try:
                chunk = await body.read(min(WRITE_BYTES, header.nbytes - at))
            except asyncio.CancelledError:  # the server stops: what came so far need not be sent again
                await asyncio.to_thread(self._folder.append, output.name, body.arrived(), at=at)
                raise
            last = at + len(chunk) == header.nbytes
            if (chunk or last) and not await asyncio.to_thread(self._folder.append, output.name, chunk, at=at):
                return _again("the upload goes on over another connection")
            at += len(chunk)
            if last:
                return await self._finish(output, header)
            if body.ended:
                await asyncio.to_thread(self._folder.sync, output.name)
                return _again(f"{at} of {header.nbytes} bytes are here: {body.ended}")

    async def _finish(self, output: OutputName, header: UploadHeader) -> UploadReply:
        finish = await asyncio.to_thread(self._folder.finish, output.name, nbytes=header.nbytes, md5=header.md5)
        match finish:
            case Finish.WHOLE:
                return await self._record(output, header)
            case Finish.WRONG_MD5:
                return _again("the MD5 of the file is not the one announced: send all of it again")
            case Finish.TOO_SHORT:
                return _again("the upload goes on over another connection")
            case Finish.OTHER_CONTENT:
                return _other_content()

    async def _record(self, output: OutputName, header: UploadHeader) -> UploadReply:
        return await self._record_content(output, nbytes=header.nbytes, md5=header.md5)

    async def _record_if_whole(self, output: OutputName) -> UploadReply:
        """Make up for a record that a stopped server still owes."""
        content = await asyncio.to_thread(self._folder.whole, output.name)
        if content is None:
            return _DONE
        return await self._record_content(output, nbytes=content.nbytes, md5=content.md5)

    async def _record_content(self, output: OutputName, *, nbytes: int, md5: str) -> UploadReply:
        known = await self._records.record_upload(
            output.instance_id, name=output.name, nbytes=nbytes, md5=md5, completed_at=self._clock.now()
        )
        if not known:
            await asyncio.to_thread(self._folder.remove, output.name)
            return _refused("no instance has such an output")
        await asyncio.to_thread(self._folder.mark_recorded, output.name)
        return _DONE

    def _not_now(self, message: SizeQuery | UploadHeader, error: Exception) -> UploadReply:
        self._log.error("upload failed", file=message.name, error=str(error))
        if isinstance(error, OSError) and error.errno in _NO_ROOM:
            return _again("the server has no room for files now")
        return _again("the server cannot take files now")


def _again(message: str) -> UploadReply:
    return UploadReply(STATUS_TRY_AGAIN, message)


def _refused(message: str) -> UploadReply:
    return UploadReply(STATUS_NEVER, message)


def _other_content() -> UploadReply:
    return _refused("a file of that name with other content was taken before")
