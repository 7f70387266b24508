"""Which GPUs a client says it has, and how much work it wants for them. Pure. PROTOCOL 3."""

from __future__ import annotations

from domain.apps import ATI, INTEL_GPU, NVIDIA
from domain.units import Seconds
from wire.messages import CoprocRequest
from wire.scan import Element, Kind, Part, span_of

MAX_COPROCS = 32  # of generic types; NVIDIA, ATI and Intel come once each

_COUNT = Element("count", Kind.WHOLE, default=b"0")
_PEAK = Element("peak_flops", Kind.NUMBER, default=b"0")
_RAM = Element("available_ram", Kind.NUMBER, default=b"0")
_OPENCL = Element("have_opencl", Kind.WHOLE, default=b"0")
_REQUEST = (
    Element("req_secs", Kind.NUMBER, default=b"0"),
    Element("req_instances", Kind.NUMBER, default=b"0"),
    Element("estimated_delay", Kind.NUMBER, default=b"0"),
)
_DRIVER = (
    Element("drvVersion", Kind.WHOLE, default=b"0"),
    Element("totalGlobalMem", Kind.NUMBER, default=b"0"),
)

_GENERIC = Part("coproc", Element("type", Kind.NAME, default=None), _COUNT, _PEAK, *_REQUEST)


def _vendor(tag: str, own_interface: str) -> Part:
    """The description of one vendor's GPUs. `own_interface` tells of the one it has beside OpenCL."""
    have = Element(own_interface, Kind.WHOLE, default=b"0")
    return Part(tag, _COUNT, Element("name"), _RAM, have, _OPENCL, *_REQUEST, _PEAK, Element("cudaVersion"), *_DRIVER)


_VENDORS = (
    (NVIDIA, _vendor("coproc_cuda", "have_cuda")),
    (ATI, _vendor("coproc_ati", "have_cal")),
    (INTEL_GPU, _vendor("coproc_intel_gpu", "have_level_zero")),  # no client writes this yet
)


def decode_coprocs(body: bytes, start: int, end: int) -> tuple[CoprocRequest, ...]:
    """The GPUs listed between two positions: generic types first, then NVIDIA, ATI and Intel."""
    found = [_generic(row) for row in _GENERIC.read_all(body, start, end, at_most=MAX_COPROCS)]
    for gpu_type, part in _VENDORS:
        inside = span_of(body, part, start, end)
        if inside is not None:
            found.append(_of_vendor(gpu_type, part.read(body, *inside)))
    return tuple(found)


def _generic(values: tuple[bytes, ...]) -> CoprocRequest:
    gpu_type, count, peak, req_s, instances, delay = values
    return CoprocRequest(
        type=gpu_type.decode(),
        count=int(count),
        peak_flop_per_s=float(peak),
        req_s=Seconds(float(req_s)),
        req_instances=float(instances),
        estimated_delay_s=Seconds(float(delay)),
    )


def _of_vendor(gpu_type: str, values: tuple[bytes, ...]) -> CoprocRequest:
    """GPUs of one vendor. They are usable when there are some and a driver was found for them."""
    count, available_ram, have_own, have_opencl, req_s, instances, delay, peak, driver, total_ram = values
    return CoprocRequest(
        type=gpu_type,
        count=int(count),
        peak_flop_per_s=float(peak),
        ram_bytes=float(total_ram) or float(available_ram),
        driver_version=int(driver),
        usable=int(count) > 0 and (int(have_own) != 0 or int(have_opencl) != 0),
        req_s=Seconds(float(req_s)),
        req_instances=float(instances),
        estimated_delay_s=Seconds(float(delay)),
    )
