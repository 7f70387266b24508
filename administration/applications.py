"""Registers an app version: its signed files in the download folder, its row in the database.

Nothing here opens a private key: whoever adds a version says where signatures come from (administration.signing).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from administration.names import checked_app_name, checked_text
from administration.ports import Applications
from administration.project import Project
from domain.apps import AppFile, AppVersion, PlanClass
from domain.clock import Clock
from domain.errors import InvalidInputError, NotFoundError
from domain.settings import Settings
from domain.units import AppVersionId
from transfer.downloads import DownloadFolder, content_of
from transfer.keys import load_public_key
from wire.signing import PublicKey, verify_md5

Sign = Callable[[str, str], str]  # a file's name and MD5 -> its signature

PLATFORM_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,99}")


@dataclass(frozen=True, slots=True)
class NewVersion:
    """An app version as it is added. `version_num` 100 means 1.00."""

    app: str
    platform: str
    version_num: int
    main_program: Path
    more_files: tuple[Path, ...] = ()
    plan_class: str = ""
    api_version: str = "7.5.0"


async def add_app_version(
    applications: Applications, project: Project, new: NewVersion, *, clock: Clock, sign: Sign
) -> AppVersionId:
    """Sign and store the files, then the version. Safe to repeat after an interruption.

    Raises NotFoundError (app, plan class), AlreadyExistsError (that version), InvalidInputError, also for a signature
    that is not of the project's present key.
    """
    app = await applications.app(checked_app_name(new.app))
    api_version = checked_text(new.api_version, "api-version")
    plan_class = await _plan_class(applications, new.plan_class)
    if not PLATFORM_NAME.fullmatch(new.platform):
        raise InvalidInputError("platform", "a platform such as x86_64-pc-linux-gnu", new.platform)
    public_key = await asyncio.to_thread(load_public_key, project.keys_dir)
    sign = _checked(sign, public_key)
    folder = DownloadFolder(project.download_dir, max_bytes=Settings().files.max_input_bytes)
    files = []
    for position, source in enumerate((new.main_program, *new.more_files)):
        signed = await asyncio.to_thread(_signed_file, folder, new, source, position == 0, sign)
        await applications.add_file(
            signed.name, nbytes=signed.nbytes, md5=signed.md5, signature=signed.signature, now=clock.now()
        )
        files.append(signed)
    return await applications.add_app_version(
        AppVersion(
            AppVersionId(0),
            app.app_id,
            new.platform,
            new.version_num,
            plan_class,
            api_version,
            tuple(files),
            created_at=clock.now(),
        )
    )


def app_file_name(new: NewVersion, source: Path, md5: str, *, main: bool) -> str:
    """A name no other content will ever have: app, version, platform, and the content's MD5.

    >>> new = NewVersion("pi", "linux", 100, Path("main.py"))
    >>> app_file_name(new, Path("main.py"), "0123456789abcdef" * 2, main=True)
    'pi_1.00_linux_01234567.py'
    """
    plan = f"__{new.plan_class}" if new.plan_class else ""
    what = "" if main else f"_{re.sub(r'[^A-Za-z0-9_-]', '-', source.stem)}"
    suffix = source.suffix if re.fullmatch(r"\.[A-Za-z0-9]{1,8}", source.suffix) else ""
    return f"{new.app}_{new.version_num / 100:.2f}_{new.platform}{plan}{what}_{md5[:8]}{suffix}"


async def _plan_class(applications: Applications, name: str) -> PlanClass:
    plan_class = (await applications.plan_classes()).get(name)
    if plan_class is None:
        raise NotFoundError("plan class", f"{name!r}: define it with `muster app plan-class set`")
    return plan_class


def _checked(sign: Sign, project_key: PublicKey) -> Sign:
    """The same, of the project's key alone: clients take nothing else."""

    def signed(name: str, md5: str) -> str:
        signature = sign(name, md5)
        if not verify_md5(project_key, md5, signature):
            raise InvalidInputError("signature", f"that of {name} by the project's present key", "another one")
        return signature

    return signed


def _signed_file(folder: DownloadFolder, new: NewVersion, source: Path, main: bool, sign: Sign) -> AppFile:
    if not source.is_file():
        raise InvalidInputError("main", "a file", str(source))
    content = content_of(source)
    name = app_file_name(new, source, content.md5, main=main)
    signature = sign(source.name, content.md5)
    content = folder.register_file(source, name)
    return AppFile(
        name,
        content.nbytes,
        content.md5,
        signature,
        main_program=main,
        open_name="" if main else source.name,
        copy_file=not main,
    )
