"""Says where a node's address and the project's URL leave passwords or cookies unprotected. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from urllib.parse import urlsplit


def exposures(master_url: str, host: str) -> Iterator[str]:
    """A sentence for each way in which the project's URL and the address a node listens on disagree.

    >>> list(exposures("https://muster.example.org/", "127.0.0.1")), list(exposures("http://127.0.0.1:8080/", "::1"))
    ([], [])
    >>> next(exposures("http://muster.example.org/", "127.0.0.1"))
    'project.url is http://muster.example.org/: passwords and cookies travel unencrypted; use an https URL'
    """
    url = urlsplit(master_url)
    if url.scheme == "http" and not is_loopback(url.hostname or ""):
        yield f"project.url is {master_url}: passwords and cookies travel unencrypted; use an https URL"
    if url.scheme == "https" and not is_loopback(host):
        yield (
            f"project.url is {master_url}, but this node serves plain HTTP on {host}: let only the TLS proxy reach it, "
            "or use --host 127.0.0.1 where the proxy is on this machine"
        )
    if not is_loopback(url.hostname or "") and url.scheme == "http" and is_loopback(host):
        yield f"project.url is {master_url}, but this node listens on {host}, which no other machine reaches"


def is_loopback(host: str) -> bool:
    """Whether the name or address is this machine's own.

    >>> is_loopback("localhost"), is_loopback("127.0.0.2"), is_loopback("0.0.0.0"), is_loopback("example.org")
    (True, True, False, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
