"""Scopes on a real card: advice read back from the runtime, migrations counted by CUPTI."""

from __future__ import annotations

import importlib.util
import sys
from typing import Any

import numpy as np
import pytest

import umarray as um
from tests.gpu import migrations
from tests.gpu.arrays import SIZE, array, busy, host_write
from umarray import drivers
from umarray.drivers.base import Advice, Attribute, Driver, Kind, Mode, host_bytes
from umarray.places import HOST, Device

pytestmark = pytest.mark.skipif(
    drivers.get_driver().mode is not Mode.MANAGED, reason="this device does not fault and migrate"
)


@pytest.fixture(scope="module", autouse=True)
def _counters(_guarded: None) -> None:
    """Switches CUPTI's counters on before the arrays are made that they should tell of."""
    if importlib.util.find_spec("cupti"):
        migrations.start()


@pytest.fixture
def counted() -> Any:
    """Counts migrations around a block; skips where CUPTI is not there."""
    pytest.importorskip("cupti")
    return migrations.counted


@pytest.fixture
def x(driver: Driver) -> Any:
    x = array(driver)
    x += 1  # compiles the kernel that the tests count around
    x.sum()
    driver.synchronize()
    host_write(x, 0)
    return x


def read(driver: Driver, x: Any, attribute: Attribute) -> Any:
    return driver.read_range(x.data.ptr, x.nbytes, attribute)


def standing(driver: Driver, x: Any) -> tuple[Any, ...]:
    return tuple(
        read(driver, x, one) for one in (Attribute.READ_MOSTLY, Attribute.PREFERRED_LOCATION, Attribute.ACCESSED_BY)
    )


# Advice


@pytest.mark.parametrize("place", [HOST, Device(0)])
def test_advice_is_in_the_runtime_inside_and_not_after(driver: Driver, x: Any, place: Any) -> None:
    with um.advise(x, read_mostly=True, preferred_location=place, accessed_by=[HOST, Device(0)]) as scope:
        read_mostly, preferred, accessed = standing(driver, x)
        assert (read_mostly, preferred, set(accessed)) == (True, place, {HOST, Device(0)})
    assert standing(driver, x) == (False, False, ())
    assert (scope.tally.asked, scope.tally.not_restored) == (4, 0)


def test_advice_of_somebody_else_comes_back(driver: Driver, x: Any) -> None:
    driver.advise(x.data.ptr, x.nbytes, Advice.PREFERRED_LOCATION, HOST, True)
    driver.advise(x.data.ptr, x.nbytes, Advice.READ_MOSTLY, Device(0), True)
    with um.advise(x, preferred_location=0, read_mostly=False, accessed_by=0):
        assert standing(driver, x) == (False, Device(0), (Device(0),))
    assert standing(driver, x) == (True, HOST, ())


