"""What really moved around a block, told by CUPTI's unified-memory counters.

Needs `cupti-python` 13 (and `pyelftools`, which it imports) and the toolkit's libcupti. The counters reach the process
from a thread of the driver's, so `counted` ends with a canary: a page of its own that the host takes from the device.
When the record of that has come, all earlier ones have.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from umarray.drivers.base import Driver, Kind, host_bytes
from umarray.places import Device

PREFETCH = 1  # causes of a transfer: CUpti_ActivityUnifiedMemoryMigrationCause
_PATIENCE = 10.0  # seconds until the canary must have been told
_records: list[tuple[int, int, int, int]] = []  # kind, value, address, flags
_started = False


@dataclass
class Migrations:
    """What moved, and what was waited for. Bytes by direction, and by direction and cause; faults as CUPTI has them."""

    to_device: int = 0
    to_host: int = 0
    causes: Counter[tuple[str, int]] = field(default_factory=Counter)
    gpu_faults: int = 0
    cpu_faults: int = 0

    @property
    def nothing(self) -> bool:
        return not (self.to_device or self.to_host or self.gpu_faults or self.cpu_faults)


def start() -> Any:
    """CUPTI, its counters switched on at the first call of the process; memory allocated before that is not counted."""
    global _started
    from cupti import cupti

    if not _started:
        kinds = cupti.ActivityUnifiedMemoryCounterKind
        wanted = (
            kinds.BYTES_TRANSFER_HTOD,
            kinds.BYTES_TRANSFER_DTOH,
            kinds.CPU_PAGE_FAULT_COUNT,
            kinds.GPU_PAGE_FAULT,
        )
        config = cupti.ActivityUnifiedMemoryCounterConfig(len(wanted))
        config.scope = int(cupti.ActivityUnifiedMemoryCounterScope.PROCESS_SINGLE_DEVICE)
        config.device_id, config.enable = 0, 1
        for index, kind in enumerate(wanted):
            config[index].kind = kind
        cupti.activity_register_callbacks(lambda: (8 << 20, 0), _completed)
        cupti.activity_configure_unified_memory_counter(config.ptr, len(wanted))
        cupti.activity_enable(cupti.ActivityKind.UNIFIED_MEMORY_COUNTER)
        _started = True
    return cupti


def _completed(activities: list[Any]) -> None:
    for one in activities:
        flags = getattr(one, "flags_", 0)
        _records.append((int(one.counter_kind), int(one.value), int(one.address), int(flags)))


@contextmanager
def counted(driver: Driver) -> Iterator[Migrations]:
    """Count what migrates on device 0 in the block, with the work queued in it; the figures are there at its end."""
    cupti = start()
    canary = driver.allocate(driver.page_size, Kind.MANAGED, 0)
    try:
        driver.synchronize(device=0)
        _chirp(driver, canary, cupti)
        _records.clear()
        found = Migrations()
        yield found
        driver.synchronize(device=0)
        _chirp(driver, canary, cupti)
        _add_up(found, canary, cupti)
    finally:
        driver.free(canary)


def _chirp(driver: Driver, canary: Any, cupti: Any) -> None:
    """Move the canary to the device and take it back until that is told: what was before has been told then, too.

    Again and again, since the counters need a while to come on after the first call of the process.
    """
    before, give_up = len(_records), time.monotonic() + _PATIENCE
    stream = driver.current_stream(0)
    page = host_bytes(canary.address, canary.nbytes, None)
    fault = int(cupti.ActivityUnifiedMemoryCounterKind.CPU_PAGE_FAULT_COUNT)
    while time.monotonic() < give_up:
        driver.prefetch(canary.address, canary.nbytes, Device(0), stream)
        driver.synchronize(stream, 0)
        page[:] = 1
        cupti.activity_flush_all(1)
        if any(kind == fault and _is_in(canary, value, address) for kind, value, address, _ in _records[before:]):
            return
    raise RuntimeError(f"CUPTI did not tell within {_PATIENCE} s of a page that the host took from the device")


def _is_in(block: Any, *addresses: int) -> bool:
    return any(block.address <= address < block.address + block.nbytes for address in addresses)


def _add_up(found: Migrations, canary: Any, cupti: Any) -> None:
    kinds = cupti.ActivityUnifiedMemoryCounterKind
    for kind, value, address, flags in _records:
        if _is_in(canary, address) or (kind == kinds.CPU_PAGE_FAULT_COUNT and _is_in(canary, value)):
            continue
        if kind == kinds.BYTES_TRANSFER_HTOD:
            found.to_device += value
            found.causes["to device", flags] += value
        elif kind == kinds.BYTES_TRANSFER_DTOH:
            found.to_host += value
            found.causes["to host", flags] += value
        elif kind == kinds.CPU_PAGE_FAULT_COUNT:
            found.cpu_faults += 1  # a record a fault: the value is an address
        elif kind == kinds.GPU_PAGE_FAULT:
            found.gpu_faults += value
