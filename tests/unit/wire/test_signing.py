"""Keys and signatures in text form."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import InvalidInputError
from tests.facts import states
from tests.unit.wire.key import TEST_KEY
from wire import signing
from wire.messages import ProtocolError
from wire.signing import PrivateKey, PublicKey

# Test vector made with openssl (docs/protocol.md#signatures).
VECTOR_DATA = b"hello world\n"
VECTOR_KEY = """\
1024
c0c2c9e15ed89b1437ce7918c9cf0b4395e2aca0d011494de911c523b5e72550
2064132e92c34bde45806071f516bb439d9d1abb882712e41103ba1a36422a54
7c9f26e3dae1d635daae075edb2ff4755aa141d9a81809329382f7cfc2ea836f
d979b37c22bb4c9a47d8fb0affb45e1f4f7acb4893618825dd1493be40974e81
0000000000000000000000000000000000000000000000000000000000000000
0000000000000000000000000000000000000000000000000000000000000000
0000000000000000000000000000000000000000000000000000000000000000
0000000000000000000000000000000000000000000000000000000000010001
.
"""
VECTOR_SIGNATURE = """\
64e532ea028bab93870cf85eed1cacb2cd74f1218e8d66b6cd7b53d60401fd67
f2c77a07a024816dee1dd3a99e222a9ecc4c09e04f8a166f7cfd7df76e56dcd0
01d6c9af12f47fb6bb757b7960444287e6993d7bb4cc37a9a30f1b1e512c0b67
96d5334deea258eff2b4d76095b3fb13b60008fc3d70de3e135084ff6a8649b0
.
"""


def test_the_signature_of_the_reference_vector_verifies() -> None:
    key = signing.parse_public_key_text(VECTOR_KEY)

    assert signing.verify(key, VECTOR_DATA, VECTOR_SIGNATURE)


def test_padded_message_equals_the_openssl_reference_vector() -> None:
    key = signing.parse_public_key_text(VECTOR_KEY)
    signature = int.from_bytes(signing.parse_hexblock(VECTOR_SIGNATURE), "big")

    opened = pow(signature, key.exponent, key.modulus).to_bytes(128, "big")

    assert opened == b"\0\1" + b"\xff" * 93 + b"\0" + b"6f5902ac237024bdd0c176cb93063dc4"


def test_a_key_text_is_reproduced_exactly() -> None:
    assert signing.public_key_text(signing.parse_public_key_text(VECTOR_KEY)) == VECTOR_KEY


def test_a_key_text_without_its_last_line_feed_is_read_too() -> None:
    assert signing.parse_public_key_text(VECTOR_KEY.strip()) == signing.parse_public_key_text(VECTOR_KEY)


def test_other_data_does_not_verify() -> None:
    key = signing.parse_public_key_text(VECTOR_KEY)

    assert not signing.verify(key, b"hello world", VECTOR_SIGNATURE)


def test_another_key_does_not_verify() -> None:
    assert not signing.verify(TEST_KEY.public, VECTOR_DATA, VECTOR_SIGNATURE)


@pytest.mark.parametrize(
    "signature",
    ["", ".\n", "zz\n.\n", "abc\n.\n", "00" * 128 + "\n.\n", "ff" * 128 + "\n.\n", VECTOR_SIGNATURE[:-2], "a" * 9000],
    ids=["empty", "no digits", "not hex", "odd", "zero", "above the modulus", "no dot", "too long"],
)
def test_a_malformed_signature_does_not_verify(signature: str) -> None:
    assert not signing.verify(signing.parse_public_key_text(VECTOR_KEY), VECTOR_DATA, signature)


@given(st.binary(max_size=300))
def test_what_is_signed_verifies(content: bytes) -> None:
    signature = signing.sign_bytes(TEST_KEY, content)

    assert signing.verify(TEST_KEY.public, content, signature)
    assert not signing.verify(TEST_KEY.public, content + b"x", signature)


def test_signing_content_is_signing_its_md5() -> None:
    md5_hex = hashlib.md5(VECTOR_DATA).hexdigest()

    assert signing.sign_md5_text(TEST_KEY, md5_hex) == signing.sign_bytes(TEST_KEY, VECTOR_DATA)


def test_a_signature_has_four_lines_of_64_digits_and_a_dot() -> None:
    lines = signing.sign_bytes(TEST_KEY, VECTOR_DATA).split("\n")

    assert [len(line) for line in lines] == [64, 64, 64, 64, 1, 0]


@given(st.binary(max_size=200))
def test_hex_blocks_round_trip(content: bytes) -> None:
    assert signing.parse_hexblock(signing.hexblock(content)) == content


def test_a_short_last_line_of_a_hex_block_is_kept_short() -> None:
    assert signing.hexblock(bytes(33)) == "00" * 32 + "\n00\n.\n"


@pytest.mark.parametrize(
    ("key_text", "facts"),
    [
        ("512\n00\n.\n", ("public key:", "1024", "'512'")),
        ("1024\n00\n.\n", ("public key:", "256", "bytes", "1")),
        ("1024\nxyz\n.\n", ("hex block:", "digits")),
        ("", ("public key:", "1024")),
    ],
)
def test_a_malformed_key_says_what_is_wrong(key_text: str, facts: tuple[str, ...]) -> None:
    with states(ProtocolError, *facts):
        signing.parse_public_key_text(key_text)


def test_a_key_of_another_size_is_refused() -> None:
    with states(InvalidInputError, "1024 bits", "got '3 bits'"):
        signing.public_key_text(PublicKey(7, 3))
    with pytest.raises(InvalidInputError, match="modulus"):
        signing.sign_bytes(PrivateKey(7, 3, 3), b"")


def test_an_md5_in_capitals_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="md5_hex"):
        signing.sign_md5_text(TEST_KEY, "A" * 32)


def test_a_private_key_does_not_show_itself() -> None:
    assert repr(TEST_KEY) == "PrivateKey(1024 bits)"
