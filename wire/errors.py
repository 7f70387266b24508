"""The one exception decoding may raise."""

from __future__ import annotations

from domain.errors import MusterError


class ProtocolError(MusterError):
    """A message that cannot be understood. `status` is the HTTP status to answer with."""

    def __init__(self, message: str, status: int = 400) -> None:
        self.status = status
        super().__init__(message)
