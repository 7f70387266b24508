"""Signatures of app files, made where the private key is and checked where it is not.

They travel as one JSON document: the public key they belong to, and the signature of each file by its MD5.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from domain.errors import InvalidInputError
from transfer.download_folder import content_of
from wire.errors import ProtocolError
from wire.signing import PrivateKey, PublicKey, parse_public_key_text, public_key_text, sign_md5_text, verify_md5

DOCUMENT = '{"public_key": "…", "files": [{"name": "…", "md5": "…", "signature": "…"}, …]}'


@dataclass(frozen=True, slots=True)
class Signatures:
    """What a key says of some files; `by_md5` has the signature of each content."""

    public_key: PublicKey
    by_md5: Mapping[str, str]

    def of(self, name: str, md5: str) -> str:
        """The signature of a file. Raises InvalidInputError when there is none, or it is not of that key."""
        signature = self.by_md5.get(md5)
        if signature is None:
            raise InvalidInputError("signatures", f"one of {name} (MD5 {md5})", "none")
        if not verify_md5(self.public_key, md5, signature):
            raise InvalidInputError("signatures", f"the signature of {name} by the key they name", "another one")
        return signature


def signed_document(key: PrivateKey, files: Sequence[Path]) -> str:
    """The document of some files. Raises OSError for what cannot be read."""
    contents = [(path.name, content_of(path)) for path in files]
    signed = [
        {"name": name, "nbytes": content.nbytes, "md5": content.md5, "signature": sign_md5_text(key, content.md5)}
        for name, content in contents
    ]
    return json.dumps({"public_key": public_key_text(key.public), "files": signed}, indent=2) + "\n"


def read_signatures(path: Path, *, project_key: PublicKey | None = None) -> Signatures:
    """The signatures of a document. Raises InvalidInputError when it is none, or of a key that is not the project's.

    Without `project_key` they are whosever they say: what has that key will look again.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        public_key = parse_public_key_text(document["public_key"])
        by_md5 = {str(one["md5"]): str(one["signature"]) for one in document["files"]}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ProtocolError) as error:
        raise InvalidInputError(str(path), f"a document as {DOCUMENT}", f"{type(error).__name__}: {error}") from None
    if project_key is not None and public_key != project_key:
        raise InvalidInputError(str(path), "signatures by the project's present key", "those of another one")
    return Signatures(public_key, by_md5)
