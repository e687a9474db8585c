"""What NVIDIA's NVML says of a card: its memory and what crosses its bus. Needs `nvidia-ml-py`; no root is needed."""

from __future__ import annotations

import importlib
import threading
from dataclasses import dataclass
from typing import Any

from umarray.errors import NotSupported

_COUNTER_SENT, _COUNTER_RECEIVED = 197, 198  # NVML_FI_DEV_PCIE_COUNT_TX_BYTES, ..._RX_BYTES
_lock = threading.Lock()
_nvml: Any = None


@dataclass(frozen=True, slots=True)
class Card:
    """A card at one moment, all processes together."""

    used: int
    """Bytes of its memory."""
    total: int
    received: int | None
    """Bytes that came over PCIe since the driver was loaded; None where the card does not count them."""
    sent: int | None


@dataclass(frozen=True, slots=True)
class BusTraffic:
    """What a card received and sent over PCIe, in bytes a second: a sample of the last 20 ms."""

    received: int
    sent: int


def card(pci: str) -> Card:
    """The memory and counters of the card at a PCI address such as "0000:18:00.0".

    Raises
    ------
    NotSupported
        `nvidia-ml-py` is not installed, or NVML refuses.
    """
    nvml = _ready()
    try:
        handle = nvml.nvmlDeviceGetHandleByPciBusId(pci)
        memory = nvml.nvmlDeviceGetMemoryInfo(handle)
        sent, received = (_counted(nvml, handle, one) for one in (_COUNTER_SENT, _COUNTER_RECEIVED))
    except nvml.NVMLError as error:
        raise NotSupported(f"NVML says nothing of the card at {pci}: {error}") from None
    return Card(int(memory.used), int(memory.total), received, sent)


def bus_traffic(pci: str) -> BusTraffic | None:
    """What crosses the bus at the moment; None where the card has no such meter. Takes some 40 ms.

    Raises
    ------
    NotSupported
        As for `card`.
    """
    nvml = _ready()
    try:
        handle = nvml.nvmlDeviceGetHandleByPciBusId(pci)
        sent = nvml.nvmlDeviceGetPcieThroughput(handle, nvml.NVML_PCIE_UTIL_TX_BYTES)
        received = nvml.nvmlDeviceGetPcieThroughput(handle, nvml.NVML_PCIE_UTIL_RX_BYTES)
    except nvml.NVMLError_NotSupported:
        return None
    except nvml.NVMLError as error:
        raise NotSupported(f"NVML says nothing of the card at {pci}: {error}") from None
    return BusTraffic(int(received) * 1024, int(sent) * 1024)  # NVML says KB/s, and means 1024 bytes


def _counted(nvml: Any, handle: Any, field: int) -> int | None:
    value = nvml.nvmlDeviceGetFieldValues(handle, [field])[0]
    return int(value.value.ullVal) if value.nvmlReturn == nvml.NVML_SUCCESS else None


def _ready() -> Any:
    global _nvml
    with _lock:
        if _nvml is None:
            try:
                loaded: Any = importlib.import_module("pynvml")
                loaded.nvmlInit()
            except Exception as error:  # not installed, or no NVIDIA driver
                raise NotSupported(f"NVML cannot be used: {error}. Install nvidia-ml-py") from None
            _nvml = loaded
        return _nvml
