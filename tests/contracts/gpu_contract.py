"""The driver contract over CuPy, for a real card and for the emulated one, with a back door past the driver."""

from __future__ import annotations

import ctypes
import threading
from typing import Any

import pytest

from tests.contracts.driver_contract import DriverContract
from umarray import drivers
from umarray.drivers.base import Driver, Kind, Mode
from umarray.drivers.gpu import GpuDriver
from umarray.errors import DriverError
from umarray.places import HOST, Device

TO_DEVICE, TO_HOST = 1, 2


class GpuDriverContract(DriverContract):
    """Back door: CuPy's synchronous copies with a named direction, which the driver never makes."""

    @pytest.fixture
    def driver(self) -> Driver:
        return drivers.get_driver()

    def poke(self, driver: Driver, address: int, data: bytes, kind: Kind) -> None:
        if kind is not Kind.DEVICE:
            super().poke(driver, address, data, kind)
            return
        runtime, staging = driver.xp.cuda.runtime, ctypes.create_string_buffer(data, len(data))
        runtime.memcpy(address, ctypes.addressof(staging), len(data), TO_DEVICE)
        runtime.deviceSynchronize()

    def peek(self, driver: Driver, address: int, nbytes: int, kind: Kind) -> bytes:
        if kind is not Kind.DEVICE:
            return super().peek(driver, address, nbytes, kind)
        runtime, staging = driver.xp.cuda.runtime, ctypes.create_string_buffer(nbytes)
        runtime.memcpy(ctypes.addressof(staging), address, nbytes, TO_HOST)
        return staging.raw

    def test_it_is_the_process_s_driver(self, driver: Driver) -> None:
        assert isinstance(driver, GpuDriver) and driver.mode in (Mode.MANAGED, Mode.EXPLICIT)
        assert set(driver.versions()) == {"cupy", "runtime", "driver"}

    def test_managed_memory_of_others_is_found(self, driver: Driver) -> None:
        other = driver.xp.cuda.malloc_managed(1 << 16)
        found = driver.find(other.ptr + 100)
        assert found is not None and found.kind is Kind.MANAGED and found.place == Device(0)
        assert found.nbytes in (0, 1 << 16) or found.address <= other.ptr

    def test_cupys_current_stream_is_ours(self, driver: Driver) -> None:
        with driver.xp.cuda.Stream(non_blocking=True) as stream:
            assert driver.current_stream() == stream.ptr
            handle = driver.create_stream(0)
            with driver.use_stream(handle, 0):
                assert driver.xp.cuda.get_current_stream().ptr == handle
            assert driver.xp.cuda.get_current_stream().ptr == stream.ptr
            driver.destroy_stream(handle, 0)

    def test_our_streams_are_non_blocking(self, driver: Driver, stream: int) -> None:
        if not hasattr(driver.xp.cuda.runtime, "streamGetFlags"):
            pytest.skip("this CuPy cannot ask")
        assert driver.xp.cuda.runtime.streamGetFlags(stream) == 1

    def test_an_event_outlives_its_stream(self, driver: Driver, blocks: Any) -> None:
        block, handle = blocks(Kind.DEVICE), driver.create_stream(0)
        driver.fill(block.address, 1, block.nbytes, handle)
        event = driver.record(handle, 0)
        driver.destroy_stream(handle, 0)
        event.wait()
        assert event.done()

    def test_the_thread_s_device_is_left_as_it_was(self, driver: Driver) -> None:
        last = driver.device_count() - 1
        for act in (
            lambda: driver.memory_info(Device(last)),
            lambda: driver.destroy_stream(driver.create_stream(last), last),
            lambda: driver.free(driver.allocate(4096, Kind.MANAGED, last)),
            lambda: driver.synchronize(device=last),
        ):
            act()
            assert driver.current_device() == 0

    def test_a_device_that_is_not_there_is_an_error(self, driver: Driver) -> None:
        for act in (driver.create_stream, driver.traits, lambda device: driver.allocate(1, Kind.DEVICE, device)):
            with pytest.raises(DriverError, match="101"):
                act(99)
        assert driver.current_device() == 0

    def test_a_thread_that_touched_no_device_yet_may_give_hints(self, driver: Driver, blocks: Any) -> None:
        block, outcomes = blocks(Kind.MANAGED), list[Any]()
        thread = threading.Thread(target=lambda: outcomes.append(driver.prefetch(block.address, block.nbytes, HOST, 0)))
        thread.start()
        thread.join(60)
        assert outcomes == [driver.prefetch(block.address, block.nbytes, HOST, 0)]
        driver.synchronize()
