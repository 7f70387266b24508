"""Passwords may come from a file, so that process lists do not show them."""

from __future__ import annotations

import io

import click
import pytest

from cli.hosts import password_in
from cli.main import muster
from cli.manual.pages import commands_of
from domain.errors import InvalidInputError


def test_password_is_the_files_first_line() -> None:
    assert password_in(io.StringIO(" two words \r\nmore\n"), given=None) == " two words "


@pytest.mark.parametrize(("text", "given", "came"), [("", None, "an empty line"), ("a\n", "b", "both")])
def test_missing_or_double_password_is_refused(text: str, given: str | None, came: str) -> None:
    with pytest.raises(InvalidInputError, match=came):
        password_in(io.StringIO(text), given=given)


def test_secrets_may_come_from_a_file_or_the_environment() -> None:
    secrets = ("password", "token", "secret", "passphrase")
    for path, command in commands_of(muster, ("muster",)):
        options = {one.name: one for one in command.params if isinstance(one, click.Option)}
        for name, option in options.items():
            if name in secrets:
                assert option.envvar or f"{name}_file" in options, (path, name)
