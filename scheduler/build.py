"""Puts the request handler together."""

from __future__ import annotations

from domain.clock import Clock
from scheduler.dispatch import choose
from scheduler.handler import SchedulerHandler
from scheduler.ports import RequestLimit
from scheduler.service import Ports, RequestService


def build(ports: Ports, clock: Clock) -> RequestService:
    """The service that answers scheduler requests. Settings are those of the catalogue, at every request."""
    return RequestService(ports, clock, choose)


def build_handler(ports: Ports, clock: Clock, limit: RequestLimit | None = None) -> SchedulerHandler:
    """The service behind its HTTP door."""

    def max_request_bytes() -> int:
        return ports.catalogue.catalogue().settings.scheduler.max_request_bytes

    return SchedulerHandler(build(ports, clock), ports.observer, max_request_bytes, limit)
