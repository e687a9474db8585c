"""The GPU driver over the real ROCm wheel and the emulated device; run by tests/test_under_emulation.py."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contracts.gpu_contract import GpuDriverContract
from umarray import drivers, hipemu
from umarray.drivers.base import Advice, Attribute, Driver, Kind
from umarray.errors import DriverError
from umarray.hipemu import rocm
from umarray.places import HOST, Device


class TestEmulated(GpuDriverContract):
    pass


@pytest.fixture
def driver() -> Driver:
    return drivers.get_driver()


def test_it_is_hip_and_cupys_own_attribute_numbers_would_have_misled(driver: Driver) -> None:
    runtime = driver.xp.cuda.runtime
    assert driver.name == "hip" and driver.traits(0).architecture.startswith("gfx")
    assert runtime.deviceGetAttribute(runtime.cudaDevAttrConcurrentManagedAccess, 0) not in (0, 1)


def test_the_versions_are_those_of_the_wheel_and_its_rocm(driver: Driver) -> None:
    version, number = driver.versions(), rocm.choose().number
    assert version["cupy"] == driver.xp.__version__
    assert version["runtime"].startswith(f"{number}.0.") and version["driver"] == version["runtime"]


def test_what_others_allocated_is_found_whatever_its_type_is_called(driver: Driver) -> None:
    """The numbers of memory types changed in ROCm 6; only what is managed is told, in either."""
    runtime = driver.xp.cuda.runtime
    managed, device, pinned = runtime.mallocManaged(100), runtime.malloc(100), runtime.hostAlloc(100, 0)
    found = driver.find(managed)
    assert found is not None and found.kind is Kind.MANAGED and found.place == Device(0)
    assert driver.find(device) is None and driver.find(pinned) is None
    runtime.free(managed)
    runtime.free(device)
    runtime.freeHost(pinned)


def test_zero_bytes_never_reach_the_runtime(driver: Driver) -> None:
    block = driver.allocate(4096, Kind.MANAGED)
    before = hipemu.calls("hipMemPrefetchAsync", "hipMemAdvise")
    for call in (
        lambda: driver.prefetch(block.address, 0, HOST, 0),
        lambda: driver.advise(block.address, 0, Advice.READ_MOSTLY, HOST, True),
    ):
        if driver.traits(0).prefetch:
            with pytest.raises(DriverError, match="0 bytes"):
                call()
    assert hipemu.calls("hipMemPrefetchAsync", "hipMemAdvise") == before
    driver.free(block)


def test_allocations_and_frees_balance(driver: Driver) -> None:
    live = hipemu.live_allocations()
    blocks = [driver.allocate(8192, kind) for kind in Kind]
    for block in blocks:
        driver.free(block)
    assert hipemu.live_allocations() == live


def test_every_device_takes_hints(driver: Driver) -> None:
    block = driver.allocate(1 << 16, Kind.MANAGED)
    for index in range(driver.device_count()):
        stream = driver.create_stream(index)
        driver.prefetch(block.address, block.nbytes, Device(index), stream)
        driver.synchronize(stream, index)
        if driver.traits(index).prefetch:
            said = driver.read_range(block.address, block.nbytes, Attribute.LAST_PREFETCH_LOCATION)
            assert said == Device(index)
        driver.destroy_stream(stream, index)
    driver.free(block)


def test_an_array_of_each_device_knows_its_device(driver: Driver) -> None:
    block: Any = driver.allocate(4096, Kind.MANAGED)
    for index in range(driver.device_count()):
        assert driver.as_array(block.address, 4096, block, index).device.id == index
    driver.free(block)
