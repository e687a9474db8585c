"""The GPU driver on a real card: the contract, places read back from the runtime, order held open by a busy kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.contracts.gpu_contract import GpuDriverContract, run_alone
from umarray import drivers
from umarray.drivers.base import Advice, Attribute, Driver, Kind, Mode, Outcome, host_bytes
from umarray.places import HOST, Device

SPIN = r"""
extern "C" __global__ void spin(const volatile int* gate, unsigned long long ticks) {
    unsigned long long start = clock64();
    while (clock64() - start < ticks) { if (gate && *gate) break; }
}
"""


class TestGpu(GpuDriverContract):
    pass


@pytest.fixture
def driver() -> Driver:
    return drivers.get_driver()


@pytest.fixture
def block(driver: Driver) -> Any:
    made = driver.allocate(64 << 20, Kind.MANAGED)
    yield made
    driver.synchronize()
    driver.free(made)


@pytest.fixture
def stream(driver: Driver) -> Any:
    handle = driver.create_stream(0)
    yield handle
    driver.synchronize(handle, 0)
    driver.destroy_stream(handle, 0)


@pytest.fixture
def spin(driver: Driver) -> Any:
    """A kernel that keeps a stream busy until its gate, a word of pinned memory, opens; two minutes at the most."""
    cupy, gate = driver.xp, driver.allocate(4096, Kind.PINNED)
    kernel = cupy.RawKernel(SPIN, "spin")
    word = host_bytes(gate.address, 4096, None)
    word[:] = 0

    def start(handle: int) -> Any:
        with driver.use_stream(handle, 0):
            kernel((1,), (1,), (cupy.uint64(gate.address), cupy.uint64(1 << 37)))

        def open_gate() -> None:
            word[0] = 1

        return open_gate

    yield start
    word[0] = 1
    driver.synchronize()
    driver.free(gate)


needs_managed = pytest.mark.skipif(
    drivers.get_driver().mode is not Mode.MANAGED, reason="this device does not fault and migrate"
)


@needs_managed
@pytest.mark.parametrize("place", [Device(0), HOST])
def test_a_prefetch_to_each_place_is_read_back(driver: Driver, block: Any, stream: int, place: Any) -> None:
    half = block.nbytes // 2
    host_bytes(block.address, block.nbytes, None)[:] = 7
    assert driver.prefetch(block.address + half, half, place, stream) is Outcome.ASKED
    driver.synchronize(stream, 0)
    said = driver.read_range(block.address + half, half, Attribute.LAST_PREFETCH_LOCATION)
    assert said == place
    assert driver.read_range(block.address, half, Attribute.LAST_PREFETCH_LOCATION) is False
    assert (host_bytes(block.address, block.nbytes, None) == 7).all()


@needs_managed
@pytest.mark.parametrize("place", [Device(0), HOST])
def test_every_advice_of_each_place_is_set_read_and_unset(driver: Driver, block: Any, place: Any) -> None:
    whole = (block.address, block.nbytes)
    for advice, on, off in (
        (Advice.PREFERRED_LOCATION, place, False),
        (Advice.ACCESSED_BY, (place,), ()),
        (Advice.READ_MOSTLY, True, False),
    ):
        attribute = Attribute[advice.name]
        assert driver.read_range(*whole, attribute) == off
        assert driver.advise(*whole, advice, place, True) is Outcome.ASKED
        assert driver.read_range(*whole, attribute) == on
        assert driver.advise(*whole, advice, place, False) is Outcome.ASKED
        assert driver.read_range(*whole, attribute) == off


@needs_managed
def test_both_places_at_once_may_be_told_to_access(driver: Driver, block: Any) -> None:
    for place in (Device(0), HOST):
        driver.advise(block.address, block.nbytes, Advice.ACCESSED_BY, place, True)
    assert set(driver.read_range(block.address, block.nbytes, Attribute.ACCESSED_BY)) == {Device(0), HOST}


@needs_managed
def test_hints_on_an_array_that_cupy_allocated(driver: Driver, stream: int) -> None:
    other = driver.xp.cuda.malloc_managed(1 << 20)
    found = driver.find(other.ptr + 5)
    assert found is not None and (found.address, found.nbytes, found.kind) == (other.ptr, 1 << 20, Kind.MANAGED)
    assert driver.prefetch(other.ptr, 1 << 20, HOST, stream) is Outcome.ASKED
    driver.synchronize(stream, 0)


def test_memory_of_others_is_known_for_what_it_is(driver: Driver) -> None:
    cupy = driver.xp
    plain, pinned = cupy.cuda.alloc(4096), cupy.cuda.alloc_pinned_memory(4096)
    found = driver.find(plain.ptr)
    assert found is not None and (found.kind, found.place) == (Kind.DEVICE, Device(0))
    found = driver.find(pinned.ptr)
    assert found is not None and (found.kind, found.place) == (Kind.PINNED, HOST)


def test_serials_tell_apart_what_others_allocated(driver: Driver) -> None:
    cupy = driver.xp
    serials = set()
    for _ in range(3):
        memory = cupy.cuda.Memory(1 << 20)
        found = driver.find(memory.ptr)
        assert found is not None
        serials.add(found.serial)
        del memory
    assert len(serials) == 3 and all(serial < 0 for serial in serials)


def test_a_stream_waits_for_an_event_of_a_busy_one_and_the_host_does_not(
    driver: Driver, spin: Any, stream: int
) -> None:
    other = driver.create_stream(0)
    source, target = driver.allocate(4096, Kind.DEVICE), driver.allocate(4096, Kind.PINNED)
    driver.fill(source.address, 5, 4096, other)
    driver.synchronize(other, 0)
    view = host_bytes(target.address, 4096, None)
    view[:] = 0
    open_gate = spin(stream)
    driver.wait(other, driver.record(stream, 0))
    driver.copy(target.address, source.address, 4096, other)
    done = driver.record(other, 0)
    assert not done.done() and not view.any()
    open_gate()
    done.wait()
    assert done.done() and (view == 5).all()
    driver.destroy_stream(other, 0)
    driver.free(source)
    driver.free(target)


def test_a_busy_stream_of_ours_does_not_hold_the_default_stream(driver: Driver, spin: Any, stream: int) -> None:
    target = driver.allocate(4096, Kind.DEVICE)
    open_gate = spin(stream)
    held = driver.record(stream, 0)
    driver.fill(target.address, 1, 4096, 0)
    driver.synchronize(0, 0)
    assert not held.done()
    open_gate()
    held.wait()
    driver.free(target)


def test_an_array_over_managed_memory_computes(driver: Driver, block: Any) -> None:
    array = driver.as_array(block.address, block.nbytes, block, 0).view("f4")
    array[:] = 3
    assert float((array * 2).sum()) == 6 * array.size


PTDS = """
import threading
from umarray.drivers import get_driver
from umarray.drivers.base import Kind
driver = get_driver()
block = driver.allocate(4096, Kind.DEVICE)
def work():
    stream = driver.current_stream()
    assert stream == 2, stream
    driver.fill(block.address, 1, 4096, stream)
    event = driver.record(stream, 0)
    event.wait()
    assert event.done()
    with driver.use_stream(stream, 0):
        driver.xp.arange(10).sum()
    driver.synchronize(stream, 0)
    done.append(1)
done = []
threads = [threading.Thread(target=work) for _ in range(3)]
[thread.start() for thread in threads]
[thread.join(60) for thread in threads]
work()
assert len(done) == 4
driver.free(block)
"""


def test_each_thread_s_own_default_stream(repository: Path) -> None:
    run_alone(PTDS, repository, CUPY_CUDA_PER_THREAD_DEFAULT_STREAM="1")
