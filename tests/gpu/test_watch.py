"""Watching on a real card: what CUPTI tells, charged to arrays; and what watching costs."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import pytest

import umarray as um
from tests.gpu.arrays import SIZE, array, host_write
from umarray import drivers
from umarray.drivers.base import Driver, Mode
from umarray.observe.trace import read_trace
from umarray.places import HOST

pytestmark = pytest.mark.skipif(
    drivers.get_driver().mode is not Mode.MANAGED or drivers.get_driver().name != "cuda",
    reason="needs a CUDA device that faults and migrates",
)


@pytest.fixture(scope="module", autouse=True)
def _counters(_guarded: None) -> None:
    pytest.importorskip("cupti")
    with um.watch():  # switches the counters on before the arrays are made
        pass


@pytest.fixture
def x(driver: Driver) -> Any:
    x = array(driver)
    x += 1  # compiles the kernel that the tests watch
    x.sum()
    driver.synchronize()
    host_write(x, 0)
    return x


def test_on_demand_all_of_it_moves_by_faults(driver: Driver, x: Any) -> None:
    with um.watch(sync=True) as w:
        x += 1
    counts = w.report.counts
    assert counts.bytes_to_device == SIZE and counts.bytes_to_host == 0
    assert counts.device_faults and counts.host_faults == 0 and counts.prefetched_bytes == 0


def test_after_a_prefetch_nothing_faults(driver: Driver, x: Any) -> None:
    with um.watch(sync=True) as w, um.prefetch(x):
        x += 1
    counts = w.report.counts
    assert (counts.bytes_to_device, counts.prefetched_bytes, counts.device_faults) == (SIZE, SIZE, 0)
    assert w.report.requests.prefetch_bytes == SIZE


def test_what_is_there_already_does_not_move(driver: Driver, x: Any) -> None:
    x += 1
    driver.synchronize()
    with um.watch(sync=True) as w:
        x += 1
    assert w.report.faults == 0 and w.report.moved_bytes == 0


def test_the_host_takes_it_back(driver: Driver, x: Any) -> None:
    with um.prefetch(x):
        x += 1
    driver.synchronize()
    with um.watch(sync=True) as w:
        host_write(x, 1)
    counts = w.report.counts
    assert counts.host_faults and counts.bytes_to_host == SIZE


def test_a_transfer_is_charged_to_its_array(driver: Driver, x: Any) -> None:
    y = array(driver, SIZE // 16)
    y += 1
    driver.synchronize()
    host_write(y, 0)
    with um.watch(sync=True) as w, um.prefetch(y):
        x += 1
        y += 1
    moved = {one.address: one for one in w.report.arrays}
    assert moved[x.data.ptr].bytes_to_device == SIZE and moved[x.data.ptr].device_faults
    assert moved[y.data.ptr].bytes_to_device == moved[y.data.ptr].prefetched_bytes == y.nbytes
    assert moved[y.data.ptr].device_faults == 0


def test_without_sync_the_interval_still_ends_where_it_ended(driver: Driver, x: Any) -> None:
    with um.watch() as w:
        pass
    x += 1
    driver.synchronize()
    assert w.report.moved_bytes == 0


def test_watches_nest(driver: Driver, x: Any) -> None:
    with um.watch(sync=True) as outer:
        x += 1
        with um.watch(sync=True) as inner, um.prefetch(x, to=HOST):
            pass
    assert inner.report.counts.bytes_to_host == SIZE and inner.report.counts.bytes_to_device == 0
    assert outer.report.counts.bytes_to_host == SIZE and outer.report.counts.bytes_to_device == SIZE


def test_times_are_those_of_the_interval(driver: Driver, x: Any) -> None:
    before = perf_counter()
    with um.watch(sync=True) as w:
        x += 1
    after = perf_counter()
    effects = [one for one in w.recording.records if type(one.record).__name__ in ("Migrated", "Faulted")]
    assert effects and all(before - 0.001 <= one.at <= after + 0.001 for one in effects)


def test_a_trace_holds_it_too(driver: Driver, x: Any, tmp_path: Any) -> None:
    with um.trace(tmp_path / "t.jsonl"):
        x += 1
        driver.synchronize()
    records = [one.record for one in read_trace(tmp_path / "t.jsonl").records]
    assert sum(one.nbytes for one in records if type(one).__name__ == "Migrated") == SIZE


def test_watching_costs_less_than_a_percent_of_a_step(driver: Driver) -> None:
    """A step of about 10 ms that makes ten arrays: the median of interleaved rounds, watched and not."""
    cupy: Any = driver.xp
    with um.pool("256MiB"):
        weights = cupy.ones((4096, 4096), "f4")

        def step() -> Any:
            y = weights @ weights
            y = y @ weights
            for _ in range(8):
                y = y[:1024, :1024] * 2
            return y

        def seconds(count: int = 10) -> float:
            driver.synchronize()
            start = perf_counter()
            for _ in range(count):
                step()
            driver.synchronize()
            return (perf_counter() - start) / count

        seconds()
        plain, watched = [], []
        for _ in range(9):
            plain.append(seconds())
            with um.watch():
                watched.append(seconds())
    bare, seen = sorted(plain)[4], sorted(watched)[4]
    each = []
    for _ in range(100):
        start = perf_counter()
        with um.watch():
            pass
        each.append(perf_counter() - start)
    print(f"a watch by itself {sorted(each)[50] * 1e6:.0f} us")
    print(f"a step {bare * 1e3:.3f} ms, watched {seen * 1e3:.3f} ms: {seen / bare - 1:+.2%}")
    assert seen < bare * 1.01
