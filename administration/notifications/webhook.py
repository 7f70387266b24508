"""Posts signed messages to webhooks, only to public addresses unless a setting allows others."""

from __future__ import annotations

import hashlib
import hmac
import socket
from collections.abc import Callable, Iterable, Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import ThreadedResolver

from administration.access.sign_in import Networks
from domain.errors import InvalidInputError, MusterError

MOST_URL_CHARS = 2000
TIMEOUT = aiohttp.ClientTimeout(total=15.0, connect=5.0)
TRANSLATED = ip_network("64:ff9b::/96")  # IPv6 addresses that a gateway translates to IPv4
EXPECTED = "an https URL without user name and fragment, of at most 2000 characters"


class WebhookError(MusterError):
    """A webhook did not accept a message."""


class RefusedAddressError(OSError):
    """The address is private."""


def is_public(address: str) -> bool:
    """Return whether an address belongs to the public Internet, also inside an IPv6 address.

    >>> [is_public(one) for one in ("93.184.216.34", "10.0.0.1", "169.254.169.254", "::1", "::ffff:127.0.0.1")]
    [True, False, False, False, False]
    >>> [is_public(one) for one in ("2606:4700::1111", "64:ff9b::a00:1", "2002:7f00:1::", "fe80::1%eth0", "224.0.0.1")]
    [True, False, False, False, False]
    """
    one: IPv4Address | IPv6Address = ip_address(address.partition("%")[0])
    if isinstance(one, IPv6Address):
        inside = one.ipv4_mapped or one.sixtofour or (IPv4Address(int(one) & 0xFFFFFFFF) if one in TRANSLATED else None)
        if inside is not None or one.teredo is not None:
            return inside is not None and is_public(str(inside))
    return one.is_global and not one.is_multicast


def signature(secrets: Iterable[str], at_s: int, body: bytes) -> str:
    """Return the signature header: the time, and HMAC-SHA256 of "time.body" with each secret.

    >>> signature(["secret"], 1700000000, b"{}")[:40]
    't=1700000000,v1=b8569b78799ff9e3cbff0fc2'
    """
    text = str(at_s).encode() + b"." + body
    made = [f"v1={hmac.new(secret.encode(), text, hashlib.sha256).hexdigest()}" for secret in secrets]
    return ",".join([f"t={at_s}", *made])


class Permitted(AbstractResolver):
    """Resolves host names to permitted addresses, so that a name cannot change its address after a check."""

    def __init__(self, private: Networks, *, encrypted: bool) -> None:
        self._private = private
        self._encrypted = encrypted

    def check(self, address: str) -> None:
        """Raise RefusedAddressError for an address that is neither public, with TLS, nor listed in the setting."""
        if not (self._private.has(address) or (self._encrypted and is_public(address))):
            raise RefusedAddressError("the address is private, or http, and notifications.private_networks lacks it")

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = await ThreadedResolver().resolve(host, port, family)
        for one in found:
            self.check(one["host"])
        return found

    async def close(self) -> None:
        """There is nothing to close."""


class Webhooks:
    """Checks URLs and posts to them. `private_networks` returns the setting."""

    def __init__(self, private_networks: Callable[[], str], timeout: aiohttp.ClientTimeout = TIMEOUT) -> None:
        self._setting = private_networks
        self._timeout = timeout
        self._private = Networks("", setting="notifications.private_networks")

    def checked_url(self, url: str) -> str:
        """Return the URL if messages may be sent to it. Raises InvalidInputError."""
        try:
            parts = urlsplit(url)
            good = url.isprintable() and " " not in url and len(url) <= MOST_URL_CHARS and parts.port != 0
        except ValueError:  # of an invalid port or IPv6 address
            raise InvalidInputError("address", EXPECTED, url) from None
        good = good and bool(parts.hostname) and "@" not in parts.netloc and not parts.fragment
        encrypted = parts.scheme == "https"
        if not good or not (encrypted or (parts.scheme == "http" and self._setting())):
            raise InvalidInputError("address", EXPECTED, url)
        try:
            self._check_literal(parts.hostname or "", encrypted=encrypted)
        except RefusedAddressError as error:
            raise InvalidInputError("address", f"a public address ({error})", url) from None
        return url

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> str:
        """Post a message and return the status. Raises WebhookError. Follows no redirect and reads no reply body."""
        parts = urlsplit(url)
        encrypted = parts.scheme == "https"
        try:
            resolver = self._check_literal(parts.hostname or "", encrypted=encrypted)
            connector = aiohttp.TCPConnector(resolver=resolver, force_close=True)
            async with (
                aiohttp.ClientSession(
                    connector=connector, timeout=self._timeout, cookie_jar=aiohttp.DummyCookieJar()
                ) as http,
                http.post(url, data=body, headers=headers, allow_redirects=False) as response,
            ):
                status = response.status
        except TimeoutError:
            raise WebhookError(f"no reply within {self._timeout.total:g} s") from None
        except (OSError, aiohttp.ClientError, ValueError) as error:
            raise WebhookError(f"{type(error).__name__}: {error}") from error
        if not 200 <= status < 300:
            raise WebhookError(
                f"HTTP status {status}" + (": redirects are not followed" if 300 <= status < 400 else "")
            )
        return f"HTTP status {status}"

    def _check_literal(self, host: str, *, encrypted: bool) -> Permitted:
        """Return a resolver. Raises RefusedAddressError if the host is an address that may not be used."""
        self._private.follow(self._setting())
        resolver = Permitted(self._private, encrypted=encrypted)
        try:
            ip_address(host.partition("%")[0])
        except ValueError:
            return resolver  # a name, which the resolver checks
        resolver.check(host)
        return resolver
