from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from umarray.drivers import nvml
from umarray.errors import NotSupported


class Refused(Exception):
    pass


class NotThere(Refused):
    pass


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    module: Any = types.ModuleType("pynvml")
    module.NVMLError, module.NVMLError_NotSupported = Refused, NotThere
    module.NVML_PCIE_UTIL_TX_BYTES, module.NVML_PCIE_UTIL_RX_BYTES, module.NVML_SUCCESS = 0, 1, 0
    module.nvmlInit = lambda: None
    module.nvmlDeviceGetHandleByPciBusId = lambda pci: pci
    module.nvmlDeviceGetMemoryInfo = lambda handle: SimpleNamespace(used=5, total=10)
    counters = {197: 70, 198: 80}
    module.nvmlDeviceGetFieldValues = lambda handle, fields: [
        SimpleNamespace(nvmlReturn=0, value=SimpleNamespace(ullVal=counters[fields[0]]))
    ]
    module.nvmlDeviceGetPcieThroughput = lambda handle, which: 3 + which
    monkeypatch.setitem(sys.modules, "pynvml", module)
    monkeypatch.setattr(nvml, "_nvml", None)
    yield module


def test_a_card(fake: Any) -> None:
    assert nvml.card("0000:18:00.0") == nvml.Card(used=5, total=10, received=80, sent=70)


def test_a_card_without_counters_of_its_bus(fake: Any) -> None:
    fake.nvmlDeviceGetFieldValues = lambda handle, fields: [SimpleNamespace(nvmlReturn=3, value=None)]
    found = nvml.card("0000:18:00.0")
    assert (found.received, found.sent) == (None, None)


def test_bus_traffic(fake: Any) -> None:
    assert nvml.bus_traffic("0000:18:00.0") == nvml.BusTraffic(received=4096, sent=3072)


def test_a_card_without_a_meter(fake: Any) -> None:
    def refuse(handle: Any, which: int) -> int:
        raise NotThere

    fake.nvmlDeviceGetPcieThroughput = refuse
    assert nvml.bus_traffic("0000:18:00.0") is None


@pytest.mark.parametrize("ask", [nvml.card, nvml.bus_traffic])
def test_a_refusal_names_the_card(fake: Any, ask: Any) -> None:
    def refuse(pci: str) -> None:
        raise Refused("not permitted")

    fake.nvmlDeviceGetHandleByPciBusId = refuse
    with pytest.raises(NotSupported, match="0000:18:00.0: not permitted"):
        ask("0000:18:00.0")


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml, "_nvml", None)
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(NotSupported, match="Install nvidia-ml-py"):
        nvml.card("0000:18:00.0")
