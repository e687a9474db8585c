"""What access, role and host views do to pages, by the emulated device's own counters, beside what happens without.

On machines that fault and do not, with one memory for both and with two devices; every array has pages of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import umarray as um
from umarray import drivers, hipemu
from umarray.drivers.base import Attribute, Driver, Mode, host_bytes
from umarray.drivers.host import HostDriver
from umarray.places import Device

PAGE = hipemu.page_bytes()
N = 64  # pages of an array: enough for a prefetch to pay by the stated defaults


@pytest.fixture
def pool(driver: Driver) -> Iterator[Any]:
    with um.pool("8MiB", oversubscribe=4.0 if driver.mode is Mode.MANAGED else 1.0) as made:
        yield made
    driver.synchronize()


@pytest.fixture
def cupy(migrating: Any, driver: Driver, pool: Any) -> Any:
    """CuPy on a machine whose pages migrate, and on which the page table tells where they are."""
    x = um.empty(PAGE, "u1", page_aligned=True, pool=pool)
    if driver.host_share(x.data.ptr, PAGE) is None:
        pytest.skip("the page table does not tell on this machine")
    return migrating


def on_host(x: Any) -> Any:
    """The very memory of an array, past umarray: a touch of it migrates."""
    drivers.get_driver().synchronize()
    return host_bytes(x.data.ptr, x.nbytes, x)


def pages(pool: Any, count: int = N, value: int = 1) -> Any:
    """An array of whole pages that live on the host."""
    x = um.empty(count * PAGE, "u1", page_aligned=True, pool=pool)
    on_host(x)[...] = value
    assert where(x) == {-1}
    return x


def where(x: Any) -> set[int]:
    hipemu.read_counters()  # waits for every device
    return set(hipemu.where(x.data.ptr, x.nbytes))


# access


def test_without_it_each_page_is_a_fault_and_with_it_none_is(cupy: Any, pool: Any) -> None:
    x, y = pages(pool), pages(pool)
    with hipemu.counters() as plain:
        cupy.multiply(x, 2, out=y)
    assert (plain.device_faults, plain.prefetched_bytes) == (2 * N, 0)
    x, y = pages(pool), pages(pool)
    with hipemu.counters() as c, um.access(reads=[x], updates=[y]):
        cupy.multiply(x, 2, out=y)
    assert (c.device_faults, c.host_faults) == (0, 0)
    assert c.bytes_to_device == c.prefetched_bytes == c.migrated_bytes == 2 * N * PAGE
    assert c.modelled_seconds < plain.modelled_seconds and (y == 2).all()


def test_what_is_there_is_not_asked_for_again(cupy: Any, pool: Any) -> None:
    x, y = pages(pool), pages(pool)
    with um.access(reads=[x], writes=[y]):
        cupy.multiply(x, 2, out=y)
    calls = hipemu.calls("hipMemPrefetchAsync", "hipMemAdvise")
    with hipemu.counters() as c:
        for _ in range(3):
            with um.access(reads=[x], writes=[y]) as plan:
                cupy.multiply(x, 2, out=y)
    assert (c.device_faults, c.migrated_bytes) == (0, 0)
    assert hipemu.calls("hipMemPrefetchAsync", "hipMemAdvise") == calls and "nothing" in str(plan)


def test_what_a_kernel_brought_on_demand_is_known_to_be_there(cupy: Any, pool: Any, driver: Driver) -> None:
    if driver.device_count() > 1:
        pytest.skip("among two devices the page table does not say which")
    x = pages(pool)
    x += 1
    driver.synchronize()
    calls = hipemu.calls("hipMemPrefetchAsync")
    with um.access(updates=[x]):
        x += 1
    assert hipemu.calls("hipMemPrefetchAsync") == calls


def test_pages_that_the_host_took_back_come_again(cupy: Any, pool: Any) -> None:
    x = pages(pool)
    with um.access(updates=[x]):
        x += 1
    on_host(x)[: 40 * PAGE] += 1  # past umarray
    with hipemu.counters() as c, um.access(updates=[x]):
        x += 1
    assert (c.device_faults, c.prefetched_bytes) == (0, 40 * PAGE)


def test_one_page_is_left_to_its_fault(cupy: Any, pool: Any) -> None:
    x = pages(pool, 1)
    with hipemu.counters() as c, um.access(updates=[x]) as plan:
        x += 1
    assert (c.device_faults, c.prefetched_bytes) == (1, 0) and "on demand" in str(plan)


def test_fresh_pages_are_made_on_the_device_without_a_fault_or_a_byte(cupy: Any, pool: Any) -> None:
    y = um.empty(N * PAGE, "u1", page_aligned=True, pool=pool)
    with hipemu.counters() as c, um.access(writes=[y]):
        y[...] = 3
    assert (c.device_faults, c.migrated_bytes, c.new_pages, where(y)) == (0, 0, N, {0})


def test_only_the_pages_named_move(cupy: Any, pool: Any) -> None:
    x = pages(pool)
    part = slice(3 * PAGE + 5, 43 * PAGE + 5)  # it touches 41 pages
    with hipemu.counters() as c, um.access(updates=[x[part]]):
        x[part] += 1
    assert (c.device_faults, c.bytes_to_device) == (0, 41 * PAGE)


def test_a_table_that_does_not_fit_is_read_over_the_bus_and_nothing_is_evicted(
    cupy: Any, driver: Driver, pool: Any
) -> None:
    total = driver.traits(0).total_bytes
    if total > 64 << 20:
        pytest.skip("this machine's devices are large: filling one would take long")
    x = um.empty(total + 64 * PAGE, "u1", page_aligned=True, pool=pool)
    on_host(x)[...] = 1
    with hipemu.counters() as c, um.access(reads=[x]) as plan:
        total_of_x = int(x.sum(dtype="u8"))
    assert total_of_x == x.size and "over the bus" in str(plan)
    assert (c.evicted_bytes, c.bytes_to_device) == (0, 0) and c.mapped_bytes == x.nbytes
    with hipemu.counters() as c:
        assert int(x.sum(dtype="u8")) == x.size
    assert c.evicted_bytes > 0  # the scope is left: it thrashes


def test_two_devices_that_read_have_a_copy_each(two: Any, pool: Any, driver: Driver) -> None:
    def read(x: Any, device: int) -> None:
        view = driver.as_array(x.data.ptr, x.nbytes, x, device)
        with two.cuda.Device(device), pool.plain():
            assert int(view.sum(dtype="u8")) == x.size

    x = two.ndarray(N * PAGE, "u1", two.cuda.malloc_managed(N * PAGE))  # in an arena it would prefer one device
    on_host(x)[...] = 1
    with um.access(reads=[x], on=0), um.access(reads=[x], on=1) as plan:
        assert "duplicate" in str(plan)
        with hipemu.counters() as c:
            for _ in range(3):
                read(x, 0)
                read(x, 1)
        assert (c.device_faults, c.migrated_bytes) == (0, 0)
    with hipemu.counters() as c:
        for _ in range(3):
            read(x, 0)
            read(x, 1)
    assert c.migrated_bytes > 0  # it bounces


# host views beside it


def test_a_loop_of_host_writes_and_device_reads_moves_no_page_and_makes_no_fault(cupy: Any, pool: Any) -> None:
    x, y, results = pages(pool), pages(pool), list[Any]()
    with um.access(writes=[x, y]):
        pass
    with hipemu.counters() as c:
        for turn in range(4):
            with um.host_view(x, "w", wait=bool(turn % 2)) as h:
                h[...] = turn
            with um.access(reads=[x], writes=[y]):
                cupy.multiply(x, 2, out=y)
            with um.host_view(y) as h:
                results.append(int(h.max()))
    assert (c.device_faults, c.host_faults, c.migrated_bytes) == (0, 0, 0)
    assert results == [0, 2, 4, 6]


# Roles


def test_weights_live_on_the_device_and_the_host_reads_them_without_taking_them(cupy: Any, pool: Any) -> None:
    w = pages(pool)
    handle = um.role(w, "weights").apply()
    try:
        with hipemu.counters() as c:
            for _ in range(3):
                w += 1
                with um.host_view(w) as h:
                    assert int(h[0]) > 1
        assert (c.device_faults, c.host_faults, c.migrated_bytes, where(w)) == (0, 0, 0, {0})
    finally:
        handle.undo()


def test_a_table_is_resident_as_a_whole_and_random_reads_make_no_fault(cupy: Any, pool: Any) -> None:
    table = pages(pool).reshape(-1, 64)
    with pool.plain():
        rows = cupy.asarray(np.random.default_rng(1).integers(0, len(table), 500))
        with um.role(table, "table"), hipemu.counters() as c:
            out = table[rows]
    assert (c.device_faults, c.migrated_bytes) == (0, 0) and (out == 1).all()


def test_cold_data_stays_on_the_host_and_is_reached_over_the_bus(cupy: Any, pool: Any) -> None:
    x = pages(pool)
    um.move(x, to=0)
    with um.role(x, "cold") as role, pool.plain():
        assert where(x) == {-1}
        with hipemu.counters() as c:
            assert int(x.sum(dtype="u8")) == x.size
        assert (c.migrated_bytes, where(x)) == (0, {-1}) and "over the bus" in role.picked
        with hipemu.counters() as c:
            on_host(x)[...] += 1
        assert c.host_faults == 0


@pytest.mark.parametrize("name", ["weights", "batch", "table", "cold"])
def test_after_a_role_nothing_of_it_is_left(cupy: Any, pool: Any, driver: Driver, name: str) -> None:
    x, attributes = pages(pool), (Attribute.READ_MOSTLY, Attribute.PREFERRED_LOCATION, Attribute.ACCESSED_BY)

    def standing() -> list[Any]:
        return [driver.read_range(x.data.ptr, x.nbytes, attribute) for attribute in attributes]

    before = standing()
    assert before == [False, Device(0), ()]  # a new arena prefers its device
    with um.role(x, name) as role:
        assert (x == 1).all()
    assert standing() == before and role.tally.not_restored == 0


# On every machine


def the_program(xp: Any) -> list[float]:
    """Intent of every kind; the numbers must not depend on the machine."""
    found = []
    with um.pool("8MiB"):
        table, out = um.asarray(np.arange(N * 1024, dtype=np.float32) % 97), um.zeros(N * 1024, np.float32)
        with um.role(table, "table"), um.role(out, "weights"):
            for turn in range(3):
                with um.access(reads=[table], writes=[out], on=0):
                    xp.multiply(table, np.float32(turn), out=out)
                with um.host_view((table, out), "r") as (t, o):
                    found.append(float(t.sum(dtype="f8") + o.sum(dtype="f8")))
                with um.access(updates=[out[5:5000], out[3000:9000:7]]):
                    out[5:5000] += 1
                    out[3000:9000:7] *= 2
                with um.host_view(out[::3], "r+", wait=False) as h:
                    h += 1
                found.append(float(out.sum(dtype="f8")))
        batch = um.empty((2, 1000), np.float32)
        with um.role(batch, "batch"):
            for turn in range(2):
                with um.host_view(batch, "w") as h:
                    h[...] = turn + 1
                with um.access(reads=batch):
                    found.append(float(batch.sum(dtype="f8")))
    return found


def test_numbers_do_not_depend_on_the_machine(driver: Driver) -> None:
    here = the_program(driver.xp)
    before = drivers.set_driver(HostDriver(("a test",)))
    try:
        assert the_program(np) == here
    finally:
        drivers.set_driver(before)


def test_without_migration_nothing_is_asked(driver: Driver) -> None:
    if driver.mode is Mode.MANAGED and not driver.traits(0).unified:
        pytest.skip("pages migrate on this machine")
    calls = hipemu.calls("hipMemPrefetchAsync", "hipMemAdvise")
    with hipemu.counters() as c:
        the_program(driver.xp)
    assert hipemu.calls("hipMemPrefetchAsync", "hipMemAdvise") == calls and c.migrated_bytes == 0
    with um.access(reads=[um.zeros(10)], on=Device(0)) as plan:
        pass
    assert "nothing" in str(plan)
