"""Input files of a batch: paths are put into the download folder under a name of their content."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path

from administration.ports import Applications
from domain.clock import Clock
from domain.errors import InvalidInputError, NotFoundError
from domain.jobs import Input
from jobs.requirements import InputSpec
from transfer.downloads import Content, DownloadFolder, content_of

UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")


def input_file_name(path: Path, md5: str) -> str:
    """A name no other content will ever have.

    >>> input_file_name(Path("data/my input.txt"), "0123456789abcdef" * 2)
    'my-input_0123456789abcdef0123456789abcdef.txt'
    """
    suffix = path.suffix if re.fullmatch(r"\.[A-Za-z0-9]{1,8}", path.suffix) else ""
    return f"{UNSAFE.sub('-', path.stem)[:80] or 'input'}_{md5}{suffix}"


class InputFolder:
    """Satisfies the submission's InputFiles. `base` is what relative paths start from; None: no paths at all.

    A submitter over the network names files that are registered already; only who works on the server
    itself may name paths. With `keep` False files are looked at and nothing is put anywhere.
    """

    def __init__(
        self, folder: DownloadFolder, applications: Applications, clock: Clock, base: Path | None, *, keep: bool = True
    ) -> None:
        self._folder = folder
        self._applications = applications
        self._clock = clock
        self._base = base
        self._keep = keep

    async def input_files(self, wanted: Sequence[InputSpec]) -> Sequence[Input]:
        """The inputs in the same order. Raises NotFoundError, InvalidInputError."""
        return await asyncio.gather(*(self._named(one) if one.name else self._from_path(one) for one in wanted))

    async def _named(self, wanted: InputSpec) -> Input:
        try:
            content = await asyncio.to_thread(content_of, self._folder.path(wanted.name))
        except FileNotFoundError:
            raise NotFoundError("input file", wanted.name) from None
        return _input(wanted, wanted.name, content)

    async def _from_path(self, wanted: InputSpec) -> Input:
        if self._base is None:
            raise InvalidInputError("inputs.path", "the name of a file put to /api/v1/files", wanted.path)
        source = self._base / wanted.path
        if not await asyncio.to_thread(source.is_file):
            raise InvalidInputError("inputs.path", "a readable file", str(source))
        if not self._keep:
            content = await asyncio.to_thread(content_of, source)
            return _input(wanted, input_file_name(source, content.md5), content)
        name, content = await asyncio.to_thread(self._register, source)
        await self._applications.add_file(
            name, nbytes=content.nbytes, md5=content.md5, signature="", now=self._clock.now()
        )
        return _input(wanted, name, content)

    def _register(self, source: Path) -> tuple[str, Content]:
        name = input_file_name(source, content_of(source).md5)
        return name, self._folder.register_file(source, name)


def _input(wanted: InputSpec, name: str, content: Content) -> Input:
    return Input(name, wanted.open_name, content.nbytes, content.md5, wanted.sticky)
