"""From where does a request come? Behind a reverse proxy on the same machine it says so in a header."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from aiohttp import web

MOST_CHARS = 100


def address_of(request: web.Request) -> str:
    """The caller's address. X-Forwarded-For is believed from this machine only, and only its last entry."""
    remote = request.remote or ""
    forwarded = request.headers.get("X-Forwarded-For", "").rpartition(",")[2].strip()
    if forwarded and (not remote or _is_loopback(remote)):
        return forwarded[:MOST_CHARS]
    return remote[:MOST_CHARS]


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


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
