"""Signs every app file anew, with the present key or with a new one that clients can follow to."""

from __future__ import annotations

import asyncio

from operations.ports import Applications
from operations.project import Project
from transfer.keys import load_signing_key, rotate
from wire.signing import sign_md5_text


async def sign_app_files(applications: Applications, project: Project, *, new_key: bool) -> int:
    """Sign every app file; returns how many. Safe to repeat after an interruption (without `new_key`).

    With `new_key` a key is made first, and signed by every older one so that clients accept it. Serving
    processes hold the key they started with: the project must be down meanwhile.
    """
    make = rotate if new_key else load_signing_key
    key = await asyncio.to_thread(make, project.keys_dir)
    files = await applications.app_files()
    for file in files:
        await applications.sign_file(file.name, sign_md5_text(key, file.md5))
    return len(files)
