"""How full the devices are, of all processes together, from whatever says it best here."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from umarray.drivers import amdgpu, amdsmi, nvml
from umarray.drivers.base import Driver, Mode
from umarray.observe import emulated
from umarray.places import Device


@dataclass(frozen=True, slots=True)
class Level:
    """A device's memory at one moment. None: nobody here can say."""

    device: Device
    used: int
    total: int
    source: str
    own: int | None = None
    """Bytes of `used` that are this process's."""
    host_mapped: int | None = None
    """Bytes of host memory that the device has mapped (AMD's GTT)."""


def levels(driver: Driver, root: Path = Path("/")) -> tuple[Level, ...]:
    """The memory of every device. Cheap enough to ask each second, not each step.

    Examples
    --------
    >>> from umarray.drivers import get_driver
    >>> all(one.used <= one.total for one in levels(get_driver()))
    True
    """
    if driver.mode is Mode.HOST:
        return ()
    return tuple(_level(driver, Device(index), root) for index in range(driver.device_count()))


def _level(driver: Driver, device: Device, root: Path) -> Level:
    asked: list[Callable[[], Level | None]] = []
    if driver.name == "hip":
        asked = [lambda: _emulated(driver, device)] if emulated.here() else [lambda: _sysfs(device, root)]
        asked += [] if emulated.here() else [lambda: _by_pci(driver, device, amdsmi.card, "amdsmi")]
    elif driver.name == "cuda":
        asked = [lambda: _by_pci(driver, device, nvml.card, "NVML")]
    for ask in asked:
        try:
            found = ask()
        except Exception:  # not installed, not permitted: the next one
            continue
        if found is not None:
            return found
    info = driver.memory_info(device)
    return Level(device, info.total - info.free, info.total, "the runtime")


def _emulated(driver: Driver, device: Device) -> Level:
    used = int(importlib.import_module("umarray.hipemu.control").used_bytes(device.id))
    return Level(device, used, driver.memory_info(device).total, "the emulated device", own=used)


def _sysfs(device: Device, root: Path) -> Level | None:
    node = amdgpu.visible(amdgpu.nodes(root), os.environ)[device.id]
    found = amdgpu.levels(node, root)
    if found.vram_used is None or found.vram_total is None:
        return None
    return Level(device, found.vram_used, found.vram_total, "sysfs", found.process_vram, found.gtt_used)


def _by_pci(driver: Any, device: Device, ask: Callable[[str], Any], source: str) -> Level:
    found = ask(driver.pci_address(device.id))
    return Level(device, found.used, found.total, source)
