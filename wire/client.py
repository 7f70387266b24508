"""The client's side of a scheduler RPC: its request as bytes, and the reply as a value. Pure.

For volunteers that are not the stock client: the crowd that tries a server under load, and tests.
"""

from __future__ import annotations

from wire.client_reply import decode_reply
from wire.client_request import encode_request

__all__ = ["decode_reply", "encode_request"]
