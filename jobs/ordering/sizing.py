"""Estimates the size of a batch's jobs on the reference host. Pure."""

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

LEAST_CORES = 1e-3  # assumed for a job that requests no cores
_REQUEST_BOUNDS = tuple(BOUNDS[name] for name in ("ncpus", "memory_bytes", "disk_bytes"))


@dataclass(frozen=True, slots=True)
class JobFootprint:
    """The estimated size of one instance: requested resources, runtime, processor equivalents and amounts used."""

    request: Request
    runtime_s: Seconds
    pe: float
    amounts: Amounts

    def units(self, rate: float) -> float:
        """Return the service units of an instance: rate * PE * hours.

        >>> JobFootprint(Request(2.0), Seconds(1800.0), 2.0, Amounts()).units(3.0)
        3.0
        """
        return service_units(rate=rate, cores=self.pe, wall_h=self.runtime_s / HOUR_S)


def job_size(request: Request, job_flop: Flop, reference: Reference, gpu: ProcessorType | None = None) -> JobFootprint:
    """Return the size of a batch's jobs. Its runtime is the estimate / (speed per core of the reference host * cores).

    With `gpu`, the jobs run only on a GPU of that type, for the same time. A stored batch that exceeds a bound
    introduced later counts as requesting the bound.

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
        return request  # true for nearly all requests
    cores, memory_bytes, disk_bytes = (min(bound.high, one) for bound, one in zip(_REQUEST_BOUNDS, asked, strict=True))
    return replace(request, cores=cores, memory_bytes=memory_bytes, disk_bytes=disk_bytes)


def gpu_of(catalogue: Catalogue, app_id: AppId) -> ProcessorType | None:
    """Return the GPU type that an app's jobs need; None if the app has a CPU version, or no version at all."""
    types = catalogue.processor_types(app_id)
    return min(types) if types and CPU not in types else None
