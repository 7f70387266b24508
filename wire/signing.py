"""Encodes the keys and signatures with which clients verify app files, and signs files. Pure. docs/protocol.md.

It uses RSA with 1024 bits and MD5, as the client requires. This protects files against changes in transit, with the
strength of 1990s cryptography; TLS protects the first contact. Plain integers are used, so that no cryptography library
is needed here; keys are generated elsewhere.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from domain.errors import InvalidInputError
from wire.messages import ProtocolError

KEY_BITS = 1024
KEY_BYTES = KEY_BITS // 8
_LINE_BYTES = 32
_HEX_LINES = re.compile(r"[0-9a-f\s]*")
_MD5 = re.compile(r"[0-9a-f]{32}")
_MAX_TEXT_CHARS = 4096


@dataclass(frozen=True, slots=True)
class PublicKey:
    modulus: int
    exponent: int


@dataclass(frozen=True, slots=True)
class PrivateKey:
    modulus: int
    public_exponent: int
    private_exponent: int

    @property
    def public(self) -> PublicKey:
        return PublicKey(self.modulus, self.public_exponent)

    def __repr__(self) -> str:
        return f"PrivateKey({self.modulus.bit_length()} bits)"


def hexblock(content: bytes) -> str:
    """Encode bytes as lines of 64 lower-case hex digits, followed by a line with a dot.

    >>> hexblock(b"\\x01\\xff")
    '01ff\\n.\\n'
    """
    digits = content.hex()
    width = 2 * _LINE_BYTES
    lines = [digits[start : start + width] for start in range(0, len(digits), width)]
    return "\n".join([*lines, ".\n"])


def parse_hexblock(block: str) -> bytes:
    """Decode a hex block; blanks around lines are ignored. Raises ProtocolError if it is invalid.

    >>> parse_hexblock("01ff\\n.\\n")
    b'\\x01\\xff'
    """
    content, dot, rest = block.partition(".")
    digits = content.lower()
    if not dot or rest.strip() or len(block) > _MAX_TEXT_CHARS or not _HEX_LINES.fullmatch(digits):
        raise ProtocolError(f"hex block: expected lines of hex digits and a line with a dot, got {block[:60]!r}")
    try:
        return bytes.fromhex("".join(digits.split()))
    except ValueError:
        raise ProtocolError("hex block: expected an even number of hex digits") from None


def public_key_text(key: PublicKey) -> str:
    """Encode a key in the clients' format: its size, then modulus and exponent with 128 bytes each.

    Raises InvalidInputError unless the modulus has exactly 1024 bits.
    """
    _require_size(key.modulus)
    content = key.modulus.to_bytes(KEY_BYTES, "big") + key.exponent.to_bytes(KEY_BYTES, "big")
    return f"{KEY_BITS}\n{hexblock(content)}"


def parse_public_key_text(key_text: str) -> PublicKey:
    """Decode a key. Raises ProtocolError unless it is a 1024-bit key."""
    bits, _, block = key_text.strip().partition("\n")
    if bits.strip() != str(KEY_BITS):
        raise ProtocolError(f"public key: expected {KEY_BITS} on the first line, got {bits[:60]!r}")
    content = parse_hexblock(block)
    if len(content) != 2 * KEY_BYTES:
        raise ProtocolError(f"public key: expected {2 * KEY_BYTES} bytes, got {len(content)}")
    return PublicKey(int.from_bytes(content[:KEY_BYTES], "big"), int.from_bytes(content[KEY_BYTES:], "big"))


def sign_md5_text(key: PrivateKey, md5_hex: str) -> str:
    """Return the signature text of a file whose MD5 is `md5_hex` (32 lower-case hex digits)."""
    _require_size(key.modulus)
    if not _MD5.fullmatch(md5_hex):
        raise InvalidInputError("md5_hex", "32 lower-case hexadecimal digits", md5_hex)
    signature = pow(_padded(md5_hex), key.private_exponent, key.modulus)
    return hexblock(signature.to_bytes(KEY_BYTES, "big"))


def sign_bytes(key: PrivateKey, content: bytes) -> str:
    """Return the signature text of `content`.

    For key rotation, sign the new key's text without surrounding blanks (docs/protocol.md#key-rotation).
    """
    return sign_md5_text(key, _md5_hex(content))


def verify(key: PublicKey, content: bytes, signature_text: str) -> bool:
    """Return whether `signature_text` was made for `content` with the private key that belongs to `key`."""
    return verify_md5(key, _md5_hex(content), signature_text)


def verify_md5(key: PublicKey, md5_hex: str, signature_text: str) -> bool:
    """Return the result of `verify` for content whose MD5 is `md5_hex`."""
    try:
        signature = parse_hexblock(signature_text)
    except ProtocolError:
        return False
    value = int.from_bytes(signature, "big")
    if len(signature) != KEY_BYTES or not 0 < value < key.modulus:
        return False
    return pow(value, key.exponent, key.modulus) == _padded(md5_hex)


def _padded(md5_hex: str) -> int:
    """Return the number padded as in PKCS#1 v1.5 type 1 without DigestInfo: 00 01, FF x 93, 00, the 32 characters."""
    message = md5_hex.encode()
    filler = b"\xff" * (KEY_BYTES - 3 - len(message))
    return int.from_bytes(b"\x00\x01" + filler + b"\x00" + message, "big")


def _md5_hex(content: bytes) -> str:
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


def _require_size(modulus: int) -> None:
    if modulus.bit_length() != KEY_BITS:
        raise InvalidInputError("modulus", f"a number of {KEY_BITS} bits", f"{modulus.bit_length()} bits")
