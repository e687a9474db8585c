"""What really moved around a block, told by CUPTI's unified-memory counters (umarray/drivers/cupti.py)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from umarray.drivers import cupti
from umarray.drivers.base import Driver
from umarray.places import Device

PREFETCH = "prefetch"
_MOST = 1_000_000


@dataclass
class Migrations:
    """What moved, and what was waited for. Bytes by direction, and by direction and cause; faults as CUPTI has them."""

    to_device: int = 0
    to_host: int = 0
    causes: Counter[tuple[str, str]] = field(default_factory=Counter)
    gpu_faults: int = 0
    cpu_faults: int = 0

    @property
    def nothing(self) -> bool:
        return not (self.to_device or self.to_host or self.gpu_faults or self.cpu_faults)


def start() -> cupti.Collector:
    """CUPTI, its counters switched on at the first call of the process; memory allocated before that is not counted."""
    return cupti.collector(1)


@contextmanager
def counted(driver: Driver) -> Iterator[Migrations]:
    """Count what migrates on device 0 in the block, with the work queued in it; the figures are there at its end."""
    collector = start()
    driver.synchronize(device=0)
    assert collector.settle(driver), "CUPTI did not tell of a page that the host took from the device"
    window, found = collector.open(_MOST), Migrations()
    yield found
    driver.synchronize(device=0)
    assert collector.settle(driver), "CUPTI did not tell of a page that the host took from the device"
    told, lost = window.take()
    assert not lost
    for one in told:
        if one.kind == "transfer" and isinstance(one.to, Device):
            found.to_device += one.value
            found.causes["to device", one.cause] += one.value
        elif one.kind == "transfer":
            found.to_host += one.value
            found.causes["to host", one.cause] += one.value
        elif one.kind == "host fault":
            found.cpu_faults += 1
        else:
            found.gpu_faults += one.value
