"""Converts a command's error to a problem object (RFC 9457), as in the API."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec

from cli.main import in_words
from domain.errors import MusterError

if TYPE_CHECKING:
    from web.problems import Problem


def problem_as_json(error: Exception) -> str:
    """Return the error's problem object as JSON."""
    return msgspec.json.encode(problem_for(error)).decode()


def is_of_a_server(error: Exception) -> bool:
    """Return whether the server refused the request or did not reply."""
    from muster_client import MusterClientError

    return isinstance(error, MusterClientError)


def problem_for(error: Exception) -> Problem:
    """Return the problem for any error that ends a command. A problem from a server is passed on.

    >>> problem_for(click.BadParameter("'x' is no number", param=click.Option(["--limit"]))).field
    'limit'
    """
    from muster_client import ApiError, UnreachableError
    from web.problems import problem, problem_from, problem_of

    match error:
        case ApiError():
            return problem_from(error.status, error.problem)
        case UnreachableError():
            return problem(503, "unreachable", str(error))
        case MusterError():
            return problem_of(error)
        case click.ClickException():
            return _usage(error)
        case _:
            return problem(500, "not done", in_words(error))


def _usage(error: click.ClickException) -> Problem:
    """Return the problem for an invalid command line. `field` names the option or argument, if known."""
    from web.problems import problem

    found = problem(400, "usage", error.format_message())
    if isinstance(error, click.BadParameter) and error.param is not None:
        found.field = error.param.name
    elif isinstance(error, (click.NoSuchOption, click.BadOptionUsage)):
        found.field = error.option_name
    return found
