"""Tests that keys are created once, are private, and form a chain from old to new."""

from __future__ import annotations

import hashlib
import json
import shutil
import stat
from pathlib import Path

import pytest

from domain.errors import InvalidInputError, NotFoundError
from tests.facts import states
from transfer.keys import (
    CodeSigner,
    create_keys,
    load_key_file,
    load_keys,
    load_public_key,
    load_signing_key,
    read_signatures,
    rotate,
    signed_document,
)
from wire.signing import parse_public_key_text, public_key_text, sign_bytes, verify


def test_new_keys_sign_what_clients_can_verify(tmp_path: Path) -> None:
    create_keys(tmp_path)
    signature = sign_bytes(load_signing_key(tmp_path), b"program")
    client_key = parse_public_key_text(CodeSigner(load_keys(tmp_path)).public_key_text())
    assert verify(client_key, b"program", signature)
    assert not verify(client_key, b"another program", signature)


def test_secrets_are_32_bytes_and_differ(tmp_path: Path) -> None:
    create_keys(tmp_path)
    keys = load_keys(tmp_path)
    assert len(keys.upload_secret) == len(keys.account_secret) == 32
    assert keys.upload_secret != keys.account_secret


def test_private_keys_are_readable_by_owner_only(tmp_path: Path) -> None:
    create_keys(tmp_path)
    private = [tmp_path / "upload_secret", tmp_path / "account_secret", *(tmp_path / "signing").glob("*.pem")]
    assert len(private) == 3
    assert {stat.S_IMODE(path.stat().st_mode) for path in private} == {0o600}


def test_creating_again_changes_nothing(tmp_path: Path) -> None:
    create_keys(tmp_path)
    before = load_keys(tmp_path)
    create_keys(tmp_path)
    assert load_keys(tmp_path) == before


def test_secrets_do_not_show_in_logs(tmp_path: Path) -> None:
    create_keys(tmp_path)
    keys = load_keys(tmp_path)
    assert repr(keys.upload_secret) not in repr(keys)
    assert keys.upload_secret.hex() not in repr(keys)


def test_serving_needs_no_private_key(tmp_path: Path) -> None:
    create_keys(tmp_path / "keys")
    shutil.move(tmp_path / "keys" / "signing", tmp_path / "safe")
    assert (
        load_keys(tmp_path / "keys").public_key
        == load_signing_key(tmp_path / "keys", signing_dir=tmp_path / "safe").public
    )
    with pytest.raises(NotFoundError, match="private signing key"):
        load_signing_key(tmp_path / "keys")


def test_every_older_key_signs_the_newest(tmp_path: Path) -> None:
    create_keys(tmp_path)
    texts = [CodeSigner(load_keys(tmp_path)).public_key_text()]
    for _ in range(2):
        assert load_signing_key(tmp_path).public == load_keys(tmp_path).public_key
        rotate(tmp_path)
        texts.append(CodeSigner(load_keys(tmp_path)).public_key_text())
    signer = CodeSigner(load_keys(tmp_path))
    for older in texts[:2]:
        signature = signer.rotation_signature(older)
        assert signature is not None
        assert verify(parse_public_key_text(older), texts[2].strip().encode(), signature)


def test_a_key_that_was_never_ours_gets_no_rotation_signature(tmp_path: Path) -> None:
    create_keys(tmp_path / "ours")
    create_keys(tmp_path / "theirs")
    rotate(tmp_path / "ours")
    signer = CodeSigner(load_keys(tmp_path / "ours"))
    assert signer.rotation_signature(public_key_text(load_keys(tmp_path / "theirs").public_key)) is None
    assert signer.rotation_signature("nonsense") is None


def test_rotation_without_older_private_keys_is_refused(tmp_path: Path) -> None:
    create_keys(tmp_path)
    rotate(tmp_path)
    (tmp_path / "signing" / "0001.pem").unlink()
    before = load_keys(tmp_path)
    with pytest.raises(NotFoundError, match="1 missing"):
        rotate(tmp_path)
    assert load_keys(tmp_path) == before


def test_missing_keys_are_named(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="code_sign_public"):
        load_keys(tmp_path)


def test_a_damaged_secret_is_named(tmp_path: Path) -> None:
    create_keys(tmp_path)
    (tmp_path / "upload_secret").write_text("abc")
    with pytest.raises(InvalidInputError, match="upload_secret: expected 64 hexadecimal digits"):
        load_keys(tmp_path)


def test_a_damaged_public_key_file_is_named(tmp_path: Path) -> None:
    create_keys(tmp_path)
    (tmp_path / "code_sign_public.json").write_text('{"public_key": "x"}')
    with pytest.raises(InvalidInputError, match=r"code_sign_public\.json: expected a public key"):
        load_keys(tmp_path)


PROGRAM = b"#!/bin/sh\ntouch boinc_finish_called\n"
MD5 = hashlib.md5(PROGRAM).hexdigest()


@pytest.fixture(scope="module")
def keys_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keys")
    create_keys(folder)
    return folder


@pytest.fixture
def document(tmp_path: Path, keys_dir: Path) -> Path:
    (tmp_path / "main.sh").write_bytes(PROGRAM)
    written = tmp_path / "signatures.json"
    written.write_text(signed_document(load_key_file(keys_dir / "signing" / "0001.pem"), [tmp_path / "main.sh"]))
    return written


def test_external_signatures_need_no_private_key(document: Path, keys_dir: Path) -> None:
    key = load_public_key(keys_dir)

    signature = read_signatures(document, project_key=key).of("main.sh", MD5)

    assert verify(key, PROGRAM, signature)


def test_a_file_that_was_not_signed_is_named(document: Path, keys_dir: Path) -> None:
    signatures = read_signatures(document, project_key=load_public_key(keys_dir))

    with states(InvalidInputError, "signatures:", f"other.sh (MD5 {'0' * 32})", "got 'none'"):
        signatures.of("other.sh", "0" * 32)


def test_a_signature_of_another_file_is_refused(document: Path, keys_dir: Path) -> None:
    said = json.loads(document.read_text())
    said["files"][0]["md5"] = "0" * 32
    document.write_text(json.dumps(said))

    with states(InvalidInputError, "signature of other.sh", "key in the document"):
        read_signatures(document, project_key=load_public_key(keys_dir)).of("other.sh", "0" * 32)


def test_signatures_of_another_projects_key_are_refused(document: Path, tmp_path: Path) -> None:
    create_keys(tmp_path / "other")

    with states(InvalidInputError, "project's current key"):
        read_signatures(document, project_key=load_public_key(tmp_path / "other"))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"public_key": 7, "files": []}', '{"public_key": "7", "files": {}}'])
def test_what_is_no_document_is_refused_in_words(tmp_path: Path, keys_dir: Path, text: str) -> None:
    path = tmp_path / "signatures.json"
    path.write_text(text)

    with pytest.raises(InvalidInputError, match="expected a document like"):
        read_signatures(path, project_key=load_public_key(keys_dir))


def test_a_key_file_that_is_none_is_refused_in_words(tmp_path: Path) -> None:
    (tmp_path / "0001.pem").write_text("no key")

    with pytest.raises(InvalidInputError, match="a private key in PEM"):
        load_key_file(tmp_path / "0001.pem")
    with pytest.raises(NotFoundError):
        load_key_file(tmp_path / "0002.pem")