def test_scopes_end_in_any_order_and_after_an_exception(driver: Driver, x: Any) -> None:
    one, two = um.advise(x, preferred_location=HOST), um.advise(x[: len(x) // 2], preferred_location=0)
    one.__enter__()
    two.__enter__()
    one.__exit__(None, None, None)
    assert read(driver, x[: len(x) // 2], Attribute.PREFERRED_LOCATION) == Device(0)
    assert read(driver, x[len(x) // 2 :], Attribute.PREFERRED_LOCATION) is False
    two.__exit__(None, None, None)
    with pytest.raises(KeyError), um.advise(x, preferred_location=0):
        raise KeyError
    assert standing(driver, x) == (False, False, ())


def test_a_neighbours_pages_are_not_advised(driver: Driver, x: Any) -> None:
    page = driver.page_size
    with um.advise(x[10 : 5 * page // 4 - 7], read_mostly=True) as scope:
        pages = [driver.read_range(x.data.ptr + n * page, page, Attribute.READ_MOSTLY) for n in range(6)]
    assert pages == [False, True, True, True, False, False]
    assert scope.tally.bytes_left_out == page - 40 + page - 28


def test_a_write_in_a_read_mostly_scope_is_seen(driver: Driver, x: Any) -> None:
    with um.prefetch(x), um.advise(x, read_mostly=True):
        x += 1
        host_view = um.host_view(x[:1000])
        with host_view as h:
            assert (h == 1).all()
        x += 1
    with um.host_view(x) as h:
        assert (h == 2).all()


# Migrations


def test_without_a_scope_the_kernel_faults(driver: Driver, x: Any, counted: Any) -> None:
    with counted(driver) as found:
        x += 1
    assert found.to_device == SIZE and found.gpu_faults > 0, found


def test_a_prefetch_scope_leaves_its_kernel_without_a_fault_or_a_transfer(driver: Driver, x: Any, counted: Any) -> None:
    with um.prefetch(x, back=HOST) as scope:
        driver.synchronize()
        with counted(driver) as kernel:
            x += 1
    assert kernel.nothing, kernel
    assert scope.tally.calls == 2 and scope.tally.asked == 2
    driver.synchronize()
    assert read(driver, x, Attribute.LAST_PREFETCH_LOCATION) == HOST


def test_the_kernel_after_entry_needs_no_other_wait(driver: Driver, x: Any, counted: Any) -> None:
    from tests.gpu.migrations import PREFETCH

    with counted(driver) as found:
        with um.prefetch(x):
            x += 1
    assert found.to_device == SIZE and found.gpu_faults == 0, found
    assert found.causes["to device", PREFETCH] == SIZE, found.causes


@pytest.mark.parametrize("mode", ["r", "w", "r+"])
def test_a_host_view_leaves_pages_on_the_device(driver: Driver, x: Any, counted: Any, mode: str) -> None:
    x += 1
    driver.synchronize()
    with counted(driver) as found:
        with um.host_view(x, mode) as h:
            assert mode == "w" or (h == 1).all()
            if mode != "r":
                h[...] = 5
        x += 1
    assert found.to_host == 0 and found.gpu_faults == 0, found
    assert float(x[0]) == float(x[-1]) == (2 if mode == "r" else 6)


def test_a_host_view_too_large_to_be_pinned_brings_its_pages_home_by_a_prefetch(
    driver: Driver, x: Any, counted: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.gpu.migrations import PREFETCH

    x += 1
    monkeypatch.setattr(sys.modules["umarray.residency.ways"], "MOST_PINNED", 0)
    with counted(driver) as found:
        with um.host_view(x) as h:
            assert (h == 1).all()
    assert found.to_host == found.causes["to host", PREFETCH] == SIZE, found


def test_only_the_slice_moves(driver: Driver, x: Any, counted: Any) -> None:
    with counted(driver) as found:
        um.move(x[: len(x) // 4], to=0)
    assert found.to_device == SIZE // 4 and found.gpu_faults == 0, found


def test_pages_preferred_on_the_host_are_read_over_the_bus(driver: Driver, x: Any, counted: Any) -> None:
    with um.advise(x, preferred_location=HOST, accessed_by=0):
        with counted(driver) as found:
            x.sum()
    assert found.to_device == 0 and found.gpu_faults == 0, found


def test_read_mostly_leaves_a_copy_at_home(driver: Driver, x: Any, counted: Any) -> None:
    with um.advise(x, read_mostly=True), um.prefetch(x):
        x.sum()
        driver.synchronize()
        with counted(driver) as found:
            assert int(host_bytes(x.data.ptr, x.nbytes, x).sum()) == 0
    assert found.to_host == 0, found


# Order


def test_the_host_is_not_kept_and_the_order_is_right(driver: Driver, x: Any) -> None:
    with busy(driver) as let_go:
        x += 1
        with um.prefetch(x, to=HOST), um.prefetch(x, back=HOST):
            x += 1
        ready = driver.record(driver.current_stream(), 0)
        assert not ready.done()
        let_go()
        with um.host_view(x) as h:
            assert (h == 2).all()


def test_streams_of_cupy(driver: Driver, x: Any) -> None:
    cupy = driver.xp
    with cupy.cuda.Stream(non_blocking=True) as stream, busy(driver, stream.ptr) as let_go:
        x += 1
        with um.prefetch(x, stream=stream), um.prefetch(x, to=HOST, stream=stream.ptr, wait=False):
            x += 1
        assert not driver.record(stream.ptr, 0).done()
        let_go()
        stream.synchronize()
    assert (um.asnumpy(x[:100]) == 2).all()


# Other memory, other modes of use


def test_what_no_hint_can_act_on_is_skipped(driver: Driver) -> None:
    import cupyx

    others = [array(driver, 1000, kind=Kind.DEVICE), cupyx.empty_pinned(1000), np.ones(1000)]
    with um.prefetch(others) as one, um.advise({"a": others}, read_mostly=True) as two:
        pass
    assert (one.tally.skipped, two.tally.skipped, one.tally.calls, two.tally.calls) == (3, 3, 0, 0)


def test_managed_memory_of_cupys_own_allocator(driver: Driver) -> None:
    from benchmarks import guard

    cupy = driver.xp
    with guard.managed(8 << 20, driver), cupy.cuda.using_allocator(cupy.cuda.malloc_managed):
        x = cupy.zeros(1 << 20, "f4")
        with um.prefetch(x[:1000], x[1000:]), um.advise(x, preferred_location=HOST) as scope:
            assert read(driver, x, Attribute.LAST_PREFETCH_LOCATION) == Device(0)
            assert read(driver, x, Attribute.PREFERRED_LOCATION) == HOST
        assert scope.tally.asked == 1 and um.residency(x).last_asked == Device(0)
        del x


@pytest.mark.parametrize("view", [lambda x: x[::-1], lambda x: x.reshape(64, -1).T, lambda x: x[:0], lambda x: x[5:]])
def test_views(driver: Driver, x: Any, view: Any) -> None:
    assert um.move(view(x)).calls == bool(view(x).size)
    with um.advise(view(x), read_mostly=True), um.prefetch(view(x)):
        pass
    assert standing(driver, x) == (False, False, ())


def test_the_record_says_what_was_asked_and_by_whom(driver: Driver, x: Any) -> None:
    um.move(x, to=0)
    found = um.residency(x)
    assert (found.last_asked, found.evidence) == (Device(0), "runtime")
    host_write(x, 1)  # the pages are home again, and nothing claims otherwise
    assert um.residency(x).last_asked == Device(0) and "asked" in found.source
