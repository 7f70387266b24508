"""Signatures made on one machine are taken on another, if they are the project's and of those files."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from domain.errors import InvalidInputError, NotFoundError
from transfer.keys import create_keys, load_key_file, load_public_key
from transfer.signatures import read_signatures, signed_document
from wire.signing import verify

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


def test_what_was_signed_elsewhere_is_taken_without_the_private_key(document: Path, keys_dir: Path) -> None:
    key = load_public_key(keys_dir)

    signature = read_signatures(document, project_key=key).of("main.sh", MD5)

    assert verify(key, PROGRAM, signature)


def test_a_file_that_was_not_signed_is_named(document: Path, keys_dir: Path) -> None:
    signatures = read_signatures(document, project_key=load_public_key(keys_dir))

    with pytest.raises(InvalidInputError, match=r"signatures: expected one of other.sh \(MD5 0{32}\), got 'none'"):
        signatures.of("other.sh", "0" * 32)


def test_a_signature_of_another_file_is_refused(document: Path, keys_dir: Path) -> None:
    said = json.loads(document.read_text())
    said["files"][0]["md5"] = "0" * 32
    document.write_text(json.dumps(said))

    with pytest.raises(InvalidInputError, match=r"the signature of other\.sh by the key they name"):
        read_signatures(document, project_key=load_public_key(keys_dir)).of("other.sh", "0" * 32)


def test_signatures_of_another_projects_key_are_refused(document: Path, tmp_path: Path) -> None:
    create_keys(tmp_path / "other")

    with pytest.raises(InvalidInputError, match="signatures by the project's present key"):
        read_signatures(document, project_key=load_public_key(tmp_path / "other"))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"public_key": 7, "files": []}', '{"public_key": "7", "files": {}}'])
def test_what_is_no_document_is_refused_in_words(tmp_path: Path, keys_dir: Path, text: str) -> None:
    path = tmp_path / "signatures.json"
    path.write_text(text)

    with pytest.raises(InvalidInputError, match="expected a document as"):
        read_signatures(path, project_key=load_public_key(keys_dir))


def test_a_key_file_that_is_none_is_refused_in_words(tmp_path: Path) -> None:
    (tmp_path / "0001.pem").write_text("no key")

    with pytest.raises(InvalidInputError, match="a private key in PEM"):
        load_key_file(tmp_path / "0001.pem")
    with pytest.raises(NotFoundError):
        load_key_file(tmp_path / "0002.pem")
