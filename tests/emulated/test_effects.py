"""What umarray's hints do to pages, by the emulated device's own counters: exact numbers of faults and of bytes.

An effect is shown beside what happens without it, so that a hint that does nothing is seen. Every array here has pages
of its own; results go to plain memory, which never migrates.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import umarray as um
from umarray import drivers, hipemu
from umarray.drivers.base import Advice, Driver, Mode, host_bytes
from umarray.places import HOST, Device

PAGE = hipemu.page_bytes()
N = 24  # pages of an array: too few for a host view to prefetch them by itself
MANY = 80  # and enough


@pytest.fixture
def cupy(migrating: Any) -> Any:
    return migrating


@pytest.fixture
def page_table(driver: Driver, pool: Any) -> None:
    """Skips where the host's page table does not tell where pages are, and umarray knows only what it was told."""
    x = um.empty(PAGE, "u1", page_aligned=True, pool=pool)
    if driver.host_share(x.data.ptr, PAGE) is None:
        pytest.skip("the page table does not tell on this machine")


@pytest.fixture
def pool(driver: Driver) -> Iterator[Any]:
    with um.pool("8MiB") as made:
        yield made
    driver.synchronize()


def pages(pool: Any, count: int = N, value: int = 1) -> Any:
    """An array of whole pages that live on the host."""
    x = um.empty(count * PAGE, "u1", page_aligned=True, pool=pool)
    on_host(x)[...] = value
    assert hipemu.where(x.data.ptr, x.nbytes) == [-1] * count
    return x


class Reader:
    """Reads arrays on one device, writes nothing that could migrate, and waits: advice is not ordered with streams."""

    def __init__(self, driver: Driver, pool: Any, count: int = N, device: int = 0) -> None:
        self.driver, self.xp, self.device = driver, driver.xp, device
        with self.xp.cuda.Device(device), pool.plain():
            self.out = self.xp.empty(count * PAGE, "u1")
            self.here: Any = None

    def __call__(self, x: Any, expected: int | None = None) -> None:
        view = self.driver.as_array(x.data.ptr, x.nbytes, x, self.device)  # an array of this device, the same memory
        with self.xp.cuda.Device(self.device):
            self.xp.add(view, 1, out=self.out[: x.size])
            self.driver.synchronize(device=self.device)
            if expected is not None:
                assert (self.out[: x.size].get() == expected + 1).all()


def unadvised(cupy: Any, count: int = N) -> Any:
    """Like `pages`, in an allocation of CuPy's own: an arena of umarray's prefers its device."""
    x = cupy.ndarray(count * PAGE, "u1", cupy.cuda.malloc_managed(count * PAGE))
    on_host(x)[...] = 1
    return x


def where(x: Any) -> set[int]:
    """The places of an array's pages, once everything queued is done."""
    hipemu.read_counters()  # waits for every device
    return set(hipemu.where(x.data.ptr, x.nbytes))


def on_host(x: Any) -> Any:
    """The very memory of an array, past umarray: a touch of it migrates."""
    drivers.get_driver().synchronize()
    return host_bytes(x.data.ptr, x.nbytes, x)


def come_home(x: Any) -> None:
    """Make the host the only place that has an array: it writes, where a move would leave a read-mostly copy behind."""
    on_host(x)[...] += 0
    assert where(x) == {-1}


# Prefetch


def test_without_a_scope_each_page_is_a_fault(cupy: Any, pool: Any) -> None:
    x, y = pages(pool), pages(pool)
    with hipemu.counters() as c:
        cupy.multiply(x, 2, out=y)
    assert (c.device_faults, c.bytes_to_device, c.prefetched_bytes) == (2 * N, 2 * N * PAGE, 0)
    with hipemu.counters() as c:
        cupy.multiply(x, 2, out=y)
    assert (c.device_faults, c.migrated_bytes) == (0, 0)


