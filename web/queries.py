"""What may stand behind the path of a page? Anything else is refused, so that no slip is taken for an answer."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from domain.errors import InvalidInputError
from web.handlers import ADDRESS, Address

SAID = "said"  # what the last form did; any page may be where it led


def check_query(query: Mapping[str, Sequence[str]], known: Collection[str], said: Collection[str]) -> None:
    """Raises InvalidInputError naming what is not known, or comes twice.

    >>> check_query({"after": ["7"]}, ("before", "q"), ())
    Traceback (most recent call last):
    domain.errors.InvalidInputError: after: expected no such question, before or q, got '7'
    """
    for name, values in query.items():
        if name == SAID:
            if not set(values) <= {*said, ""}:
                raise InvalidInputError(name, "what a form says that led here", ", ".join(values))
        elif name not in known:
            others = f", {' or '.join(known)}" if known else ": this page takes none"
            raise InvalidInputError(name, f"no such question{others}", values[0])
        if len(values) > 1:
            raise InvalidInputError(name, "one value", ", ".join(values))


def asked_as_known(said: Collection[str]) -> Middleware:
    """The middleware that checks what is asked of pages by their addresses (web/handlers.py); files are no pages."""

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        address: Address | None = getattr(request.match_info.handler, ADDRESS, None)
        if request.method in ("GET", "HEAD") and address is not None:
            check_query({one: request.query.getall(one) for one in request.query}, address.asks, said)
        return await handler(request)

    return check
