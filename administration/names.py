"""Validates names given by users, and the shares of accounts and submitters."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TypeVar

from domain.bounds import in_bounds
from domain.errors import InvalidInputError
from jobs.fields import is_clean

Word = TypeVar("Word", bound=StrEnum)

MOST_CHARS = 200

_APP = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,63}")  # excludes _, which separates the parts of job names
_PLAN_CLASS = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def checked_app_name(name: str) -> str:
    """Return the app name if it is valid. Raises InvalidInputError.

    >>> checked_app_name("pi-digits")
    'pi-digits'
    """
    if not _APP.fullmatch(name):
        raise InvalidInputError("name", "1 to 64 letters, digits, . and -, starting with a letter or digit", name)
    return name


def checked_plan_class_name(name: str) -> str:
    """Return the plan class name if it is valid. Raises InvalidInputError.

    >>> checked_plan_class_name("cuda_12")
    'cuda_12'
    """
    if not _PLAN_CLASS.fullmatch(name):
        raise InvalidInputError("name", "1 to 64 letters, digits, _, . and -", name)
    return name


def checked_name(name: str, field: str = "name") -> str:
    """Return the account or submitter name if it is valid. Raises InvalidInputError.

    >>> checked_name("Ada's group")
    "Ada's group"
    """
    if not name:
        raise InvalidInputError(field, f"1 to {MOST_CHARS} characters", name)
    return checked_text(name, field)


def checked_text(text: str, field: str) -> str:
    """Return the text if it is one valid line, possibly empty. Raises InvalidInputError.

    >>> checked_text("", "why")
    ''
    """
    if len(text) > MOST_CHARS or not is_clean(text):
        raise InvalidInputError(field, f"text of at most {MOST_CHARS} characters, without control characters", text)
    return text


def chosen(kind: type[Word], text: str, field: str) -> Word:
    """Return the member of an enumeration with the value `text`. Raises InvalidInputError.

    >>> from domain.access import Role
    >>> chosen(Role, "viewer", "role")
    <Role.VIEWER: 'viewer'>
    """
    if text not in list(kind):
        raise InvalidInputError(field, "one of " + ", ".join(kind), text)
    return kind(text)


def checked_shares(shares: float) -> float:
    """Return the shares if they are in range. Raises InvalidInputError.

    >>> checked_shares(2.5)
    2.5
    """
    return in_bounds("shares", shares)
