"""The project's keys, which sign app files, authorise uploads and derive account keys; and app file signatures.

Signatures are made where the private key is and verified elsewhere. They are exchanged as a JSON document with the
public key and each file's signature, by MD5.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from domain.errors import AlreadyExistsError, InvalidInputError, NotFoundError
from transfer.files import content_of, write_atomically
from wire.messages import ProtocolError
from wire.signing import (
    KEY_BITS,
    PrivateKey,
    PublicKey,
    parse_public_key_text,
    public_key_text,
    sign_bytes,
    sign_md5_text,
    verify_md5,
)

SECRET_BYTES = 32
PUBLIC_EXPONENT = 65537

_PUBLIC = "code_sign_public.json"
_UPLOAD_SECRET = "upload_secret"  # noqa: S105 - the name of a file
_ACCOUNT_SECRET = "account_secret"  # noqa: S105 - the name of a file
_SIGNING = "signing"


@dataclass(frozen=True, slots=True)
class ServingKeys:
    """The keys of a serving process, without the private signing key.

    `rotation_signatures` maps each retired public key to its signature of the current key's text.
    """

    public_key: PublicKey
    rotation_signatures: Mapping[PublicKey, str]
    upload_secret: bytes = field(repr=False)
    account_secret: bytes = field(repr=False)


def create_keys(keys_dir: Path) -> None:
    """Create missing keys of a project. Existing keys are never changed."""
    keys_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    for name in (_UPLOAD_SECRET, _ACCOUNT_SECRET):
        path = keys_dir / name
        if not path.exists():
            write_atomically(path, secrets.token_hex(SECRET_BYTES).encode(), mode=0o600)
    if not (keys_dir / _PUBLIC).exists():
        key = _add_signing_key(keys_dir / _SIGNING)
        _write_public(keys_dir, key.public, {})


def load_keys(keys_dir: Path) -> ServingKeys:
    """Return the keys that a serving process needs. Raises NotFoundError, InvalidInputError."""
    public_key, rotation_signatures = _read_public(keys_dir)
    return ServingKeys(
        public_key,
        rotation_signatures,
        _read_secret(keys_dir / _UPLOAD_SECRET),
        _read_secret(keys_dir / _ACCOUNT_SECRET),
    )


def load_signing_key(keys_dir: Path, *, signing_dir: Path | None = None) -> PrivateKey:
    """Return the private key that belongs to the current public key. Raises NotFoundError if it is not available.

    `signing_dir` is the directory of the private keys if they are not with the other keys.
    """
    public_key, _ = _read_public(keys_dir)
    for key in _signing_keys(signing_dir or keys_dir / _SIGNING):
        if key.public == public_key:
            return key
    raise NotFoundError("private signing key for", keys_dir / _PUBLIC)


def load_key_file(path: Path) -> PrivateKey:
    """Return the private signing key in a file. Raises InvalidInputError, NotFoundError."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise NotFoundError("key file", path) from None
    try:
        loaded = serialization.load_pem_private_key(content, password=None)
    except (ValueError, TypeError) as error:
        raise InvalidInputError(str(path), "a private key in PEM", str(error)) from None
    if not isinstance(loaded, rsa.RSAPrivateKey) or loaded.key_size != KEY_BITS:
        raise InvalidInputError(str(path), f"an RSA key of {KEY_BITS} bits", type(loaded).__name__)
    return _private_key(loaded)


def load_public_key(keys_dir: Path) -> PublicKey:
    """Return the current public key. Raises NotFoundError, InvalidInputError."""
    return _read_public(keys_dir)[0]


def rotate(keys_dir: Path, *, signing_dir: Path | None = None) -> PrivateKey:
    """Replace the current signing key with a new one and return it.

    Each older key signs the new one, so that clients can follow after any time of absence (docs/protocol.md). All app
    files must be signed again with the new key. Raises NotFoundError if the current private key is not available.
    """
    folder = signing_dir or keys_dir / _SIGNING
    load_signing_key(keys_dir, signing_dir=folder)
    older = _signing_keys(folder)
    _, retired = _read_public(keys_dir)
    missing = set(retired) - {key.public for key in older}
    if missing:
        raise NotFoundError("private key for each retired public key in", f"{folder}: {len(missing)} missing")
    new = _add_signing_key(folder)
    content = public_key_text(new.public).strip().encode()
    _write_public(keys_dir, new.public, {key.public: sign_bytes(key, content) for key in older})
    return new


class CodeSigner:
    """Supplies the scheduler with the public key and rotation signatures."""

    def __init__(self, keys: ServingKeys) -> None:
        self._text = public_key_text(keys.public_key)
        self._rotation_signatures = dict(keys.rotation_signatures)

    def public_key_text(self) -> str:
        """Return the current public key in the clients' format."""
        return self._text

    def rotation_signature(self, client_key_text: str) -> str | None:
        """Return the current key signed with the client's key; None if that was never a key of this project."""
        try:
            held = parse_public_key_text(client_key_text)
        except ProtocolError:
            return None
        return self._rotation_signatures.get(held)


