"""Signs app files with private keys, when a version is added or all files are signed again.

Only commands import this module, because they run where the key is; serving processes must not.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from administration.apps import Sign
from administration.project import Project
from store.applications import PostgresApplications
from transfer.keys import load_key_file, load_signing_key, rotate
from wire.signing import PrivateKey, sign_md5_text


def with_project_key(project: Project) -> Sign:
    """Return a signer that uses the key in the project's directory. Raises NotFoundError if it is elsewhere."""
    return _with(load_signing_key(project.keys_dir))


def with_key_file(path: Path) -> Sign:
    """Return a signer that uses the key in a file. Raises InvalidInputError, NotFoundError."""
    return _with(load_key_file(path))


def _with(key: PrivateKey) -> Sign:
    return lambda _, md5: sign_md5_text(key, md5)


async def sign_app_files(applications: PostgresApplications, project: Project, *, new_key: bool) -> int:
    """Sign all app files and return their number. Can be repeated after an interruption (without `new_key`).

    With `new_key`, first create a key and sign it with every older key, so that clients accept it. The project must be
    stopped, because serving processes keep using the key they started with.
    """
    make = rotate if new_key else load_signing_key
    key = await asyncio.to_thread(make, project.keys_dir)
    files = await applications.app_files()
    for file in files:
        await applications.sign_file(file.name, sign_md5_text(key, file.md5))
    return len(files)
