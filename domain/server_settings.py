"""Settings of a worker's door: how much of it one caller may take. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from domain.knobs import knob
from domain.units import Seconds

_BYTE = r"(?:25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])"
_IPV4 = rf"{_BYTE}(?:\.{_BYTE}){{3}}(?:/(?:3[0-2]|[12]?[0-9]))?"
_IPV6 = r"[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*(?:/(?:12[0-8]|1[01][0-9]|[1-9]?[0-9]))?"
_NETWORK = rf"(?:{_IPV4}|{_IPV6})"
_NETWORKS = rf"(?:{_NETWORK}(?:\s*,\s*{_NETWORK})*)?"
_EXPECTED = "addresses or networks with commas between them, as 127.0.0.0/8, ::1"


@dataclass(frozen=True, slots=True)
class ServerSettings:
    trusted_proxies: str = knob(
        "127.0.0.0/8, ::1",
        "addresses of reverse proxies whose X-Forwarded-For is believed, with commas; empty: none is",
        pattern=_NETWORKS,
        expected=_EXPECTED,
    )
    metrics_networks: str = knob(
        "127.0.0.0/8, ::1",
        "addresses that may read /metrics of a worker, with commas; empty: none may",
        pattern=_NETWORKS,
        expected=_EXPECTED,
    )
    address_requests_per_s: float = knob(
        50.0, "requests a second that one address may make of a worker, in the long run; 0 = any number", low=0
    )
    address_burst: int = knob(1000, "requests one address may make of a worker at once, after a pause", low=1)
    host_requests_per_s: float = knob(
        2.0, "scheduler requests a second that one host may make of a worker, in the long run; 0 = any number", low=0
    )
    host_burst: int = knob(200, "scheduler requests one host may make of a worker at once, after a pause", low=1)
    volunteer_new_hosts: int = knob(
        2000,
        "new computers one volunteer may bring in a day (UTC); more are told to come tomorrow; 0 = any number",
        low=0,
    )
    address_new_hosts: int = knob(
        2000, "new computers one address may bring in a day (UTC), of all volunteers together; 0 = any number", low=0
    )
    connections: int = knob(10_000, "connections a worker holds; more are told to come later", low=10, high=1_000_000)
    idle_timeout_s: Seconds = knob(
        Seconds(75.0), "seconds a connection may wait with no whole request; from a worker's next start on", low=1
    )
    upload_bytes_per_s: float = knob(
        1000.0, "bytes a second an upload must bring on average, after five minutes; 0 = any number", low=0
    )
    body_timeout_s: Seconds = knob(
        Seconds(60.0), "seconds a request's body may take, and one more for every 10 kB it is to have", low=1
    )
