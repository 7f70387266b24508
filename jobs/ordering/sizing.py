"""What does one job of a batch take, on a host as hosts are? Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from domain.apps import CPU, ProcessorType
from domain.bounds import BOUNDS
from domain.catalogue import Catalogue
from domain.ordered_work import Reference
from domain.ordering import Request
from domain.units import HOUR_S, AppId, Flop, Seconds
from domain.usage import Amounts
from priority.charging import service_units
from priority.scheme import request_pe

LEAST_CORES = 1e-3  # taken for a job that asks for none
_REQUEST_BOUNDS = tuple(BOUNDS[name] for name in ("ncpus", "memory_bytes", "disk_bytes"))


@dataclass(frozen=True, slots=True)
class JobFootprint:
    """One instance by estimate: what it asks for, for how long, in processor equivalents and in amounts of usage."""

    request: Request
    runtime_s: Seconds
    pe: float
    amounts: Amounts

    def units(self, rate: float) -> float:
        """Service units of one instance: rate * PE * hours.

        >>> JobFootprint(Request(2.0), Seconds(1800.0), 2.0, Amounts()).units(3.0)
        3.0
        """
        return service_units(rate=rate, cores=self.pe, wall_h=self.runtime_s / HOUR_S)


def job_size(request: Request, job_flop: Flop, reference: Reference, gpu: ProcessorType | None = None) -> JobFootprint:
    """The size of a batch's jobs: run time = estimate / (speed of the reference host's core * cores asked for).

    With `gpu` they run on one of that type alone, and use it as long. A batch stored before a field had its bound
    counts as if it asked for the bound.

    >>> reference = Reference(0.0, Request(4.0, memory_bytes=8e9), flop_per_s=1e9)
    >>> size = job_size(Request(2.0, memory_bytes=1e9), Flop(8e12), reference)
    >>> size.runtime_s, size.pe, size.amounts.cpu_s
    (4000.0, 2.0, 8000.0)
    """
    request = _within_bounds(request)
    job_flop = Flop(min(BOUNDS["fpops_est"].high, job_flop))
    cores = max(request.cores, LEAST_CORES)
    runtime_s = Seconds(job_flop / (reference.flop_per_s * cores))
    amounts = Amounts(
        flop=job_flop,
        cpu_s=runtime_s * request.cores,
        memory_byte_s=runtime_s * request.memory_bytes,
        gpu_s=0.0 if gpu is None else runtime_s,
    )
    if gpu is not None:
        request = replace(request, gpus=((str(gpu), 1.0),))
    return JobFootprint(request, runtime_s, request_pe(request, reference.host), amounts)


def _within_bounds(request: Request) -> Request:
    asked = request.cores, request.memory_bytes, request.disk_bytes
    if all(bound.high >= one for bound, one in zip(_REQUEST_BOUNDS, asked, strict=True)):
        return request  # as nearly all are
    cores, memory_bytes, disk_bytes = (min(bound.high, one) for bound, one in zip(_REQUEST_BOUNDS, asked, strict=True))
    return replace(request, cores=cores, memory_bytes=memory_bytes, disk_bytes=disk_bytes)


def gpu_of(catalogue: Catalogue, app_id: AppId) -> ProcessorType | None:
    """The GPU type an app's jobs need; None when it has a version for CPUs, or none at all."""
    types = catalogue.processor_types(app_id)
    return min(types) if types and CPU not in types else None
