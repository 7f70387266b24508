"""Takes what hosts upload, however often the connection breaks. PROTOCOL 7.2.

An upload: 1 read the header; 2 refuse files without a valid token and files of instances that do not accept
outputs, before a byte is written; 3 go on where the part ends; 4 take bytes until the file is complete or the
connection ends; 5 verify the MD5 and put the file in its place; 6 record it; only then answer "done".

A size query gets the full size only for a recorded file. A client that hears the full size sends nothing more.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable

import structlog
from aiohttp import web

from domain.clock import Clock
from domain.dispatch import Upload
from domain.errors import UnavailableError
from domain.formatting import both_in_words
from transfer.body import RequestBody
from transfer.download_folder import Content
from transfer.names import OutputName, parse_output_name
from transfer.ports import UploadRecords
from transfer.tokens import UploadTokens
from transfer.upload_folder import Finish, UploadFolder
from wire.errors import ProtocolError
from wire.messages import SizeQuery, UploadHeader, UploadReply
from wire.uploads import STATUS_DONE, STATUS_NEVER, STATUS_TRY_AGAIN, encode_upload_reply, valid_file_name

WRITE_BYTES = 256 * 1024  # bytes gathered before they go to disk
IDLE_TIMEOUT_S = 300.0  # the stock client gives up on a connection that is this long without progress

NOT_ACCEPTED = "the job's result is not awaited: it was not sent, or its result was reported"
OTHER_CONTENT = "a file of that name with other content was taken before"
ELSEWHERE = "the upload goes on over another connection"
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
        """How much of a file need not be sent again: all of a recorded file, one byte less than its part, else 0."""
        output = parse_output_name(query.name)
        if output is None:
            if not valid_file_name(query.name):
                return _refused("no output has such a name")
            return UploadReply(STATUS_DONE, file_size=0)
        part = await asyncio.to_thread(self._folder.part_size, output.name)
        size = await self._recorded_size(output) if part is None else max(0, part - 1)
        return UploadReply(STATUS_DONE, file_size=size)

    async def _recorded_size(self, output: OutputName) -> int:
        """Bytes of the whole file if the database has it on record, else 0. Records what a stopped server left."""
        expected = await self._records.expected(output.instance_id, output.name)
        if expected is None:
            return 0
        if expected.recorded is not None:
            here = await asyncio.to_thread(self._folder.whole_size, output.name)
            return here if here == expected.recorded.nbytes else 0
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
            return _refused("no output has such a name")
        content = Content(header.nbytes, header.md5)
        expected = await self._records.expected(output.instance_id, output.name)
        if expected is None:
            return _refused("no instance has such an output")
        if not expected.accepted and expected.recorded != Upload(output.name, *content):
            return _refused(NOT_ACCEPTED if expected.recorded is None else OTHER_CONTENT)
        if await asyncio.to_thread(self._folder.whole, output.name) == content:
            await body.skip(header.nbytes - header.offset)
            return await self._record(output, content)
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
            if chunk and not await asyncio.to_thread(self._folder.append, output.name, chunk, at=at):
                return _again(ELSEWHERE)
            at += len(chunk)
            if at == header.nbytes:
                return await self._finish(output, Content(header.nbytes, header.md5))
            if body.ended:
                await asyncio.to_thread(self._folder.sync, output.name)
                return _again(f"{at} of {header.nbytes} bytes are here: {body.ended}")

    async def _finish(self, output: OutputName, content: Content) -> UploadReply:
        finish = await asyncio.to_thread(self._folder.finish, output.name, nbytes=content.nbytes, md5=content.md5)
        match finish:
            case Finish.WHOLE:
                return await self._record(output, content)
            case Finish.WRONG_MD5:
                return _again("the MD5 of the file is not the one announced: send all of it again")
            case Finish.TOO_SHORT:
                return _again(ELSEWHERE)
            case Finish.OTHER_CONTENT:
                return await self._replace(output, content)

    async def _replace(self, output: OutputName, content: Content) -> UploadReply:
        """A host that lost its work computes and uploads it again: the newer file counts until the report.

        The record comes first: until the part is renamed, a size query sees the part and answers one byte less.
        """
        if not await self._put_on_record(output, content, replace=True):
            return _refused(OTHER_CONTENT)
        if not await asyncio.to_thread(self._folder.replace, output.name, nbytes=content.nbytes, md5=content.md5):
            return _again(ELSEWHERE)
        await asyncio.to_thread(self._folder.mark_recorded, output.name)
        self._log.info("upload replaced", file=output.name, nbytes=content.nbytes)
        return _DONE

    async def _record(self, output: OutputName, content: Content) -> UploadReply:
        """Record a file that is in its place."""
        if not await self._put_on_record(output, content, replace=False):
            return _again("the file could not be recorded: ask for the size")  # it ended or was replaced meanwhile
        await asyncio.to_thread(self._folder.mark_recorded, output.name)
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
            return _again("the server has no room for files now")
        return _again("the server cannot take files now")


def _again(message: str) -> UploadReply:
    return UploadReply(STATUS_TRY_AGAIN, message)


def _refused(message: str) -> UploadReply:
    return UploadReply(STATUS_NEVER, message)
