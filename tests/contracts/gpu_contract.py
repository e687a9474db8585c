"""The driver contract over CuPy, for a real card and for the emulated one, with a back door past the driver."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.contracts.driver_contract import DriverContract
from umarray import drivers
from umarray.drivers.base import Advice, Driver, Kind, Mode
from umarray.drivers.capabilities import capabilities
from umarray.drivers.gpu import GpuDriver
from umarray.errors import DriverError
from umarray.places import HOST, Device

TO_DEVICE, TO_HOST = 1, 2

FORK = """
import os
from umarray.drivers import get_driver
from umarray.drivers.base import Kind
from umarray.errors import ForkedProcess
driver = get_driver()
block = driver.allocate(4096, Kind.MANAGED)
event = driver.record(0, 0)
child = os.fork()
if child == 0:
    driver.free(block)
    try:
        get_driver().allocate(4096, Kind.DEVICE)
    except ForkedProcess as error:
        assert "spawn" in str(error)
        os._exit(7)
    os._exit(1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
driver.free(block)
"""


EXIT = """
import sys
from umarray.drivers import get_driver
from umarray.drivers.base import Kind
driver = get_driver()
blocks = [driver.allocate(1 << 16, kind) for kind in Kind]
stream = driver.create_stream(0)
driver.fill(blocks[0].address, 1, 1 << 16, stream)
events = [driver.record(stream, 0), driver.record(stream, 0, timed=True)]
array = driver.as_array(blocks[0].address, 1 << 16, blocks)
view = array[5:]
scope = driver.use_stream(stream, 0)
scope.__enter__()
cycle = [driver.record(stream, 0)]
cycle.append(cycle)
sys.modules["kept"] = (scope, view, events)
"""


def run_alone(script: str, folder: Path, **variables: str) -> None:
    """Run a script in a process of its own, which must end well and say nothing."""
    environment = {**os.environ, "PYTHONWARNINGS": "ignore::DeprecationWarning", **variables}
    child = subprocess.run(
        [sys.executable, "-c", script], cwd=folder, env=environment, capture_output=True, text=True, timeout=100
    )
    assert (child.returncode, child.stderr) == (0, "")


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

    def takes(self, driver: Driver, advice: Advice, place: Any) -> bool:
        if driver.name == "hip" and advice is Advice.ACCESSED_BY and place is HOST:
            return False  # HIP would take it for device 0
        return super().takes(driver, advice, place)

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

    @pytest.mark.parametrize("script", [FORK, EXIT], ids=["fork", "exit with everything alive"])
    def test_in_a_process_of_its_own(self, script: str, repository: Path) -> None:
        run_alone(script, repository)

    def test_capabilities_tell_of_the_device(self, driver: Driver) -> None:
        found = capabilities()
        assert found.driver == driver.name and found.devices[0].name in str(found)
        assert any(name.startswith(("libamdhip64", "libcuda")) for name in found.libraries)