def test_with_a_scope_the_compute_makes_no_fault(cupy: Any, pool: Any) -> None:
    x, y = pages(pool), pages(pool)
    with hipemu.counters() as c, um.prefetch(x, y):
        cupy.multiply(x, 2, out=y)
    assert (c.device_faults, c.host_faults) == (0, 0)
    assert c.bytes_to_device == c.prefetched_bytes == c.migrated_bytes == 2 * N * PAGE
    assert (y == 2).all()


def test_only_the_pages_of_a_slice_move(cupy: Any, pool: Any) -> None:
    x, y = pages(pool), pages(pool)
    part = slice(3 * PAGE + 5, 7 * PAGE + 5)  # it touches five pages
    with hipemu.counters() as c, um.prefetch(x[part], y[part]):
        cupy.multiply(x[part], 2, out=y[part])
    assert (c.device_faults, c.bytes_to_device) == (0, 2 * 5 * PAGE)
    with hipemu.counters() as c:
        cupy.multiply(x, 2, out=y)
    assert c.device_faults == 2 * (N - 5)


def test_a_prefetch_moves_no_page_that_is_there(cupy: Any, pool: Any) -> None:
    x = pages(pool)
    with um.prefetch(x):
        pass
    with hipemu.counters() as c, um.prefetch(x):
        x += 1
    assert (c.device_faults, c.migrated_bytes) == (0, 0)


def test_after_a_prefetch_back_the_host_makes_no_fault(cupy: Any, pool: Any, driver: Driver) -> None:
    x = pages(pool)
    for back, faults in ((None, N), (HOST, 0)):
        with um.prefetch(x, back=back):
            x += 1
        um.move(x[-1:], to=HOST if back else 0)  # behind the call on exit, which a thread of ours makes
        driver.synchronize()
        with hipemu.counters() as c:
            h = on_host(x)
            h += 1
        assert (c.host_faults, c.device_faults) == (faults, 0)
        assert c.bytes_to_host - c.host.prefetched_bytes == faults * PAGE  # the way back may still be under way
    assert (h == 5).all()


@pytest.mark.parametrize("count", [N, MANY])
@pytest.mark.parametrize("mode", ["r", "w", "r+"])
def test_a_host_view_of_pages_on_the_device_moves_none(
    cupy: Any, pool: Any, page_table: None, count: int, mode: str
) -> None:
    x = pages(pool, count)
    x += 1  # on demand: nobody told umarray
    with hipemu.counters() as c, um.host_view(x, mode) as h:
        assert mode == "w" or (h == 2).all()
        if mode != "r":
            h[...] = 7
    assert (c.host_faults, c.device_faults, c.migrated_bytes, where(x)) == (0, 0, 0, {0})
    with hipemu.counters() as c:
        x += 1
    assert (c.device_faults, c.migrated_bytes) == (0, 0)
    assert (x == (3 if mode == "r" else 8)).all()


def test_a_host_view_of_pages_on_the_host_is_the_very_memory(cupy: Any, pool: Any, page_table: None) -> None:
    x = pages(pool)
    with hipemu.counters() as c, um.host_view(x, "r+") as h:
        assert h.ctypes.data == x.data.ptr
        h += 1
    assert (c.host_faults, c.migrated_bytes, where(x)) == (0, 0, {-1})


