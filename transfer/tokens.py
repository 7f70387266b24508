"""The proof that a host may upload a file: only the project can make it. Pure."""

from __future__ import annotations

import hashlib
import hmac


class UploadTokens:
    """Tokens over (file name, most bytes), HMAC-SHA256 with the project's upload secret.

    >>> tokens = UploadTokens(bytes(32))
    >>> tokens.right(tokens.token("pi_1_1_1_r0", 1000), "pi_1_1_1_r0", 1000)
    True
    >>> tokens.right(tokens.token("pi_1_1_1_r0", 1000), "pi_1_1_1_r0", 1001)
    False
    """

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def token(self, file_name: str, max_bytes: int) -> str:
        """64 hex digits on one line: clients strip blanks around the token, nothing else (PROTOCOL 6.5)."""
        message = f"upload:{max_bytes}:{file_name}".encode()
        return hmac.new(self._secret, message, hashlib.sha256).hexdigest()

    def right(self, token: str, file_name: str, max_bytes: int) -> bool:
        """Whether `token` was made for this file and limit; takes the same time when it was not."""
        return hmac.compare_digest(self.token(file_name, max_bytes).encode(), token.strip().encode())
