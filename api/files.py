"""Uploads over the API: jobs' input files, and the programs of app versions."""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated

import msgspec
from aiohttp import web

from administration.apps import VersionDraft, add_app_version
from administration.project import Project
from api.table import NOTED, Ask, File, operation
from domain.access import Right
from domain.clock import Clock
from domain.errors import InvalidInputError
from muster_client import shapes
from store.applications import PostgresApplications
from transfer.files import checked_name
from transfer.project_files import ProjectFiles


class NewVersionParams(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    platform: str
    version: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1, description="100 is 1.00.")]
    file: Annotated[str, msgspec.Meta(description="The program's file name.")]
    signature: Annotated[
        str,
        msgspec.Meta(
            description="The program's signature by the project's private key, as printed by `muster sign`. Required."
        ),
    ] = ""
    plan_class: str = ""
    api_version: str = "7.5.0"


class FileParams(msgspec.Struct, forbid_unknown_fields=True):
    name: str


HOW_TO_SIGN = (
    "the program's signature. The server does not use the private key: sign where the key is, with"
    " `muster sign FILE --key KEY.pem` (prints `signature`), or add the version with"
    " `muster app version add … --key KEY.pem --server URL`"
)
PROGRAM_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")


class Files:
    """Operations whose request body is a file."""

    TAG = "applications"

    def __init__(
        self,
        applications: PostgresApplications,
        files: ProjectFiles,
        project: Project,
        clock: Clock,
        *,
        max_bytes: int,
    ) -> None:
        self._applications = applications
        self._files = files
        self._project = project
        self._clock = clock
        self._max_bytes = max_bytes

    @operation(
        "PUT",
        "/files/{name}",
        "Upload an input file, which batches use by name. Uploading the same content again succeeds.",
        body=File("the file's content"),
        right=Right.SUBMIT,
        status=201,
        errors=(409,),
    )
    async def put_file(self, ask: Ask[FileParams, None]) -> shapes.FileShown:
        name = checked_name(ask.params.name)
        async with self._received(ask.request, name) as path:
            content = await self._files.register(path, name, max_bytes=self._max_bytes)
        await self._applications.add_file(
            name, nbytes=content.nbytes, md5=content.md5, signature="", now=self._clock.now()
        )
        return {"name": name, "nbytes": content.nbytes, "md5": content.md5}

    @operation(
        "POST",
        "/apps/{name}/versions",
        "Add an app version. The body is its main program; `signature` is the program's signature.",
        body=File("the main program"),
        right=Right.OPERATE,
        status=201,
        errors=(404, 409),
    )
    async def add_version(self, ask: Ask[NewVersionParams, None]) -> shapes.NewVersion:
        asked = ask.params
        if not PROGRAM_NAME.fullmatch(asked.file):
            raise InvalidInputError("file", "the program's file name", asked.file)
        if not asked.signature:
            raise InvalidInputError("signature", HOW_TO_SIGN, "none")
        told = {"version": asked.version, "platform": asked.platform, "plan_class": asked.plan_class}
        ask.request[NOTED] = {name: value for name, value in told.items() if value}
        async with self._received(ask.request, asked.file) as path:
            new = VersionDraft(
                asked.name,
                asked.platform,
                asked.version,
                path,
                plan_class=asked.plan_class,
                api_version=asked.api_version,
            )
            version_id = await add_app_version(
                self._applications,
                self._project,
                new,
                clock=self._clock,
                sign=lambda *_: asked.signature,
                files=self._files,
            )
        return {"app_version_id": version_id}

    @asynccontextmanager
    async def _received(self, request: web.Request, name: str) -> AsyncIterator[Path]:
        """Yield the request body as a temporary file. Raises InvalidInputError if it is too large."""
        with tempfile.TemporaryDirectory(dir=self._project.data_dir, prefix="received-") as folder:
            path = Path(folder) / name
            nbytes = 0
            with path.open("wb") as file:
                async for chunk in request.content.iter_chunked(1 << 18):
                    nbytes += len(chunk)
                    if nbytes > self._max_bytes:
                        raise InvalidInputError("body", f"at most {self._max_bytes} bytes", "more")
                    await asyncio.to_thread(file.write, chunk)
            yield path
