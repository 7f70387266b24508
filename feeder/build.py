"""How a feeder is put together."""

from __future__ import annotations

from domain.clock import Clock
from domain.settings import FeederSettings
from feeder.array import JobArray
from feeder.classes import Classes
from feeder.cursors import Cursors
from feeder.ports import CatalogueSource, Ports
from feeder.recheck import Recheck
from feeder.refill import Refiller
from feeder.search import Search
from feeder.service import Feeder


def build(ports: Ports, settings: CatalogueSource, clock: Clock) -> Feeder:
    """A feeder whose `array` is what the request handler walks; `settings` are read anew at every refill."""

    def feeder_settings() -> FeederSettings:
        return settings.catalogue().settings.feeder

    array = JobArray(clock, feeder_settings)
    cursors, classes = Cursors(), Classes(ports.waiting)
    array.fall_through = Search(ports, settings, clock, array=array, cursors=cursors, classes=classes)
    array.stale = Recheck(ports.waiting, array)
    return Feeder(array, Refiller(ports, clock, array=array, cursors=cursors, classes=classes), settings, clock)
