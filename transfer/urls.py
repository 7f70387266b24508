"""The addresses under which clients fetch and bring files. Pure."""

from __future__ import annotations

from urllib.parse import quote

from transfer.names import checked_name, shard
from transfer.tokens import UploadTokens

DOWNLOAD_PATH = "download"
UPLOAD_PATH = "upload"


class TransferUrls:
    """Download and upload addresses, and the tokens uploads are proved with.

    `master_url` ends in a slash. Uploads go there whichever node answered: nodes share the folder.

    >>> urls = TransferUrls(UploadTokens(bytes(32)), master_url="http://127.0.0.1:8080/")
    >>> urls.download_url("pi 1"), urls.upload_url()
    ('http://127.0.0.1:8080/download/0f/pi%201', 'http://127.0.0.1:8080/upload')
    """

    def __init__(self, tokens: UploadTokens, *, master_url: str) -> None:
        self._tokens = tokens
        self._download_base_url = f"{master_url.rstrip('/')}/{DOWNLOAD_PATH}"
        self._upload_url = f"{master_url.rstrip('/')}/{UPLOAD_PATH}"

    def token(self, file_name: str, max_bytes: int) -> str:
        """What the client must show with the upload of this file."""
        return self._tokens.token(file_name, max_bytes)

    def upload_url(self) -> str:
        return self._upload_url

    def download_url(self, file_name: str) -> str:
        """The folder is part of the address, so that a plain web server can serve the files too."""
        return f"{self._download_base_url}/{shard(checked_name(file_name))}/{quote(file_name, safe='')}"