def _add_signing_key(folder: Path) -> PrivateKey:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    # Clients support only 1024 bits (docs/protocol.md#signatures); TLS protects the first contact.
    made = rsa.generate_private_key(public_exponent=PUBLIC_EXPONENT, key_size=KEY_BITS)
    pem = made.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    number = max((int(path.stem) for path in folder.glob("[0-9]*.pem")), default=0) + 1
    path = folder / f"{number:04d}.pem"
    if path.exists():
        raise AlreadyExistsError("signing key", str(path))
    write_atomically(path, pem, mode=0o600)
    return _private_key(made)


def _signing_keys(folder: Path) -> list[PrivateKey]:
    return [load_key_file(path) for path in sorted(folder.glob("[0-9]*.pem"))]


def _private_key(key: rsa.RSAPrivateKey) -> PrivateKey:
    numbers = key.private_numbers()
    return PrivateKey(numbers.public_numbers.n, numbers.public_numbers.e, numbers.d)


def _read_secret(path: Path) -> bytes:
    text = _read(path).strip()
    try:
        secret = bytes.fromhex(text)
    except ValueError:
        secret = b""
    if len(secret) != SECRET_BYTES:
        raise InvalidInputError(str(path), f"{2 * SECRET_BYTES} hexadecimal digits", f"{len(text)} characters")
    return secret


def _write_public(keys_dir: Path, public_key: PublicKey, rotation_signatures: Mapping[PublicKey, str]) -> None:
    content = {
        "public_key": public_key_text(public_key),
        "retired": [
            {"public_key": public_key_text(retired), "rotation_signature": signature}
            for retired, signature in rotation_signatures.items()
        ],
    }
    write_atomically(keys_dir / _PUBLIC, json.dumps(content, indent=2).encode(), mode=0o644)


def _read_public(keys_dir: Path) -> tuple[PublicKey, dict[PublicKey, str]]:
    path = keys_dir / _PUBLIC
    try:
        content = json.loads(_read(path))
        present = parse_public_key_text(content["public_key"])
        retired = {
            parse_public_key_text(entry["public_key"]): str(entry["rotation_signature"]) for entry in content["retired"]
        }
    except (ValueError, KeyError, TypeError, AttributeError, ProtocolError) as error:
        raise InvalidInputError(str(path), "a public key and its retired predecessors in JSON", str(error)) from None
    return present, retired


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except FileNotFoundError:
        raise NotFoundError("key file", path) from None


DOCUMENT = '{"public_key": "…", "files": [{"name": "…", "md5": "…", "signature": "…"}, …]}'


@dataclass(frozen=True, slots=True)
class Signatures:
    """Signatures made with one key. `by_md5` maps each content to its signature."""

    public_key: PublicKey
    by_md5: Mapping[str, str]

    def of(self, name: str, md5: str) -> str:
        """Return a file's signature. Raises InvalidInputError if it is missing or was made with another key."""
        signature = self.by_md5.get(md5)
        if signature is None:
            raise InvalidInputError("signatures", f"a signature of {name} (MD5 {md5})", "none")
        if not verify_md5(self.public_key, md5, signature):
            raise InvalidInputError(
                "signatures", f"a signature of {name} made with the key in the document", "another one"
            )
        return signature


def signed_document(key: PrivateKey, files: Sequence[Path]) -> str:
    """Return a document with the signatures of some files. Raises OSError for unreadable files."""
    contents = [(path.name, content_of(path)) for path in files]
    signed = [
        {"name": name, "nbytes": content.nbytes, "md5": content.md5, "signature": sign_md5_text(key, content.md5)}
        for name, content in contents
    ]
    return json.dumps({"public_key": public_key_text(key.public), "files": signed}, indent=2) + "\n"


def read_signatures(path: Path, *, project_key: PublicKey | None = None) -> Signatures:
    """Read a signature document. Raises InvalidInputError if it is malformed or its key is not the project's.

    Without `project_key`, the key is not checked here, but by the process that has the project's key.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        public_key = parse_public_key_text(document["public_key"])
        by_md5 = {str(one["md5"]): str(one["signature"]) for one in document["files"]}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ProtocolError) as error:
        raise InvalidInputError(str(path), f"a document like {DOCUMENT}", f"{type(error).__name__}: {error}") from None
    if project_key is not None and public_key != project_key:
        raise InvalidInputError(
            str(path), "signatures made with the project's current key", "signatures made with another key"
        )
    return Signatures(public_key, by_md5)
