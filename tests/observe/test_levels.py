from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.drivers import amd_trees
from tests.fake_driver import FakeDriver
from umarray.drivers import amdsmi, nvml
from umarray.drivers.host import HostDriver
from umarray.observe.levels import Level, levels
from umarray.places import Device


@pytest.fixture
def driver(make_fake: Callable[..., FakeDriver], monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.delenv("HIPEMU", raising=False)
    for name in ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)
    driver: Any = make_fake(devices=2)
    driver.pci_address = lambda device: f"0000:0{device}:00.0"
    return driver


def test_on_the_host_there_is_none() -> None:
    assert levels(HostDriver(())) == ()


def test_amd_by_its_files(driver: Any, tmp_path: Path) -> None:
    driver.name = "hip"
    first, second = levels(driver, amd_trees.mi210(tmp_path))
    assert first == Level(Device(0), 6402629632, 68702699520, "sysfs", own=4194304, host_mapped=15630336)
    assert second.own is None


def test_amd_by_its_library_where_files_are_missing(
    driver: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver.name = "hip"
    monkeypatch.setattr(amdsmi, "card", lambda pci: amdsmi.Card(7, int(pci[6])))
    assert levels(driver, tmp_path) == (Level(Device(0), 7, 0, "amdsmi"), Level(Device(1), 7, 1, "amdsmi"))


def test_nvidia(driver: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    driver.name = "cuda"
    monkeypatch.setattr(nvml, "card", lambda pci: nvml.Card(5, 10, None, None))
    assert levels(driver)[1] == Level(Device(1), 5, 10, "NVML")


@pytest.mark.parametrize("name", ["hip", "cuda", "other"])
def test_else_the_runtime(name: str, driver: Any, tmp_path: Path) -> None:
    driver.name = name
    info = driver.memory_info(Device(0))
    assert levels(driver, tmp_path)[0] == Level(Device(0), info.total - info.free, info.total, "the runtime")