def test_a_host_view_of_more_than_can_be_pinned_brings_pages_home_itself(
    cupy: Any, pool: Any, page_table: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = pages(pool, MANY)
    x += 1
    monkeypatch.setattr(sys.modules["umarray.residency.ways"], "MOST_PINNED", 0)
    with hipemu.counters() as c, um.host_view(x, "r+") as h:
        h += 1
    assert (c.host_faults, c.bytes_to_host, c.prefetched_bytes) == (0, MANY * PAGE, MANY * PAGE)


def test_move_brings_pages_and_takes_them_home(cupy: Any, pool: Any, driver: Driver) -> None:
    x = pages(pool)
    for place, number in ((0, 0), (HOST, -1)):
        with hipemu.counters() as c:
            um.move(x, to=place)
            driver.synchronize()
        assert where(x) == {number}
        assert (c.device_faults, c.host_faults, c.migrated_bytes) == (0, 0, N * PAGE)


# Neighbours


def test_arrays_that_share_no_page_never_disturb_each_other(cupy: Any, pool: Any, driver: Driver) -> None:
    first = um.empty(100, "u1", pool=pool)  # small ones before and between, so that nothing is aligned by luck
    x = pages(pool)
    second = um.empty(100, "u1", pool=pool)
    y = pages(pool)
    turns = 4
    with hipemu.counters() as c:
        for turn in range(turns):
            with um.prefetch(x), um.advise(x, read_mostly=bool(turn % 2), preferred_location=0):
                x += 1
            with um.host_view(y, "r+") as h:
                h += 1
    assert (c.device_faults, c.host_faults) == (0, 0)
    assert c.migrated_bytes == N * PAGE  # x went to the device, once
    assert (where(x), where(y)) == ({0}, {-1})
    assert (x == turns + 1).all() and (um.asnumpy(y) == turns + 1).all()
    del first, second


def test_arrays_that_share_a_page_do(cupy: Any, pool: Any, driver: Driver) -> None:
    both = pages(pool, 1)
    x, y = both[: PAGE // 2], both[PAGE // 2 :]
    turns = 4
    with hipemu.counters() as c:
        for _ in range(turns):
            x += 1
            h = on_host(y)
            h += 1
    assert (c.device_faults, c.host_faults) == (turns, turns)


def test_advice_stops_short_of_a_page_that_is_shared(cupy: Any, pool: Any, driver: Driver) -> None:
    both, read = pages(pool), Reader(driver, pool)
    cut = (N // 2) * PAGE + PAGE // 2
    x, y = both[:cut], both[cut:]
    with um.advise(x, read_mostly=True) as scope, hipemu.counters() as c:
        read(both, 1)
    assert scope.tally.bytes_left_out == PAGE // 2
    assert c.duplicated_bytes == (N // 2) * PAGE
    assert where(y) == {0} and where(x[: (N // 2) * PAGE]) == {-1}


# Advice, several devices


def test_a_read_mostly_table_is_copied_once_to_each_device(two: Any, pool: Any, driver: Driver) -> None:
    readers = [Reader(driver, pool, device=number) for number in (0, 1)]

    def take_turns(table: Any, turns: int = 4) -> hipemu.Counters:
        with hipemu.counters() as c:
            for _ in range(turns):
                for read in readers:
                    read(table)
        return c

    plain = take_turns(unadvised(two))
    assert plain.device_faults == 8 * N and plain.bytes_between_devices == 7 * N * PAGE  # it bounces

    preferred = take_turns(pages(pool))  # in an arena: device 1 reads it over the link
    assert preferred.bytes_between_devices == 0 and preferred.by_device[1].mapped_bytes == N * PAGE

    table = pages(pool)
    with um.advise(table, read_mostly=True):
        c = take_turns(table)
        assert [c.by_device[number].faults for number in (0, 1)] == [N, N]
        assert [c.by_device[number].duplicated_bytes for number in (0, 1)] == [N * PAGE, N * PAGE]
        assert (c.migrated_bytes, c.dropped_bytes) == (2 * N * PAGE, 0)
        with hipemu.counters() as c, um.host_view(table) as h:
            assert (h == 1).all()
        assert c.host_faults == 0  # the host kept its own


def test_prefetched_to_each_device_a_read_mostly_table_makes_no_fault(two: Any, pool: Any, driver: Driver) -> None:
    readers, table = [Reader(driver, pool, device=number) for number in (0, 1)], pages(pool)
    with um.advise(table, read_mostly=True), um.prefetch(table, to=0), um.prefetch(table, to=1):
        with hipemu.counters() as c:
            for read in readers:
                read(table, 1)
    assert (c.device_faults, c.migrated_bytes) == (0, 0)


def test_a_write_ends_the_copies_and_is_seen_by_all(two: Any, pool: Any, driver: Driver) -> None:
    readers, table = [Reader(driver, pool, device=number) for number in (0, 1)], pages(pool)
    with um.advise(table, read_mostly=True):
        for read in readers:
            read(table, 1)
        with hipemu.counters() as c, um.host_view(table, "r+") as h:
            h[: 2 * PAGE] = 7
        assert c.dropped_bytes == 2 * 2 * PAGE
        for read in readers:
            read(table[: 2 * PAGE], 7)
            read(table[2 * PAGE :], 1)


def test_accessed_by_makes_a_neighbours_read_free_of_migration(two: Any, pool: Any, driver: Driver) -> None:
    read = Reader(driver, pool, device=1)

    def read_from_device_0(table: Any) -> hipemu.Counters:
        um.move(table, to=0)
        driver.synchronize()
        with hipemu.counters() as c:
            read(table, 1)
        return c

    plain = read_from_device_0(unadvised(two))
    assert (plain.device_faults, plain.bytes_between_devices) == (N, N * PAGE)

    table = unadvised(two)
    with um.advise(table, accessed_by=Device(1)):
        c = read_from_device_0(table)
        assert (c.device_faults, c.migrated_bytes) == (0, 0)
        assert where(table) == {0}
    c = read_from_device_0(table)  # the scope is left
    assert (c.device_faults, c.bytes_between_devices) == (N, N * PAGE)


# Advice, and what is left of it


def test_preferred_on_the_host_pages_stay_and_are_reached_over_the_bus(cupy: Any, pool: Any, driver: Driver) -> None:
    x, read = pages(pool), Reader(driver, pool)
    with um.advise(x, preferred_location=HOST):
        with hipemu.counters() as c:
            read(x, 1)
            read(x, 1)
        assert (c.device_faults, c.migrated_bytes, c.mapped_bytes) == (N, 0, N * PAGE)
        with hipemu.counters() as c, um.host_view(x, "r+") as h:
            h += 1
        assert c.host_faults == 0
    assert where(x) == {-1}


def test_leaving_an_advice_scope_ends_its_effect(cupy: Any, pool: Any, driver: Driver) -> None:
    x, read = pages(pool), Reader(driver, pool)
    with um.advise(x, read_mostly=True):
        read(x)
    assert where(x) == {-1}
    with hipemu.counters() as c:
        read(x)
    assert (c.device_faults, c.duplicated_bytes, c.migrated_bytes) == (N, 0, N * PAGE)
    assert where(x) == {0}


def test_an_inner_scope_gives_back_what_the_outer_one_said(cupy: Any, pool: Any, driver: Driver) -> None:
    x, read = pages(pool), Reader(driver, pool)
    with um.advise(x, read_mostly=True):
        with um.advise(x, read_mostly=False):
            read(x)
            assert where(x) == {0}
        come_home(x)
        with hipemu.counters() as c:
            read(x)
        assert (c.duplicated_bytes, where(x)) == (N * PAGE, {-1})


@pytest.mark.parametrize("raises", [False, True])
def test_leaving_an_advice_scope_restores_what_somebody_else_had_set(
    cupy: Any, pool: Any, driver: Driver, raises: bool
) -> None:
    x, read = pages(pool), Reader(driver, pool)
    driver.advise(x.data.ptr, x.nbytes, Advice.READ_MOSTLY, Device(0), True)  # past umarray's scopes
    try:
        with um.advise(x, read_mostly=False, preferred_location=0) as scope:
            read(x)
            assert where(x) == {0}
            if raises:
                raise ZeroDivisionError
    except ZeroDivisionError:
        assert raises
    assert scope.tally.not_restored == 0
    come_home(x)
    with hipemu.counters() as c:
        read(x)
    assert (c.duplicated_bytes, where(x)) == (N * PAGE, {-1})
    driver.advise(x.data.ptr, x.nbytes, Advice.READ_MOSTLY, Device(0), False)


# Epochs and pipelines


def test_epochs_reuse_the_same_pages(cupy: Any, pool: Any, driver: Driver) -> None:
    def work() -> None:
        for size in (1000, 70_000, 300_000, 5):
            x = cupy.ones(size, "f4")
            x = x * 2 + x
            del x

    def epoch() -> None:
        with pool.epoch():
            work()

    with hipemu.counters() as c, cupy.cuda.using_allocator(cupy.cuda.malloc_managed):  # CuPy alone, without a pool
        work()
    assert c.new_pages > 0

    for _ in range(3):
        epoch()
    calls = hipemu.calls("hipMalloc", "hipMallocManaged")
    with hipemu.counters() as c:
        for _ in range(5):
            epoch()
    assert (c.new_pages, c.device_faults, c.host_faults, c.migrated_bytes) == (0, 0, 0, 0)
    assert hipemu.calls("hipMalloc", "hipMallocManaged") == calls


@pytest.mark.parametrize("slots", [2, 3])
def test_a_managed_pipeline_makes_no_fault_in_steady_state(cupy: Any, pool: Any, driver: Driver, slots: int) -> None:
    steps, count = 8, 5

    def prepare(item: int, slot: Any) -> None:
        slot["x"][...] = item

    def compute(batch: Any) -> Any:
        return batch["x"].sum(dtype="u8")

    like = {"x": um.Spec((count * PAGE,), "u1")}
    expected = [item * count * PAGE for item in range(steps)]
    pipeline: Any
    settings = {"slots": slots, "workers": 1, "transport": "managed"}  # groups would reach pages never touched before
    with um.Pipeline(range(steps), prepare, compute, like=like, **settings) as pipeline:
        assert [int(result) for result in pipeline] == expected
        driver.synchronize()
        with pool.plain(), hipemu.counters() as c:
            results = [int(result) for result in pipeline]
        assert results == expected
    assert (c.device_faults, c.host_faults, c.new_pages) == (0, 0, 0)
    assert c.bytes_to_device == c.bytes_to_host == steps * count * PAGE
    assert c.prefetched_bytes == c.migrated_bytes


# Without page faults


def the_program(xp: Any, driver: Driver) -> float:
    """A little of everything."""
    with um.pool("8MiB") as pool:
        table = um.asarray(np.arange(N * PAGE // 4, dtype=np.float32) % 97)
        total = um.zeros((), np.float64)
        for number in range(3):
            with pool.epoch(), um.prefetch(table, total, back=HOST), um.advise(table, read_mostly=True):
                total += (table * np.float32(number)).sum(dtype=np.float64)
            with um.host_view(table, "r+") as h:
                h += 1
        um.move(table, to=0)

        def prepare(item: int, slot: Any) -> None:
            slot["x"][...] = item

        with um.Pipeline([1, 2, 3], prepare, lambda b: b["x"].sum(), like={"x": um.Spec((PAGE,), "f4")}) as pipeline:
            total += sum(float(result) for result in pipeline)
        value = float(total)
        del table, total
    return value


def test_a_mode_changes_what_moves_and_no_number(driver: Driver) -> None:
    table = np.arange(N * PAGE // 4, dtype=np.float32) % 97
    expected = sum(float(((table + number) * np.float32(number)).sum(dtype=np.float64)) for number in range(3))
    expected += 6.0 * PAGE
    managed = ("hipMallocManaged", "hipMemPrefetchAsync", "hipMemAdvise")
    calls = hipemu.calls(*managed)
    with hipemu.counters() as c:
        assert the_program(driver.xp, driver) == expected
    if driver.mode is Mode.EXPLICIT:
        assert (c.device_faults, c.host_faults, c.migrated_bytes, c.new_pages) == (0, 0, 0, 0)
        assert hipemu.calls(*managed) == calls
    elif not driver.traits(0).unified:
        assert c.migrated_bytes > 0
