"""Download and upload URLs for clients, and the token that authorises a host to upload a file. Pure."""

from __future__ import annotations

import hashlib
import hmac
from urllib.parse import quote

from transfer.files import checked_name, shard


class UploadTokens:
    """Tokens for (file name, maximum size): HMAC-SHA256 with the project's upload secret.

    >>> tokens = UploadTokens(bytes(32))
    >>> tokens.right(tokens.token("pi_1_1_1_r0", 1000), "pi_1_1_1_r0", 1000)
    True
    >>> tokens.right(tokens.token("pi_1_1_1_r0", 1000), "pi_1_1_1_r0", 1001)
    False
    """

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def token(self, file_name: str, max_bytes: int) -> str:
        """Return 64 hex digits on one line, because clients strip only blanks around the token (docs/protocol.md)."""
        message = f"upload:{max_bytes}:{file_name}".encode()
        return hmac.new(self._secret, message, hashlib.sha256).hexdigest()

    def right(self, token: str, file_name: str, max_bytes: int) -> bool:
        """Return whether `token` is valid for this file and maximum size, in constant time."""
        return hmac.compare_digest(self.token(file_name, max_bytes).encode(), token.strip().encode())


DOWNLOAD_PATH = "download"
UPLOAD_PATH = "upload"


class TransferUrls:
    """Download and upload URLs, and upload tokens.

    `master_url` ends in a slash. Uploads go there regardless of the node that replied, because nodes share the upload
    directory.

    >>> urls = TransferUrls(UploadTokens(bytes(32)), master_url="http://127.0.0.1:8080/")
    >>> urls.download_url("pi 1"), urls.upload_url()
    ('http://127.0.0.1:8080/download/0f/pi%201', 'http://127.0.0.1:8080/upload')
    """

    def __init__(self, tokens: UploadTokens, *, master_url: str) -> None:
        self._tokens = tokens
        self._download_base_url = f"{master_url.rstrip('/')}/{DOWNLOAD_PATH}"
        self._upload_url = f"{master_url.rstrip('/')}/{UPLOAD_PATH}"

    def token(self, file_name: str, max_bytes: int) -> str:
        """Return the token that the client must send when it uploads this file."""
        return self._tokens.token(file_name, max_bytes)

    def upload_url(self) -> str:
        return self._upload_url

    def download_url(self, file_name: str) -> str:
        """Return the file's URL. It includes the subdirectory, so that a plain web server can also serve the files."""
        return f"{self._download_base_url}/{shard(checked_name(file_name))}/{quote(file_name, safe='')}"
