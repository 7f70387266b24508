"""Builds the parts of file transfer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from domain.clock import Clock
from domain.settings import Settings
from transfer.downloads import ROUTE, Downloads
from transfer.keys import CodeSigner, ServingKeys
from transfer.ports import UploadRecords
from transfer.project_files import ProjectFiles
from transfer.upload_folder import UploadFolder
from transfer.uploads import UploadHandler
from transfer.urls import UPLOAD_PATH, TransferUrls, UploadTokens


@dataclass(frozen=True, slots=True)
class Transfer:
    """File transfer as used by other packages."""

    routes: tuple[web.RouteDef, ...]  # for the web application
    urls: TransferUrls  # implements the scheduler's UploadHandler
    signer: CodeSigner  # implements the scheduler's CodeSigning


def build(
    records: UploadRecords,
    keys: ServingKeys,
    files: ProjectFiles,
    *,
    upload_dir: Path,
    settings: Callable[[], Settings],
    clock: Clock,
) -> Transfer:
    """Build file transfer over complete files and a directory for parts. `settings()` returns the current settings."""
    tokens = UploadTokens(keys.upload_secret)
    uploads = UploadHandler(
        UploadFolder(upload_dir),
        files,
        tokens,
        records,
        clock,
        max_bytes=lambda: settings().files.max_output_bytes,
        least_bytes_per_s=lambda: settings().server.upload_bytes_per_s,
    )
    return Transfer(
        routes=(
            web.get(ROUTE, Downloads(files).answer),
            web.post(f"/{UPLOAD_PATH}", uploads.answer),
        ),
        urls=TransferUrls(tokens, master_url=settings().project.url),
        signer=CodeSigner(keys),
    )
