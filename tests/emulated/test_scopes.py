"""prefetch, advise and move on CuPy arrays of the real ROCm wheel, read back from the emulated runtime."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import umarray as um
from umarray import drivers, hipemu
from umarray.drivers.base import Attribute, Driver, Mode
from umarray.places import HOST, Device

PAGES = 64 * 4096


@pytest.fixture
def driver() -> Driver:
    return drivers.get_driver()


@pytest.fixture
def managed(driver: Driver) -> Iterator[Any]:
    """CuPy, with arrays in managed memory."""
    if driver.mode is not Mode.MANAGED:
        pytest.skip("this machine has no managed mode")
    with driver.xp.cuda.using_allocator(driver.xp.cuda.malloc_managed):
        yield driver.xp
    driver.synchronize()


def read(driver: Driver, x: Any, attribute: Attribute) -> Any:
    return driver.read_range(x.data.ptr, x.nbytes, attribute)


def test_advice_is_in_the_runtime_inside_and_not_after(driver: Driver, managed: Any) -> None:
    x = managed.zeros(PAGES, "u1")
    if not driver.traits(0).readable_ranges:
        pytest.skip("ranges cannot be read here")
    with um.advise(x, read_mostly=True, preferred_location=HOST, accessed_by=Device(0)) as scope:
        assert read(driver, x, Attribute.READ_MOSTLY) is True
        assert read(driver, x, Attribute.PREFERRED_LOCATION) == HOST
        assert read(driver, x, Attribute.ACCESSED_BY) == (Device(0),)
    assert read(driver, x, Attribute.READ_MOSTLY) is False
    assert read(driver, x, Attribute.PREFERRED_LOCATION) is False
    assert read(driver, x, Attribute.ACCESSED_BY) == ()
    assert scope.tally.asked == 3 and scope.tally.not_restored == 0


def test_prefetch_and_back_are_calls_of_hip(driver: Driver, managed: Any) -> None:
    with um.pool("4MiB"):
        x = um.zeros(PAGES, "u1")
    calls = hipemu.calls("hipMemPrefetchAsync")
    with um.prefetch(x[: PAGES // 2], {"rest": x[PAGES // 2 :]}, back=HOST) as scope:
        if driver.traits(0).prefetch:
            assert hipemu.calls("hipMemPrefetchAsync") == calls + 1  # neighbours are one call
            driver.synchronize()
            assert read(driver, x, Attribute.LAST_PREFETCH_LOCATION) == Device(0)
            assert um.residency(x).last_asked == Device(0)
        x += 1
    um.move(x[-1:], to=HOST)  # behind the call on exit, which a thread of ours makes where prefetch keeps its caller
    driver.synchronize()
    if driver.traits(0).prefetch:
        assert read(driver, x, Attribute.LAST_PREFETCH_LOCATION) == HOST
    else:
        assert scope.tally.asked == 0 and scope.tally.unsupported == 2
    assert int(x.sum()) == PAGES


@pytest.mark.parametrize("view", ["reversed", "transposed", "sliced", "empty"])
def test_views_of_cupy(driver: Driver, managed: Any, view: str) -> None:
    x = managed.zeros((64, 4096), "u1")
    views = {"reversed": x[::-1], "transposed": x.T, "sliced": x[3:9:2], "empty": x[:, 7:7]}
    found = um.move(views[view], to=0)
    pages = {"reversed": 64, "transposed": 64, "sliced": 5, "empty": 0}[view]
    if driver.traits(0).prefetch:
        assert (found.bytes, found.calls) == (pages * 4096, bool(pages))


def test_plain_device_memory_is_skipped(driver: Driver) -> None:
    x = driver.xp.zeros(PAGES, "u1")
    calls = hipemu.calls("hipMemPrefetchAsync", "hipMemAdvise")
    with um.prefetch(x) as one, um.advise(x, read_mostly=True) as two:
        pass
    assert (one.tally.skipped, two.tally.skipped) == (1, 1)
    assert hipemu.calls("hipMemPrefetchAsync", "hipMemAdvise") == calls


def test_streams_of_cupy_are_taken(driver: Driver, managed: Any) -> None:
    with managed.cuda.Stream(non_blocking=True) as stream:
        x = managed.zeros(PAGES, "u1")
        x += 3
        with um.prefetch(x, stream=stream), um.prefetch(x, to=HOST, stream=stream.ptr, wait=False):
            x += 4
        stream.synchronize()
    assert int(x.max()) == 7


def test_the_pools_arrays(driver: Driver, managed: Any) -> None:
    with um.pool("4MiB"):
        x = um.zeros(PAGES, "u1")
        with um.prefetch(x), um.advise(x, preferred_location=0) as scope:
            x += 1
        assert int(x.sum()) == PAGES
        assert scope.tally.asked + scope.tally.unsupported == 1
    del x
