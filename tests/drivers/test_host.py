"""The host driver keeps the contract, and knows the memory that this process may use."""

from __future__ import annotations

import pytest

from tests.contracts.driver_contract import DriverContract
from umarray.drivers.base import Kind, Mode
from umarray.drivers.host import HostDriver, host_memory
from umarray.errors import NotSupported


class TestHost(DriverContract):
    @pytest.fixture
    def driver(self) -> HostDriver:
        return HostDriver(("a test",))

    def test_it_has_no_device(self, driver: HostDriver) -> None:
        assert driver.mode is Mode.HOST and driver.device_count() == 0
        with pytest.raises(NotSupported, match="a test"):
            driver.traits(0)

    def test_new_memory_is_zero(self, driver: HostDriver) -> None:
        block = driver.allocate(4096, Kind.MANAGED)
        assert not driver.as_array(block.address, 4096, None).any()
        driver.free(block)


def test_host_memory_is_what_may_be_used() -> None:
    info = host_memory()
    assert 0 < info.free <= info.total
