"""Encodes the replies to a client that attaches to the project. Pure. docs/protocol.md.

All replies, including errors, have HTTP status 200.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from domain.errors import InvalidInputError
from wire.text import escape

ERROR_PROJECT_DOWN = -183
ERROR_BAD_EMAIL = -205
ERROR_BAD_PASSWORD = -206
ERROR_NO_SUCH_ACCOUNT = -136
ERROR_ACCOUNT_EXISTS = -137
ERROR_REFUSED = -1

LOCAL_REVISION = 1

# The client reads the page in lines of up to 255 characters.
MAX_SCHEDULER_URL_CHARS = 200


@dataclass(frozen=True, slots=True)
class ProjectConfig:
    """The project description that a client reads before it attaches."""

    name: str
    master_url: str
    min_password_length: int
    platforms: tuple[str, ...]


def encode_project_config(config: ProjectConfig) -> bytes:
    """Encode the reply to get_project_config.php."""
    platforms = "".join(
        f"        <platform><platform_name>{escape(name)}</platform_name></platform>\n" for name in config.platforms
    )
    return _document(
        f"<project_config>\n"
        f"    <name>{escape(config.name)}</name>\n"
        f"    <master_url>{escape(config.master_url)}</master_url>\n"
        f"    <web_rpc_url_base>{escape(config.master_url)}</web_rpc_url_base>\n"
        f"    <local_revision>{LOCAL_REVISION}</local_revision>\n"
        f"    <min_passwd_length>{config.min_password_length}</min_passwd_length>\n"
        f"    <platforms>\n{platforms}    </platforms>\n"
        f"</project_config>\n"
    )


def encode_account(authenticator: str) -> bytes:
    """Encode the reply to a successful lookup_account.php or create_account.php."""
    return _document(f"<account_out>\n    <authenticator>{escape(authenticator)}</authenticator>\n</account_out>\n")


def encode_error(error_num: int, message: str) -> bytes:
    """Encode an error reply; `error_num` is one of the ERROR_ numbers."""
    return _document(
        f"<error>\n    <error_num>{error_num}</error_num>\n    <error_msg>{escape(message)}</error_msg>\n</error>\n"
    )


def scheduler_link(scheduler_url: str) -> str:
    """Return the lines that a page needs in its head to serve as the master page.

    Raises InvalidInputError if the URL is too long for a client's line.
    """
    url = escape(scheduler_url)
    if len(url) > MAX_SCHEDULER_URL_CHARS:
        raise InvalidInputError("scheduler_url", f"at most {MAX_SCHEDULER_URL_CHARS} characters", scheduler_url)
    return f'<link rel="boinc_scheduler" href="{url}">\n<!-- <scheduler>{url}</scheduler> -->\n'


def password_hash(password: str, email: str) -> str:
    """Return the hash that clients send instead of a password: hex md5(password + lower-case e-mail address).

    >>> password_hash("secret", "Me@Example.com") == password_hash("secret", "me@example.com")
    True
    """
    return hashlib.md5((password + email.lower()).encode(), usedforsecurity=False).hexdigest()


def _document(content: str) -> bytes:
    return ('<?xml version="1.0" encoding="UTF-8" ?>\n' + content).encode("utf-8", "replace")
