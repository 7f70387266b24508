"""From where does a request come? Behind a reverse proxy that is believed, it says so in a header."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from functools import lru_cache, partial
from urllib.parse import urlsplit

import structlog
from aiohttp import web

MOST_CHARS = 100
REMEMBERED = 10_000  # addresses that are not read anew with every request
FORWARDED = "X-Forwarded-For"
LOOPBACK = "127.0.0.0/8, ::1"
ADDRESS = web.RequestKey("address", str)
ASKED_FROM: ContextVar[str] = ContextVar("ASKED_FROM", default="")  # the same, where there is no request at hand

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

log = structlog.get_logger()


class Networks:
    """The networks that a setting lists: that of proxies whose X-Forwarded-For is believed, unless told."""

    def __init__(self, listed: str = LOOPBACK, *, setting: str = "server.trusted_proxies") -> None:
        self._setting = setting
        self._listed = ""
        self._has: Callable[[str], bool] = partial(_within, ())
        self.follow(listed)

    def follow(self, listed: str) -> None:
        """Have these from now on. What is no network is logged and left out."""
        if listed != self._listed:
            self._listed = listed
            self._has = lru_cache(REMEMBERED)(partial(_within, tuple(_networks(listed, self._setting))))

    def has(self, address: str) -> bool:
        """Whether the address lies in one of them.

        >>> Networks("10.0.0.0/8").has("10.1.2.3"), Networks("10.0.0.0/8").has("192.0.2.7")
        (True, False)
        """
        return self._has(address)


def address_of(request: web.Request, proxies: Networks | None = None) -> str:
    """The caller's address: who is connected, or where that is a proxy that is believed, for whom it says it asks.

    X-Forwarded-For grows at its end, so it is read from there; what stands before the first address that is no proxy
    anybody may have written. What the entrance has found is not looked for again.
    """
    if ADDRESS in request:
        return request[ADDRESS]
    proxies = proxies or _FROM_HERE
    address = request.remote or ""
    if FORWARDED not in request.headers:
        return address[:MOST_CHARS]
    forwarded = [one.strip() for one in ",".join(request.headers.getall(FORWARDED)).split(",")]
    while forwarded and (not address or proxies.has(address)):
        before = forwarded.pop()
        if not before:
            break
        address = before
    return address[:MOST_CHARS]


def _networks(listed: str, setting: str) -> Iterator[Network]:
    for text in filter(None, (one.strip() for one in listed.split(","))):
        try:
            yield ipaddress.ip_network(text, strict=False)
        except ValueError:
            log.warning("no network, so left out", setting=setting, got=text)


def _within(networks: tuple[Network, ...], address: str) -> bool:
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    return any(found in network for network in networks)


@lru_cache(REMEMBERED)
def network_of(address: str) -> str:
    """What one caller has of addresses: one of IPv4, a /64 of IPv6.

    >>> network_of("192.0.2.7"), network_of("2001:db8:1:2:3::4"), network_of("?")
    ('192.0.2.7', '2001:db8:1:2::/64', '?')
    """
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((found, 64), strict=False))
    return str(found)


def from_elsewhere(request: web.Request, master_url: str) -> bool:
    """Whether another site's page made the browser send this. Requests of programs say nothing of pages.

    Browsers say it themselves (Sec-Fetch-Site) on https and on this machine, and name the page's site (Origin) with
    every POST.
    """
    site = request.headers.get("Sec-Fetch-Site")
    if site is not None:
        return site not in ("same-origin", "none")
    origin = request.headers.get("Origin")
    if origin is None:
        return False
    return urlsplit(origin).netloc not in (request.host, urlsplit(master_url).netloc)


_FROM_HERE = Networks()
